"""Rows that are in no finished row: rejected ones in every kind, late ones, and how many may be."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from yt.yson import YsonUint64

from minicluster.testing import Running
from tests.support.helpers import (
    StreamOf,
    another_process,
    at_a_commit,
    head_of,
    refusal,
    run_until_it_fails,
    unconnected,
)
from tests.support.server_errors import UNAVAILABLE
from ytstream import JobError, RestartableError
from ytstream.job import REJECTED
from ytstream.outputs import sink
from ytstream.rejected import collected, tagging, writer
from ytstream.rejected.limit import FEW, SkippedRows, verify_late_limit, verify_limit
from ytstream_tools.demo.demo_tables import row_count
from ytstream_tools.replay.rejected_replay import replay
from ytstream_tools.status.status_text import status
from ytstream_tools.testing.job_stream import Stream

pytestmark = pytest.mark.spark

KINDS = [
    ("transactional", "window", 2),
    pytest.param("transactional", "aggregate", 1, marks=pytest.mark.journey),
    pytest.param("transactional", "deduplicate", 1, marks=pytest.mark.journey),
    pytest.param("at_least_once", "sessions", 1, marks=pytest.mark.journey),
    pytest.param("at_least_once", "deduplicate", 2, marks=pytest.mark.journey),
    pytest.param("transactional", "sessions", 2, marks=pytest.mark.journey),
]
"""Each kind with state, and guarantees and numbers of queues in turn."""
for_each = pytest.mark.parametrize(("guarantee", "processing", "queues"), KINDS)
_SECOND_US = 1_000_000
_HOUR_US = 3_600 * _SECOND_US


def _now_us() -> int:
    return int(time.time() * _SECOND_US)


def _aside(stream: Stream, rows: list[dict[str, Any]]) -> None:
    """Send rows of which expected.py does not know."""
    sent = list(stream.sent)
    stream.publish(rows)
    stream.sent = sent


def _wrong(stream: Stream, count: int) -> list[dict[str, Any]]:
    """Return rows as a producer sends them that takes local time, UTC+3, for UTC."""
    rows = stream.sample.make(count, seed=4_711)
    if stream.context.job.processing == "aggregate":  # it looks at no time
        return [{**row, "price": -1} for row in rows]
    return [{**row, "date_time": YsonUint64(_now_us() + 3 * _HOUR_US)} for row in rows]


def _rows(stream: Stream) -> dict[str, int]:
    return {name: row_count(stream.context, name) for name in stream.settings.outputs}


def _is_exact(stream: Stream, output: str = "output") -> bool:
    outcome = stream.outcomes()[output]
    return (outcome.lost, outcome.duplicated) == (0, 0)


@pytest.mark.thorough
@for_each
def test_rows_three_hours_ahead_are_rejected_and_end_the_job(
    stream_of: StreamOf, guarantee: str, processing: str, queues: int
) -> None:
    stream = stream_of(guarantee, processing, queues, rejects=True)
    stream.send(300)
    stream.drain()
    before, head = _rows(stream), head_of(stream)
    wrong = _wrong(stream, 200)
    _aside(stream, wrong)
    said = refusal(stream.drain)
    assert f"{len(wrong)} of {len(wrong)} rows of a micro-batch were skipped" in said
    assert ("compare this host's clock" in said) == (processing != "aggregate")
    assert "reject_limit = 1 in the configuration lets this batch pass" in said
    assert (_rows(stream), head_of(stream).number) == (before, head.number)
    stream.configure(reject_limit=1)
    stream.drain()
    assert _rows(stream)[REJECTED] == before[REJECTED] + len(wrong)
    # They have moved no watermark: right rows that come after them are in time.
    stream.send(300)
    stream.close()
    assert _is_exact(stream)


@pytest.mark.thorough
@for_each
def test_a_commit_is_refused_and_each_rejected_row_is_there_once(
    stream_of: StreamOf, cluster: Running, guarantee: str, processing: str, queues: int
) -> None:
    stream = stream_of(guarantee, processing, queues, rejects=True)
    stream.send(500)
    stream.drain()
    stream.send(500)
    stream.recover()
    if guarantee == "transactional":
        at_a_commit(stream, cluster, "fail")
    else:  # the outputs are written, the ledger is not
        where = {"path": stream.settings.ledger}
        cluster.client.faults.add(
            method="ModifyRows", where=where, action="fail", error=UNAVAILABLE
        )
    run_until_it_fails(stream)
    cluster.client.faults.clear()
    stream.close()
    outcomes = stream.outcomes()
    assert [one.lost for one in outcomes.values()] == [0, 0]
    assert outcomes[REJECTED].duplicated == 0
    assert guarantee == "at_least_once" or outcomes["output"].duplicated == 0
    assert outcomes[REJECTED].rows_out > 0


# -- the second reading --------------------------------------------------------------------------


def _ahead(stream: Stream, clock: str) -> int:
    """Reject what is ten seconds ahead, and send rows that are so for twelve seconds from now.

    Returns the time from which on they are no more.
    """
    stream.redeclare(reject={"from the future": f"date_time > {clock} + INTERVAL 10 seconds"})
    last = _now_us() + 12 * _SECOND_US
    rows = stream.sample.make(15, seed=4_711)
    _aside(stream, [{**r, "date_time": YsonUint64(last + 10 * _SECOND_US)} for r in rows])
    return last


@pytest.mark.thorough
@pytest.mark.parametrize("is_fixed", [True, False], ids=["fixed", "bare"])
def test_both_readings_take_the_batchs_time(
    stream_of: StreamOf, monkeypatch: pytest.MonkeyPatch, is_fixed: bool
) -> None:
    """By a clock that runs on, rows would be in neither table: now() is refused for that."""
    stream = stream_of("transactional", "window", 1, rejects=True)
    stream.send(100)
    stream.drain()
    before = _rows(stream)
    if not is_fixed:
        stream.redeclare(reject={"from the future": "date_time > now()"})
        assert "now gives another value each time" in refusal(stream.flow)
        monkeypatch.setattr(tagging, "_unsteady", lambda _: [])
    last = _ahead(stream, "current_timestamp()" if is_fixed else "now()")
    whole: Callable[..., Any] = sink.write

    def late(*given: Any) -> Any:
        time.sleep(max(0.0, 1 + (last - _now_us()) / _SECOND_US))
        return whole(*given)

    monkeypatch.setattr(collected, "MOST", 0)  # all rows are read once more
    monkeypatch.setattr(writer, "write", late)
    if is_fixed:
        stream.drain()
        assert _rows(stream)[REJECTED] == before[REJECTED] + 15
    else:
        counts = "{'from the future': 15} while it read its rows, and {'from the future': 0}"
        with pytest.raises(RestartableError, match=f"rejected {counts}"):
            stream.drain()
        assert _rows(stream) == before


@pytest.mark.thorough
def test_a_queue_is_trimmed_between_the_readings(
    stream_of: StreamOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SPYT takes later rows for those that were trimmed, without an error."""
    monkeypatch.setattr(collected, "MOST", 0)  # all rows are read once more
    stream = stream_of("transactional", "window", 1, rejects=True)
    stream.configure(max_rows_per_partition=50)
    stream.send(500)
    whole: Callable[..., Any] = sink.write

    def trimmed(*given: Any) -> Any:
        stream.client.trim_rows(stream.settings.queues[0], 0, 20)
        return whole(*given)

    monkeypatch.setattr(writer, "write", trimmed)
    with pytest.raises(RestartableError, match=r"read other rows of //.* for 'rejected' than"):
        stream.drain()
    assert _rows(stream) == {"output": 0, REJECTED: 0}


UNSTEADY = ("rand() < 0.5", "uuid() < 'a'", "date_time > now()", "price > rand() * 2")


@pytest.mark.parametrize("condition", UNSTEADY)
def test_a_condition_that_may_judge_a_row_in_two_ways_is_refused(
    stream_of: StreamOf, condition: str
) -> None:
    stream = stream_of("transactional", rejects=True)
    stream.redeclare(reject={"odd": condition})
    said = refusal(stream.flow)
    assert "may judge a row in one way now and in another when it is read again" in said
    assert "of the clocks use current_timestamp()" in said


@pytest.mark.parametrize(
    "condition",
    [
        "date_time > cast('now' as timestamp)",
        "date_time > to_timestamp(' Today ')",
        "date(date_time) = 'tomorrow'",
        "try_to_timestamp('now') < date_time",
        "date_time < try_cast(concat('no', 'w') as timestamp)",
    ],
)
def test_a_text_that_becomes_another_time_in_each_reading_is_refused(
    stream_of: StreamOf, condition: str
) -> None:
    stream = stream_of("transactional", rejects=True)
    stream.redeclare(reject={"ahead": condition})
    said = refusal(stream.flow)
    assert "has a text such as 'now', and a time that differs in its place" in said
    assert "use current_timestamp()" in said
    assert "for 'epoch' timestamp_seconds(0)" in said


@pytest.mark.parametrize(
    "condition",
    [
        "url = 'now'",
        "date_time > timestamp'2024-01-01 00:00:00'",
        "date_time > timestamp_seconds(0)",
    ],
)
def test_a_text_that_stays_one_may_be_compared(stream_of: StreamOf, condition: str) -> None:
    stream = stream_of("transactional", rejects=True)
    stream.redeclare(reject={"odd": condition})
    stream.flow()


@pytest.mark.parametrize("clock", ["current_timestamp()", "current_date()", "localtimestamp()"])
def test_the_batchs_time_may_be_asked_in_each_way(stream_of: StreamOf, clock: str) -> None:
    stream = stream_of("transactional", rejects=True)
    stream.redeclare(reject={"ahead": f"date_time > {clock}"})
    stream.flow()


@pytest.mark.thorough
@pytest.mark.parametrize("processing", ["map", "window"])
def test_rows_are_rejected_where_transform_lets_none_through(
    stream_of: StreamOf, processing: str
) -> None:
    """Spark then computes nothing, and counts nothing."""
    stream = stream_of("transactional", processing, 1, rejects=True)
    made = stream.context.job.transform
    stream.redeclare(transform=lambda events: made(events).filter("false"))
    stream.send(400)
    stream.drain()
    assert _is_exact(stream, REJECTED)
    assert _rows(stream)["output"] == 0 < _rows(stream)[REJECTED]


@pytest.mark.thorough
def test_rows_that_transform_reads_twice_are_rejected_once(stream_of: StreamOf) -> None:
    stream = stream_of("transactional", "map", 2, rejects=True)
    made = stream.context.job.transform

    def twice(events: DataFrame) -> DataFrame:
        return made(events.filter("price % 2 = 0").union(events.filter("price % 2 = 1")))

    stream.redeclare(transform=twice)
    stream.send(400)
    stream.drain()
    assert stream.is_exact()


@pytest.mark.thorough
def test_a_queue_without_new_rows_is_not_read_again(stream_of: StreamOf) -> None:
    stream = stream_of("transactional", "deduplicate", 2, rejects=True)
    for queues in ((0,), (1,), (0, 1)):
        stream.send(300, queues=queues)
        stream.drain()
    assert stream.is_exact()
    assert _rows(stream)[REJECTED] > 0


@pytest.mark.thorough
def test_a_batch_without_rejected_rows_is_read_once(
    stream_of: StreamOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = stream_of("transactional", "map", 1, rejects=True)
    stream.redeclare(reject={"never": "price > 10000000000"})
    monkeypatch.setattr(writer, "write", lambda *_: pytest.fail("read again"))
    stream.send(100)
    stream.drain()
    assert _rows(stream) == {"output": 100, REJECTED: 0}


@pytest.mark.thorough
def test_a_job_with_state_replays_no_rejected_rows(stream_of: StreamOf) -> None:
    stream = stream_of("transactional", "window", 1, rejects=True)
    stream.send(300)
    stream.drain()
    said = refusal(lambda: replay(stream.spark, stream.context, stream.flow(), print))
    assert "a job of processing window replays no rows: its state has moved on" in said


# -- late rows -----------------------------------------------------------------------------------


def _behind(stream: Stream) -> list[dict[str, Any]]:
    """Run so far that rows of the sample's beginning are late; return fifty of them."""
    for count in (3_000, 100):  # late by the watermark under which the batch before ran
        stream.send(count)
        stream.drain()
    return stream.sample.make(50, seed=4_711)


def _batches(stream: Stream) -> Sequence[Any]:
    query = f'number, rows_read, state from [{stream.settings.ledger}] where kind = "batch"'
    return sorted(stream.client.select_rows(query), key=lambda row: int(row["number"]))


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("guarantee", "processing"),
    [
        ("transactional", "window"),
        pytest.param("at_least_once", "deduplicate", marks=pytest.mark.journey),
    ],
)
def test_late_rows_are_in_the_ledger_and_end_the_job(
    stream_of: StreamOf, guarantee: str, processing: str
) -> None:
    stream = stream_of(guarantee, processing)
    rows = _behind(stream)
    before, number = stream.found(), head_of(stream).number
    fresh = stream.sample.make(10, seed=5, start_us=max(int(r["date_time"]) for r in stream.sent))
    stream.publish(fresh)
    _aside(stream, rows)
    said = refusal(stream.drain)
    assert f" of {len(rows) + len(fresh)} rows of a micro-batch were skipped: " in said
    assert re.search(r" behind the watermark \(at 20.* UTC, .* ahead of the newest of them", said)
    assert "; reject_limit allows 50%" in said
    assert (stream.found(), head_of(stream).number) == (before, number)
    # The setting that it names, and not less, lets this batch pass.
    limit = float(said.split("reject_limit = ")[1].split()[0])
    stream.configure(reject_limit=limit - 0.02)
    assert "behind the watermark" in refusal(another_process(stream).drain)
    stream.configure(reject_limit=limit)
    stream = another_process(stream)
    stream.drain()
    late = [row["state"]["late"] for row in _batches(stream) if (row["state"] or {}).get("late")]
    assert late
    assert FEW < sum(late) <= len(rows)
    assert str(sum(late)) in status(stream.context)
    stream.send(200)
    stream.close()
    assert stream.is_exact()


@pytest.mark.thorough
def test_late_rows_of_few_groups_are_counted_each(stream_of: StreamOf) -> None:
    """Spark counts them after those of one group and one task have become one."""
    stream = stream_of("transactional", "window")
    rows = _behind(stream)
    late = [rows[0]] * 200
    fresh = stream.sample.make(10, seed=5, start_us=max(int(r["date_time"]) for r in stream.sent))
    stream.publish(fresh)
    _aside(stream, late)
    said = refusal(stream.drain)
    assert f"{len(late)} of {len(late) + len(fresh)} rows of a micro-batch were skipped" in said
    stream.configure(reject_limit=1.0)
    stream = another_process(stream)
    stream.drain()
    assert sum((row["state"] or {}).get("late", 0) for row in _batches(stream)) == len(late)
    stream.close()
    assert stream.is_exact()


def _bids(rows: DataFrame, length: str = "10 seconds") -> DataFrame:
    grouped = rows.groupBy(F.window("date_time", length), "auction")
    totals = grouped.agg(F.count(F.lit(1)).alias("bids"), F.sum("price").alias("total"))
    start, end = (F.col(f"window.{name}").alias(f"window_{name}") for name in ("start", "end"))
    return totals.select("auction", start, end, "bids", "total")


def _marked(rows: DataFrame) -> DataFrame:
    return rows.withWatermark("date_time", "10 seconds")


def _two_windows(rows: DataFrame) -> DataFrame:
    return _bids(_marked(rows)).union(_bids(_marked(rows), "1 hour"))


def _distinct(rows: DataFrame) -> DataFrame:
    _marked(rows).createOrReplaceTempView("late_bids")
    return rows.sparkSession.sql(
        "select distinct auction, w.start as window_start, w.end as window_end, 1L as bids, "
        "1L as total, w from (select auction, window(date_time, '10 seconds') as w from late_bids)"
    ).drop("w")


def _with_a_static_window(rows: DataFrame) -> DataFrame:
    old = rows.sparkSession.sql("select id as auction, timestamp'2020-01-01' as m from range(2000)")
    windows = old.withWatermark("m", "1 second").groupBy(F.window("m", "10 seconds"), "auction")
    return _bids(_marked(rows).join(windows.count().select("auction", "count"), "auction", "left"))


def _without_repeats(rows: DataFrame) -> DataFrame:
    return _bids(_marked(rows).dropDuplicatesWithinWatermark(["event_id"]))


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("transform", "late"),
    [
        (_two_windows, 200),
        # Spark runs it in a stream alone: the batch passes with Spark's number.
        (_without_repeats, None),
        pytest.param(_distinct, 200, marks=pytest.mark.journey),
        pytest.param(_with_a_static_window, 200, marks=pytest.mark.journey),
    ],
)
def test_late_rows_are_counted_in_any_plan(
    stream_of: StreamOf, transform: Callable[[DataFrame], DataFrame], late: int | None
) -> None:
    stream = stream_of("transactional", "window")
    stream.redeclare(transform=transform)
    stream.configure(reject_limit=1.0)
    rows = _behind(stream)
    _aside(stream, [rows[0]] * 200)
    stream.drain()
    (counted,) = (state["late"] for row in _batches(stream) if (state := row["state"] or {}))
    assert counted == late if late is not None else 0 < counted <= 200


@pytest.mark.thorough
def test_few_late_rows_are_counted_and_pass(stream_of: StreamOf) -> None:
    stream = stream_of("transactional", "deduplicate")
    rows = _behind(stream)[:FEW]
    _aside(stream, rows)
    stream.drain()
    assert _batches(stream)[-1]["state"]["late"] == FEW


@pytest.mark.thorough
@pytest.mark.parametrize("processing", ["window", "deduplicate"])
def test_rows_without_an_event_time_are_counted(stream_of: StreamOf, processing: str) -> None:
    """No rule of REJECT keeps them out. Spark drops them from windows, and forgets their ids."""
    stream = stream_of("transactional", processing)
    transform, has_time = stream.context.job.transform, F.col("auction") % 3 != 0

    def without_times(rows: DataFrame) -> DataFrame:
        made = transform(rows.withColumn("date_time", F.when(has_time, F.col("date_time"))))
        given = {name: F.coalesce(name, F.now()) for name in made.columns if name == "date_time"}
        return made.withColumns(given)  # where the output has the column, it is required

    stream.redeclare(transform=without_times)
    stream.send(60)
    stream.drain()
    wanted = sum(int(row["auction"]) % 3 == 0 for row in stream.sent)
    assert 0 < wanted < 30
    found = [int((row["state"] or {}).get("without_time", 0)) for row in _batches(stream)]
    assert sum(found) == wanted == head_of(stream).totals.without_time
    assert "without an event time in the last" in status(stream.context)


# -- the limit -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("found", "limit", "said"),
    [
        (SkippedRows({"odd": 20}), 0.0, None),
        (SkippedRows({"odd": 21}), 0.0, "21 of 90 rows of a micro-batch were skipped: 21 odd;"),
        (SkippedRows({"odd": 21}), 0.0, "reject_limit = 0.24 in the configuration"),
        (SkippedRows({"odd": 10}, late=11), 0.2, "10 odd, 11 behind the watermark; reject_limit"),
        (SkippedRows({"odd": 10}, late=11), 0.24, None),
        (
            SkippedRows(late=31, watermark=1_700_000_000_000, newest=1_699_990_000_000),
            0.2,
            "31 behind the watermark (at 2023-11-14 22:13:20 UTC, 2:46:40 ahead of the newest of "
            "them); reject_limit",
        ),
        (
            SkippedRows(late=31, watermark=4_102_444_800_000, newest=1_699_990_000_000),
            0.2,
            " ahead of this host's clock); reject_limit",
        ),
        # Those of deduplicate are in the output.
        (SkippedRows(without_time=31), 0.2, None),
        (
            SkippedRows(without_time=31, dropped_without_time=31),
            0.2,
            "31 without an event time; reject_limit",
        ),
        (SkippedRows(late=31), 0.2, "or widen the watermark"),
        # Those that are kept have a limit of their own.
        (SkippedRows({"odd": 20}, late=31, is_late_kept=True), 0.2, None),
        (SkippedRows({"early": 30}), 0.2, "compare this host's clock, which says 20"),
        # Of several operators with state Spark counts a row more than once.
        (SkippedRows(late=200), 0.9, "reject_limit = 1 in the configuration lets this batch pass"),
        (SkippedRows(late=200), 1.0, None),
    ],
)
def test_the_limit(found: SkippedRows, limit: float, said: str | None) -> None:
    conditions = {"odd": "price = 1", "early": "date_time > Current_Timestamp()"}
    job = replace(unconnected("transactional").job, reject=conditions)
    if said is None:
        verify_limit(found, 90, limit, job)
        return
    with pytest.raises(JobError) as caught:
        verify_limit(found, 90, limit, job)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("found", "limit", "said"),
    [
        (SkippedRows(late=31, is_late_kept=True), None, None),
        (SkippedRows(late=FEW, is_late_kept=True), 0.0, None),
        (SkippedRows(late=31, is_late_kept=True), 0.35, None),
        (SkippedRows(late=31), 0.0, None),  # reject_limit counts them
        (SkippedRows(late=31, is_late_kept=True), 0.3, "31 of 90 rows of a micro-batch were late;"),
        (SkippedRows(late=31, is_late_kept=True), 0.3, "late_limit = 0.35 in the configuration"),
    ],
)
def test_the_limit_of_late_rows(found: SkippedRows, limit: float | None, said: str | None) -> None:
    if said is None:
        verify_late_limit(found, 90, limit)
        return
    with pytest.raises(JobError) as caught:
        verify_late_limit(found, 90, limit)
    assert said in str(caught.value)


def test_the_limit_that_an_error_names_lets_the_batch_pass() -> None:
    """Also where the limit times the rows is a little less than a whole number, as 0.29 * 100."""
    job = unconnected("transactional").job
    for read in range(FEW + 1, 201):
        for count in range(FEW + 1, read + 1):
            with pytest.raises(JobError) as caught:
                verify_limit(SkippedRows(late=count), read, 0.0, job)
            named = str(caught.value).rpartition("reject_limit = ")[2].partition(" ")[0]
            verify_limit(SkippedRows(late=count), read, float(named), job)
