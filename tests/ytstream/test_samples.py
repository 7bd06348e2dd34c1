"""Samples and unit tests: a value looks the same in a sample, a table and a DataFrame."""

from __future__ import annotations

from collections import Counter

import pytest
import yt.type_info as ti
from yt.yson import YsonUint64

from tests.ytstream import all_types
from tests.ytstream.examples import PAIRS, example
from tests.ytstream.helpers import refusal
from ytstream import Column
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
    assert bool(made.sample.closing(made.job, rows)) == (processing == "window")


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
