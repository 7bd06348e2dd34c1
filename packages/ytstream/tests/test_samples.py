"""Samples and unit tests: a value looks the same in a sample, a table and a DataFrame."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

import pytest
import yt.type_info as ti
from yt.yson import YsonUint64

from packages.ytstream.tests import all_types
from packages.ytstream.tests.examples import PAIRS, example
from packages.ytstream.tests.helpers import refusal
from ytstream import Column
from ytstream.demo import fits
from ytstream.demo.sample import compared, counted
from ytstream.demo.tables import compare
from ytstream.testing.values import conversion


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


def test_the_position_of_a_row_is_not_compared() -> None:
    assert compared(example("idempotent", "map", 2).job) == compared(
        example("at_least_once", "map").job
    )


def test_values_count_alike_whatever_read_them() -> None:
    plain = {"a": 5, "b": [1, {"y": None, "x": 2}]}
    other = {"a": YsonUint64(5), "b": (1, {"x": 2, "y": None})}
    columns = [Column("a", ti.Int64), Column("b", ti.Yson)]
    assert counted([plain, other], columns).most_common(1)[0][1] == 2


def test_the_pairs_of_a_dict_have_no_order_at_any_depth() -> None:
    columns = [Column("a", ti.List[ti.Dict[ti.Utf8, ti.Int64]]), Column("b", ti.List[ti.Int64])]
    rows = [{"a": [[["x", 1], ["y", 2]]], "b": [1]}, {"a": [[["y", 2], ["x", 1]]], "b": [1]}]
    assert len(counted(rows, columns)) == 1
    assert len(counted([rows[0], {**rows[0], "b": [2]}], columns)) == 2


def test_lost_and_duplicated_rows_are_counted_and_named() -> None:
    wanted = Counter({("a", 1): 2, ("b", 1): 1})
    outcome = compare(wanted, Counter({("a", 1): 1, ("b", 1): 2, ("b", 2): 1}))
    assert (outcome.rows_out, outcome.lost, outcome.duplicated) == (4, 1, 2)
    assert outcome.missing == {("a", 1): 1}
    assert outcome.unexpected == {("b", 1): 1, ("b", 2): 1}


#: test_values.py takes the others through Spark, whose rows and values they become there.
CONVERTED_ALONE = [name for name in all_types.VALUES if name not in ("any", "struct", "tuple")]


@pytest.mark.parametrize("name", CONVERTED_ALONE)
def test_a_value_returns_from_spark_as_it_went_there(name: str) -> None:
    (column,) = (c for c in all_types.job("map").queue_columns if c.name == f"c_{name}")
    converted = conversion(column.type)
    for value in [*all_types.VALUES[name][1], None]:
        assert converted.from_spark(converted.to_spark(value)) == value


def test_a_text_that_spark_holds_as_bytes_is_a_text() -> None:
    assert conversion(ti.String).from_spark(bytearray("ы".encode())) == "ы"


def test_a_type_that_spark_does_not_carry_is_refused() -> None:
    assert "no sample row" in refusal(lambda: conversion(ti.Uuid))


@pytest.mark.parametrize("column", all_types.COLUMNS, ids=lambda column: column.name)
def test_the_values_of_every_type_fit_their_columns(column: Column) -> None:
    (resolved,) = (c for c in all_types.job("map").queue_columns if c.name == column.name)
    fits.verify("rows", [resolved], [{column.name: row[column.name]} for row in all_types.rows()])


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
    said = refusal(lambda: fits.verify("REFERENCE", [Column("x", type_)], [{"x": value}]))
    assert said.startswith(f"REFERENCE, row 0: x = {value!r}, wanted {str(type_).lower()}\n")
    assert said.endswith("-> correct sample/rows.py or tables.py")
