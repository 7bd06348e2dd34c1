"""`alerts`: rules for Prometheus, for what `metrics` serves and what the cluster exports itself.

The names of the cluster's own metrics come from the queue agent's source (ytsaurus/ytsaurus,
yt/yt/server/queue_agent/profile_manager.cpp: /consumer_partition with /lag_rows as a sum and
/lag_time as a maximum) and from rules that were published with them, which also show the labels
`consumer_path` and an empty `partition_index`, the sum over partitions. No real cluster was asked.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ytstream.job import REJECTED, Job
from ytstream.schema.sums import sums_of
from ytstream.settings.job_settings import Settings

from .alert_limits import (
    ACCOUNT_SHARE,
    FULL_BATCHES,
    LARGE_STATE_ROWS,
    LATE_SECONDS,
    LATE_SHARE_OF_LIMIT,
    MISSING_CHANGE,
    REJECTED_SHARE,
    STALLED_SECONDS,
    STARTS_PER_HOUR,
    TOTAL_SHARE,
    UNSEALED_SECONDS,
)

_QUEUE_AGENT = "yt_queue_agent_consumer_partition"
RUNBOOK = "docs/operations.md"
"""Where an alert sends a reader: a heading of the generated repository's runbook."""
ABSENT = "Rules that end with Absent"
"""The heading that all twins share."""


@dataclass(frozen=True)
class Alert:
    """One rule and the metric without which it could never fire."""

    name: str
    expression: str
    """``SELF`` stands for the selector of this job's series."""
    minutes: int
    """Minutes for which it has to hold."""
    severity: str
    summary: str
    description: str
    """What is so, and what it means for the data."""
    metric: str
    entry: str = ""
    """The heading of the runbook's entry; empty: the rule's name."""


def alerts(job: Job, settings: Settings) -> Iterator[Alert]:
    """Yield the rules for what `metrics` serves; skip a rule that this job cannot meet."""
    yield Alert(
        "YtstreamUnreadable", "ytstream_up{SELF} == 0", 5, "critical",
        "cluster or ledger cannot be read",
        "`metrics` gets no answer, so nobody knows where the job is. The job itself may run well. "
        "If it does not, unread rows stay in the queue until it trims them.",
        "ytstream_up",
    )  # fmt: skip
    yield Alert(
        "YtstreamEndedWithoutStop",
        'ytstream_process_state{SELF, state=~"killed|failed"} == 1', 5, "critical",
        "the job ended, and nobody stopped it",
        "No batch will run until the job is started. Committed rows are kept. Unread rows stay in "
        "the queue until it trims them.",
        "ytstream_process_state",
    )  # fmt: skip
    yield Alert(
        "YtstreamStalled",
        "sum by (app) (ytstream_lag_rows{SELF}) > 0"
        f" and on (app) increase(ytstream_batches_total{{SELF}}[{STALLED_SECONDS // 60}m]) == 0",
        5, "critical",
        "rows wait, and no batch has ended for ten minutes",
        "The outputs get no new rows. Committed rows are kept. Unread rows stay in the queue until "
        "it trims them.",
        "ytstream_batches_total",
    )  # fmt: skip
    yield Alert(
        "YtstreamLagGrows",
        "sum by (app) (delta(ytstream_lag_rows{SELF}[30m])) > 0"
        f" and on (app) max by (app) (ytstream_lag_seconds{{SELF}}) > {LATE_SECONDS}",
        10, "warning",
        "rows arrive faster than they are read, and one has waited for over five minutes",
        "The outputs are late, and get later. Unread rows stay in the queue until it trims them.",
        "ytstream_lag_seconds",
    )  # fmt: skip
    # delta() extrapolates to the ends of the hour: of three starts it makes up to 3.2.
    yield Alert(
        "YtstreamRestarts", f"delta(ytstream_epoch{{SELF}}[1h]) > {STARTS_PER_HOUR + 0.5}", 0,
        "warning",
        "more than three starts in an hour: the query or the driver fails and starts again",
        "Each restart reads the unfinished batch again. After "
        f"{job.most_failures} failures without a batch in between, the job ends.",
        "ytstream_epoch",
    )  # fmt: skip
    yield Alert(
        "YtstreamAccountFull",
        f"max by (app, account, resource) (ytstream_account_used_ratio{{SELF}}) >= {ACCOUNT_SHARE}",
        5, "critical",
        "an account that the job writes with is full, or nearly",
        "Without room, no batch ends: the job waits until there is some, and then goes on. "
        "Committed rows are kept. Unread rows stay in the queue until it trims them.",
        "ytstream_account_used_ratio",
    )  # fmt: skip
    if job.reject:
        yield Alert(
            "YtstreamRejectedShare",
            "sum by (app) (rate(ytstream_rows_rejected_total{SELF}[15m]))"
            f" / on (app) rate(ytstream_rows_read_total{{SELF}}[15m]) > {REJECTED_SHARE}",
            5, "warning",
            "more than one row of twenty is rejected",
            "These rows are in the output `rejected`, not in the others. Above `reject_limit` of a "
            "batch, the job ends.",
            "ytstream_rows_rejected_total",
        )  # fmt: skip
    if settings.late_limit is not None and job.rejects_late:
        part = LATE_SHARE_OF_LIMIT * settings.late_limit
        yield Alert(
            "YtstreamLateShare",
            "sum by (app) (rate(ytstream_rows_late_total{SELF}[15m]))"
            f" / on (app) rate(ytstream_rows_read_total{{SELF}}[15m]) > {part:g}",
            5, "warning",
            f"more than {100 * part:g}% of the rows come behind the watermark",
            "These rows are in the output `rejected`, with the reason `late`. Above `late_limit` "
            f"of a batch, {settings.late_limit:g}, the job ends.",
            "ytstream_rows_late_total",
        )  # fmt: skip
    if job.references:
        yield Alert(
            "YtstreamLookupMisses",
            f"abs({_missing_share('15m')} - {_missing_share('1d')}) > {MISSING_CHANGE}", 15,
            "warning",
            "lookups find a row much more or less often than in the last day",
            "Rows without a match have nulls, or an inner lookup drops them. They are not looked "
            "up again when the reference has their keys.",
            "ytstream_lookup_missing_total",
        )  # fmt: skip
    if job.archives:
        yield Alert(
            "YtstreamPeriodNotSealed",
            f"max by (app, output) (ytstream_archive_overdue_seconds{{SELF}}) > {UNSEALED_SECONDS}",
            5, "warning",
            "a period of an archive has no table an hour after it could be complete",
            "Its rows are staged and safe. Readers of the archive wait. `why` names what holds it.",
            "ytstream_archive_overdue_seconds",
        )  # fmt: skip
    if any(sums_of(job.output_columns[name]) for name in job.totals):
        yield Alert(
            "YtstreamTotalNearLimit",
            f"max by (app, output, column) (ytstream_total_used_ratio{{SELF}}) > {TOTAL_SHARE}",
            5, "warning",
            f"a total has used up more than {100 * TOTAL_SHARE:.0f}% of its 64 bits",
            "All totals are right. A batch that would take one beyond its type ends the job before "
            "it is committed. Until then unread rows stay in the queue.",
            "ytstream_total_used_ratio",
        )  # fmt: skip
    if job.kind.is_stateful:
        yield Alert(
            "YtstreamStateGrows",
            "ytstream_state_rows{SELF} > 2 * (ytstream_state_rows{SELF} offset 1d)"
            f" and ytstream_state_rows{{SELF}} > {LARGE_STATE_ROWS}", 30, "warning",
            "the state has twice the rows of a day ago",
            "Nothing is lost now. Batches and starts get slower, and executors may run out of disk "
            "or memory.",
            "ytstream_state_rows",
        )  # fmt: skip
        yield Alert(
            "YtstreamStateLarge",
            # Of RocksDB, the memory is a cache that fills up however small the state is.
            f"ytstream_state_file_bytes{{SELF}} > {job.large_state_bytes}"
            f" or (ytstream_state_memory_bytes{{SELF}} > {job.large_state_bytes}"
            " and ytstream_state_file_bytes{SELF} == 0)", 30, "warning",
            "the state takes more than large_state_bytes of job.py",
            "Nothing is lost now. An executor whose disk or memory is full fails, and no batch "
            "ends until it gets more.",
            "ytstream_state_file_bytes",
        )  # fmt: skip
    if job.processing == "map" and {*job.outputs} <= {"output", REJECTED}:
        yield Alert(
            "YtstreamReadUnequalWritten", "ytstream_read_minus_written_rows{SELF} != 0", 10,
            "critical", "a map has written more or fewer rows than it has read",
            "Rows are missing from the output or duplicated, and each batch may add more. "
            "Remove the rule if transform() drops rows on purpose.",
            "ytstream_read_minus_written_rows",
        )  # fmt: skip


def _missing_share(period: str) -> str:
    """Return the share of lookups that found nothing, by reference."""
    found, all_ = "ytstream_lookup_missing_total", "ytstream_lookup_rows_total"
    return f"rate({found}{{SELF}}[{period}]) / (rate({all_}{{SELF}}[{period}]) > 0)"


def cluster_alerts(settings: Settings) -> Iterator[Alert]:
    """Yield the rules for what the cluster's queue agent exports of the consumer."""
    rows = FULL_BATCHES * settings.max_rows_per_partition
    late = "The outputs are late. Unread rows stay in the queue until it trims them."
    yield Alert(
        "YtConsumerLagRows", f"max({_QUEUE_AGENT}_lag_rows_sum{{SELF}}) > {rows}", 10, "warning",
        f"more than {rows} rows wait", late, f"{_QUEUE_AGENT}_lag_rows_sum",
    )  # fmt: skip
    yield Alert(
        "YtConsumerLagTime", f"max({_QUEUE_AGENT}_lag_time_max{{SELF}}) > {STALLED_SECONDS}", 5,
        "warning", "a row has waited for over ten minutes", late, f"{_QUEUE_AGENT}_lag_time_max",
    )  # fmt: skip


def anchor(heading: str) -> str:
    """Return a heading as GitHub and GitLab name it in an address."""
    return heading.lower().replace(" ", "-")


def text(job: Job, settings: Settings, config: Path) -> str:
    """Return a file of rules in YAML, with the figures of the configuration in ``config``.

    A text in quotes is one in JSON and in YAML alike.
    """
    app, consumer = json.dumps(job.name, ensure_ascii=False), json.dumps(settings.consumer)
    page = settings.runbook_url or RUNBOOK
    return "\n".join(
        (
            f"# Of {app}, with the consumer and the figures of {config}:",
            f"# `python -m <package> alerts --config {config}`. Change them to what is normal.",
            "groups:",
            *_group("ytstream", [*alerts(job, settings)], f"app={app}", "{SELF}", page),
            *_group(
                "ytsaurus",
                [*cluster_alerts(settings)],
                f'consumer_path={consumer}, partition_index=""',
                "",
                page,
            ),
        )
    )


def _group(name: str, rules: Sequence[Alert], selector: str, down: str, page: str) -> Iterator[str]:
    yield f"  - name: {name}"
    yield "    rules:"
    for rule in rules:
        yield from _rule(rule, selector, page)
        # Without its series a rule is as quiet as in a healthy run.
        without = f"absent({rule.metric}{{SELF}})"
        if down and rule.metric != "ytstream_up":
            without += " unless on () ytstream_up{SELF} == 0"
        summary = f"{rule.metric} is missing, so {rule.name} cannot fire"
        blind = "The job may be running normally, but no alert would report this fault."
        twin = Alert(
            f"{rule.name}Absent", without, 15, "warning", summary, blind, rule.metric, ABSENT
        )
        yield from _rule(twin, selector, page)


def _rule(rule: Alert, selector: str, page: str) -> Iterator[str]:
    annotations = {
        "summary": rule.summary,
        "description": rule.description,
        "runbook_url": f"{page}#{anchor(rule.entry or rule.name)}",
    }
    yield f"      - alert: {rule.name}"
    yield f"        expr: {_quoted(rule.expression.replace('SELF', selector))}"
    yield f"        for: {rule.minutes}m"
    yield f"        labels: {{severity: {rule.severity}}}"
    yield "        annotations:"
    yield from (f"          {name}: {_quoted(said)}" for name, said in annotations.items())


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
