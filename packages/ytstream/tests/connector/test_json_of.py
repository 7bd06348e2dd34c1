"""json_of on both connectors, wherever a job may call it; and no other text of an `any` column."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from weakref import WeakKeyDictionary

import pyspark
import pytest
import spyt.types as spyt
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType
from yt import yson

from tests.support.examples import example
from tests.support.helpers import ContextOf, adopt, refusal
from ytstream import REJECTED, Column, Job, json_of
from ytstream.connector import compile_java
from ytstream.job import JobContext
from ytstream.outputs import any_columns
from ytstream.provisioning import job_objects
from ytstream.query.pipeline import flow_of
from ytstream.settings.job_settings import OWN, SPYT
from ytstream_tools.testing.job_stream import Stream
from ytstream_tools.testing.unit_frames import output_frames, output_rows

pytestmark = pytest.mark.spark

ROWS: list[dict[str, Any]] = [
    {"id": "map", "value": {"a": [1, b"\xff"], "n": 2**63 - 1}},
    {"id": "bad", "value": {"bad": True}},
    {"id": "uint", "value": {"n": yson.YsonUint64(2**64 - 1)}},
    {"id": "text", "value": "ж"},
    {"id": "null", "value": None},
]
JSONS = {
    "map": '{"a":[1,{"$bytes":"/w=="}],"n":9223372036854775807}',
    "uint": '{"n":18446744073709551615}',
    "text": '"ж"',
    "null": None,
}
NUMBERS = {"map": "9223372036854775807", "uint": "18446744073709551615", "text": None, "null": None}
KEY = [Column(name, "int64", key=True) for name in ("tablet_index", "row_index")]
ANY = [Column("id", "utf8", required=True), Column("value", "any")]


def _json(events: DataFrame) -> DataFrame:
    """Return the rows with the JSON, by a column and by SQL."""
    rows = events.withColumn("json", json_of("value"))
    return rows.filter(F.expr("json_of(value)").eqNullSafe(F.col("json")))


def _numbers(rows: DataFrame) -> dict[str, DataFrame]:
    """Return what outputs() makes of the rows: one of Spark's functions reads the JSON."""
    read = F.from_json(json_of(F.col("value")), "n decimal(20, 0)")
    number = read.getField("n").cast("string")
    kept = ("tablet_index", "row_index", "id")
    return {"output": rows.drop("value"), "numbers": rows.select(*kept, number.alias("number"))}


def _job(job: Job) -> Job:
    return replace(
        job,
        queue=ANY,
        outputs={
            "output": [*KEY, ANY[0], Column("json", "utf8")],
            "numbers": [*KEY, ANY[0], Column("number", "utf8")],
            "rejected": REJECTED,
        },
        transform=_json,
        split=_numbers,
        reject={"bad": "get_json_object(json_of(value), '$.bad') = 'true'"},
    )


@pytest.fixture
def context(context_of: ContextOf) -> JobContext:
    """Declare an idempotent job with an `any` column: its functions have to be deterministic."""
    context = context_of("idempotent")
    root = context.settings.output.rpartition("/")[0]
    job = _job(context.job)
    outputs = {name: f"{root}/{name}" for name in job.outputs}
    return replace(context, job=job, settings=replace(context.settings, outputs=outputs))


@pytest.mark.thorough
@pytest.mark.parametrize("connector", [OWN, SPYT], indirect=True)
def test_a_job_reads_json_of_its_column_everywhere(
    context: JobContext, spark: SparkSession
) -> None:
    stream = _stream(context, spark)
    sent = [{**row, "$tablet_index": 0} for row in ROWS]
    stream.client.insert_rows(stream.settings.queues[0], sent)
    stream.drain()
    assert _column(stream, "output", "json") == JSONS
    assert _column(stream, "numbers", "number") == NUMBERS
    rejected = [*stream.client.select_rows(f"* from [{stream.settings.outputs['rejected']}]")]
    assert [row["reason"] for row in rejected] == ["bad"]


def _stream(context: JobContext, spark: SparkSession) -> Stream:
    job_objects.provision(context)
    adopt(spark, context)
    return Stream(context, example("idempotent", "map").sample, spark)


def _column(stream: Stream, output: str, column: str) -> dict[str, Any]:
    rows = stream.client.select_rows(f"id, {column} from [{stream.settings.outputs[output]}]")
    return {row["id"]: row[column] for row in rows}


@pytest.mark.thorough
def test_a_unit_test_gets_what_a_job_gets(context: JobContext, spark: SparkSession) -> None:
    frames = output_frames(spark, context, ROWS)
    found = {name: output_rows(context, frames[name], name) for name in ("output", "numbers")}
    assert {row["id"]: row["json"] for row in found["output"]} == JSONS
    assert {row["id"]: row["number"] for row in found["numbers"]} == NUMBERS


@pytest.mark.thorough
def test_a_unit_test_refuses_what_a_job_refuses(context: JobContext, spark: SparkSession) -> None:
    def split(rows: DataFrame) -> dict[str, DataFrame]:
        printed = rows.withColumn("json", F.col("value").cast("string")).drop("value")
        return {**_numbers(rows), "output": printed}

    context = replace(context, job=replace(context.job, split=split))
    frames = output_frames(spark, context, ROWS)
    said = refusal(lambda: output_rows(context, frames["output"]))
    assert said.startswith("outputs(): CAST(value AS STRING) prints the Java object")


@pytest.mark.thorough
@pytest.mark.parametrize("mode", ["CODEGEN_ONLY", "NO_CODEGEN"])
def test_generated_code_and_an_interpreted_plan_agree(spark: SparkSession, mode: str) -> None:
    """`preview` interprets its plans."""
    schema = StructType([StructField("value", spyt.YsonType())])
    rows = spark.createDataFrame([(spyt.Yson({"a": [1, None]}),), (None,)], schema)
    wanted = {"factoryMode": mode, "wholeStage": str(mode == "CODEGEN_ONLY")}
    before = {name: str(spark.conf.get(f"spark.sql.codegen.{name}")) for name in wanted}
    try:
        for name, value in wanted.items():
            spark.conf.set(f"spark.sql.codegen.{name}", value)
        found = rows.repartition(1).select(json_of("value").alias("json")).collect()
    finally:
        for name, value in before.items():
            spark.conf.set(f"spark.sql.codegen.{name}", value)
    assert [row["json"] for row in found] == ['{"a":[1,null]}', None]


@pytest.mark.thorough
@pytest.mark.skipif(pyspark.__version__ < "4", reason="parse_json came with Spark 4")
def test_a_variant_keeps_every_digit(spark: SparkSession) -> None:
    rows = spark.createDataFrame(
        [(spyt.Yson({"n": yson.YsonUint64(2**64 - 1)}),)],
        StructType([StructField("value", spyt.YsonType())]),
    )
    variant = F.parse_json(json_of("value"))
    (row,) = rows.select(F.variant_get(variant, "$.n", "decimal(20, 0)").alias("n")).collect()
    assert int(row["n"]) == 2**64 - 1


def _with(**columns: str) -> Callable[[DataFrame], DataFrame]:
    return lambda events: events.withColumns({n: F.expr(text) for n, text in columns.items()})


PRINTED = {
    "string(value)": "CAST(value AS STRING)",
    "try_cast(value AS string)": "value AS STRING)",
    "concat('x', cast(array(named_struct('v', value)) AS string))": "AS STRING)",
    "cast(map('a', value) AS string)": "AS STRING)",
    "format_string('%s', value)": "format_string('%s', value)",
}
"""SQL that prints the object, and how the message names it."""


@pytest.fixture
def refused(context: JobContext, spark: SparkSession) -> Callable[..., str]:
    """Return the message with which the job does not start, with changes of its declaration."""
    job_objects.provision(context)

    def said(**changes: Any) -> str:
        changed = replace(context, job=replace(context.job, **changes))
        return refusal(lambda: flow_of(spark, changed))

    return said


@pytest.mark.thorough
@pytest.mark.parametrize("text", PRINTED)
def test_a_text_of_the_raw_column_is_refused(refused: Callable[..., str], text: str) -> None:
    def split(rows: DataFrame) -> dict[str, DataFrame]:
        return {**_numbers(rows), "output": rows.withColumn("json", F.expr(text)).drop("value")}

    for maker, said in {
        "transform()": refused(transform=_with(json=text)),
        "outputs()": refused(split=split),
        "REJECT['x'] in transform.py": refused(reject={"x": f"{text} LIKE 'a%'"}),
    }.items():
        assert said.startswith(f"{maker}: ")
        assert f"{PRINTED[text]} prints the Java object" in said
        assert "json_of(column)" in said


def test_a_function_of_texts_that_gets_the_raw_column_is_refused_with_the_way(
    refused: Callable[..., str],
) -> None:
    text = "get_json_object(value, '$.a')"
    for maker, said in {
        "transform()": refused(transform=_with(json=text)),
        "REJECT['x'] in transform.py": refused(reject={"x": f"{text} = 'a'"}),
    }.items():
        assert said.startswith(f"{maker}: [DATATYPE_MISMATCH")
        assert "json_of(column)" in said


def test_a_wrong_argument_is_named(refused: Callable[..., str]) -> None:
    kind, count = "json_of(id) = 'a'", "json_of(value, id) = 'a'"
    assert "json_of() takes an `any` column, not string" in refused(reject={"x": kind})
    assert "json_of() takes one column, not 2" in refused(reject={"x": count})


@pytest.mark.thorough
@pytest.mark.parametrize("connector", [OWN, SPYT], indirect=True)
def test_a_job_that_calls_it_does_not_start_without_the_compiler(
    refused: Callable[..., str], spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark.sql("drop temporary function if exists json_of")
    monkeypatch.setattr(compile_java, "_MADE", WeakKeyDictionary())
    monkeypatch.setattr(compile_java, "_COMPILER", "org.codehaus.janino.Missing")
    for said in (
        refused(),  # REJECT
        refused(reject={}),  # transform()
        refused(reject={}, transform=_with(json="json_of(value)")),
        refused(reject={}, transform=_with(json="id")),  # outputs()
    ):
        assert said.startswith("json_of() does not run here, since its Java cannot be compiled: ")


def _written(context: JobContext, spark: SparkSession) -> Stream:
    """Provision a job that writes the texts of its queue as bytes into an `any` column."""
    job = replace(
        context.job,
        queue=[ANY[0], Column("text", "string")],
        outputs={"output": ANY},
        transform=lambda events: events.select("id", F.col("text").cast("binary").alias("value")),
    )
    return _stream(replace(context, job=job), spark)


def _send(stream: Stream, text: bytes | None) -> None:
    row = {"id": repr(text), "text": text, "$tablet_index": 0}
    stream.client.insert_rows(stream.settings.queues[0], [row])


@pytest.mark.thorough
@pytest.mark.parametrize("connector", [OWN, SPYT], indirect=True)
def test_bytes_that_are_not_yson_are_named_before_they_are_written(
    context_of: ContextOf, spark: SparkSession
) -> None:
    stream = _written(context_of("transactional"), spark)
    for text in (b"{a=1}", b" [] ", None):
        _send(stream, text)
    stream.drain()
    written = stream.client.select_rows(f"value from [{stream.settings.output}]")
    assert [row["value"] for row in written] == [{"a": 1}, [], None]
    _send(stream, b"{a=\xff")
    what, advice = refusal(stream.close).splitlines()
    assert "has bytes that are not YSON in column value of 'output': broken YSON" in what
    assert what.endswith(r"an unexpected byte at byte 3 of 4: {a=\xff")
    assert "give bytes of valid YSON" in advice


@pytest.mark.thorough
def test_the_cluster_refuses_bytes_that_nothing_has_checked(
    context_of: ContextOf, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(any_columns, "checked", lambda rows, *_: rows)
    stream = _written(context_of("transactional"), spark)
    _send(stream, b"{a=")
    with pytest.raises(Exception, match="Error occurred while parsing YSON"):
        stream.drain()
    assert not [*stream.client.select_rows(f"* from [{stream.settings.output}]")]
