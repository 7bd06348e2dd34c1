"""A null in a required column: refused before the row is sent, with the row that has it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from minicluster.testing import Running
from tests.support.helpers import StreamOf, refusal
from tests.support.static_outputs import make_static
from ytstream.connector.spark_plan import analysed, execution_of
from ytstream.outputs import required_columns, row_json
from ytstream.schema.columns import Column, resolved
from ytstream_tools.testing.job_stream import Stream

pytestmark = pytest.mark.spark

#: Each way to the writer: the query's own rows, gathered ones, judged first, a key, several
#: outputs, with state, and a table of its own.
WAYS = {
    "streamed": ("transactional", "map", False),
    "judged first": ("at_least_once", "map", True),
    "position": ("idempotent", "map", False),
    "state": ("transactional", "window", False),
    "state, judged first": ("at_least_once", "window", True),
    "totals": ("transactional", "aggregate", False),
    "static": ("transactional", "map", False),
}
_ROW = r'\{"event_id":"1-00000007",.*'
_WINDOW = r'\{"auction":\d+,"window_start":"2024-01-01T00:00:00\.000000Z",.*"bids":1.*'
ROWS = {
    "streamed": _ROW,
    "judged first": _ROW,
    # The sample publishes the event a second time: the task of either row may be the first to fail.
    "position": r'\{"tablet_index":(3,"row_index":1|1,"row_index":3)\}',
    "state": _WINDOW,
    "state, judged first": _WINDOW,
    "totals": r'\{"auction":\d+\}',
    "static": _ROW,
}


def _nulled(transform: Callable[..., DataFrame], column: str) -> Callable[..., DataFrame]:
    def transformed(events: DataFrame) -> DataFrame:
        rows = transform(events)
        odd = (
            F.col("event_id") == "1-00000007" if "event_id" in rows.columns else F.col("bids") == 1
        )
        return rows.withColumn(column, F.when(~odd, F.col(column)))

    return transformed


def _with_null(stream_of: StreamOf, way: str) -> Stream:
    guarantee, processing, rejects = WAYS[way]
    stream = stream_of(guarantee, processing, rejects=rejects)
    if way == "static":
        make_static(stream, "output")
    column = "price_eur" if processing == "map" else "total"
    stream.redeclare(transform=_nulled(stream.context.job.transform, column))
    stream.send(200)
    return stream


@pytest.mark.parametrize(
    "way",
    [
        pytest.param(way, marks=[] if way in ("streamed", "position") else pytest.mark.journey)
        for way in WAYS
    ],
)
def test_the_message_names_the_output_the_column_and_a_row(
    stream_of: StreamOf, cluster: Running, way: str
) -> None:
    stream = _with_null(stream_of, way)
    what, advice = refusal(stream.close).splitlines()
    column = "price_eur" if "map" in WAYS[way] else "total"
    before, row = what.split(" of 'output', which is required: ")
    pattern = rf"the job cannot continue: batch 1-\d has a null in column {column}"
    assert re.fullmatch(pattern, before)
    assert re.fullmatch(ROWS[way], row), row
    assert "keep such rows out with REJECT" in advice
    assert "try_cast" not in advice
    if WAYS[way][0] == "transactional":
        assert not stream.found()


def test_without_the_check_no_row_is_named(
    stream_of: StreamOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unverified(rows: DataFrame, *_: Any) -> DataFrame:
        return rows

    monkeypatch.setattr(required_columns, "verified", unverified)
    stream = _with_null(stream_of, "streamed")
    with pytest.raises(Exception, match="price_eur") as caught:
        stream.close()
    assert "1-00000007" not in str(caught.value)


def test_a_column_is_computed_once(spark: SparkSession) -> None:
    one_more = F.udf(lambda number: number + 1, "long")
    rows = spark.range(10).select("id", one_more("id").alias("more"))
    columns = (Column("id", "int64"), Column("more", "int64", required=True))
    plan = (
        execution_of(required_columns.verified(rows, "output", columns)).executedPlan().toString()
    )
    assert plan.count("BatchEvalPython") == 1


def test_bytes_that_are_not_text_are_shown_by_their_beginning(spark: SparkSession) -> None:
    columns = resolved("", [Column("id", "string", key=True), Column("n", "int64", required=True)])
    for value, shown in (("00FF1F8B", "0x00FF1F8B (4 bytes)"), ("D18B", "ы"), ("", "")):
        rows = spark.sql(f"select cast(x'{value}' as string) as id, cast(null as bigint) as n")
        with pytest.raises(Exception, match="null in a required column") as caught:
            required_columns.verified(rows, "output", columns).collect()
        said = required_columns.explained(caught.value, "batch 1-0")
        assert f'which is required: {{"id":"{shown}"}}\n' in str(said)


def test_an_error_of_another_kind_stays() -> None:
    assert required_columns.explained(ValueError("null in a column"), "batch 0") is None


@pytest.mark.parametrize("text", ["of an error", "of a rejected row"])
def test_a_text_of_a_row_grows_with_its_columns_and_not_with_their_square(
    spark: SparkSession, text: str
) -> None:
    """Spark generates code for each expression of it, and did so for most of its time."""

    def size(count: int) -> int:
        columns = [Column(f"c{n}", "string", required=n == 0) for n in range(count)]
        ids = (F.nullif("id", F.lit(n)).cast("string").alias(c.name) for n, c in enumerate(columns))
        rows = spark.range(2).select(*ids)
        if text == "of an error":
            found = required_columns.verified(rows, "output", columns)
        else:
            found = rows.select(row_json.written(rows.schema))
        return len(analysed(found).expressions[0].jvm.toJSON())

    assert size(40) < 2.5 * size(20)
