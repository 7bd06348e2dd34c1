"""What happens to a reference while a job looks keys up in it: the batch waits, or ends with a line
that names the table. Nothing of it is written. Once the cause is gone, the job goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from minicluster.testing import Running
from tests.support.examples import example
from tests.support.helpers import ContextOf, adopt, last_request
from tests.support.job_thread import JobThread
from tests.support.server_errors import BLOCKED, THROTTLED, UNAVAILABLE, denied
from tests.support.waiting import eventually
from ytstream import Column, lookup
from ytstream.connector.compile_java import unavailable
from ytstream.connector.java import Java, jvm_of
from ytstream.declaration.lookups import available
from ytstream.errors import JobError
from ytstream.errors.error_codes import ErrorCode
from ytstream.job import JobContext
from ytstream.provisioning import job_objects
from ytstream.query.references import JobReferences
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

    def make_static(self) -> None:
        self.recreate()
        path = str(self.client.get(f"{self.link}/@path"))
        schema = [{"name": "auction", "type": "int64"}, {"name": "price", "type": "int32"}]
        self.client.remove(path)
        self.client.create("table", path, attributes={"schema": schema})
        self.client.write_table(path, [{"auction": key, "price": 1} for key in KEYS])

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

    def meanwhile(self, deed: Callable[[], None], method: str = "LookupRows", **where: Any) -> None:
        """Do it while a request of the next batch waits, by default its first lookup."""
        faults = self.cluster.client.faults
        rule = faults.add(method=method, where=where, action="delay")
        self.stream.send(ROWS)
        faults.wait(rule)
        deed()
        faults.remove(rule)

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


def _denied(job: Faulty) -> Mapping[str, Any]:
    return denied("read", f"{job.tables}/1")


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
    "static": End(
        Faulty.make_static, Faulty.recreate, ErrorCode.NOT_PROVISIONED,
        _unlike("it is static and has 90 rows", "`make reference` makes a table of it"),
    ),
    "not permitted": End(
        lambda job: job.refuse("LookupRows", _denied(job)), Faulty.serve, ErrorCode.PERMISSION,
        lambda job: _asked(job, 'Access denied for user "robot"'),
    ),
    "not permitted on the link": End(
        lambda job: job.refuse("GetNode", _denied(job), path=job.link), Faulty.serve,
        ErrorCode.PERMISSION,
        lambda job: (f"cannot look up which table is {job.title}: Access denied",),
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


@pytest.mark.thorough
def test_a_batch_whose_table_is_replaced_runs_again_in_the_new_one(driver: Driver) -> None:
    """And removed: lookups name it by its id, so they find neither table."""
    job = driver.job
    job.meanwhile(job.recreate)
    driver.says("failure 1 of", f"keys of {job.title}: ")
    driver.drains()
    sent = job.stream.sent
    assert job.written() == job.wanted(sent[:ROWS], 1) | job.wanted(sent[ROWS:], 2)


@pytest.mark.thorough
def test_a_table_that_is_made_after_a_batch_began_is_not_its_reference(driver: Driver) -> None:
    """Even in the same second: a lookup at the moment of the batch finds nothing, and no error."""
    job = driver.job
    job.meanwhile(job.recreate, "GetNode", path=job.link)
    driver.drains()
    sent = job.stream.sent
    assert job.written() == job.wanted(sent[:ROWS], 1) | job.wanted(sent[ROWS:], 2)


@pytest.mark.thorough
def test_a_batch_goes_on_in_a_table_that_was_cut_otherwise(driver: Driver) -> None:
    job = driver.job
    path = str(job.client.get(f"{job.link}/@path"))

    def cut() -> None:
        job.client.unmount_table(path, sync=True)
        job.client.reshard_table(path, pivot_keys=[[], [1_030], [1_060]], sync=True)
        job.client.mount_table(path, sync=True)

    job.meanwhile(cut)
    driver.drains()
    assert job.written() == job.wanted(job.stream.sent, 1)
    assert not [line for line in driver.caplog.messages if "failure" in line]


@pytest.mark.thorough
def test_a_slow_proxy_makes_a_batch_slow(driver: Driver) -> None:
    job = driver.job
    job.cluster.client.faults.add(method="LookupRows", action="delay", seconds=1, times=None)
    job.stream.send(ROWS)
    driver.drains()
    assert job.written() == job.wanted(job.stream.sent, 1)
    assert not [line for line in driver.caplog.messages if "failure" in line]


@pytest.mark.thorough
def test_values_of_16_mb_come_one_by_one(
    context_of: ContextOf, root: str, spark: SparkSession, cluster: Running
) -> None:
    """A request for many of them would fill the heap of an executor."""
    size, count = 16_000_000, 10
    columns = [Column("k", "int64", key=True), Column("text", "string")]
    context, path = context_of("transactional"), f"{root}/large"
    schema = table_schema(resolved("REFERENCES", columns)).to_yson_type()
    client: Any = context.client
    client.create("table", path, recursive=True, attributes={"dynamic": True, "schema": schema})
    client.mount_table(path, sync=True)
    for key in range(count):
        client.insert_rows(path, [{"k": key, "text": bytes([65 + key]) * size}])
    job = replace(context.job, references={"large": columns})
    settings = replace(context.settings, references={"large": path})
    known = JobReferences(spark, replace(context, job=job, settings=settings))
    since = last_request(cluster)
    with available(known):
        rows = lookup(spark.range(0, 15, 1, 1).toDF("k"), "large", "k", by="keys")
    found = rows.select("k", F.length("text").alias("size"), F.substring("text", 0, 1).alias("is"))
    assert {tuple(row) for row in found.collect()} == {
        (key, size, chr(65 + key)) if key < count else (key, None, None) for key in range(15)
    }
    # Of 15 keys the first eight in one request, and then few at a time.
    assert len(cluster.client.journal("LookupRows", since=since)) >= 5
