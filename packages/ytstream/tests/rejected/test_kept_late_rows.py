"""`late="reject"`: each late row is in `rejected` once, with what it missed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tests.support.helpers import (
    StreamOf,
    head_of,
    refusal,
)
from ytstream.job import LATE, REJECTED
from ytstream_tools.testing.job_stream import Stream

pytestmark = pytest.mark.spark

_SECOND_US = 1_000_000


def _sliding(rows: DataFrame) -> DataFrame:
    return _bids(_marked(rows), "30 seconds", "10 seconds")


def _late(stream: Stream, count: int) -> list[dict[str, Any]]:
    """Run so far that rows of the sample's beginning are late; send so many, and return them."""
    for more in (3_000, 100):  # late by the watermark under which the batch before ran
        stream.send(more)
        stream.drain()
    rows = stream.sample.passing(stream.context.job, stream.sample.make(count, seed=4_711))
    return _published(stream, [*map(dict, rows)])


def _published(stream: Stream, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Send rows of which expected.py does not know."""
    sent = list(stream.sent)
    stream.publish(rows)
    stream.sent = sent
    return rows


def _kept(stream: Stream) -> list[dict[str, Any]]:
    """Return the rows of `rejected` whose reason is `late`, with their JSON read."""
    query = f'* from [{stream.settings.outputs[REJECTED]}] where reason = "{LATE}"'
    return [{**row, "row": json.loads(row["row"])} for row in stream.client.select_rows(query)]


def _ids(rows: list[dict[str, Any]]) -> Counter[str]:
    return Counter(row["event_id"] for row in rows)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("guarantee", "processing", "queues"),
    [
        ("transactional", "window", 1),
        ("at_least_once", "deduplicate", 2),
        ("transactional", "sessions", 1),
        pytest.param("transactional", "deduplicate", 1, marks=pytest.mark.journey),
        pytest.param("at_least_once", "window", 2, marks=pytest.mark.journey),
    ],
)
def test_each_late_row_is_kept_once(
    stream_of: StreamOf, guarantee: str, processing: str, queues: int
) -> None:
    stream = stream_of(guarantee, processing, queues, rejects=True)
    stream.redeclare(late="reject")
    sent = _late(stream, 200)
    stream.drain()  # all of them are late, and reject_limit counts none
    kept = _kept(stream)
    assert _ids([row["row"] for row in kept]) == _ids(sent)
    notes = [row["row"]["$late"] for row in kept]
    assert {note["of"] for note in notes} == {1}
    assert {len(note["missed"]) for note in notes} == {1}
    assert all(_end(note["missed"][0]) <= _end(note["watermark"]) for note in notes)
    assert head_of(stream).totals.late == len(sent)
    assert head_of(stream).totals.written[REJECTED] == len(sent) + sum(
        head_of(stream).totals.rejected.values()
    )
    stream.send(200)
    stream.close()
    outcome = stream.outcomes()["output"]
    assert (outcome.lost, outcome.duplicated) == (0, 0)


@pytest.mark.thorough
def test_a_row_of_several_windows_is_late_for_those_that_it_misses(stream_of: StreamOf) -> None:
    """And counted in the others: the row says so."""
    stream = stream_of("transactional", "window", rejects=True)
    stream.redeclare(late="reject", transform=_sliding)
    rows = [*_late(stream, 200)]
    stream.drain()
    stream.close()
    kept = {one["row"]["event_id"]: one["row"]["$late"] for one in _kept(stream)}
    assert {note["of"] for note in kept.values()} == {3}
    assert any(0 < len(note["missed"]) < 3 for note in kept.values())
    missed = {id: {_end(place) for place in note["missed"]} for id, note in kept.items()}
    wanted, sent = (
        Counter[tuple[int, datetime]](),
        stream.sample.passing(stream.context.job, stream.sent),
    )
    for row in [*sent, *rows]:
        for end in _ends(int(row["date_time"])):
            if end not in missed.get(row["event_id"], ()):
                wanted[row["auction"], end] += 1
    last = _time(max(int(row["date_time"]) for row in sent)) - timedelta(seconds=10)
    query = f"auction, window_end, bids from [{stream.settings.output}]"
    found = {
        (row["auction"], _time(row["window_end"])): row["bids"]
        for row in stream.client.select_rows(query)
    }
    assert found == {window: bids for window, bids in wanted.items() if window[1] <= last}


def _ends(time_us: int) -> list[datetime]:
    """Return the ends of the windows of a row: 30 s long, each 10 s."""
    first = time_us // (10 * _SECOND_US) * 10 + 10
    return [_time((first + more) * _SECOND_US) for more in (0, 10, 20)]


def _time(time_us: int) -> datetime:
    return datetime.fromtimestamp(time_us // _SECOND_US, UTC)


def _end(place: str) -> datetime:
    """Return a time, or the end of a window."""
    return datetime.fromisoformat(place.rpartition("/")[2])


def _marked(rows: DataFrame) -> DataFrame:
    return rows.withWatermark("date_time", "10 seconds")


def _of_a_union(rows: DataFrame) -> DataFrame:
    """Each row once as it is and once under another auction, in an order of its own."""
    other = rows.select("price", (F.col("auction") + 1_000_000).alias("auction"), "date_time")
    return _bids(_marked(rows.select("date_time", "auction", "price").unionByName(other)))


def _of_words(rows: DataFrame) -> DataFrame:
    """Joined with a table, then a row for each letter of a text: several in one window."""
    table = rows.sparkSession.range(100_000).withColumnRenamed("id", "auction")
    found = _marked(rows).join(F.broadcast(table), "auction", "left").filter("price > 0")
    letters = found.withColumn("letter", F.explode(F.split(F.coalesce("channel", F.lit("ab")), "")))
    return _bids(letters.withColumn("auction", F.col("auction") + F.length("letter")))


def _two_windows(rows: DataFrame) -> DataFrame:
    return _bids(_marked(rows)).union(_bids(_marked(rows), "1 hour"))


def _bids(rows: DataFrame, *window: str) -> DataFrame:
    grouped = rows.groupBy(F.window("date_time", *(window or ("10 seconds",))), "auction")
    totals = grouped.agg(F.count(F.lit(1)).alias("bids"), F.sum("price").alias("total"))
    start, end = (F.col(f"window.{name}").alias(f"window_{name}") for name in ("start", "end"))
    return totals.select("auction", start, end, "bids", "total")


@pytest.mark.thorough
@pytest.mark.parametrize(("transform", "of"), [(_of_words, 1), (_of_a_union, 1), (_two_windows, 2)])
def test_a_row_that_becomes_several_is_kept_once(
    stream_of: StreamOf, transform: Callable[[DataFrame], DataFrame], of: int
) -> None:
    stream = stream_of("transactional", "window", rejects=True)
    stream.redeclare(late="reject", transform=transform)
    sent = _late(stream, 60)
    stream.redeclare(reject={})  # `late` needs none
    stream.drain()
    kept = [one["row"] for one in _kept(stream)]
    assert _ids(kept) == _ids(sent)
    assert {row["$late"]["of"] for row in kept} == {of}


@pytest.mark.thorough
def test_late_limit_ends_the_job_and_nothing_is_kept(stream_of: StreamOf) -> None:
    stream = stream_of("transactional", "window", rejects=True)
    stream.configure(late_limit=0.1)
    stream.redeclare(late="reject")
    sent = _late(stream, 50)
    said = refusal(stream.drain)
    assert f"{len(sent)} of {len(sent)} rows of a micro-batch were late (at 20" in said
    assert "late_limit allows 10%" in said
    assert "late_limit = 1 in the configuration lets this batch pass" in said
    assert _kept(stream) == []
    stream.configure(late_limit=1.0)
    stream.drain()
    assert len(_kept(stream)) == len(sent)


def _without_repeats(rows: DataFrame) -> DataFrame:
    return _bids(_marked(rows).dropDuplicatesWithinWatermark(["event_id"]))


@pytest.mark.thorough
def test_rows_behind_two_operators_with_state_are_only_counted(stream_of: StreamOf) -> None:
    """The job says so at its start, and reject_limit counts them as without late="reject"."""
    stream = stream_of("transactional", "window", rejects=True)
    stream.redeclare(late="reject", transform=_without_repeats)
    assert "behind Aggregate of transform()" in stream.flow().of_late_rows
    _late(stream, 50)
    assert "behind the watermark" in refusal(stream.drain)
    stream.configure(reject_limit=1.0)
    stream.drain()
    assert _kept(stream) == []
    assert head_of(stream).totals.late > 0
