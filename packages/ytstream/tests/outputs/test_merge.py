"""MERGE: rows of a batch change the rows of a table by their key, in the batch's transaction."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from minicluster.testing import Running
from tests.support.examples import example, settings_of
from tests.support.helpers import ContextOf, adopt, head_of, refusal
from tests.support.histories import cut, play
from tests.support.killed_stream import FAILED
from tests.support.merge_oracle import POSITIONS, QUEUE, history, newest_of, stored_of
from ytstream import DELETED, REJECTED, Column, newest
from ytstream.connector import choose_connector
from ytstream.ledger.ledger_rows import KeyChanges
from ytstream.provisioning import job_objects
from ytstream_tools.replay import rejected_replay
from ytstream_tools.testing.job_stream import Stream

pytestmark = pytest.mark.spark


def transform(events: DataFrame) -> DataFrame:
    return events.select("aircraft", "at", "height", "note", "on_ground")


NEWEST = newest(sequence_by="at", apply_as_deletes="on_ground")


@pytest.fixture
def stream(context_of: ContextOf, root: str, spark: SparkSession) -> Stream:
    """A job of two queues with the newest position of each aircraft that is not on the ground."""
    context = context_of("transactional")
    job = replace(
        context.job, queue=QUEUE, outputs={"output": POSITIONS, "rejected": REJECTED},
        transform=transform, merge={"output": NEWEST},
    )  # fmt: skip
    settings = settings_of(job, root, proxy=context.settings.proxy, queues=2)
    context = replace(context, job=job, settings=settings)
    job_objects.provision(context)
    adopt(spark, context)
    return Stream(context, example("transactional", "map").sample, spark)


def stored(stream: Stream) -> dict[int, tuple[Any, ...]]:
    return stored_of(stream.client.select_rows(f"* from [{stream.settings.output}]"))


def batches(rows: list[dict[str, Any]], *sizes: int) -> Iterator[list[dict[str, Any]]]:
    at = 0
    for size in sizes:
        yield rows[at : at + size]
        at += size
    yield rows[at:]


def test_the_newest_rows_stay_in_whatever_order_they_come(stream: Stream, cluster: Running) -> None:
    """Deletes are remembered. A write whose reply is lost aborts its batch, which runs again."""
    rows, faults, hits = history(1, 400, 60), cluster.client.faults, 0
    for number, part in enumerate(batches(rows, 150, 150, 1)):
        half = len(part) // 2
        for queue, of_queue in enumerate((part[:half], part[half:])):
            stream.publish(of_queue, queue)
        path = (stream.settings.output, f"{stream.settings.output}_deleted")[number % 2]
        lost = faults.add(method="ModifyRows", where={"path": path}, action="lose_reply")
        with suppress(*FAILED):
            stream.drain()
        hits += faults.get(lost).hits
        faults.clear()
        stream.drain()
        assert stored(stream) == newest_of(stream.sent)
    assert hits >= 2
    changes = head_of(stream).totals.changes["output"]
    assert changes.changed - changes.removed >= len(stored(stream))
    assert changes.unchanged
    assert all(row["reason"] == "at is null" for row in rejected(stream))


def rejected(stream: Stream) -> list[dict[str, Any]]:
    return [*stream.client.select_rows(f"* from [{stream.settings.outputs['rejected']}]")]


def summed(rows: DataFrame) -> DataFrame:
    """Add up heights. The note `gone` removes the row, and `-` changes nothing."""
    found = rows.groupBy("aircraft").agg(
        F.max("at").alias("at"),
        F.sum("height").alias("height"),
        F.max("note").alias("note"),
        F.max("note").eqNullSafe("gone").alias(DELETED),
        F.max(F.col("note").eqNullSafe("-") & F.col("on_ground")).alias("is_left"),
    )
    return found.filter("NOT coalesce(is_left, false)").drop("is_left")


def test_a_function_gets_the_rows_of_the_table_and_of_the_batch(stream: Stream) -> None:
    stream.redeclare(merge={"output": summed})
    known: dict[int, list[Any]] = {}
    for part in (
        [(1, 5, 1.0, "a"), (2, 1, 2.0, "a"), (3, 1, 4.0, "a"), (1, 4, 8.0, "b"),
         (4, 9, 1.0, "gone")],
        [(1, 1, 16.0, "a"), (2, 7, 32.0, "gone"), (3, 1, 64.0, "-"), (5, 1, 128.0, "a")],
        [(2, 2, 256.0, "c"), (3, 2, 512.0, "gone")],
    ):  # fmt: skip
        names = ("aircraft", "at", "height", "note")
        stream.publish([dict(zip(names, row, strict=True), on_ground=True) for row in part])
        stream.drain()
        for key in {row[0] for row in part if row[3] != "-"}:
            group = [row[1:] for row in part if row[0] == key] + known.get(key, [])
            note = max(row[2] for row in group)
            whole = (max(row[0] for row in group), sum(row[1] for row in group), note)
            known[key] = [whole] if note != "gone" else []
        assert stored(stream) == {key: rows[0] for key, rows in known.items() if rows}
    assert head_of(stream).totals.changes == {"output": KeyChanges(6, 2, 2)}


def added_up(rows: DataFrame) -> DataFrame:
    others = (F.max(name).alias(name) for name in ("height", "note"))
    return rows.groupBy("aircraft").agg(F.sum("at").alias("at"), *others)


@pytest.mark.thorough
def test_a_function_gets_numbers_of_the_table_that_no_row_could_have(stream: Stream) -> None:
    def narrow(events: DataFrame) -> DataFrame:
        return transform(events).withColumn("at", F.col("at").cast("int"))

    stream.redeclare(transform=narrow, merge={"output": added_up})
    most = 2**31 - 1
    row = {"aircraft": 1, "at": most, "height": 1.0, "note": "a", "on_ground": False}
    for count in (1, 2, 3):
        stream.publish([row])
        stream.drain()
        assert stored(stream) == {1: (count * most, 1.0, "a")}


def twice(rows: DataFrame) -> DataFrame:
    return rows.drop("on_ground", "is_stored").union(rows.drop("on_ground", "is_stored"))


def foreign(rows: DataFrame) -> DataFrame:
    return rows.drop("on_ground", "is_stored").withColumn("aircraft", F.col("aircraft") + 1)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("function", "said"),
    [
        (twice, "MERGE['output'] returns several rows of the key {\"aircraft\":7}"),
        (foreign, "MERGE['output'] returns a row of a key that the batch does not have"),
    ],
)
def test_a_function_returns_one_row_of_each_key_that_it_gets(
    stream: Stream, function: Any, said: str
) -> None:
    stream.redeclare(merge={"output": function})
    stream.publish([{"aircraft": 7, "at": 1, "height": None, "note": None, "on_ground": False}])
    text = refusal(stream.drain)
    assert said in text
    assert stored(stream) == {}


@pytest.mark.thorough
def test_a_function_that_cannot_be_used_is_refused_before_the_start(stream: Stream) -> None:
    stream.redeclare(merge={"output": lambda rows: rows.select("aircraft", "is_stored")})
    assert "MERGE['output'] and OUTPUTS['output'] in tables.py disagree" in refusal(stream.flow)
    stream.redeclare(merge={"output": lambda rows: rows.count()})
    assert "MERGE['output']" in refusal(stream.flow)
    flag = "apply_as_deletes='note': transform() gives string, wanted a boolean"
    stream.redeclare(merge={"output": newest("at", "note")})
    assert flag in refusal(stream.flow)


@pytest.mark.thorough
def test_a_foreign_write_between_read_and_write_is_not_lost(stream: Stream) -> None:
    """The commit of the batch fails, and the batch runs again on the new row."""
    foreign_row = {"aircraft": 1, "at": 9, "height": 100.0, "note": "foreign"}
    calls = []

    def raced(rows: DataFrame) -> DataFrame:
        if rows.sparkSession.sparkContext.getLocalProperty("streaming.sql.batchId") is not None:
            calls.append(1)
            if len(calls) == 1:
                stream.client.insert_rows(stream.settings.output, [foreign_row])
        return summed(rows)

    stream.redeclare(merge={"output": raced})
    stream.publish([{"aircraft": 1, "at": 1, "height": 1.0, "note": "a", "on_ground": False}])
    with suppress(*FAILED):
        stream.drain()
    stream.drain()
    assert len(calls) == 2
    assert stored(stream) == {1: (9, 101.0, "foreign")}


@pytest.mark.thorough
def test_rows_without_a_sequence_value_are_rejected(stream: Stream) -> None:
    row = {"aircraft": 1, "at": None, "height": 1.0, "note": "a", "on_ground": False}
    stream.publish([row, {**row, "at": 1}])
    stream.drain()
    assert stored(stream) == {1: (1, 1.0, "a")}
    assert [row["reason"] for row in rejected(stream)] == ["at is null"]
    stream.redeclare(
        transform=lambda events: transform(events).withColumn("at", F.expr("nullif(at, 2)"))
    )
    stream.publish([{**row, "at": 2}])
    assert "by which MERGE orders rows" in refusal(stream.drain)


@pytest.mark.thorough
def test_spyts_connector_does_not_take_over(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choose_connector, "unavailable", lambda _: "no compiler")
    assert "only the job's own connector looks rows up" in refusal(stream.flow)


ODD_KEY = [
    Column("a_boolean", "boolean", key=True),
    Column("an_int8", "int8", key=True),
    Column("a_uint16", "uint16", key=True),
    Column("a_uint64", "uint64", key=True),
    Column("a_double", "double", key=True),
    Column("a_text", "utf8", key=True),
    Column("some_bytes", "string", key=True),
    Column("a_day", "date", key=True),
    Column("a_time", "timestamp", key=True),
]


def keyed(events: DataFrame) -> DataFrame:
    """Make a key of several types out of a number, with a null in each part, and both zeros."""
    n = F.col("aircraft")
    zero = F.when(F.col("on_ground"), -0.0).otherwise(0.0)
    parts = [
        n % 2 == 0,
        (n - 3).cast("byte"),
        (n * 1_000).cast("int"),
        n * 2**40,
        F.when(n % 4 == 0, zero).otherwise(n / 3),
        F.concat(F.lit("é"), n.cast("string")),
        F.concat(F.lit("\x00"), n.cast("string")).cast("binary"),
        F.date_add(F.lit("1969-12-31").cast("date"), n.cast("int") + 1),
        F.timestamp_micros(n),
    ]
    key = [
        F.when(n % len(parts) != at, part).alias(column.name)
        for at, (column, part) in enumerate(zip(ODD_KEY, parts, strict=True))
    ]
    return events.select(*key, "aircraft", "at", "height", "note", "on_ground")


@pytest.mark.thorough
def test_keys_of_several_types_with_nulls_find_their_rows(stream: Stream) -> None:
    columns = [*ODD_KEY, *(replace(column, key=False) for column in POSITIONS)]
    stream.client.remove(stream.settings.output)
    stream.client.remove(f"{stream.settings.output}_deleted")
    stream.redeclare(outputs={**stream.context.job.outputs, "output": columns}, transform=keyed)
    job_objects.provision(stream.context)
    for part in batches(history(3, 600, 60), 200, 200):
        stream.publish(part)
        stream.drain()
        assert stored(stream) == newest_of(stream.sent)


KEYS, SMALL, LARGE = 5_000, 1_000, 200_000


@pytest.mark.thorough
@pytest.mark.parametrize("is_swapped", [False, True])
@pytest.mark.parametrize(
    ("changes", "size", "cuts"),
    [
        (SMALL, 40, 4),
        *(pytest.param(*case, 20, marks=pytest.mark.journey) for case in (
            (LARGE, 10_000), (LARGE, 0), (SMALL, 7), (SMALL, 1),
        )),
    ],
)  # fmt: skip
def test_a_history_of_changes_makes_one_table(
    stream: Stream,
    cluster: Running,
    tmp_path: Path,
    changes: int,
    size: int,
    cuts: int,
    is_swapped: bool,
) -> None:
    """Batches of one size, or of random ones (0). In ``cuts`` of them the driver is killed.

    In some of them a request fails, too. The rows take turns between the queues.
    """
    stream.configure(max_rows_per_partition=100_000, trigger_seconds=0.05)
    rows = history(changes, changes, KEYS if size != 40 else 500)
    chance = random.Random(size)
    # A small batch may change nothing.
    written = [stream.settings.ledger]
    if size not in (1, 7):
        written += [stream.settings.output, f"{stream.settings.output}_deleted"]
    play(
        stream, cluster, tmp_path, [*cut(rows, size, chance)],
        lambda part: publish(stream, part, is_swapped), kills=cuts, written=written, chance=chance,
    )  # fmt: skip
    found = newest_of(stream.sent)
    assert stored(stream) == found == newest_of(rows)
    deleted = {row["aircraft"] for row in rows if row["on_ground"]}
    assert deleted - found.keys()  # some stay deleted, and some are there again
    assert deleted & found.keys()


def publish(stream: Stream, rows: list[dict[str, Any]], is_swapped: bool) -> None:
    """Send the rows to the two queues in turns, all of them at once."""
    first = len(stream.sent) + is_swapped
    for queue in (0, 1):
        if of_queue := rows[(first + queue) % 2 :: 2]:
            stream.publish(of_queue, queue)


HISTORY = [Column("at", "int64"), Column("aircraft", "int64", required=True), *POSITIONS[2:]]


def split(rows: DataFrame) -> dict[str, DataFrame]:
    """Every position, the newest of each aircraft, and the aircraft that are on the ground now."""
    on_ground = F.coalesce(F.col("on_ground"), F.lit(False))
    return {
        "output": rows.drop("on_ground"),
        "current": rows.drop("on_ground"),
        "on_ground_now": rows.withColumn("is_flying", ~on_ground).drop("on_ground"),
    }


@pytest.mark.thorough
@pytest.mark.parametrize("count", [3_000, pytest.param(50_000, marks=pytest.mark.journey)])
def test_positions_are_kept_replaced_and_removed(
    stream: Stream, cluster: Running, count: int
) -> None:
    """Three outputs of one batch, through three failures; the oracle is pandas."""
    tables = {"output": HISTORY, "current": POSITIONS, "on_ground_now": POSITIONS}
    merge = {"current": newest("at"), "on_ground_now": newest("at", "is_flying")}
    stream.redeclare(outputs={**tables, "rejected": REJECTED}, split=split, merge=merge)
    root = stream.settings.output.rpartition("/")[0]
    paths = {name: f"{root}/{name}-of-three" for name in stream.context.job.outputs}
    stream.configure(outputs=paths, max_rows_per_partition=10_000)
    job_objects.provision(stream.context)
    rows = [{**row, "height": float(number), "note": str(number)}
            for number, row in enumerate(history(7, count, 900))]  # fmt: skip
    for number, part in enumerate(batches(rows, *[count // 7] * 6)):
        for queue in (0, 1):
            stream.publish(part[queue::2], queue)
        if number % 2:
            path = paths[("output", "current", "on_ground_now")[number // 2]]
            cluster.client.faults.add(
                method="ModifyRows", where={"path": path}, action="lose_reply"
            )
            with suppress(*FAILED):
                stream.drain()
            cluster.client.faults.clear()
        stream.drain()
    found = {name: pd.DataFrame([*stream.client.select_rows(f"* from [{path}]")])
             for name, path in paths.items()}  # fmt: skip
    everything = pd.DataFrame(rows)
    assert len(found["output"]) == count
    assert sorted(found["output"]["height"]) == sorted(everything["height"])
    last = everything.sort_values(["at", "height"]).groupby("aircraft").tail(1)
    assert dict(zip(found["current"]["aircraft"], found["current"]["height"], strict=True)) == (
        dict(zip(last["aircraft"], last["height"], strict=True))
    )
    # At one time a delete (a row that flies) wins.
    everything["flies"] = ~everything["on_ground"].fillna(False).astype(bool)
    last = everything.sort_values(["at", "flies", "height"]).groupby("aircraft").tail(1)
    down = last[~last["flies"]]
    ground = found["on_ground_now"]
    assert dict(zip(ground["aircraft"], ground["height"], strict=True)) == (
        dict(zip(down["aircraft"], down["height"], strict=True))
    )


@pytest.mark.thorough
def test_a_rejected_row_replaces_only_an_older_one(stream: Stream, spark: SparkSession) -> None:
    stream.redeclare(reject={"low": "height < 0"})
    row = {"note": "a", "on_ground": False}
    stream.publish(
        [
            {"aircraft": key, "at": at, "height": height, **row}
            for key, at, height in (
                (1, 5, 1.0),
                (1, 9, -1.0),
                (2, 3, -1.0),
                (3, 1, -1.0),
                (3, 7, 1.0),
            )
        ]
    )
    stream.drain()
    assert stored(stream) == {1: (5, 1.0, "a"), 3: (7, 1.0, "a")}
    stream.redeclare(reject={"no height is low any more": "false"})
    said = rejected_replay.replay(spark, stream.context, stream.flow(), print)
    assert said.startswith("3 rows went into the outputs")
    assert stored(stream) == {1: (9, -1.0, "a"), 2: (3, -1.0, "a"), 3: (7, 1.0, "a")}
