"""A generated job as its owner runs it, while rows arrive: a backlog, and rows at a steady pace.

Values are those of config/production.toml, but for what a case is about. A trigger's times are
Spark's own. The ledger says which micro-batch has a row, and the minicluster's journal when the
transactions that wrote into the output have committed: from then on a reader of the output sees it.
"""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice, pairwise
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from yt.wrapper import YtClient

from bench import triggers
from bench.cases import Size
from bench.processor import Tree, machine, one, reading
from bench.starts import PACKAGE
from minicluster import testing
from minicluster.client import Entry
from tests.support.examples import example
from tests.support.project import ROOT, generate
from ytstream.ledger import ledger_rows
from ytstream_tools.demo.demo_tables import produce
from ytstream_tools.demo.job_process import environment, run_command

Say = Callable[[str], None]
BACKLOG, LATENCY = "backlog", "latency"
TITLES: Mapping[str, str] = {
    BACKLOG: "5,000,000 rows that wait, with production's values",
    LATENCY: "from a row's arrival until it is visible",
}
QUEUE, HOME = "//home/ytstream/bids", "//home/bench"
_LEDGER, _OUTPUT = f"{HOME}/ledger", f"{HOME}/output"
TABLETS = 4
GUARANTEES = ("at_least_once", "transactional", "idempotent")
RATES = (1, 100, 10_000)
"""Rows per second."""
SHORTEST_TRIGGER = 0.1
"""Seconds: for whoever wants rows soon."""
_WAITING = 5_000_000
_PACE_SECONDS = 0.02
"""How often a steady producer writes, at most."""
WARM_BATCHES = 3
"""Batches that count for nothing: Spark plans, and nothing is warm."""
_PATIENCE_SECONDS = 900.0


def backlog(size: Size, say: Say) -> dict[str, Any]:
    """Return how a job with production's values catches up: rows/s, seconds between triggers."""
    count = min(_WAITING, size.most_rows * 25)
    with _running("transactional", {}) as job:
        say(f"writing {count:,} rows")
        for piece in _rows("transactional", count):
            produce(job.client, QUEUE, piece, TABLETS)
        job.start()
        with reading(*job.sources, machine) as readings:
            job.wait_for(count)
            found = job.triggers()
        measured = found[WARM_BATCHES:-1]  # the last one is not full
        begin, end = measured[0].begin, measured[-1].end
        used = readings.between(begin, end)
        pauses = [after.begin - before.end for before, after in pairwise(measured)]
        rows = sum(trigger.rows for trigger in measured)
        return {
            "case": {"rows": count, "tablets": TABLETS},
            "rows": rows,
            "seconds": end - begin,
            "batches": [trigger.end - trigger.begin for trigger in measured],
            "pauses": pauses,
            "processor": used,
        }


def latency(size: Size, say: Say) -> dict[str, Any]:
    """Return the milliseconds from a row's arrival until it is visible, by guarantee and rate."""
    found: list[dict[str, Any]] = []
    for guarantee in GUARANTEES:
        with _running(guarantee, {"trigger_seconds": SHORTEST_TRIGGER}) as job:
            sample = next(_rows(guarantee, 20_000))
            job.start()
            produce(job.client, QUEUE, sample[:400], TABLETS)
            job.wait_for(400)
            arrived = _Arrivals(job.client, sample, first=400)
            arrived.run(100, 3.0)  # nothing is warm before
            for rate in RATES:
                first = arrived.count
                arrived.run(rate, max(size.idle_seconds * 3, 1.0))
                job.wait_for(arrived.count)
                seen = job.visible()
                waits = [
                    (seen[key] - when) * 1000 for key, when in arrived.since(first) if key in seen
                ]
                found.append({"guarantee": guarantee, "rate": rate, **_spread(waits)})
                say(f"{guarantee}, {rate} rows/s: p99 {found[-1]['p99']:.0f} ms")
    return {"case": {"trigger_seconds": SHORTEST_TRIGGER, "tablets": TABLETS}, "waits": found}


def lines(name: str, found: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Return a table of what was measured: its head, and its rows."""
    if name == LATENCY:
        head = ("guarantee", "rows per second", "p50, ms", "p99, ms", "most, ms")
        return [head, *map(_line, found["waits"])]
    head = ("rows per second", "a batch, s", "between two batches, s", "longest, s",
            "processor s per million rows")  # fmt: skip
    own = sum(found["processor"][part] for part in ("python", "jvm", "workers"))
    return [head, (
        f"{found['rows'] / found['seconds']:,.0f}", f"{median(found['batches']):.2f}",
        f"{median(found['pauses']):.3f}", f"{max(found['pauses']):.3f}",
        f"{own / found['rows'] * 1e6:.2f}",
    )]  # fmt: skip


def _line(one: Mapping[str, Any]) -> tuple[str, ...]:
    waits = (f"{one[part]:,.0f}" for part in ("p50", "p99", "most"))
    return f"`{one['guarantee']}`", f"{one['rate']:,}", *waits


def _spread(waits: Sequence[float]) -> dict[str, float]:
    cuts = quantiles(waits, n=100, method="inclusive")
    return {"rows": len(waits), "p50": median(waits), "p99": cuts[98], "most": max(waits)}


Row = tuple[int, int]
"""A row of the queue: its tablet, and its number there."""


class _Arrivals:
    """Writes rows at a steady pace, and keeps when each one was in the queue."""

    def __init__(self, client: YtClient, sample: Sequence[Mapping[str, Any]], first: int) -> None:
        self._client, self._sample = client, sample
        self.count = first
        self._when: dict[int, float] = {}

    def run(self, rate: int, seconds: float) -> None:
        """Write so many rows per second for so long."""
        begin, first = time.time(), self.count
        while (passed := time.time() - begin) < seconds:
            due = first + int(passed * rate) + 1 - self.count
            if due > 0:
                self._write(due)
            time.sleep(max(_PACE_SECONDS, 0.25 / rate))

    def _write(self, count: int) -> None:
        numbers = range(self.count, self.count + count)
        rows = [self._sample[number % len(self._sample)] for number in numbers]
        produce(self._client, QUEUE, rows, TABLETS, self.count)
        self._when.update(dict.fromkeys(numbers, time.time()))
        self.count += count

    def since(self, first: int) -> Iterator[tuple[Row, float]]:
        """Yield each row from a number on, and when it had arrived."""
        for number in range(first, self.count):
            yield divmod(number, TABLETS)[::-1], self._when[number]


CONFIG = "--config=config/bench.toml"


class _Job:
    """The generated project on a minicluster of its own."""

    def __init__(self, project: Path, cluster: testing.Running) -> None:
        self.client = YtClient(cluster.http, token="any")
        self._cluster, self._project = cluster, project
        self._triggers = project / "build" / "triggers"
        self._triggers.parent.mkdir(exist_ok=True)
        self._log = project / "build" / "job.log"
        self._process: subprocess.Popen[bytes] | None = None

    def command(self, *words: str) -> None:
        run_command(PACKAGE, self._cluster.http, self._project, *words)

    def start(self) -> None:
        """Start the job."""
        found = environment(self._cluster.http, self._project)
        with self._log.open("wb") as out:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "bench.triggers", str(self._triggers), PACKAGE, CONFIG],
                env={**found, "PYTHONPATH": os.pathsep.join((found["PYTHONPATH"], str(ROOT)))},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                cwd=self._project,
                start_new_session=True,
            )

    @property
    def sources(self) -> list[Callable[[], Mapping[str, float]]]:
        """What to read processor time from."""
        assert self._process is not None
        return [Tree(self._process.pid).seconds, one("minicluster", self._cluster.pid)]

    def triggers(self) -> list[triggers.Trigger]:
        return triggers.read(self._triggers)

    def wait_for(self, rows: int) -> None:
        """Wait until the job has read so many rows. Raises RuntimeError if it ends before."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while sum(trigger.rows for trigger in self.triggers()) < rows:
            assert self._process is not None
            if self._process.poll() is not None or time.monotonic() > deadline:
                said = self._log.read_text(encoding="utf-8", errors="replace")
                raise RuntimeError(f"the job has not read {rows:,} rows:\n{said[-4_000:]}")
            time.sleep(0.2)

    def visible(self) -> dict[Row, float]:
        """Return when a reader of the output sees each row of the micro-batches in the ledger."""
        query = f'* from [{_LEDGER}] where kind = "batch" order by number limit 100000'
        batches = list(self.client.select_rows(query))
        return visible(batches, self._cluster.client.journal(), _OUTPUT)

    def kill(self) -> None:
        if self._process is not None:
            try:
                os.killpg(self._process.pid, signal.SIGKILL)
            except ProcessLookupError:
                return
            self._process.wait()


def visible(
    batches: Sequence[Mapping[str, Any]], journal: Sequence[Entry], output: str
) -> dict[Row, float]:
    """Return when each row of the batches, the ledger's rows in their order, was in the output.

    The rows of a batch are visible once all of its tasks have committed. They do so between its
    begin and that of the next batch. A batch that has written nothing shows nothing.
    """
    commits = sorted(_commits(journal, output))
    begins = [ledger_rows.time_of(batch["started"]).timestamp() for batch in batches]
    found: dict[Row, float] = {}
    for batch, begin, after in zip(batches, begins, [*begins[1:], math.inf], strict=True):
        if not (ends := [end for asked, end in commits if begin <= asked < after]):
            continue
        for ranges in ledger_rows.ranges_of(batch).values():
            for tablet, (first, end) in ranges.items():
                found.update({(tablet, number): max(ends) for number in range(first, end)})
    return found


def _commits(journal: Sequence[Entry], path: str) -> Iterator[tuple[float, float]]:
    """Yield when each commit of a transaction that wrote into a table was asked for, and over."""
    writing = set[str]()
    for entry in journal:
        transaction = str(entry.args.get("transaction"))
        if entry.method == "ModifyRows" and entry.args.get("path") == path:
            writing.add(transaction)
        elif entry.method == "CommitTransaction" and transaction in writing and not entry.error:
            yield entry.time, entry.time + (entry.seconds or 0.0)


@contextmanager
def _running(guarantee: str, values: Mapping[str, Any]) -> Iterator[_Job]:
    """Generate the job `map`, with production's values and these, and make its objects."""
    with tempfile.TemporaryDirectory() as folder, testing.start() as cluster:
        project = generate(Path(folder), guarantee=guarantee, queue_paths=QUEUE, cypress_root=HOME)
        keys = {"create_queues": True, "allow_env_proxy": True, **values}
        lines = [f"{key} = {str(value).lower()}" for key, value in keys.items()]
        text = "\n".join(['extends = "production.toml"', *lines, ""])
        (project / "config" / "bench.toml").write_text(text, encoding="utf-8")
        job = _Job(project, cluster)
        try:
            job.command("provision", CONFIG)
            job.client.unmount_table(QUEUE, sync=True)
            job.client.reshard_table(QUEUE, tablet_count=TABLETS, sync=True)
            job.client.mount_table(QUEUE, sync=True)
            yield job
        finally:
            job.kill()


def _rows(guarantee: str, count: int) -> Iterator[list[Mapping[str, Any]]]:
    """Yield so many rows of the example's sample, in pieces."""
    sample = example(guarantee, "map").sample
    made, left = iter(sample.rows(count, 7, sample.start_us)), count
    while piece := list(islice(made, min(left, 20_000))):
        left -= len(piece)
        yield piece
