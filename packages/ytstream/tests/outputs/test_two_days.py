"""Two days of an archive with two queues. One lags, then is silent. All tables equal pandas."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from bench.request_kinds import MASTER, kinds
from minicluster.client import Entry
from minicluster.testing import Running
from tests.support.examples import example
from tests.support.helpers import ContextOf, adopt
from ytstream import REJECTED, Column, Hourly, days, minutes
from ytstream.instance.lock import alone, own_transaction
from ytstream.ledger.positions import read_head
from ytstream.provisioning import job_objects
from ytstream.schema.periods import begin_of, named
from ytstream.sealing.completeness import COMPLETE_UNTIL
from ytstream_tools.testing.job_stream import Stream, settle, wait

HOUR, DAY = 3_600, 24 * 3_600
HOURS = 48
TABLETS = 2
LAGS, SILENT = range(12, 18), range(30, 36)
"""Hours in which the second queue is read behind the first one, and those in which it is silent."""
COLUMNS = [Column(name, "int64", required=True) for name in ("id", "amount")]
COLUMNS += [Column("date_time", "timestamp", required=True)]
_PINGS = ("ping_tx", "ping_transaction", "PingTransaction")


class Size(NamedTuple):
    """How much is played."""

    rows: int
    steps: int
    """How often the clock is moved in an hour, and rows are sent."""

    @property
    def at_once(self) -> int:
        """Rows of a step: as many in each, and not fewer in all."""
        return -(-self.rows // (HOURS * self.steps))


def rows_of(size: Size) -> pd.DataFrame:
    """Return all rows, with the step, the queue and the tablet of each.

    Times are those of the step, some up to eight minutes before, and one in a thousand hours ago.
    """
    source, seconds = np.random.default_rng(1), HOUR // size.steps
    ids = np.arange(size.at_once * HOURS * size.steps)
    step, number = np.divmod(ids, size.at_once)
    hour = step // size.steps
    behind = source.uniform(0, seconds, len(ids))
    behind += np.where(number % 10 == 3, source.uniform(0, 480, len(ids)), 0)
    late = (number % 1000 == 7) & (hour >= 3)
    behind += np.where(late, source.uniform(2 * HOUR, 3 * HOUR, len(ids)), 0)
    queue = np.where(number % 2 == 1, 1, 0)
    queue = np.where(np.isin(hour, LAGS), number % 16 != 0, queue)
    queue = np.where(np.isin(hour, SILENT), 0, queue)
    return pd.DataFrame({
        "id": ids,
        "amount": source.integers(0, 10**9, len(ids)),
        "date_time": ((step + 1) * seconds * 1_000_000 - behind * 1_000_000).astype("int64"),
        "step": step,
        "queue": queue,
        "tablet": number // 16 % TABLETS,
    })  # fmt: skip


def in_cents(events: DataFrame) -> DataFrame:
    return events.select("id", F.expr("amount * 908 div 1000").alias("amount"), "date_time")


@dataclass
class Requests:
    """Requests to the master, as the journal has them."""

    of_tables: list[float] = field(default_factory=list)
    """For each table, on average over those that were sealed together."""
    batches: Counter[tuple[int, int, int]] = field(default_factory=Counter)
    """Requests of a batch for its pieces, tables that they are made of, pieces."""

    def add_batches(self, entries: Iterable[Entry], staging: str) -> None:
        self.batches.update(_of_batches(entries, staging))

    def add_tables(self, entries: Iterable[Entry], count: int) -> None:
        asked = [one for one in entries if one.protocol == "http" and one.method not in _PINGS]
        if count:
            self.of_tables.append(sum(kinds(asked, 0, time.time())[MASTER].values()) / count)


def _of_batches(entries: Iterable[Entry], staging: str) -> Iterator[tuple[int, int, int]]:
    """Yield requests, tables and pieces of each batch, by its master transaction."""
    known: dict[str, list[Entry]] = defaultdict(list)
    for entry in entries:
        if entry.method not in _PINGS and (id_ := entry.args.get("transaction")):
            known[str(id_)].append(entry)
    for asked in known.values():
        made = [str(e.args["destination_path"]) for e in asked if e.method == "concatenate"]
        if pieces := sum(path.startswith(staging) for path in made):
            parts = sum(e.method == "WriteTable" for e in asked)
            yield len(asked) + 2, parts, pieces  # and its start, and the cluster's time before


@dataclass
class TwoDays:
    """A job with an archive on a cluster whose clock is moved along."""

    stream: Stream
    cluster: Running
    size: Size
    day: int
    frame: pd.DataFrame
    sent: Counter[tuple[str, int]] = field(default_factory=Counter)
    """Rows by queue and tablet."""
    seen: dict[str, Any] = field(default_factory=dict)
    """Tables, as they were first seen: id and rows."""
    requests: Requests = field(default_factory=Requests)

    def play(self) -> None:
        steps, most = self.size.steps, self.size.at_once
        self._run(range(LAGS.start * steps), most)
        assert self.announced() == self.name(LAGS.start - 1)
        for step in range(LAGS.start * steps, LAGS.stop * steps):
            self._lag(step, most // 32 + 4)
        assert self.announced() <= self.name(LAGS.start + 2)  # rows of the second queue wait
        self._run(range(LAGS.stop * steps, SILENT.stop * steps), most)
        assert self.announced() == self.name(SILENT.stop - 1)  # nobody waits for a silent one
        self._run(range(SILENT.stop * steps, HOURS * steps), most)
        self._advance(self.day + (HOURS + 2) * HOUR + HOUR // 2)
        self._seal()

    def _run(self, steps: range, most: int) -> None:
        """Let one query read all rows of these steps."""
        self.stream.configure(max_rows_per_partition=most)
        with self.stream.running() as query:
            for step in steps:
                self._send(step)
                wait(self._has_read(self.stream.settings.queues), query)
                settle(query)
                self._seal()

    def _lag(self, step: int, most: int) -> None:
        """Let a query read a few rows of each tablet: all of the first queue."""
        self.stream.configure(max_rows_per_partition=most)
        self._send(step)
        with self.stream.running() as query:
            wait(self._has_read(self.stream.settings.queues[:1]), query)
            self.stream.batch.closing.set()
            wait(lambda: not query.isActive, query, may_end=True)
        self._seal()

    def _send(self, step: int) -> None:
        self._advance(self.day + (step + 1) * HOUR // self.size.steps)
        rows = self.frame[self.frame["step"] == step]
        for (number, tablet), found in rows.groupby(["queue", "tablet"]):
            queue = self.stream.settings.queues[int(number)]
            plain = found[["id", "amount", "date_time"]].assign(**{"$tablet_index": int(tablet)})
            self.stream.client.insert_rows(queue, plain.to_dict("records"))
            self.sent[queue, int(tablet)] += len(plain)

    def _advance(self, moment: int) -> None:
        """Move the clock; no transaction is open now that could expire."""
        clock = self.cluster.client.clock
        clock.advance(moment - clock.now())

    def _has_read(self, queues: Iterable[str]) -> Callable[[], bool]:
        wanted = {key: count for key, count in self.sent.items() if key[0] in queues}

        def has_read() -> bool:
            head = read_head(self.stream.settings.ledger, self.stream.client.select_rows)
            ends = head.ends if head is not None else {}
            return all(ends.get(queue, {}).get(at, 0) >= n for (queue, at), n in wanted.items())

        return has_read

    def _seal(self) -> None:
        """Let the supervisor's thread look; count requests; see which tables are there."""
        journal, settings = self.cluster.client.journal, self.stream.settings
        assert self.stream.batch.archives is not None
        tables = self.stream.batch.archives.tables
        tables.lock = partial(own_transaction, self.stream.client, settings.consumer)
        with alone(self.stream.context):
            self.requests.add_batches(journal(), f"{settings.staging}/")
            journal.clear()
            tables._next = 0.0
            while not tables._next:  # twenty tables at a time
                tables.tick(time.monotonic())
            entries = journal()
        journal.clear()
        found = self.tables()
        self.requests.add_tables(entries, len(found.keys() - self.seen.keys()))
        self.seen = {**found, **self.seen}

    def tables(self) -> Mapping[str, tuple[str, int]]:
        client: Any = self.stream.client
        found = client.list(self.stream.settings.output, attributes=["id", "row_count"])
        return {str(n): (n.attributes["id"], n.attributes["row_count"]) for n in found}

    def rows(self, name: str) -> list[Mapping[str, Any]]:
        client: Any = self.stream.client
        return [*client.read_table(f"{self.stream.settings.output}/{name}")]

    def name(self, hour: int) -> str:
        return named(self.day + hour * HOUR)

    def announced(self) -> str:
        return str(self.stream.client.get(f"{self.stream.settings.output}/@{COMPLETE_UNTIL}"))


@pytest.fixture
def stream(context_of: ContextOf, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Stream:
    monkeypatch.setattr(job_objects, "LOCAL_QUEUE_TABLETS", TABLETS)
    context = context_of("transactional", "map", 2)
    archive = Hourly("date_time", lateness=minutes(10), keep=days(30))
    outputs = {"output": COLUMNS, "rejected": REJECTED}
    job = replace(context.job, queue=COLUMNS, outputs=outputs, transform=in_cents)
    job = replace(job, static={"output": archive})
    root = context.settings.ledger.rpartition("/")[0]
    paths = {"output": f"{root}/tables", "rejected": f"{root}/rejected"}
    context = replace(context, job=job, settings=replace(context.settings, outputs=paths))
    job_objects.provision(context)
    adopt(spark, context)
    return Stream(context, example("transactional", "map").sample, spark)


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.thorough
@pytest.mark.parametrize(
    "size",
    [
        pytest.param(Size(10_000, 1), id="small"),
        pytest.param(Size(2_000_000, 3), id="whole", marks=pytest.mark.journey),
    ],
)
def test_two_days_of_an_archive_are_as_pandas_computes_them(
    stream: Stream, cluster: Running, size: Size
) -> None:
    begun = time.monotonic()
    frame, day = rows_of(size), int(cluster.client.clock.now() // DAY + 1) * DAY
    frame["date_time"] += day * 1_000_000
    played = TwoDays(stream, cluster, size, day, frame)
    played.play()
    took = time.monotonic() - begun

    assert played.announced() == played.name(HOURS + 2)
    assert played.tables() == played.seen  # none has changed since it was first seen
    client: Any = stream.client
    assert client.list(f"{stream.settings.staging}/output") == []
    assert [*client.select_rows(f"* from [{stream.settings.outputs['rejected']}]")] == []
    by_hour = frame["date_time"] // 1_000_000 // HOUR * HOUR
    wanted = frame[["id", "amount", "date_time"]].assign(amount=frame["amount"] * 908 // 1000)
    names = defaultdict(list)
    for name in played.seen:
        (begin, _) = begin_of(name) or (0, 0)
        names[begin].append(name)
    assert names.keys() == {*by_hour}
    for begin, expected in wanted.groupby(by_hour):
        found = pd.DataFrame([row for name in names[begin] for row in played.rows(name)])
        found = found.sort_values("id", ignore_index=True)[[*expected.columns]]
        pd.testing.assert_frame_equal(
            found, expected.reset_index(drop=True), check_dtype=False, obj=named(int(begin))
        )
    late = [name for name in played.seen if not name.endswith("Z")]
    assert len(late) > HOURS // 2

    requests = played.requests
    print(
        f"\n{len(frame)} rows in {took:.0f} s, {len(played.seen)} tables, {len(late)} of late rows",
        f"requests per table: at most {max(requests.of_tables):.1f}",
        "batches by (requests for pieces, tables they are made of, pieces):",
        *(f"  {count} of {found}" for found, count in sorted(requests.batches.items())),
        sep="\n",
    )
    assert max(requests.of_tables) <= 30
    assert requests.batches
    # No task has so many rows that it writes a table of its own.
    assert [found for found in requests.batches if found[0] > 8 + 4 * found[2]] == []
