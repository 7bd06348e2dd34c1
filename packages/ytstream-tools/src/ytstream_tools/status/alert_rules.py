"""`alerts`: rules for Prometheus, for what `metrics` serves and what the cluster exports itself.

The names of the cluster's own metrics come from the queue agent's source (ytsaurus/ytsaurus,
yt/yt/server/queue_agent/profile_manager.cpp: /consumer_partition with /lag_rows as a sum and
/lag_time as a maximum) and from rules that were published with them, which also show the labels
`consumer_path` and an empty `partition_index`, the sum over partitions. No real cluster was asked.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ytstream.job import REJECTED, Job
from ytstream.settings.job_settings import Settings

_QUEUE_AGENT = "yt_queue_agent_consumer_partition"
#: Batches of the most rows that a partition may give: so many rows wait at most.
_BATCHES = 10


@dataclass(frozen=True)
class Alert:
    """One rule and the metric without which it could never fire."""

    name: str
    #: ``SELF`` stands for the selector of this job's series.
    expression: str
    #: Minutes for which it has to hold.
    minutes: int
    severity: str
    summary: str
    metric: str


def alerts(job: Job) -> Iterator[Alert]:
    """Yield the rules for what `metrics` serves; skip a rule that this job cannot meet."""
    yield Alert(
        "YtstreamUnreadable", "ytstream_up{SELF} == 0", 5, "critical",
        "cluster or ledger cannot be read", "ytstream_up",
    )  # fmt: skip
    yield Alert(
        "YtstreamEndedWithoutStop",
        'ytstream_process_state{SELF, state=~"killed|failed"} == 1', 5, "critical",
        "the job has ended and nobody has stopped it", "ytstream_process_state",
    )  # fmt: skip
    yield Alert(
        "YtstreamStalled",
        "sum by (app) (ytstream_lag_rows{SELF}) > 0"
        " and on (app) increase(ytstream_batches_total{SELF}[10m]) == 0", 5, "critical",
        "rows wait, and no batch has ended for ten minutes", "ytstream_batches_total",
    )  # fmt: skip
    yield Alert(
        "YtstreamLagGrows",
        "sum by (app) (delta(ytstream_lag_rows{SELF}[30m])) > 0"
        " and on (app) max by (app) (ytstream_lag_seconds{SELF}) > 300", 10, "warning",
        "rows arrive faster than they are read, and one waits for over five minutes",
        "ytstream_lag_seconds",
    )  # fmt: skip
    yield Alert(
        "YtstreamRestarts", "delta(ytstream_epoch{SELF}[1h]) > 3", 0, "warning",
        "more than three new epochs in an hour: the query fails and starts again",
        "ytstream_epoch",
    )  # fmt: skip
    if job.reject:
        yield Alert(
            "YtstreamRejectedShare",
            "sum by (app) (rate(ytstream_rows_rejected_total{SELF}[15m]))"
            " / on (app) rate(ytstream_rows_read_total{SELF}[15m]) > 0.05", 5, "warning",
            "more than one row of twenty is rejected", "ytstream_rows_rejected_total",
        )  # fmt: skip
    if job.kind.is_stateful:
        yield Alert(
            "YtstreamStateGrows",
            "ytstream_state_rows{SELF} > 2 * (ytstream_state_rows{SELF} offset 1d)"
            " and ytstream_state_rows{SELF} > 100000", 30, "warning",
            "the state has twice the rows of a day ago", "ytstream_state_rows",
        )  # fmt: skip
    if job.processing == "map" and {*job.outputs} <= {"output", REJECTED}:
        yield Alert(
            "YtstreamReadUnequalWritten", "ytstream_read_minus_written_rows{SELF} != 0", 10,
            "critical", "a map has written more or fewer rows than it has read; remove the rule "
            "if transform() leaves rows out by itself", "ytstream_read_minus_written_rows",
        )  # fmt: skip


def cluster_alerts(settings: Settings) -> Iterator[Alert]:
    """Yield the rules for what the cluster's queue agent exports of the consumer."""
    rows = _BATCHES * settings.max_rows_per_partition
    yield Alert(
        "YtConsumerLagRows", f"max({_QUEUE_AGENT}_lag_rows_sum{{SELF}}) > {rows}", 10, "warning",
        f"more than {rows} rows wait", f"{_QUEUE_AGENT}_lag_rows_sum",
    )  # fmt: skip
    yield Alert(
        "YtConsumerLagTime", f"max({_QUEUE_AGENT}_lag_time_max{{SELF}}) > 600", 5, "warning",
        "a row has waited for over ten minutes", f"{_QUEUE_AGENT}_lag_time_max",
    )  # fmt: skip


def text(job: Job, settings: Settings) -> str:
    """Return a file of rules in YAML. A text in quotes is one in JSON and in YAML alike."""
    app, consumer = json.dumps(job.name, ensure_ascii=False), json.dumps(settings.consumer)
    return "\n".join(
        (
            f"# Of {app}: `python -m <package> alerts`. Change the figures to what is normal here.",
            "groups:",
            *_group("ytstream", [*alerts(job)], f"app={app}", "{SELF}"),
            *_group(
                "ytsaurus",
                [*cluster_alerts(settings)],
                f'consumer_path={consumer}, partition_index=""',
                "",
            ),
        )
    )


def _group(name: str, rules: Sequence[Alert], selector: str, down: str) -> Iterator[str]:
    yield f"  - name: {name}"
    yield "    rules:"
    for rule in rules:
        yield from _rule(rule, selector)
        # Without its series a rule is as quiet as in a healthy run.
        without = f"absent({rule.metric}{{SELF}})"
        if down and rule.metric != "ytstream_up":
            without += " unless on () ytstream_up{SELF} == 0"
        summary = f"{rule.metric} is missing, so {rule.name} cannot fire"
        yield from _rule(
            Alert(f"{rule.name}Absent", without, 15, "warning", summary, rule.metric), selector
        )


def _rule(rule: Alert, selector: str) -> Iterator[str]:
    expression = rule.expression.replace("SELF", selector)
    yield f"      - alert: {rule.name}"
    yield f"        expr: {json.dumps(expression, ensure_ascii=False)}"
    yield f"        for: {rule.minutes}m"
    yield f"        labels: {{severity: {rule.severity}}}"
    yield f"        annotations: {{summary: {json.dumps(rule.summary, ensure_ascii=False)}}}"
