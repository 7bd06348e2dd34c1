"""Samples and unit tests: a value looks the same in a sample, a table and a DataFrame."""

from __future__ import annotations

import ctypes
import math
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
import yt.type_info as ti
from yt.yson import YsonEntity, YsonUint64

from tests.support import all_types
from tests.support.examples import PAIRS, Example, example
from tests.support.helpers import refusal
from ytstream import REJECTED, Column
from ytstream.schema.columns import spelled
from ytstream.schema.string_values import shown
from ytstream_tools.demo import sample_types
from ytstream_tools.demo.demo_tables import compare
from ytstream_tools.demo.job_sample import Sample, compared, counted
from ytstream_tools.demo.unexpected_rejects import kept_out
from ytstream_tools.testing.job_stream import assert_exact
from ytstream_tools.testing.type_conversion import conversion


@pytest.mark.parametrize(("guarantee", "processing"), PAIRS)
def test_samples_are_equal_in_every_run_and_make_output(guarantee: str, processing: str) -> None:
    made = example(guarantee, processing)
    rows = made.sample.make(600)
    assert rows == made.sample.make(600)
    assert (len(rows) > 600) == (processing == "deduplicate")
    wanted = made.sample.wanted(made.job, [*rows, *made.sample.closing(made.job, rows)])
    assert wanted
    assert bool(made.sample.closing(made.job, rows)) == (processing in ("window", "sessions"))


def test_what_brings_the_last_rows_out_closes_a_window_of_any_length_and_is_not_ahead() -> None:
    made = example("transactional", "window")
    assert made.sample.event_time is not None
    for start_us in (0, 1_704_067_200_000_000, time.time_ns() // 1_000 - 172_800_000_000):
        rows = made.sample.make(20, start_us=start_us)
        first, second = (row["date_time"] for row in made.sample.closing(made.job, rows))
        assert first == second
        assert type(first) is type(rows[0]["date_time"])
        assert max(row["date_time"] for row in rows) < first < time.time_ns() // 1_000
        assert time.time_ns() // 1_000 - first < 2 * 86_400_000_000


DAY_US = 86_400_000_000
START_US = 1_704_067_200_000_000  # 2024-01-01T00:00:00Z

TIMES: dict[str, tuple[Any, Callable[[int], Any]]] = {
    "timestamp": (ti.Timestamp, YsonUint64),
    "timestamp64": (ti.Timestamp64, int),
    "datetime": (ti.Datetime, lambda us: us // 1_000_000),
    "datetime64": (ti.Datetime64, lambda us: us // 1_000_000),
    "date": (ti.Date, lambda us: us // DAY_US),
    "date32": (ti.Date32, lambda us: us // DAY_US),
    "seconds": (ti.Int64, lambda us: us // 1_000_000),
    "seconds and a part": (ti.Double, lambda us: us / 1_000_000),
    "milliseconds": (ti.Int64, lambda us: us // 1_000),
    "microseconds": (ti.Uint64, YsonUint64),
    "nanoseconds": (ti.Int64, lambda us: us * 1_000),
    "text": (ti.Utf8, lambda us: datetime.fromtimestamp(us / 1e6, UTC).isoformat()),
    "text without a zone": (
        ti.Utf8,
        lambda us: f"{datetime.fromtimestamp(us / 1e6, UTC):%Y-%m-%d %H:%M:%S}",
    ),
}
"""Types of an event time's column, and what such a column holds for a time in microseconds."""


def _with_times(
    type_: Any, value: Callable[[int], Any], step_us: int = DAY_US, default: int = START_US
) -> Example:
    """Return a job of windows whose event time is such a column, ``at``, by another name."""
    made = example("transactional", "window")
    queue = [Column("key", ti.Int64, required=True), Column("at", type_)]

    def rows(count: int, seed: int = 1, start_us: int = default) -> Iterator[dict[str, Any]]:
        for number in range(count):
            yield {"key": seed, "at": value(start_us + number * step_us)}

    sample = Sample(rows=rows, event_time="at", expected=lambda rows: rows)
    return Example(replace(made.job, queue=queue, outputs={"output": queue}), sample)


@pytest.mark.parametrize("kind", TIMES)
@pytest.mark.parametrize("age_days", [0, 1, 700, 15_000])
def test_an_event_time_of_any_type_is_moved_on_but_not_into_the_future(
    kind: str, age_days: int
) -> None:
    type_, value = TIMES[kind]
    now = time.time_ns() // 1_000
    start_us = now - age_days * DAY_US
    made = _with_times(type_, value, default=start_us)
    rows = made.sample.make(max(age_days // 100, 1))
    newest = made.sample.newest(made.job, rows)
    # To the microsecond or so, where the column is a float.
    assert -10 < start_us + (len(rows) - 1) * DAY_US - newest < DAY_US
    closing = made.sample.closing(made.job, rows)
    assert closing[0] == closing[1]
    assert type(closing[0]["at"]) is type(rows[0]["at"])
    moved = made.sample.newest(made.job, closing)
    assert newest - 10 < moved <= time.time_ns() // 1_000
    assert now - moved < 2.5 * DAY_US
    sample_types.verify("closing", made.job.queue_columns, closing)


def test_an_event_time_that_is_no_time_is_refused() -> None:
    made = _with_times(ti.Utf8, lambda _: "noon")
    assert "EVENT_TIME in sample/rows.py is 'at', and 'noon' in it is not a time" in refusal(
        lambda: made.sample.newest(made.job, made.sample.make(1))
    )
    nothing = _with_times(ti.Utf8, lambda _: None)
    assert nothing.sample.newest(nothing.job, nothing.sample.make(1)) == START_US


def test_the_first_rows_are_where_rows_has_them_begin() -> None:
    made = _with_times(*TIMES["timestamp"], default=START_US - 9_000 * DAY_US)
    assert made.sample.make(1)[0]["at"] == START_US - 9_000 * DAY_US
    assert made.sample.make(1, start_us=START_US)[0]["at"] == START_US
    given = Sample(rows=lambda count, seed, start_us: [{"at": start_us}] * count, **_REST)
    assert given.make(1)[0]["at"] == START_US


@pytest.mark.parametrize("output", ["output", "rejected"])
def test_a_wrong_sample_row_is_blamed_on_rows_and_not_on_expected(
    output: str,
) -> None:
    made = example("transactional", "map", rejects=True)
    rows = [{**row, "bidder": None} for row in made.sample.make(50)]
    said = refusal(lambda: made.sample.wanted(made.job, rows, output))
    assert said.startswith("rows() in sample/rows.py, row 0: bidder is required and has no value")


_REST: dict[str, Any] = {"event_time": "at", "expected": lambda rows: rows}


def test_rows_that_do_not_begin_where_they_are_told_are_refused() -> None:
    made = _with_times(*TIMES["datetime"])
    assert made.sample.future(made.job)[0]["at"] == 4_133_980_800
    fixed = _with_times(ti.Timestamp, lambda _: START_US)
    assert "does not begin at its start_us: at of the first row is" in refusal(
        lambda: fixed.sample.future(fixed.job)
    )


def _keeping_out(made: Example) -> Example:
    """Return the example with REJECT and its output, where the sample yields no such row."""
    job = replace(
        made.job,
        reject={"from the future": "at > current_timestamp()"},
        outputs={**made.job.outputs, "rejected": REJECTED},
    )
    return Example(job, replace(made.sample, others={"rejected": lambda _: ()}))


def test_sample_rows_from_the_future_are_said_before_the_job_starts_and_after() -> None:
    made = _keeping_out(_with_times(*TIMES["timestamp"], step_us=DAY_US))
    rows = made.sample.make(20_000)
    said = made.sample.ahead(made.job, rows)
    assert said is not None
    assert re.match(
        r"\d{5} of 20000 sample rows lie in the future by their at, up to 2078-10-03T", said
    )
    assert "rows() in sample/rows.py begin earlier" in said
    assert made.sample.ahead(made.job, rows[:10]) is None
    maps = replace(made.job, processing="map")
    assert made.sample.ahead(maps, rows) is None

    late = [("from the future", row["key"], int(row["at"])) for row in rows[-3:]]
    outcomes = {
        "output": compare(Counter({row[1:]: 1 for row in late}), Counter()),
        "rejected": compare(Counter(), Counter(late)),
    }
    said = kept_out(made.job, outcomes)
    assert said == (
        "REJECT in transform.py keeps out 3 rows that rejected() in sample/expected.py does not "
        "yield (3 'from the future'): correct one of the two. Their at goes to "
        "2078-10-03T00:00:00Z, in the future. Let rows() in sample/rows.py begin earlier (the "
        "default of its start_us), or put its rows closer together in time."
    )
    with pytest.raises(pytest.fail.Exception, match="in the future"):
        assert_exact(made.job, outcomes)
    assert kept_out(made.job, {**outcomes, "rejected": compare(Counter(), Counter())}) is None


def test_the_position_of_a_row_is_not_compared() -> None:
    assert compared(example("idempotent", "map", 2).job) == compared(
        example("at_least_once", "map").job
    )


def test_values_count_alike_whatever_read_them() -> None:
    plain = {"a": 5, "b": [1, {"y": None, "x": 2}]}
    other = {"a": YsonUint64(5), "b": (1, {"x": 2, "y": None})}
    columns = [Column("a", ti.Int64), Column("b", ti.Yson)]
    assert counted([plain, other], columns).most_common(1)[0][1] == 2


def test_a_null_inside_any_counts_as_null_whatever_read_it() -> None:
    """YSON's own null has no hash, so a rejected row with one ended `approve` in a traceback."""
    columns = [Column("payload", ti.Yson)]
    read, written = ({"payload": {"user": {"country": null}}} for null in (YsonEntity(), None))
    assert counted([read], columns) == counted([written], columns)


def test_the_pairs_of_a_dict_have_no_order_at_any_depth() -> None:
    columns = [Column("a", ti.List[ti.Dict[ti.Utf8, ti.Int64]]), Column("b", ti.List[ti.Int64])]
    rows = [{"a": [[["x", 1], ["y", 2]]], "b": [1]}, {"a": [[["y", 2], ["x", 1]]], "b": [1]}]
    assert len(counted(rows, columns)) == 1
    assert len(counted([rows[0], {**rows[0], "b": [2]}], columns)) == 2


def test_floats_are_compared_as_the_table_holds_them() -> None:
    inf, nan = math.inf, math.nan
    columns = [Column("a", ti.Double), Column("b", ti.Float), Column("c", ti.List[ti.Double])]
    given = [{"a": x, "b": x, "c": [x]} for x in (inf, -inf, nan, -0.0, 0.1, 1e300)]
    single = ctypes.c_float(0.1).value
    found = [{"a": x, "b": x, "c": [x]} for x in (inf, -inf, float("nan"), 0.0)]
    found += [{"a": 0.1, "b": single, "c": [0.1]}, {"a": 1e300, "b": inf, "c": [1e300]}]
    outcome = compare(counted(given, columns), counted(found, columns))
    assert (outcome.lost, outcome.duplicated) == (0, 0)
    wrong = counted([{"a": 1e308, "b": 0.2, "c": [0.0]}], columns)
    assert compare(counted(given[:1], columns), wrong).lost == 1


def test_lost_and_duplicated_rows_are_counted_and_named() -> None:
    wanted = Counter({("a", 1): 2, ("b", 1): 1})
    outcome = compare(wanted, Counter({("a", 1): 1, ("b", 1): 2, ("b", 2): 1}))
    assert (outcome.rows_out, outcome.lost, outcome.duplicated) == (4, 1, 2)
    assert outcome.missing == {("a", 1): 1}
    assert outcome.unexpected == {("b", 1): 1, ("b", 2): 1}


CONVERTED_ALONE = [
    name for name in all_types.VALUES if name not in ("any", "struct", "struct_of_bytes", "tuple")
]
"""test_type_conversion.py takes the others through Spark, whose rows and values they become there.
"""


@pytest.mark.parametrize("name", CONVERTED_ALONE)
def test_a_value_returns_from_spark_as_it_went_there(name: str) -> None:
    (column,) = (c for c in all_types.job("map").queue_columns if c.name == f"c_{name}")
    converted = conversion(column.type)
    for value in [*all_types.VALUES[name][1], None]:
        assert converted.from_spark(converted.to_spark(value)) == value


def test_a_text_that_spark_holds_as_bytes_is_a_text() -> None:
    assert conversion(ti.String).from_spark(bytearray("ы".encode())) == "ы"
    assert conversion(ti.String).from_spark(bytearray(b"\xff")) == b"\xff"


def test_a_type_that_spark_does_not_carry_is_refused() -> None:
    assert "no sample row" in refusal(lambda: conversion(ti.Variant[ti.Int64, ti.Utf8]))
    assert "no sample row" in refusal(lambda: conversion(ti.Decimal(36, 2)))


@pytest.mark.parametrize("column", all_types.COLUMNS, ids=lambda column: column.name)
def test_the_values_of_every_type_fit_their_columns(column: Column) -> None:
    (resolved,) = (c for c in all_types.job("map").queue_columns if c.name == column.name)
    sample_types.verify(
        "rows", [resolved], [{column.name: row[column.name]} for row in all_types.rows()]
    )


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        (ti.Int8, 128),
        (ti.Uint8, -1),
        (ti.Int64, True),
        (ti.Int64, 1.0),
        (ti.Date, "2024-01-01"),
        (ti.Timestamp, -1),
        (ti.Double, 1),
        (ti.Bool, 1),
        (ti.Utf8, b"bytes"),
        (ti.List[ti.Int64], [1, "2"]),
        (ti.List[ti.Utf8], "text"),
        (ti.List[ti.Utf8], [None]),
        (ti.Dict[ti.Utf8, ti.Int64], {"a": 1}),
        (ti.Dict[ti.Utf8, ti.Int64], [["a", 1, 2]]),
        (ti.Tuple[ti.Int64, ti.Utf8], [1]),
        (ti.Struct["a" : ti.Int64], {"b": 1}),
        (ti.Struct["a" : ti.Int64], [1]),
    ],
    ids=str,
)
def test_a_value_that_does_not_fit_is_named(type_: Any, value: Any) -> None:
    said = refusal(lambda: sample_types.verify("REFERENCE", [Column("x", type_)], [{"x": value}]))
    assert said.startswith(
        f"REFERENCE, row 0: x = {shown(value)}, tables.py says {spelled(type_)}\n"
    )
    assert said.endswith("-> correct sample/rows.py or tables.py")
