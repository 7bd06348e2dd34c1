"""Each alert, provoked in a run of a real job: batches of SPYT, the real `metrics`, promtool.

What is done to the job lasts for some minutes of the series. A minute is a scrape, and the clock of
`metrics` goes on by a minute with each scrape in which rows wait.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any
from urllib.request import urlopen

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.journeys.live_job import Live, live
from tests.support.jvm import submit_args
from tests.support.promtool import Series, fires, promtool
from tests.support.server_errors import UNAVAILABLE
from ytstream_tools.demo.job_process import environment
from ytstream_tools.status import alert_rules, job_status

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.journey]

EXPORTER = """
import datetime, pathlib, sys
from ytstream_tools import __main__ as light
from ytstream_tools.status import job_status
ahead = pathlib.Path(sys.argv[1])
class Clock(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return super().now(tz) + datetime.timedelta(seconds=float(ahead.read_text()))
job_status.datetime = Clock
sys.exit(light.main(sys.argv[2:]))
"""
"""`metrics` of the light commands, on a machine whose clock is so many seconds ahead."""
MOST_ROWS = 25
"""Rows of a partition that a batch may read: a backlog is several batches."""
ROWS, ARRIVING = 80, 5 * 4 * MOST_ROWS
"""Rows that come in a minute; and those of a minute in which a batch can read a fifth of them."""
REJECTED = {"url": "https://auction.example/1?c=0"}
"""A URL of another auction, which REJECT keeps out."""
DROPS = """

_transform = transform


def transform(events):
    return _transform(events).where("bidder % 2 = 0")
"""
"""A map that leaves rows out."""
_AGENT = "yt_queue_agent_consumer_partition_lag"


@dataclass
class Run:
    """The job, its exporter, and what was scraped so far."""

    job: Live
    folder: Path
    series: Series = field(default_factory=Series)
    minute: int = 0
    address: str = ""
    """The exporter's."""

    def scrape(self, waiting: float = 0.0, minutes: int = 1) -> None:
        """Note what is scraped for so many minutes; rows have waited for so many seconds more."""
        (self.folder / "ahead").write_text(str(waiting))
        with urlopen(self.address, timeout=60) as answer:
            text = answer.read().decode()
        samples = [
            sample for family in text_string_to_metric_families(text) for sample in family.samples
        ]
        rows = sum(one.value for one in samples if one.name == "ytstream_lag_rows")
        ages = [one.value for one in samples if one.name == "ytstream_lag_seconds"]
        # The minicluster has no queue agent that exports. These are its figures.
        labels = {"consumer_path": self.job.context.settings.consumer, "partition_index": ""}
        for _ in range(minutes):
            for one in samples:
                self.series.note(self.minute, one.name, one.labels, one.value)
            self.series.note(self.minute, f"{_AGENT}_rows_sum", labels, rows)
            self.series.note(self.minute, f"{_AGENT}_time_max", labels, max(ages, default=0.0))
            self.minute += 1

    def quiet(self) -> None:
        """Let more than an hour go by in which no row comes: no rule remembers what was before."""
        for _ in range(7):
            self.scrape(minutes=10)

    def batch(self) -> None:
        """Let a minute's rows come, and be read."""
        self.job.send(ROWS)
        self.job.drain()
        self.scrape()

    def backlog(self) -> int:
        """Return how many rows wait."""
        return job_status.read(self.job.context).lag

    def fired(self, *wanted: str, only: str = ".*") -> None:
        """Let promtool compare the rules that fire now with those that should."""
        values = self.series.values(self.minute)
        settings = replace(self.job.context.settings, max_rows_per_partition=MOST_ROWS)
        text = alert_rules.text(self.job.context.job, settings, Path("config/production.toml"))
        fires(self.folder, text, values, {*wanted}, self.minute - 1, only)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    """A job whose driver runs, with a scraper."""
    promtool()
    monkeypatch.setenv("YTSTREAM_SUBMIT_ARGS", submit_args())
    with live(tmp_path) as job:
        _set(job, "max_rows_per_partition", MOST_ROWS)
        job.start()
        made = Run(job, tmp_path)
        (tmp_path / "ahead").write_text("0")
        with _exporter(job, tmp_path / "ahead") as made.address:
            yield made


@contextmanager
def _exporter(job: Live, ahead: Path) -> Iterator[str]:
    """Run the light `metrics`, which knows the job by its ledger; give its address."""
    where = ["--proxy", job.cluster.http, "--ledger", job.context.settings.ledger, "--port", "0"]
    with Popen(
        [sys.executable, "-c", EXPORTER, str(ahead), "metrics", *where],
        env=environment(job.cluster.http, job.project), stderr=PIPE, text=True,
    ) as process:  # fmt: skip
        try:
            assert process.stderr is not None
            said = iter(process.stderr.readline, "")
            yield next(
                found[0] for line in said if (found := re.search(r"http://\S+/metrics", line))
            )
        finally:
            process.terminate()


def _set(job: Live, name: str, value: int) -> None:
    """Change a figure of the configuration, for the next start."""
    file = job.project / "config/local.toml"
    text, count = re.subn(rf"^{name} = .*$", f"{name} = {value}", file.read_text(), flags=re.M)
    assert count == 1
    file.write_text(text)


# -- what is done to the job, in the order in which it is done


def test_every_fault_fires_its_rules_alone(run: Run) -> None:
    job, faults, settings = run.job, run.job.cluster.client.faults, run.job.context.settings
    client: Any = job.context.client
    for _ in range(10):
        run.batch()
    run.fired()

    job.change = REJECTED
    for _ in range(12):
        run.batch()
    job.change = {}
    run.fired("YtstreamRejectedShare")
    run.quiet()
    run.fired()

    for _ in range(4):
        _fail_once(run)
    run.fired("YtstreamRestarts")
    run.quiet()
    run.fired()

    client.unmount_table(settings.ledger, sync=True)
    for _ in range(7):
        run.scrape()
    run.fired("YtstreamUnreadable")
    client.mount_table(settings.ledger, sync=True)
    run.batch()
    run.quiet()
    run.fired()

    late = ("YtstreamLagGrows", "YtConsumerLagRows", "YtConsumerLagTime")
    client.unmount_table(settings.output, sync=True)
    for minute in range(19):
        job.send(ROWS)
        run.scrape(60.0 * minute)
    run.fired("YtstreamStalled", *late)
    client.mount_table(settings.output, sync=True)
    job.drain()
    run.quiet()
    run.fired()

    slow = faults.add(method="AdvanceConsumer", action="delay", seconds=1.5, times=None)
    waited = _arrive_faster_than_they_are_read(run, minutes=26)
    run.fired(*late)
    job.kill()
    faults.remove(slow)
    job.expire_the_lock()
    for minute in range(20):
        job.send(ROWS)
        run.scrape(waited + 60.0 * minute)
    run.fired("YtstreamEndedWithoutStop", "YtstreamStalled", *late)

    with (job.project / "src/bids_stream/transform.py").open("a") as file:
        file.write(DROPS)
    _set(job, "max_rows_per_partition", 1_000)
    job.start()
    job.drain()
    run.batch()
    run.quiet()
    run.fired("YtstreamReadUnequalWritten")

    run.minute += 25  # the exporter is gone, and the agent with it
    rules = [*alert_rules.alerts(job.context.job, settings), *alert_rules.cluster_alerts(settings)]
    run.fired(*(f"{rule.name}Absent" for rule in rules))


def _fail_once(run: Run) -> None:
    """Let the query fail in a batch; it starts again."""
    before = _epoch(run)
    run.job.cluster.client.faults.add(method="AdvanceConsumer", action="fail", error=UNAVAILABLE)
    run.job.send(ROWS)
    run.job.wait(lambda: _epoch(run) > before)
    run.job.drain()
    run.scrape()


def _epoch(run: Run) -> int:
    head = job_status.read(run.job.context).head
    return head.epoch if head is not None else 0


def _arrive_faster_than_they_are_read(run: Run, minutes: int) -> float:
    """Send five times the rows of a batch for each batch; return how long the oldest waits."""
    waiting = 0.0
    for _ in range(minutes):
        run.job.send(ARRIVING)
        run.job.wait_for_batches(1)
        # Rows are read in their order: the oldest one came when as many had come as are read now.
        waiting = 60.0 * run.backlog() / (ARRIVING)
        run.scrape(waiting)
    return waiting
