"""Python functions in a plan: their times, the types of their results, and large integers."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pyspark
import pytest
from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import PandasUDFType, pandas_udf
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout
from pyspark.sql.types import LongType

from ytstream import JobError
from ytstream.spark.spark_errors import explained_spark

pytestmark = pytest.mark.spark
cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]

LARGE = 1234567890123456789
"""Beyond the integers that a float has."""


@pytest.mark.thorough
def test_a_python_function_sees_times_in_the_zone_of_the_session(spark: SparkSession) -> None:
    """The machine of this JVM is in India (tests/support/fixtures.py)."""
    rows = spark.sql("select timestamp'2024-01-01 22:30:00' as t")
    hour = F.udf(lambda t: t.hour, "int")
    same = F.udf(lambda t: t, "timestamp")
    moment = datetime(2024, 1, 1, 22, 30)  # without a zone, as users write it
    found = rows.select(
        hour("t"), F.hour("t"), same("t") == F.col("t"), F.lit(moment) == F.col("t")
    ).first()
    assert found is not None
    assert tuple(found) == (22, 22, True, True)
    assert moment.astimezone(UTC).hour == 22


RESULTS: dict[str, tuple[Any, Any]] = {
    "double": (1.5, 1),
    "float": (1.5, 1),
    "bigint": (LARGE, 1.0),
    "int": (7, 2**40),
    "tinyint": (7, 128),
    "boolean": (True, 1),
    "decimal(10,2)": (Decimal("1.50"), 1.5),
    "array<bigint>": ([1, None], [1.0]),
    "map<string,double>": ({"a": 1.5}, {"a": 1}),
    "struct<a:bigint>": ((1,), ("1",)),
    "date": (datetime(2024, 1, 1, tzinfo=UTC).date(), "2024-01-01"),
    "binary": (bytearray(b"a"), "a"),
}
"""Declared types, a value of it, and one that Spark would store as null or as another value."""


@pytest.mark.parametrize("declared", RESULTS)
def test_a_result_of_another_type_ends_the_job(spark: SparkSession, declared: str) -> None:
    right, wrong = RESULTS[declared]

    def made(value: Any) -> Any:
        def computed(_: Any) -> Any:
            return value

        rows = spark.range(1).select(F.udf(computed, declared)("id").alias("x"))
        with explained_spark():
            return rows.collect()[0].x

    assert made(None) is None
    found = made(right)
    assert (tuple(found) if declared.startswith("struct") else found) == right
    with pytest.raises(JobError) as caught:
        made(wrong)
    assert re.search(r"computed\(\) is declared .* and has returned ", str(caught.value))
    assert "correct transform.py" in str(caught.value)


def _integers(spark: SparkSession) -> DataFrame:
    values = [
        (1, LARGE, [LARGE, None], {"a": LARGE, "b": None}, (LARGE, None)),
        *[(1,) + (None,) * 4],
    ]
    schema = "k int, n bigint, a array<bigint>, m map<string,bigint>, s struct<x:bigint,y:bigint>"
    return spark.createDataFrame(values, schema).coalesce(1)


def _by_series(rows: DataFrame) -> DataFrame:
    same = pandas_udf(lambda n: n, LongType(), PandasUDFType.SCALAR)
    return rows.select(same("n").alias("n"))


def _by_map(rows: DataFrame) -> DataFrame:
    return rows.select("n").mapInPandas(lambda frames: frames, "n bigint")


def _by_group(rows: DataFrame) -> DataFrame:
    return rows.select("k", "n").groupBy("k").applyInPandas(lambda frame: frame[["n"]], "n bigint")


def _texts(frames: Iterable[Any]) -> Iterator[Any]:
    """Find the integer in lists, maps and structs."""
    for frame in frames:
        a, m, s = (frame[name].iloc[0] for name in "ams")
        yield pd.DataFrame(
            {"n": [int(a[0]) + int(dict(m)["a"]) + int(s["x"]) - 2 * LARGE, None]}, dtype="Int64"
        )


def _by_nested(rows: DataFrame) -> DataFrame:
    return rows.mapInPandas(_texts, "n bigint")


def _by_arrow(rows: DataFrame) -> DataFrame:
    return rows.select(F.udf(lambda n: n, "bigint", useArrow=True)("n").alias("n"))


@pytest.mark.thorough
@pytest.mark.parametrize("by", [_by_series, _by_map, _by_group, _by_nested, _by_arrow])
def test_a_large_integer_next_to_a_null_is_not_rounded(
    spark: SparkSession, by: Callable[[DataFrame], DataFrame]
) -> None:
    rows = _integers(spark)
    if by is _by_arrow and pyspark.__version__.startswith("3."):
        with pytest.raises(JobError, match="leave useArrow out"):
            by(rows)
        return
    assert [row.n for row in by(rows).collect()] == [LARGE, None]


def _largest(
    key: tuple[int], frames: Iterable[pd.DataFrame], state: GroupState
) -> Iterator[pd.DataFrame]:
    numbers = pd.concat([frame["n"] for frame in frames])
    state.update((len(numbers),))
    yield pd.DataFrame({"n": [int(numbers.max())], "nulls": [int(numbers.isna().sum())]})


@pytest.mark.thorough
def test_a_function_with_state_gets_a_large_integer_next_to_a_null(
    spark: SparkSession, tmp_path: Path
) -> None:
    _integers(spark).select("k", "n").write.parquet(f"file://{tmp_path}/rows")
    rows = spark.readStream.schema("k int, n bigint").parquet(f"file://{tmp_path}/rows")
    found = rows.groupBy("k").applyInPandasWithState(
        _largest, "n bigint, nulls int", "count int", "append", GroupStateTimeout.NoTimeout
    )
    query = (
        found.writeStream.format("memory")
        .queryName("with_state")
        .option("checkpointLocation", f"file://{tmp_path}/checkpoint")
        .trigger(once=True)
        .start()
    )
    query.awaitTermination()
    assert [tuple(row) for row in spark.table("with_state").collect()] == [(LARGE, 1)]


def test_a_function_that_expects_floats_fails_or_is_right(spark: SparkSession) -> None:
    halved = pandas_udf(lambda n: n / 2, "double", PandasUDFType.SCALAR)
    rows = spark.sql("select * from values (4L), (null) as t(n)").coalesce(1)
    assert [row[0] for row in rows.select(halved("n")).collect()] == [2.0, None]
