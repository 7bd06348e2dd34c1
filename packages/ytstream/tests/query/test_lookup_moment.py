"""All lookups of a micro-batch see one moment of the table, which the ledger's row names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from minicluster.testing import Running
from tests.support.examples import example
from tests.support.helpers import ContextOf, adopt
from ytstream import Column, lookup
from ytstream.cluster.built_reference import MARK, mark
from ytstream.errors import JobError, RestartableError
from ytstream.job import JobContext
from ytstream.ledger import ledger_rows
from ytstream.ledger.ledger_rows import LookedUp
from ytstream.provisioning import job_objects
from ytstream.settings.job_settings import OWN, SPYT
from ytstream_tools.replay import rejected_replay
from ytstream_tools.testing.job_stream import Stream

pytestmark = pytest.mark.spark

AUCTIONS = [Column("auction", "int64", key=True), Column("version", "int64")]
OUTPUT = [
    Column("event_id", "utf8"),
    Column("auction", "int64"),
    Column("before", "int64"),
    Column("after", "int64"),
]
KEYS = range(1_000, 1_090)  # the sample has 1,000 to 1,099


@dataclass
class Rewritten:
    """A reference whose rows are all written anew in the middle of each batch."""

    context: JobContext
    version: int = 0
    meanwhile: list[Callable[[], object]] = field(default_factory=list)
    """What else happens between the two lookups of a batch."""

    @property
    def path(self) -> str:
        return self.context.settings.references["auctions"]

    def write(self) -> None:
        self.version += 1
        rows = [{"auction": key, "version": self.version} for key in KEYS]
        self.context.client.insert_rows(self.path, rows)

    def transform(self, events: DataFrame) -> DataFrame:
        found = lookup(events, "auctions", "auction", by="keys")
        return found.select("event_id", "auction", F.col("version").alias("before"))

    def outputs(self, rows: DataFrame) -> dict[str, DataFrame]:
        if not rows.isEmpty():  # not the frame of no rows that a start looks at
            self.write()
            while self.meanwhile:
                self.meanwhile.pop()()
        return {"output": lookup(rows, "auctions", "auction").withColumnRenamed("version", "after")}


@pytest.fixture
def rewritten(
    context_of: ContextOf, request: pytest.FixtureRequest, root: str, spark: SparkSession
) -> Rewritten:
    """Provision the job."""
    context = context_of(getattr(request, "param", "transactional"))
    reference = Rewritten(context)
    job = replace(
        context.job,
        outputs={"output": OUTPUT},
        references={"auctions": AUCTIONS},
        reference_rows=len(KEYS) - 1,
        transform=lambda events: reference.transform(events),
        split=lambda rows: reference.outputs(rows),
    )
    settings = replace(context.settings, references={"auctions": f"{root}/auctions"})
    reference.context = replace(context, job=job, settings=settings)
    job_objects.provision(reference.context)
    reference.write()
    adopt(spark, reference.context)
    return reference


def _stream(rewritten: Rewritten, spark: SparkSession) -> Stream:
    return Stream(rewritten.context, example("transactional", "map").sample, spark)


def _rows(stream: Stream) -> list[dict[str, Any]]:
    return [*stream.client.select_rows(f"* from [{stream.settings.output}]")]


def _batches(stream: Stream) -> list[LookedUp]:
    """Return what each batch that has read rows has looked up, by the ledger."""
    query = f'rows_read, state from [{stream.settings.ledger}] where kind = "batch" order by number'
    rows = stream.client.select_rows(f"{query} limit 100")
    return [ledger_rows.lookups_of(row)["auctions"] for row in rows if row["rows_read"]]


@pytest.mark.parametrize(
    ("rewritten", "connector"),
    [("transactional", OWN), ("at_least_once", OWN), ("transactional", SPYT)],
    indirect=True,
)
def test_both_lookups_of_a_batch_see_what_its_row_in_the_ledger_names(
    rewritten: Rewritten, spark: SparkSession
) -> None:
    stream = _stream(rewritten, spark)
    for _ in range(2):
        stream.send(300)
        stream.drain()
    rows, batches = _rows(stream), _batches(stream)
    assert len(rows) == 600
    assert all(row["before"] == row["after"] for row in rows)
    assert {row["before"] for row in rows if row["auction"] not in KEYS} == {None}
    seen = []
    for batch in batches:
        assert (batch.by, batch.table) == ("keys", str(stream.client.get(f"{rewritten.path}/@id")))
        (found,) = stream.client.lookup_rows(
            rewritten.path, [{"auction": 1_000}], timestamp=batch.timestamp
        )
        seen.append(found["version"])
    assert seen == sorted({row["before"] for row in rows} - {None})
    assert len(seen) == len(batches) >= 2
    # Each row is looked up twice. The keys of a batch are fewer than its rows.
    assert sum(batch.rows for batch in batches) == 2 * 600
    assert 0 < sum(batch.keys for batch in batches) < 2 * 600
    assert sum(batch.missing for batch in batches) == 2 * sum(r["before"] is None for r in rows)


@pytest.mark.thorough
def test_a_batch_that_runs_again_takes_a_new_moment(
    rewritten: Rewritten, spark: SparkSession
) -> None:
    """Killed by an error between its two lookups: nothing of its first run is left."""
    stream = _stream(rewritten, spark)

    def fail() -> None:
        raise RestartableError("killed")

    stream.send(300)
    rewritten.meanwhile.append(fail)
    with pytest.raises((JobError, RestartableError)):
        stream.drain()
    assert _rows(stream) == []
    stream.drain()
    rows = _rows(stream)
    assert len(rows) == 300
    assert {(row["before"], row["after"]) for row in rows} == {(2, 2), (None, None)}


@pytest.mark.parametrize(
    ("method", "action"),
    [
        ("CommitTransaction", "lose_reply"),
        ("CommitTransaction", "hang_up"),
        ("LookupRows", "hang_up"),
        ("LookupRows", "lose_reply"),
    ],
)
def test_a_fault_leaves_rows_of_one_moment(
    rewritten: Rewritten, spark: SparkSession, cluster: Running, method: str, action: str
) -> None:
    """Whether the batch happened or not, its rows are those of the moment in the ledger."""
    stream = _stream(rewritten, spark)
    stream.recover()
    stream.send(300)
    cluster.client.faults.add(method=method, action=action, times=1)
    try:
        stream.drain()
    except Exception:  # the fault has ended the query, and a start continues
        stream.drain()
    rows, batches = _rows(stream), _batches(stream)
    assert len(rows) == len({row["event_id"] for row in rows}) == 300
    assert all(row["before"] == row["after"] for row in rows)
    seen = [
        found["version"]
        for batch in batches
        for found in stream.client.lookup_rows(
            rewritten.path, [{"auction": 1_000}], timestamp=batch.timestamp
        )
    ]
    assert seen == sorted({row["before"] for row in rows} - {None})


@pytest.mark.thorough
def test_a_table_that_is_built_after_the_batch_began_fails_it(
    rewritten: Rewritten, spark: SparkSession, root: str
) -> None:
    """A lookup at the batch's time would find nothing in it, and no error."""
    stream, client = _stream(rewritten, spark), rewritten.context.client
    stream.send(300)
    at = f"{rewritten.path}/@{MARK}"
    client.set(at, mark(2**62, "//static", ("auction",)))
    with pytest.raises(Exception, match="was built after the micro-batch began"):
        stream.drain()
    assert _rows(stream) == []
    client.set(at, mark(1, "//static", ("auction",)))
    stream.drain()
    assert len(_rows(stream)) == 300


@pytest.mark.thorough
def test_lookups_go_to_the_table_and_not_through_the_link(
    rewritten: Rewritten, spark: SparkSession, root: str, cluster: Running
) -> None:
    """A link that is switched between the two lookups of a batch changes neither of them."""
    stream = _stream(rewritten, spark)
    client: Any = rewritten.context.client  # with what a job does not call
    other, link = f"{root}/other", rewritten.path
    schema = client.get(f"{link}/@schema")
    client.create("table", other, attributes={"dynamic": True, "schema": schema})
    client.mount_table(other, sync=True)
    client.unmount_table(link, sync=True)
    client.move(link, f"{root}/first")
    client.mount_table(f"{root}/first", sync=True)
    client.link(f"{root}/first", link)
    rewritten.meanwhile.append(lambda: client.link(other, link, force=True))
    stream.send(300)
    stream.drain()
    rows = _rows(stream)
    assert all(row["before"] == row["after"] for row in rows)
    assert any(row["before"] for row in rows)
    assert _batches(stream)[0].table == str(client.get(f"{root}/first/@id"))


@pytest.mark.thorough
def test_a_replay_looks_up_as_of_the_batch_that_rejected_the_rows(
    context_of: ContextOf, root: str, spark: SparkSession
) -> None:
    context = context_of("transactional", "map", rejects=True)
    reference = Rewritten(context)
    job = replace(
        context.job,
        outputs={**context.job.outputs, "output": OUTPUT[:3]},
        references={"auctions": AUCTIONS},
        transform=reference.transform,
        reject={"low": "auction < 1020"},
    )
    settings = replace(context.settings, references={"auctions": f"{root}/auctions"})
    reference.context = context = replace(context, job=job, settings=settings)
    job_objects.provision(context)
    context.client.set(f"{root}/auctions/@{MARK}", mark(1, "//static", ("auction",)))
    reference.write()
    adopt(spark, context)
    stream = Stream(context, example("transactional", "map", rejects=True).sample, spark)
    stream.send(100)
    stream.drain()
    before = len(_rows(stream))
    reference.write()
    stream.redeclare(reject={"low": "auction < 0"})
    rejected_replay.replay(spark, stream.context, stream.flow(), print)
    rows = _rows(stream)
    assert 0 < before < len(rows) == 100
    assert {row["before"] for row in rows if row["auction"] in KEYS} == {1}
