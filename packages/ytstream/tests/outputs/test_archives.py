"""Archives end to end: real batches write pieces, and complete periods become tables."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from minicluster.testing import Running
from tests.support.helpers import StreamOf, adopt, refusal, unconnected
from tests.support.server_errors import UNAVAILABLE
from tests.support.static_outputs import static
from tests.support.status_steps import without_times
from ytstream import REJECTED as REJECTED_COLUMNS
from ytstream import Column, Hourly, days, minutes
from ytstream.cluster.timestamps import unix_seconds
from ytstream.declaration.validation import verify
from ytstream.ledger import archive_rows, batch_commit
from ytstream.outputs import archives
from ytstream.provisioning import job_objects
from ytstream.query import pipeline
from ytstream.recovery.epoch import Epoch
from ytstream.sealing.archive_tables import PERIOD_SECONDS
from ytstream_tools.demo.crash_scenario import drained
from ytstream_tools.replay import rejected_replay
from ytstream_tools.testing.job_stream import Stream, wait

HOUR = 3_600
BASE: dict[str, int] = {}
"""When a test's first row was sent, by its ledger."""
ARCHIVE = Hourly("date_time", lateness=minutes(0), keep=days(2))


def _declared(**changes: Any) -> str:
    return refusal(lambda: verify(replace(unconnected("transactional").job, **changes)))


def test_what_an_archive_needs() -> None:
    job = static(unconnected("transactional").job, "output")
    outputs = {**job.outputs, "rejected": REJECTED_COLUMNS}
    verify(replace(job, outputs=outputs, static={"output": ARCHIVE}))
    said = _declared(outputs=job.outputs, static={"output": ARCHIVE})
    assert "STATIC with a table per period, for rows that belong to no open one, needs" in said
    said = _declared(outputs=outputs, static={"output": Hourly("price")})
    assert "STATIC['output']: by='price', which OUTPUTS['output'] does not have" in said
    said = _declared(outputs=outputs, static={"output": Hourly("auction")})
    assert "the column auction is int64, wanted timestamp or date" in said
    said = _declared(outputs=outputs, static={"output": Hourly("date_time", sort_by="pric")})
    assert "sort_by='pric', which OUTPUTS['output'] does not have" in said
    said = _declared(outputs=outputs, static={"outptu": ARCHIVE})
    assert "STATIC names 'outptu', which OUTPUTS does not have" in said
    said = _declared(outputs=outputs, static={"output": "hourly"})
    assert "static['output']='hourly': wanted Hourly(...)" in said
    keyed = {
        **outputs,
        "output": [Column("date_time", "timestamp", key=True), Column("n", "int64")],
    }
    said = _declared(outputs=keyed, static={"output": ARCHIVE})
    assert "each period is a table of its own" in said


def archived(stream: Stream, archive: Any = ARCHIVE, **settings: Any) -> Stream:
    """Make the first output of a job an archive, and provision it again."""
    job, root = static(stream.context.job, "output"), stream.settings.ledger.rpartition("/")[0]
    outputs = {"output": job.outputs["output"], "rejected": REJECTED_COLUMNS}
    stream.redeclare(outputs=outputs, static={"output": archive})
    paths = {"output": f"{root}/tables", "rejected": f"{root}/rejected"}
    stream.configure(outputs=paths, **settings)
    job_objects.provision(stream.context)
    return stream


def send(stream: Stream, *hours: float, queue: int = 0) -> None:
    """Send a row of each of these times, in hours from the middle of the test's first hour."""
    rows = stream.sample.make(len(hours), len(stream.sent) + 1, None)
    if not stream.sent:
        BASE[stream.settings.ledger] = int(stream.client.generate_timestamp()) >> 30
    now = BASE[stream.settings.ledger] // HOUR * HOUR + HOUR // 2
    rows = [
        {
            **row,
            "date_time": int((now + hour * HOUR) * 1_000_000),
            "event_id": f"{len(stream.sent) + i}",
        }
        for i, (row, hour) in enumerate(zip(rows, hours, strict=True))
    ]
    stream.publish(rows, queue)


def seal(stream: Stream) -> None:
    """Let the supervisor's thread look, long after the last look."""
    assert stream.batch.archives is not None
    tables = stream.batch.archives.tables
    tables._next = 0.0
    tables.tick(time.monotonic() + PERIOD_SECONDS)


def tables(stream: Stream) -> dict[str, list[str]]:
    """Return the ids of the rows of each table."""
    client: Any = stream.client
    folder = stream.settings.output
    return {
        str(name): sorted(str(row["event_id"]) for row in client.read_table(f"{folder}/{name}"))
        for name in sorted(client.list(folder))
    }


def staged(stream: Stream) -> list[str]:
    client, root = stream.client, f"{stream.settings.staging}/output"
    found = client.get(root) if client.exists(root) else {}
    return [f"{folder}/{name}" for folder, names in found.items() for name in names or ()]


def rejected(stream: Stream) -> Counter[str]:
    rows = stream.client.select_rows(f"reason from [{stream.settings.outputs['rejected']}]")
    return Counter(str(row["reason"]) for row in rows)


def verify_exact(stream: Stream) -> None:
    """Every row is in one table, in `rejected` or in a piece that waits; counts agree."""
    found = [id_ for ids in tables(stream).values() for id_ in ids]
    query = archive_rows.pieces_query(stream.settings.ledger, "output")
    waiting = [archive_rows.piece_of(row) for row in stream.client.select_rows(query)]
    client: Any = stream.client
    found += [str(r["event_id"]) for one in waiting for r in client.read_table(one.piece.path)]
    assert len({*found}) == len(found)
    assert len(found) + rejected(stream).total() == len(stream.sent)
    paths = {one.piece.path.removeprefix(f"{stream.settings.staging}/output/") for one in waiting}
    assert {*staged(stream)} == paths
    query = archive_rows.tables_query(stream.settings.ledger, "output")
    rows = {t.name: t.rows for t in map(archive_rows.table_of, client.select_rows(query))}
    assert rows == {name: len(ids) for name, ids in tables(stream).items()}


@pytest.mark.thorough
@pytest.mark.spark
@pytest.mark.parametrize(
    ("guarantee", "connector", "queues", "handed"),
    [
        ("transactional", "own", 1, archives.HANDED_BYTES),
        ("transactional", "spyt", 1, 0),
        ("at_least_once", "own", 2, 1_200),
        ("idempotent", "own", 1, 0),
        ("idempotent", "spyt", 2, archives.HANDED_BYTES),
    ],
)
def test_a_table_per_hour(
    stream_of: StreamOf, spark: SparkSession, monkeypatch: pytest.MonkeyPatch,
    guarantee: str, connector: str, queues: int, handed: int,
) -> None:  # fmt: skip
    """Of pieces that the driver writes, and of those that tasks write."""
    monkeypatch.setattr(archives, "HANDED_BYTES", handed)
    stream = archived(stream_of(guarantee, "map", queues), connector=connector)
    adopt(spark, stream.context)
    with stream.running() as query:
        send(stream, -3, -3, -2, 0)
        wait(drained(stream.context), query)
        send(stream, -3, -2, 3, -4 * 24)  # two of no open period
        wait(drained(stream.context), query)
        send(stream, -2, 0)
        wait(drained(stream.context), query)
        seal(stream)
        assert [len(ids) for ids in tables(stream).values()] == [3, 3]
        assert rejected(stream) == {"archive: older than keep": 1, "archive: ahead of the clock": 1}
        verify_exact(stream)
        send(stream, -2, 0)  # the first one is late
        wait(drained(stream.context), query)
    verify_exact(stream)
    stream.recover()
    assert [len(ids) for ids in tables(stream).values()] == [3, 3]


REQUESTS = (
    ("CommitTransaction", 0), ("CreateNode", 0), ("WriteTable", 0), ("WriteTable", 1),
    ("start_transaction", 0), ("create", 0), ("create", 1), ("create", 2), ("concatenate", 0),
    ("concatenate", 1), ("remove", 0), ("commit_transaction", 0), ("commit_transaction", 1),
    ("ModifyRows", 0), ("ModifyRows", 1), ("AdvanceConsumer", 0), ("lock", 0), ("list", 0),
    ("create", 3), ("create", 4), ("concatenate", 2), ("commit_transaction", 2), ("set", 0),
)  # fmt: skip
"""Requests of a batch with pieces and of sealing: those over HTTP have small letters."""


@pytest.mark.spark
@pytest.mark.parametrize(
    ("guarantee", "connector"),
    [
        ("transactional", "own"),
        ("at_least_once", "own"),
        ("idempotent", "own"),
        pytest.param("transactional", "spyt", marks=pytest.mark.journey),
        pytest.param("at_least_once", "spyt", marks=pytest.mark.journey),
        pytest.param("idempotent", "spyt", marks=pytest.mark.journey),
    ],
)
@pytest.mark.parametrize("action", ["lose_reply", "fail"])
@pytest.mark.parametrize(("method", "skip"), REQUESTS)
def test_a_batch_or_a_table_that_is_cut_off(
    stream_of: StreamOf,
    spark: SparkSession,
    cluster: Running,
    guarantee: str,
    connector: str,
    action: str,
    method: str,
    skip: int,
) -> None:
    """Three batches in each period, one of two periods, and a late row in each.

    tests/faults/sweep/archives.py kills a driver at every request.
    """
    stream = archived(stream_of(guarantee, "map"), connector=connector)
    adopt(spark, stream.context)
    first: list[tuple[int, ...]] = [(-3,), (-3, -3, -2)]
    for hours in first:
        send(stream, *hours)
        stream.drain()
    send(stream, -3, -2, -2)
    error = UNAVAILABLE if action == "fail" else None
    stream.recover()  # what follows is of the query
    cluster.client.faults.add(method=method, skip=skip, action=action, error=error)
    with suppress(Exception), stream.running() as query:  # the driver dies
        wait(drained(stream.context), query)
        seal(stream)
    cluster.client.faults.clear()
    stream = replace(stream, epoch=Epoch(), _is_ready=False)
    later: list[tuple[int, ...]] = [(-2, 0), (-3, -2, 0)]
    for hours in later:
        send(stream, *hours)
        with stream.running() as query:
            wait(drained(stream.context), query)
            verify_exact(stream)
            seal(stream)
    close(stream)
    with stream.running():
        seal(stream)
    verify_exact(stream)
    names = [*tables(stream)]
    assert [name.endswith("Z") for name in names].count(False) >= 2
    assert staged(stream) == []


@pytest.mark.spark
@pytest.mark.thorough  # test_former_attempt.py has what is removed
def test_a_row_that_only_the_first_attempt_rejects(
    stream_of: StreamOf, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock decides whether it is ahead, and the first attempt has written it by then."""
    stream = archived(stream_of("at_least_once", "map"))
    adopt(spark, stream.context)
    send(stream, -3, 0)

    def died(*_: Any, **__: Any) -> None:
        raise ConnectionError

    with monkeypatch.context() as patch:
        patch.setattr(archives, "unix_seconds", lambda time: unix_seconds(time) - 3 * HOUR)
        patch.setattr(batch_commit, "close_batch", died)
        with suppress(Exception), stream.running() as query:
            wait(drained(stream.context), query)
    assert rejected(stream) == {"archive: ahead of the clock": 1}
    stream = replace(stream, epoch=Epoch(), _is_ready=False)
    with stream.running() as query:
        wait(drained(stream.context), query)
    assert not rejected(stream)
    verify_exact(stream)


@pytest.mark.thorough
@pytest.mark.spark
def test_a_late_row_is_rejected_before_the_table_of_its_period_is_there(
    stream_of: StreamOf, spark: SparkSession
) -> None:
    stream = archived(stream_of("transactional", "map"), replace(ARCHIVE, late="reject"))
    adopt(spark, stream.context)
    with stream.running() as query:
        send(stream, -3)
        wait(drained(stream.context), query)
        assert stream.batch.archives is not None
        states = stream.batch.archives.tables.states
        states["output"] = replace(states["output"], closed=BASE[stream.settings.ledger])
        send(stream, -2, 0)
        wait(drained(stream.context), query)
        assert rejected(stream) == {"archive: late": 1}
        seal(stream)
    assert [len(ids) for ids in tables(stream).values()] == [1]
    verify_exact(stream)


def close(stream: Stream) -> None:
    """Ask for all periods to be closed, as a person does."""
    now = int(stream.client.generate_timestamp()) >> 30
    request = archive_rows.request_row("output", ARCHIVE.begin(now) + 2 * HOUR)
    stream.client.insert_rows(stream.settings.ledger, [request])


def copies(rows: DataFrame) -> dict[str, DataFrame]:
    """Two rows of each: a user's function that drops, joins and unites."""
    known = rows.sparkSession.range(1).select(F.lit(1).alias("one"))
    kept = rows.filter("event_id is not null").crossJoin(known).drop("one")
    return {"output": kept, "copies": kept.select("event_id").union(rows.select("event_id"))}


@pytest.mark.spark
@pytest.mark.thorough  # test_completeness.py has the rule by which such periods end
@pytest.mark.parametrize(
    ("guarantee", "connector", "processing"),
    [
        ("transactional", "own", "deduplicate"),
        ("at_least_once", "spyt", "map"),
        ("transactional", "own", "map"),
    ],
)
def test_periods_by_arrival(
    stream_of: StreamOf,
    spark: SparkSession,
    cluster: Running,
    guarantee: str,
    connector: str,
    processing: str,
) -> None:
    """Without `by`, whatever times the rows have; rows of two queues, each as its own says."""
    archive = Hourly(lateness=minutes(0), keep=days(2))
    stream = archived(stream_of(guarantee, processing, 2), archive, connector=connector)
    outputs = {**stream.context.job.outputs, "copies": [Column("event_id", "string")]}
    paths = {**stream.settings.outputs, "copies": f"{stream.settings.output}_copies"}
    both = {"output": archive, "copies": Hourly(lateness=minutes(0))}
    stream.redeclare(outputs=outputs, static=both, split=copies)
    stream.configure(outputs=paths)
    job_objects.provision(stream.context)
    adopt(spark, stream.context)
    now = int(stream.client.generate_timestamp()) >> 30
    cluster.client.clock.advance(HOUR - now % HOUR)
    send(stream, -9, 0)
    cluster.client.clock.advance(HOUR)
    send(stream, -9, -8, queue=1)
    send(stream, 0.1)
    with stream.running() as query:
        wait(drained(stream.context), query)
    cluster.client.clock.advance(HOUR + 60)
    seal(stream)
    assert [len(ids) for ids in tables(stream).values()] == [2, 3]
    client: Any = stream.client
    folder = stream.settings.outputs["copies"]
    names = sorted(map(str, client.list(folder)))
    assert [client.get(f"{folder}/{name}/@row_count") for name in names] == [4, 6]
    assert names == [*tables(stream)]
    assert rejected(stream) == {}


def grouped(rows: DataFrame) -> dict[str, DataFrame]:
    return {"output": rows.groupBy(*rows.columns).count().drop("count")}


@pytest.mark.spark
@pytest.mark.thorough
def test_rows_whose_arrival_nobody_can_tell_are_refused(
    stream_of: StreamOf, spark: SparkSession
) -> None:
    stream = archived(stream_of("transactional", "map"), Hourly())
    stream.redeclare(split=grouped)
    said = refusal(lambda: pipeline.flow_of(spark, stream.context))
    assert "STATIC['output'] has no by=: behind Aggregate of outputs(), the job cannot tell" in said
    without_times(stream.context)
    said = refusal(lambda: pipeline.flow_of(spark, stream.context))
    assert "has no column $timestamp that says when a row was written" in said


@pytest.mark.spark
@pytest.mark.thorough
def test_rejected_rows_go_into_tables_of_their_periods(
    stream_of: StreamOf, spark: SparkSession, cluster: Running
) -> None:
    """Into the open one, into a further one of a sealed period, or nowhere; each row once."""
    stream = archived(stream_of("transactional", "map"))
    stream.redeclare(reject={"first": "event_id in ('0', '1', '2')"})
    adopt(spark, stream.context)
    with stream.running() as query:
        send(stream, -3, 0, -90, -3, -90)  # a row that is rejected is too old, as is another one
        wait(drained(stream.context), query)
        seal(stream)
        assert [*tables(stream).values()] == [["3"]]
    assert rejected(stream) == {"first": 3, "archive: older than keep": 1}
    stream.redeclare(reject={"none": "false"})
    context, flow = stream.context, stream.flow()
    lost = cluster.client.faults.add(method="CommitTransaction", action="fail", error=UNAVAILABLE)
    with suppress(Exception):
        rejected_replay.replay(spark, context, flow, print)  # its pieces stay, and nothing else
    cluster.client.faults.remove(lost)
    (would, *_) = rejected_replay.rehearse(spark, context, flow)
    assert would.startswith("2 rows would go into the outputs; 2 would stay")
    said = rejected_replay.replay(spark, context, flow, print)
    assert said.startswith("2 rows went into the outputs; 2 stay")
    assert "2 of them since an archive has no period for them" in said
    assert rejected_replay.replay(spark, context, flow, print).startswith("0 rows went")
    close(stream)
    stream = replace(stream, epoch=Epoch(), _is_ready=False)
    with stream.running():
        seal(stream)
    verify_exact(stream)
    assert [*tables(stream).values()] == [["3"], ["0"], ["1"]]
    assert staged(stream) == []
