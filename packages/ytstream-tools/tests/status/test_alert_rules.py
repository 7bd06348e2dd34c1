"""Rules for Prometheus: each fires by its fault, and none in a healthy hour; no JVM.

The series are what `metrics` reads from a minicluster, a look a minute, by a clock of the test's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from minicluster import testing as minicluster
from tests.support.examples import TOTALS, example, settings_of
from tests.support.helpers import ContextOf
from tests.support.project import ROOT
from tests.support.promtool import Series, fires, series_name
from tests.support.server_errors import TOKEN_BY_HTTP
from tests.support.status_steps import head_of_batch, send, write_rows
from ytstream import Hourly, cli
from ytstream.cluster.account_usage import ResourceUsage
from ytstream.instance.lock import InstanceLock
from ytstream.job import JobContext
from ytstream.ledger import ledger_rows
from ytstream.ledger.ledger_rows import BatchRow, Head, StoreFigures, batch_row, head_row
from ytstream_tools.status import alert_rules, job_status, prometheus
from ytstream_tools.status.job_status import JobStatus

CONFIG = Path("config/production.toml")
MINUTES = 75
START = datetime(2026, 11, 23, 10, tzinfo=UTC)
PAGE = (ROOT / "docs/status.md").read_text(encoding="utf-8").partition("## Alerts")[2]


def _rules(processing: str, static: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the rules of a job by name."""
    job = example("transactional", processing, rejects=True).job
    job = replace(job, references={"auctions": []}, static=static or ())
    settings = settings_of(job, "//home/job")
    if job.kind.is_stateful:
        job, settings = replace(job, late="reject"), replace(settings, late_limit=0.2)
    text = alert_rules.text(job, settings, CONFIG)
    groups = yaml.safe_load(text)["groups"]
    return {rule["alert"]: rule for group in groups for rule in group["rules"]}


@pytest.mark.parametrize("processing", ["map", "window"])
def test_each_rule_has_a_twin_and_names_what_there_is(processing: str) -> None:
    rules = _rules(processing)
    for name, rule in rules.items():
        assert {*rule["annotations"]} == {"summary", "description", "runbook_url"}
        assert all(rule["annotations"].values())
        for metric in re.findall(r"\bytstream_\w+", rule["expr"]):
            assert metric in prometheus.HELP, name
        if not name.endswith("Absent"):
            assert "absent(" in rules[f"{name}Absent"]["expr"]


def test_rules_lead_to_the_page_that_the_configuration_names() -> None:
    job = example("transactional", "map").job
    url = "https://git.example.com/bids/operations.md"
    settings = replace(settings_of(job, "//home/job"), runbook_url=url)
    groups = yaml.safe_load(alert_rules.text(job, settings, CONFIG))["groups"]
    given = {rule["annotations"]["runbook_url"] for group in groups for rule in group["rules"]}
    assert f"{url}#ytstreamstalled" in given
    assert all(address.startswith(f"{url}#") for address in given)


def test_each_rule_has_its_line_on_the_page() -> None:
    named = set(re.findall(r"`(Yt\w+)`", PAGE.partition("## JSON")[0]))
    archive = {"output": Hourly("date_time")}
    given = {*_rules("map"), *_rules("window"), *_rules("map", archive), *_rules(TOTALS)}
    assert named == {name for name in given if not name.endswith("Absent")}


def test_the_command_prints_the_rules(
    context_of: ContextOf, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without asking the cluster, whose token may be elsewhere."""
    job, settings = context_of("transactional").job, context_of("transactional").settings
    lines = [
        'proxy = "127.0.0.1:9"',
        f'queues = ["{settings.queues[0]}"]',
        *(f'{name} = "{getattr(settings, name)}"' for name in ("consumer", "checkpoint", "ledger")),
        "[outputs]",
        *(f'{name} = "{path}"' for name, path in settings.outputs.items()),
    ]
    (tmp_path / "local.toml").write_text("\n".join(lines))
    words = ["alerts", "--config", str(tmp_path / "local.toml")]
    assert cli.run("bids", lambda: job, words) == 0
    assert "YtstreamStalled" in capsys.readouterr().out


# -- played on a minicluster


@dataclass
class Play:
    """An hour of a job, minute by minute."""

    context: JobContext
    cluster: minicluster.Running
    head: Head = field(default_factory=Head)
    minute: int = 0
    series: Series = field(default_factory=Series)
    _seen: dict[int, JobStatus] = field(default_factory=dict)
    _used: Sequence[ResourceUsage] = ()

    def __post_init__(self) -> None:
        """Start the first process, which holds the lock."""
        self.lock = InstanceLock(self.context.client, self.context.settings.consumer)
        self.lock.acquire(print)
        holder = next(owner for _, owner, _ in self.lock.holders())
        owner = f"{holder.rpartition(',')[0]}, 0123abcd"
        self.head = replace(head_of_batch(self.context, 0, 1), owner=owner, batch=-1)
        write_rows(self.context, head_row(self.head))

    @property
    def now(self) -> datetime:
        """The time of the play."""
        return START + timedelta(minutes=self.minute)

    def batch(self, rows: int, *, rejected: int = 0, lost: int = 0) -> None:
        """Read so many rows of each partition."""
        queue, ends = self.context.settings.queues[0], self.head.ends
        was = {p: ends.get(self.context.settings.queues[0], {}).get(p, 0) for p in range(4)}
        ranges = {p: (first, first + rows) for p, first in was.items()}
        done = BatchRow(
            {queue: ranges},
            {"output": 4 * rows - rejected - lost, "rejected": rejected},
            self.now - timedelta(seconds=5), self.now,
            rejected={next(iter(self.context.job.reject)): rejected},
        )  # fmt: skip
        head = replace(
            self.head, number=self.head.number + 1, batch=self.head.batch + 1,
            ends={queue: {p: end for p, (_, end) in ranges.items()}},
            totals=ledger_rows.added(self.head.totals, done),
        )  # fmt: skip
        self.head = head
        write_rows(self.context, head_row(head), batch_row(head, done))

    def fill(self, used: Sequence[ResourceUsage]) -> None:
        """Let the account have used so much, which a minicluster cannot."""
        self._used = used

    def standing(self) -> JobStatus:
        """Return where the job is, by the clock of the play; one look a minute."""
        if self.minute in self._seen:
            return self._seen[self.minute]
        found = replace(job_status.read(self.context), time=self.now)
        # The cluster stamps rows by a clock of its own: here 20 come to each partition a minute.
        partitions = [
            replace(one, seconds=60.0 * (self.minute - one.next // 20) if one.lag else None)
            for one in found.partitions
        ]
        accounts = self._used or found.accounts
        self._seen = {self.minute: replace(found, partitions=partitions, accounts=accounts)}
        return self._seen[self.minute]

    def look(self) -> None:
        """Note what `metrics` gives now."""

        def look() -> Iterator[prometheus.Sample]:
            return prometheus.samples(self.context, self.standing())

        note_metrics(self.series, self.minute, self.context, look)

    def ask_the_agent(self) -> None:
        """Note what the cluster's queue agent exports: its consumer is where the ledger is."""
        found = self.standing()
        labels = {"consumer_path": self.context.settings.consumer, "partition_index": ""}
        for name, value in (("rows_sum", found.lag), ("time_max", found.lag_seconds or 0.0)):
            name = f"yt_queue_agent_consumer_partition_lag_{name}"
            self.series.note(self.minute, name, labels, value)


def note_metrics(
    series: Series,
    minute: int,
    context: JobContext,
    look: Callable[[], Iterator[prometheus.Sample]],
) -> None:
    """Note what the server of `metrics` answers."""
    for metric in prometheus.Collector(context.job.name, look).collect():
        for sample in metric.samples:
            series.note(minute, sample.name, sample.labels, sample.value)


def _healthy(play: Play) -> None:
    send(play.context, 80)
    play.batch(20, rejected=1)
    play.look()


def _killed(play: Play) -> None:
    """Its lock goes with it, and rows come in."""
    if play.minute == 20:
        play.lock.release()
    if play.minute < 20:
        return _healthy(play)
    send(play.context, 80)
    return play.look()


def _hung(play: Play) -> None:
    if play.minute < 20:
        return _healthy(play)
    send(play.context, 80)
    return play.look()


def _slow(play: Play) -> None:
    """Rows come twice as fast as they are read; a batch takes minutes."""
    send(play.context, 80)
    if play.minute % 8 == 0:
        play.batch(40, rejected=1)
    play.look()


def _rejecting(play: Play) -> None:
    send(play.context, 80)
    play.batch(20, rejected=20 if play.minute >= 20 else 0)
    play.look()


def _restarting(play: Play) -> None:
    if play.minute % 12 == 0:
        play.head = replace(play.head, epoch=play.head.epoch + 1)
    _healthy(play)


def _losing(play: Play) -> None:
    send(play.context, 80)
    play.batch(20, lost=1 if play.minute == 20 else 0)
    play.look()


def _unreadable(play: Play) -> None:
    """The token of `metrics` expires, the job runs on."""
    if play.minute < 20:
        return _healthy(play)
    send(play.context, 80)
    play.batch(20)
    rule = play.cluster.client.faults.add(
        method="select_rows", times=None, action="fail", error=TOKEN_BY_HTTP
    )
    play.look()
    return play.cluster.client.faults.remove(rule)


def _filling(play: Play) -> None:
    """Let another user of the account fill it; the job has room for its own rows."""
    share = 0.99 if play.minute >= 20 else 0.5
    used = [ResourceUsage("default", "disk space of default", int(share * 1000), 1000)]
    play.fill(used)
    _healthy(play)


def _gone(play: Play) -> None:
    """The exporter itself has ended."""
    if play.minute < 20:
        _healthy(play)


def _agentless(play: Play) -> None:
    """Run well where the queue agent exports nothing."""
    _healthy(play)


_JOB = example("transactional", "map", rejects=True).job
_SETTINGS = settings_of(_JOB, "//home/job")
_TWINS = {f"{rule.name}Absent" for rule in alert_rules.alerts(_JOB, _SETTINGS)}
_TWINS_OF_AGENT = {f"{rule.name}Absent" for rule in alert_rules.cluster_alerts(_SETTINGS)}
_AGENT = "YtConsumerLagTime"
"""The queue agent's rule for a job that reads no more, or too slowly."""
PLAYS: Mapping[Callable[[Play], None], set[str]] = {
    _healthy: set(),
    _killed: {"YtstreamEndedWithoutStop", "YtstreamStalled", "YtstreamLagGrows", _AGENT},
    _hung: {"YtstreamStalled", "YtstreamLagGrows", _AGENT},
    _slow: {"YtstreamLagGrows", _AGENT},
    _rejecting: {"YtstreamRejectedShare"},
    _restarting: {"YtstreamRestarts"},
    _losing: {"YtstreamReadUnequalWritten"},
    _unreadable: {"YtstreamUnreadable"},
    _filling: {"YtstreamAccountFull"},
    _gone: _TWINS,
    _agentless: _TWINS_OF_AGENT,
}
"""What happens -> the rules that fire by the end of it."""


@pytest.mark.journey
@pytest.mark.parametrize("play", PLAYS, ids=lambda play: play.__name__.lstrip("_"))
def test_a_fault_fires_its_rules_alone(
    provisioned_of: ContextOf, cluster: minicluster.Running, tmp_path: Path,
    play: Callable[[Play], None],
) -> None:  # fmt: skip
    context = provisioned_of("transactional", rejects=True)
    played = Play(context, cluster)
    for played.minute in range(MINUTES):
        played.lock.keep()
        play(played)
        if play is not _agentless:
            played.ask_the_agent()
    text = alert_rules.text(context.job, context.settings, CONFIG)
    fires(tmp_path, text, played.series.values(MINUTES), PLAYS[play], MINUTES - 1)


def test_the_rule_of_late_rows_fires_at_half_of_the_limit() -> None:
    assert _rules("window")["YtstreamLateShare"]["expr"].endswith("> 0.1")
    assert "YtstreamLateShare" not in _rules("map")


@pytest.mark.journey
@pytest.mark.parametrize(("late", "wanted"), [(9, set[str]()), (11, {"YtstreamLateShare"})])
def test_the_share_of_late_rows(tmp_path: Path, late: int, wanted: set[str]) -> None:
    job = replace(example("transactional", "window", rejects=True).job, late="reject")
    settings = replace(settings_of(job, "//home/job"), late_limit=0.2)
    text = alert_rules.text(job, settings, CONFIG)
    series = {
        series_name("ytstream_up", {"app": job.name}): ["1x40"],
        series_name("ytstream_rows_read_total", {"app": job.name}): ["0+100x40"],
        series_name("ytstream_rows_late_total", {"app": job.name}): [f"0+{late}x40"],
    }
    fires(tmp_path, text, series, wanted, 30, only="YtstreamLateShare")


@pytest.mark.journey
def test_three_starts_in_an_hour_are_not_more_than_three(tmp_path: Path) -> None:
    """Also of a job that runs for less than an hour, whose starts Prometheus extrapolates."""
    job = example("transactional", "map").job
    text = alert_rules.text(job, settings_of(job, "//home/job"), CONFIG)
    for starts, wanted in ((4, {"YtstreamRestarts"}), (3, set[str]())):
        epochs = " ".join(map(str, [*[1] * 10, *range(2, 2 + starts), *[1 + starts] * 10]))
        series = {
            series_name("ytstream_up", {"app": job.name}): ["1x40"],
            series_name("ytstream_epoch", {"app": job.name}): [epochs],
        }
        fires(tmp_path, text, series, wanted, 20, only="YtstreamRestarts")


@pytest.mark.journey
def test_a_total_near_the_end_of_its_type_fires(tmp_path: Path) -> None:
    job = example("transactional", TOTALS).job
    text = alert_rules.text(job, settings_of(job, "//home/job"), CONFIG)
    for share, wanted in ((0.61, {"YtstreamTotalNearLimit"}), (0.5, set[str]())):
        labels = {"app": job.name, "output": "output", "column": "bids"}
        series = {
            series_name("ytstream_up", {"app": job.name}): ["1x40"],
            series_name("ytstream_total_used_ratio", labels): [f"{share}x40"],
        }
        fires(tmp_path, text, series, wanted, 30, only="YtstreamTotalNearLimit")


@pytest.mark.journey
def test_more_lookups_that_find_nothing_fire(tmp_path: Path) -> None:
    job = replace(example("transactional", "map").job, references={"auctions": []})
    text = alert_rules.text(job, settings_of(job, "//home/job"), CONFIG)
    day, labels = 24 * 60, {"app": job.name, "reference": "auctions"}
    for later, wanted in ((40, {"YtstreamLookupMisses"}), (11, set[str]())):
        series = {
            series_name("ytstream_up", {"app": job.name}): [f"1x{day + 60}"],
            series_name("ytstream_lookup_rows_total", labels): [f"0+100x{day + 60}"],
            series_name("ytstream_lookup_missing_total", labels): [
                f"0+5x{day}", f"{5 * day + later}+{later}x59",
            ],
        }  # fmt: skip
        fires(tmp_path, text, series, wanted, day + 59, only="YtstreamLookupMisses")


def _state(
    context: JobContext, series: Series, minutes: range, rows: int, store: StoreFigures
) -> None:
    """Note minutes in which a job with state has so much of it: they are alike."""
    lock = InstanceLock(context.client, context.settings.consumer)
    lock.acquire(print)
    holder = next(owner for _, owner, _ in lock.holders())
    owner = f"{holder.rpartition(',')[0]}, 0123abcd"
    ends = {context.settings.queues[0]: dict.fromkeys(range(4), 0)}
    head = replace(head_of_batch(context, 1, ends=ends, state_rows=rows, store=store), owner=owner)
    write_rows(context, head_row(head))
    found = [*prometheus.samples(context, job_status.read(context))]
    lock.release()
    for minute in minutes:
        note_metrics(series, minute, context, lambda: iter(found))


@pytest.mark.journey
def test_a_state_that_doubles_in_a_day_fires(provisioned_of: ContextOf, tmp_path: Path) -> None:
    context = provisioned_of("transactional", "window")
    text = alert_rules.text(context.job, context.settings, CONFIG)
    day, store = 24 * 60, StoreFigures(0, 0, 0)
    for rows, wanted in ((300_001, {"YtstreamStateGrows"}), (200_000, set[str]())):
        series = Series()
        _state(context, series, range(day), 150_000, store)
        _state(context, series, range(day, day + 60), rows, store)
        fires(tmp_path, text, series.values(day + 60), wanted, day + 59, only="Ytstream.*")


@pytest.mark.journey
def test_a_state_above_the_jobs_limit_fires(provisioned_of: ContextOf, tmp_path: Path) -> None:
    made = provisioned_of("transactional", "window")
    context = replace(made, job=replace(made.job, large_state_bytes=1_000))
    text = alert_rules.text(context.job, context.settings, CONFIG)
    fired = {"YtstreamStateLarge"}
    for memory, files, wanted in (
        (0, 1_001, fired),
        (9_999, 1_000, set[str]()),  # a cache of RocksDB's that is full
        (1_001, 0, fired),
        (1_000, 0, set[str]()),
    ):
        series = Series()
        _state(context, series, range(60), 10, StoreFigures(memory, files, 0))
        fires(tmp_path, text, series.values(60), wanted, 59, only="Ytstream.*")


@pytest.mark.journey
def test_the_queue_agents_lag_fires(tmp_path: Path) -> None:
    job = example("transactional", "map").job
    settings = settings_of(job, "//home/job")
    labels = {"consumer_path": settings.consumer, "partition_index": ""}
    for rows, seconds, wanted in (
        (10**9, 700, {"YtConsumerLagRows", "YtConsumerLagTime"}),
        (0, 0, set[str]()),
    ):
        series = {
            series_name("yt_queue_agent_consumer_partition_lag_rows_sum", labels): [f"{rows}x30"],
            series_name("yt_queue_agent_consumer_partition_lag_time_max", labels): [
                f"{seconds}x30"
            ],
        }
        fires(
            tmp_path,
            alert_rules.text(job, settings, CONFIG),
            series,
            wanted,
            29,
            only="YtConsumer.*",
        )
