"""What happens to a reference while a job looks keys up in it: the batch waits, or ends with a line
that names the table. Nothing of it is written. Once the cause is gone, the job goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import pytest
from pyspark.sql import DataFrame, SparkSession

from minicluster.testing import Running
from tests.support.examples import example
from tests.support.helpers import ContextOf, adopt
from tests.support.job_thread import JobThread
from tests.support.server_errors import BLOCKED, THROTTLED, UNAVAILABLE
from tests.support.waiting import eventually
from ytstream import Column, lookup
from ytstream.connector.compile_java import unavailable
from ytstream.connector.java import Java, jvm_of
from ytstream.errors import JobError
from ytstream.errors.error_codes import ErrorCode
from ytstream.job import JobContext
from ytstream.provisioning import job_objects
from ytstream.schema.columns import resolved
from ytstream.schema.table_schema import table_schema
from ytstream_tools.demo.crash_scenario import drained
from ytstream_tools.testing.job_stream import PATIENCE_SECONDS, Stream

pytestmark = pytest.mark.spark

AUCTIONS = [Column("auction", "int64", key=True), Column("price", "int32")]
OUTPUT = [Column("event_id", "utf8"), Column("auction", "int64"), Column("price", "int32")]
KEYS = range(1_000, 1_090)  # the sample has 1,000 to 1,099
ROWS = 40


class Faulty:
    """A job that looks keys up, and its reference behind a link."""

    def __init__(self, context: JobContext, root: str, spark: SparkSession, cluster: Running):
        self.link, self.tables = f"{root}/auctions", f"{root}/tables"
        self.client: Any = context.client
        self.cluster, self.spark = cluster, spark
        self.factor = 0
        self.context = self._with_reference(context)
        self.recreate()
        job_objects.provision(self.context)
        adopt(spark, self.context)
        self.stream = Stream(self.context, example("transactional", "map").sample, spark)

    def _with_reference(self, context: JobContext) -> JobContext:
        job = replace(
            context.job,
            outputs={"output": OUTPUT},
            references={"auctions": AUCTIONS},
            reference_rows=len(KEYS) - 1,
            transform=_transform,
        )
        settings = replace(context.settings, references={"auctions": self.link})
        return replace(context, job=job, settings=settings)

    @property
    def title(self) -> str:
        return f"the reference auctions ({self.link})"

    @property
    def label(self) -> str:
        return f"reference auctions {self.link}"

    # -- what is done to the reference

    def recreate(self, columns: list[Column] = AUCTIONS, **values: Any) -> None:
        """Let the link lead to another table, and remove the one before."""
        self.factor += 1
        former = self.client.get(f"{self.link}/@path") if self.client.exists(self.link) else None
        schema = table_schema(resolved("REFERENCES", columns)).to_yson_type()
        path = f"{self.tables}/{self.factor}"
        attributes = {"dynamic": True, "schema": schema}
        self.client.create("table", path, recursive=True, attributes=attributes)
        self.client.mount_table(path, sync=True)
        self.client.insert_rows(path, [self._row(key, columns, values) for key in KEYS])
        self.client.link(path, self.link, force=True)
        if former is not None:
            self.client.remove(former)

    def _row(self, key: int, columns: list[Column], values: Mapping[str, Any]) -> dict[str, Any]:
        made = {"auction": key, "price": key * self.factor, **values}
        names = {str(column.name) for column in columns}
        return {name: value for name, value in made.items() if name in names}

    def widen(self) -> None:
        """Its owner gives a column a larger type, and writes a value that needs it."""
        path = str(self.client.get(f"{self.link}/@path"))
        schema = self.client.get(f"{path}/@schema")
        altered = [
            {key: one[key] for key in ("name", "type_v3", "sort_order") if key in one}
            for one in schema
        ]
        altered[1]["type_v3"] = {"type_name": "optional", "item": "int64"}
        self.client.unmount_table(path, sync=True)
        self.client.alter_table(path, schema=altered)
        self.client.mount_table(path, sync=True)
        self.client.insert_rows(path, [{"auction": key, "price": 2**40 + 7} for key in KEYS])

    def unmount(self) -> None:
        self.client.unmount_table(self.link, sync=True)

    def mount(self) -> None:
        self.client.mount_table(self.link, sync=True)

    def refuse(self, method: str, error: Mapping[str, Any], **where: Any) -> None:
        self.cluster.client.faults.add(
            method=method, action="fail", error=dict(error), times=None, where=where
        )

    def serve(self) -> None:
        self.cluster.client.faults.clear()

    # -- what a test looks at

    def written(self) -> dict[str, tuple[int, int | None]]:
        """Return auction and price of each event."""
        path = self.context.settings.output
        rows = self.client.select_rows(f"* from [{path}]")
        return {row["event_id"]: (row["auction"], row["price"]) for row in rows}

    def wanted(
        self, events: list[dict[str, Any]], factor: int
    ) -> dict[str, tuple[int, int | None]]:
        auctions = {one["event_id"]: int(one["auction"]) for one in events}
        return {
            event: (auction, auction * factor if auction in KEYS else None)
            for event, auction in auctions.items()
        }


def _transform(events: DataFrame) -> DataFrame:
    rows = events.select("event_id", "auction")
    return lookup(rows, "auctions", "auction", by="keys")


@pytest.fixture
def no_pauses(spark: SparkSession) -> Iterator[None]:
    """A lookup is tried six times, here without the 38 seconds in between."""
    assert not unavailable(spark)
    java = Java(jvm_of(spark))
    loader = java["java.lang.Thread.currentThread"]().getContextClassLoader()
    field = java["java.lang.Class.forName"]("ytstream.Call", True, loader).getDeclaredField(
        "PAUSES"
    )
    field.setAccessible(True)
    pauses, put = field.get(None), java["java.lang.reflect.Array.setLong"]
    before = [*pauses]
    for index in range(len(before)):
        put(pauses, index, 0)
    yield
    for index, pause in enumerate(before):
        put(pauses, index, pause)


@pytest.fixture
def faulty(
    context_of: ContextOf, root: str, spark: SparkSession, cluster: Running, no_pauses: None
) -> Faulty:
    return Faulty(context_of("transactional"), root, spark, cluster)


@dataclass
class Driver:
    """The job in a thread; all rows of before are written."""

    job: Faulty
    thread: JobThread
    caplog: pytest.LogCaptureFixture

    def waits(self, look: Callable[[], object], what: str = "") -> None:
        eventually(
            look,
            PATIENCE_SECONDS,
            meanwhile=lambda: not self.thread.is_over,
            what=what,
            said=lambda: str(self.thread.error),
        )

    def says(self, *parts: str) -> None:
        """Wait for a line of the log with these parts."""
        self.waits(
            lambda: any(all(part in line for part in parts) for line in self.caplog.messages),
            f"a line with {parts} in {self.caplog.messages}",
        )

    def drains(self) -> None:
        self.waits(drained(self.job.context), "all rows in batches")

    def ends(self) -> JobError:
        eventually(lambda: self.thread.is_over, PATIENCE_SECONDS, what="the end of the job")
        assert isinstance(self.thread.error, JobError), self.thread.error
        return self.thread.error


@pytest.fixture
def driver(
    faulty: Faulty, spark: SparkSession, caplog: pytest.LogCaptureFixture
) -> Iterator[Driver]:
    """A job that has read its first rows."""
    caplog.set_level("INFO", logger="job")
    made = Driver(faulty, JobThread(faulty.context, spark), caplog)
    faulty.stream.send(ROWS)
    made.thread.start()
    try:
        made.drains()
        yield made
    finally:
        faulty.serve()
        made.thread.end()


class Wait(NamedTuple):
    """A fault that passes: the job waits, says for what, and goes on."""

    begin: Callable[[Faulty], object]
    end: Callable[[Faulty], object]
    said: Callable[[Faulty], tuple[str, ...]]


def _asked(job: Faulty, line: str) -> tuple[str, ...]:
    return ("cannot look up", f"keys of {job.title}: {line}")


WAITS: Mapping[str, Wait] = {
    "unmounted": Wait(
        Faulty.unmount, Faulty.mount,
        lambda job: (f"reference 'auctions' {job.link} is unmounted, run: yt mount-table",),
    ),
    "overloaded": Wait(
        lambda job: job.refuse("LookupRows", THROTTLED), Faulty.serve,
        lambda job: ("waiting for the cluster", *_asked(job, "Read request is throttled")),
    ),
    "blocked": Wait(
        lambda job: job.refuse("LookupRows", BLOCKED), Faulty.serve,
        lambda job: ("waiting for the cluster", *_asked(job, "Timed out waiting on blocked row")),
    ),
    "away": Wait(
        lambda job: job.refuse("LookupRows", UNAVAILABLE), Faulty.serve,
        lambda job: ("waiting for the cluster", *_asked(job, "Proxy is unable to synchronize")),
    ),
    "away for the link": Wait(
        lambda job: job.refuse("GetNode", UNAVAILABLE, path=job.link), Faulty.serve,
        lambda job: ("waiting for the cluster", f"cannot look up which table is {job.title}"),
    ),
}  # fmt: skip
THOROUGH = pytest.mark.thorough


def _sampled(cases: Mapping[str, object], *sample: str) -> list[Any]:
    return [pytest.param(one, marks=() if one in sample else THOROUGH) for one in cases]


@pytest.mark.parametrize("name", _sampled(WAITS, "overloaded"))
def test_a_batch_waits_for_what_passes_and_says_for_which_table(driver: Driver, name: str) -> None:
    job, fault = driver.job, WAITS[name]
    before = job.written()
    fault.begin(job)
    job.stream.send(ROWS)
    driver.says(*fault.said(job))
    assert job.written() == before
    fault.end(job)
    driver.drains()
    assert job.written() == job.wanted(job.stream.sent, 1)
    assert len(before) == ROWS


class End(NamedTuple):
    """A fault that only a person can end: the job ends, and names the table and what to do."""

    begin: Callable[[Faulty], object]
    end: Callable[[Faulty], object]
    code: ErrorCode
    said: Callable[[Faulty], tuple[str, ...]]


def _unlike(*lines: str) -> Callable[[Faulty], tuple[str, ...]]:
    return lambda job: (job.label, *lines)


TEXT_KEY = Column("auction", "utf8", key=True)
CORRECT = "correct REFERENCES['auctions'] in tables.py, or the table"
ENDS: Mapping[str, End] = {
    "removed": End(
        lambda job: job.client.remove(job.client.get(f"{job.link}/@path")), Faulty.recreate,
        ErrorCode.NOT_PROVISIONED, _unlike("missing"),
    ),
    "a column of another type": End(
        lambda job: job.recreate([AUCTIONS[0], Column("price", "utf8")], price="dear"),
        Faulty.recreate, ErrorCode.NOT_PROVISIONED,
        _unlike("column price: the table has utf8, tables.py says int32", CORRECT),
    ),
    "a column altered in place": End(
        Faulty.widen, Faulty.recreate, ErrorCode.NOT_PROVISIONED,
        _unlike("column price: the table has int64, tables.py says int32", CORRECT),
    ),
    "a column gone": End(
        lambda job: job.recreate([AUCTIONS[0], Column("cost", "int32")], cost=5),
        Faulty.recreate, ErrorCode.NOT_PROVISIONED,
        _unlike("column price: the table lacks it", CORRECT),
    ),
    "another key": End(
        lambda job: job.recreate([TEXT_KEY, AUCTIONS[1]], auction="1000"), Faulty.recreate,
        ErrorCode.NOT_PROVISIONED, _unlike("column auction: the table has utf8", CORRECT),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", _sampled(ENDS, "a column altered in place"))
def test_a_job_ends_with_the_name_of_a_table_that_it_cannot_use(driver: Driver, name: str) -> None:
    job, fault = driver.job, ENDS[name]
    before = job.written()
    fault.begin(job)
    job.stream.send(ROWS)
    error = driver.ends()
    assert error.code == fault.code
    for part in fault.said(job):
        assert part in str(error)
    assert job.written() == before
    fault.end(job)
    job.stream.drain()
    sent = job.stream.sent
    wanted = job.wanted(sent[:ROWS], 1) | job.wanted(sent[ROWS:], job.factor)
    assert job.written() == wanted
