"""A value has one representation: sample rows and unit tests agree with the tables."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from typing import Any

import pytest
import yt.type_info as ti
from pyspark.sql import SparkSession, types

from tests.support import all_types
from tests.support.examples import example
from tests.support.helpers import ContextOf
from ytstream import Column
from ytstream.schema import string_values
from ytstream.schema.columns import resolved
from ytstream_tools.demo import demo_tables
from ytstream_tools.demo.demo_tables import compare
from ytstream_tools.demo.demo_text import differences
from ytstream_tools.demo.job_sample import counted
from ytstream_tools.testing.type_conversion import conversion, with_zone
from ytstream_tools.testing.unit_frames import counted_rows, events_frame


@pytest.mark.spark
def test_values_of_every_type_go_to_spark_and_back(
    context_of: ContextOf, spark: SparkSession
) -> None:
    job = all_types.job("map")
    context = replace(context_of("transactional", "map"), job=job)
    rows = [{**row, "at": all_types.START} for row in all_types.rows()]
    result = events_frame(spark, context, rows)
    assert counted_rows(context, result) == counted(rows, job.output_columns["output"])


def test_a_local_time_keeps_which_of_two_equal_ones_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    at = types.TimestampType()
    kind = types.StructType().add("one", at).add("all", types.ArrayType(types.MapType(at, at)))
    first, second = 1_698_539_400, 1_698_543_000  # 2:30 in Berlin, and an hour later 2:30 again
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "Europe/Berlin")
        time.tzset()
        one, two = map(datetime.fromtimestamp, (first, second))
        found = with_zone(kind, types.Row(one=two, all=[{one: two}, None]))
        assert kind.toInternal(found) == (
            second * 1_000_000, [{first * 1_000_000: second * 1_000_000}, None]
        )  # fmt: skip
    time.tzset()


def test_floats_are_equal_within_a_tolerance_at_any_depth() -> None:
    wanted = Counter({("a", 0.1 + 0.2, (1.0, None)): 2, ("b", 1.0, ()): 1})
    found = Counter({("a", 0.3, (1.0, None)): 2, ("b", 1.001, ()): 1})
    outcome = compare(wanted, found)
    assert (outcome.rows_out, outcome.lost, outcome.duplicated) == (3, 1, 1)
    assert set(outcome.missing) == {("b", 1.0, ())}


def test_floats_are_equal_within_a_tolerance_where_a_row_has_them_in_a_list_alone() -> None:
    outcome = compare(Counter({("a", (0.1 + 0.2, 1.0)): 1}), Counter({("a", (0.3, 1.0)): 1}))
    assert (outcome.lost, outcome.duplicated) == (0, 0)


def test_a_row_is_compared_with_those_alone_that_differ_in_floats(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compared: list[object] = []
    is_close = demo_tables._is_close

    def look(value: object, other: object) -> bool:
        compared.append(value)
        return is_close(value, other)

    monkeypatch.setattr(demo_tables, "_is_close", look)
    columns = resolved("", [Column("n", "int64"), Column("sum", "double")])
    wanted = counted([{"n": n, "sum": n / 3} for n in range(1, 500)], columns)
    found = counted([{"n": n, "sum": n / 3 * (1 + 1e-12)} for n in range(1, 500)], columns)
    outcome = compare(wanted, found)
    assert (outcome.lost, outcome.duplicated) == (0, 0)
    assert len(compared) == 3 * len(wanted)  # the row, and each of its values


def test_floats_of_four_bytes_are_equal_to_six_digits() -> None:
    columns = resolved("", [Column("a", "float"), Column("b", ti.List[ti.Float])])
    wanted = counted([{"a": 0.1 * 1.6, "b": [1, 2.5]}], columns)
    for factor, differing in ((1 + 1e-7, 0), (1 + 1e-5, 1)):
        found = counted([{"a": 0.16 * factor, "b": [factor, 2.5]}], columns)
        outcome = compare(wanted, found)
        assert (outcome.lost, outcome.duplicated) == (differing, differing)


def test_a_whole_number_is_a_float_where_the_column_has_floats() -> None:
    columns = resolved("", [Column("a", "double"), Column("b", "double")])
    wanted = counted([{"a": 3, "b": 0.1 + 0.2}], columns)
    outcome = compare(wanted, counted([{"a": 3.0, "b": 0.3}], columns))
    assert (outcome.lost, outcome.duplicated) == (0, 0)


def test_a_nan_is_equal_to_any_other() -> None:
    described = [Column("a", "double"), Column("b", ti.List[ti.Optional[ti.Double]])]
    columns = resolved("", described)

    def rows() -> list[dict[str, object]]:  # each time with objects of its own
        odd = float("nan"), float("inf"), -float("inf")
        return [{"a": value, "b": [0.1, value, None]} for value in odd]

    outcome = compare(counted(rows(), columns), counted(rows() + rows(), columns))
    assert (outcome.rows_out, outcome.lost, outcome.duplicated) == (6, 0, 3)
    nearly = [{**row, "b": [0.1 + 1e-12, *row["b"][1:]]} for row in rows()]  # type: ignore[index]
    outcome = compare(counted(rows(), columns), counted(nearly, columns))
    assert (outcome.lost, outcome.duplicated) == (0, 0)
    other = compare(counted(rows()[:1], columns), counted([{"a": 1.0, "b": None}], columns))
    assert (other.lost, other.duplicated) == (1, 1)


def test_lists_and_maps_can_be_counted() -> None:
    rows = [{"a": [1, {"b": [None, "x"]}]}, {"a": [1, {"b": [None, "x"]}]}]
    assert counted(rows, [Column("a", ti.Yson)]).total() == 2
    assert len(counted(rows, [Column("a", ti.Yson)])) == 1


def test_the_first_rows_that_differ_are_shown_face_to_face() -> None:
    job_of_map = example("transactional", "map").job
    right = ("e", 1, 2, 3, None, None, 4, "[x]")
    wrong = ("e", 1, 2, 3, None, None, 4, "y")
    assert differences(job_of_map, compare(Counter([right]), Counter([right]))) is None
    table = differences(job_of_map, compare(Counter([right]), Counter([wrong])))
    assert table is not None
    assert str(table.columns[1].header) == "expected, but missing"
    assert table.row_count == len(right)


LARGE = 2**127 + 10**34 + 1
"""10^24 and a bit, as a decimal with ten digits behind the point has it in a table."""


@pytest.mark.parametrize(
    ("type_", "stored", "value"),
    [
        # YTsaurus: a big-endian number whose sign bit is inverted.
        (ti.Decimal(5, 2), b"\x80\x00\x30\x39", Decimal("123.45")),
        (ti.Decimal(18, 0), b"\x7f" + b"\xff" * 7, Decimal(-1)),
        (ti.Decimal(35, 10), LARGE.to_bytes(16, "big"), Decimal(f"1{24 * '0'}.0000000001")),
        (ti.Uuid, bytes(range(16)), "00010203-0405-0607-0809-0a0b0c0d0e0f"),
    ],
)
def test_decimals_and_uuids_of_a_queue_go_to_spark_and_back(
    type_: Any, stored: bytes, value: Any
) -> None:
    found = conversion(type_)
    assert found.to_spark(stored) == value
    assert string_values.as_bytes(found.from_spark(value)) == stored
    assert found.to_spark(None) is found.from_spark(None) is None
