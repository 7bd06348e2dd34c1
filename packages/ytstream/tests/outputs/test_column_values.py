"""A value that its column cannot hold: refused before the row is sent, with the row that has it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
import yt.type_info as ti
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from minicluster.testing import Running
from tests.support.examples import example
from tests.support.helpers import ContextOf, StreamOf, adopt, refusal
from tests.support.static_outputs import make_static
from ytstream.connector.spark_plan import Expression as PlanExpression
from ytstream.connector.spark_plan import Node, analysed, execution_of
from ytstream.outputs import column_values, row_json
from ytstream.provisioning import job_objects
from ytstream.rejected import collected
from ytstream.schema.columns import Column, resolved, spelled
from ytstream.settings.job_settings import OWN, SPYT
from ytstream_tools.testing.job_stream import Stream

pytestmark = pytest.mark.spark

WAYS = {
    "streamed": ("transactional", "map", False),
    "judged first": ("at_least_once", "map", True),
    "position": ("idempotent", "map", False),
    "state": ("transactional", "window", False),
    "state, judged first": ("at_least_once", "window", True),
    "totals": ("transactional", "aggregate", False),
    "static": ("transactional", "map", False),
}
"""Each way to the writer: the query's own rows, gathered ones, judged first, a key, several
outputs, with state, and a table of its own."""
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


@pytest.mark.thorough
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

    monkeypatch.setattr(column_values, "verified", unverified)
    stream = _with_null(stream_of, "streamed")
    with pytest.raises(Exception, match="price_eur") as caught:
        stream.close()
    assert '"1-00000007"' not in str(caught.value)  # as in a row; the plan has it without quotes


def test_a_column_is_computed_once(spark: SparkSession) -> None:
    one_more = F.udf(lambda number: number + 1, "long")
    rows = spark.range(10).select("id", one_more("id").alias("more"))
    columns = resolved("", [Column("id", "int64"), Column("more", "uint64", required=True)])
    plan = execution_of(column_values.verified(rows, "output", columns)).executedPlan().toString()
    assert plan.count("BatchEvalPython") == 1


def test_bytes_that_are_not_text_are_shown_by_their_beginning(spark: SparkSession) -> None:
    columns = resolved("", [Column("id", "string", key=True), Column("n", "int64", required=True)])
    for value, shown in (("00FF1F8B", "0x00FF1F8B (4 bytes)"), ("D18B", "ы"), ("", "")):
        rows = spark.sql(f"select cast(x'{value}' as string) as id, cast(null as bigint) as n")
        with pytest.raises(Exception, match="a null in column n") as caught:
            column_values.verified(rows, "output", columns).collect()
        said = column_values.job_error(caught.value, "batch 1-0")
        assert f'which is required: {{"id":"{shown}"}}\n' in str(said)


def test_an_error_of_another_kind_stays() -> None:
    assert column_values.job_error(ValueError("null in a column"), "batch 0") is None


UNSIGNED: dict[Any, tuple[Sequence[str], Sequence[str]]] = {
    "uint8": (["-1Y", "0Y", "127Y", "null"], ["-1"]),
    "uint16": (["-1", "65535", "65536", "0"], ["-1", "65536"]),
    "uint32": (["-1L", "4294967295L", "4294967296L"], ["-1", "4294967296"]),
    "uint64": (["-1L", "9223372036854775807L"], ["-1"]),
    ti.List[ti.Uint8]: (
        ["array(0S, -1S)", "array(1S, null, 256S)", "array(255S)"],
        ["0,-1", "256"],
    ),
    ti.Dict[ti.Uint8, ti.Uint64]: (
        ["map(-1S, 1L)", "map(1S, -2L)", "map(1S, 2L)"],
        ['{"-1":1}', '{"1":-2}'],
    ),
    ti.Struct["a" : ti.Utf8, "b" : ti.Optional[ti.Uint8]]: (
        ["named_struct('a', '-1', 'b', -3Y)", "named_struct('a', '-1', 'b', 3Y)"],
        ['"b":-3'],
    ),
    ti.Tuple[ti.Int64, ti.Uint8]: (
        ["named_struct('_1', -1L, '_2', 2Y)", "named_struct('_1', 1L, '_2', -2Y)"],
        ['"_2":-2'],
    ),
    "int64": (["-1L"], []),
}  # fmt: skip
"""By type of the column: values as SQL, and those of them that the column does not hold."""


@pytest.mark.parametrize("type_", UNSIGNED, ids=str)
def test_a_number_that_an_unsigned_column_does_not_hold_is_named(
    spark: SparkSession, type_: Any
) -> None:
    values, wrong = UNSIGNED[type_]
    columns = resolved("", [Column("id", "utf8", key=True), Column("n", type_)])
    found = []
    for number, value in enumerate(values):
        rows = spark.sql(f"select 'a{number}' as id, {value} as n")
        try:
            column_values.verified(rows, "totals", columns).collect()
        except Exception as error:
            found.append(str(column_values.job_error(error, "batch 1-0")))
    assert len(found) == len(wrong), found
    for said, shown in zip(found, wrong, strict=True):
        assert shown in said
        assert f"in column n of 'totals', which has {spelled(columns[1].type)}" in said
        assert re.search(r'\{"id":"a\d"\}\n  -> keep such rows out with REJECT', said), said


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("double('NaN') as k, 1D as at", "NaN in column k of 'current', which is a key"),
        ("1D as k, float('NaN') as at", "NaN in column at of 'current', which orders the rows"),
    ],
)
def test_nan_is_no_key_and_orders_no_rows(spark: SparkSession, row: str, said: str) -> None:
    """The cluster does not take NaN in a key, and NaN is greater than any other number."""
    columns = resolved("", [Column("k", "double", key=True), Column("at", "double")])
    with pytest.raises(Exception, match="NaN") as caught:
        column_values.verified(spark.sql(f"select {row}"), "current", columns, "at").collect()
    assert said in str(column_values.job_error(caught.value, "batch 1-0"))


@pytest.mark.thorough
@pytest.mark.parametrize("connector", [OWN, SPYT], indirect=True)
def test_a_negative_number_does_not_become_a_positive_one(
    context_of: ContextOf, spark: SparkSession, connector: str
) -> None:
    context = context_of("transactional")
    columns = [Column("id", "utf8"), *(Column(f"n{bits}", f"uint{bits}") for bits in (8, 64))]
    job = replace(
        context.job,
        queue=[Column("id", "utf8"), Column("n", "int8")],
        outputs={"output": columns},
        transform=lambda rows: rows.select("id", F.col("n").alias("n8"), F.abs("n").alias("n64")),
    )
    context = replace(context, job=job)
    job_objects.provision(context)
    adopt(spark, context)
    stream = Stream(context, example("transactional", "map").sample, spark)
    sent = [{"id": key, "n": n, "$tablet_index": 0} for key, n in (("a", 1), ("b", -1))]
    stream.client.insert_rows(stream.settings.queues[0], sent)
    said = refusal(stream.drain)
    assert (
        'batch 1-0 has -1 in column n8 of \'output\', which has uint8 (0 to 255): {"id":"b",'
        in said
    )
    assert not stream.found()


OVER_ALL: dict[str, Callable[[DataFrame, Sequence[Column]], DataFrame]] = {
    "checked": lambda rows, columns: column_values.verified(rows, "output", columns),
    "rejected": lambda rows, _: rows.select(row_json.written(rows.schema)),
    "measured": lambda rows, _: rows.select(collected._bytes(rows.schema)),
    "restored": lambda rows, _: row_json.read(rows, "c0", rows.schema),
}
"""Expressions over all columns of a row."""


@pytest.mark.thorough
@pytest.mark.parametrize("what", OVER_ALL)
def test_an_expression_over_a_thousand_columns_has_few_levels(
    spark: SparkSession, what: str
) -> None:
    """Spark descends into it, and has no stack for a thousand levels."""
    columns = [Column(f"c{number}", "string", required=True) for number in range(1_000)]
    schema = ", ".join(f"{column.name} string" for column in columns)
    rows = OVER_ALL[what](spark.createDataFrame([], schema), resolved("", columns))
    assert analysed(rows).name in ("Project", "Filter")


@pytest.mark.thorough
@pytest.mark.parametrize("what", OVER_ALL)
def test_spark_gives_an_expression_over_all_columns_no_more_levels(
    spark: SparkSession, what: str
) -> None:
    """Its optimizer puts sums and conditions together in another way."""

    def levels(count: int) -> int:
        columns = [Column(f"c{number}", "string", required=True) for number in range(count)]
        schema = ", ".join(f"{column.name} string" for column in columns)
        empty = spark.createDataFrame(spark.sparkContext.emptyRDD(), schema)
        rows = OVER_ALL[what](empty, resolved("", columns))
        plan = Node(execution_of(rows).optimizedPlan())
        return max(_levels(each) for node in plan.walk() for each in node.expressions)

    assert levels(20) == levels(40)


def _levels(expression: PlanExpression) -> int:
    return 1 + max(map(_levels, expression.children), default=0)


@pytest.mark.thorough
@pytest.mark.parametrize("text", ["of an error", "of a rejected row"])
def test_a_text_of_a_row_grows_with_its_columns_and_not_with_their_square(
    spark: SparkSession, text: str
) -> None:
    """Spark generates code for each expression of it, and did so for most of its time."""

    def size(count: int) -> int:
        columns = resolved("", [Column(f"c{n}", "string", required=n == 0) for n in range(count)])
        ids = (F.nullif("id", F.lit(n)).cast("string").alias(c.name) for n, c in enumerate(columns))
        rows = spark.range(2).select(*ids)
        if text == "of an error":
            found = column_values.verified(rows, "output", columns)
        else:
            found = rows.select(row_json.written(rows.schema))
        return len(analysed(found).expressions[0].jvm.toJSON())

    assert size(40) < 2.5 * size(20)
