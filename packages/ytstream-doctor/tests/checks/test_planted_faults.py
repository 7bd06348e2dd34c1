"""Doctor names each fault that is planted, in jobs of three shapes, and not its correction."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest

from tests.support.doctor_jobs import (
    IDEMPOTENT,
    SETTINGS,
    TRANSACTION,
    TWO_QUEUES,
    WAYS,
    Job,
    without,
)
from ytstream import JobError
from ytstream_doctor import command_line
from ytstream_doctor.rules import RULES


class Fault(NamedTuple):
    """A job, and what is replaced in it: by the fault, and by its correction."""

    rule: str
    job: Job
    planted: dict[str, Any]
    corrected: Mapping[str, Any] = MappingProxyType({})


def settings(job: Job, **changes: str | None) -> dict[str, Any]:
    """Return settings of a job with other values; None leaves one out. "__" stands for a dot."""
    changed = {name.replace("__", "."): value for name, value in changes.items()}
    both = {**job.settings, **changed}
    return {"settings": {key: value for key, value in both.items() if value is not None}}


def step(*steps: str) -> dict[str, Any]:
    """Return steps of the flow, in front of the select."""
    return {"steps": (*steps, *IDEMPOTENT.steps)}


_UDF = "def {name}(value):\n    return {body}\n\n\n{name}_udf = F.udf({name})\n"
_CONSUMER = "//home/shop/job/consumer"
_REGISTER = f'yt.register_queue_consumer("//home/shop/orders", "{_CONSUMER}", {{vital}})\n'
_QUEUE = 'yt.create("table", "{path}", attributes={{"dynamic": True, "min_data_versions": {n}}})\n'
_SHELL = f"yt register-queue-consumer //home/shop/orders {_CONSUMER} \\\n  --{{vital}}\n"
_NO_KEYS = replace(TRANSACTION, settings=SETTINGS, submit="")
_PROXY = "spark.ytsaurus.rpc.job.proxy.enabled"
_PURGE = "spark__sql__streaming__asyncLogPurge__enabled"
_TIMEOUT = "spark__hadoop__yt__timeout"
_KEYED = replace(TRANSACTION, key=("amount",))
_CHECKPOINTS = "spark__sql__streaming__checkpointLocation"
_PARTITIONS = "spark__sql__shuffle__partitions"
_CONFIGURED = replace(
    IDEMPOTENT, checkpoint="",
    settings={**SETTINGS, _CHECKPOINTS.replace("__", "."): "yt:///home/shop/checkpoints"},
)  # fmt: skip
"""The checkpoint in the session, and none at the writer."""
_COUNT = '.groupBy("id").count()'
_WATERMARK = '.withWatermark("at", "1 minute")'


_BATCH = """
STATE = "//home/shop/state"


def merged(rows, number):
    known = rows.sparkSession.read.format("yt").load({read})
    newest = known.unionByName(rows).groupBy("id").agg(F.max("amount").alias("amount"))
    newest.write.format("yt").mode("overwrite").save(STATE)
    {more}


"""
_MERGED = {"sink": ".foreachBatch(merged)"}
_BOTH = {"helpers": _BATCH.format(read='"//home/shop/names"', more="pass"), **_MERGED}


_LOOP = """
def archived():
    while True:
        copied(yt.select_rows("* from [//home/shop/orders]"))


def copied(rows):
    yt.write_table({target}, rows)


"""
_APPENDED = """
def kept(rows, number):
    rows.write.format("yt"){more}.save("//home/shop/history")


"""


_PRICES = (
    'yt.create("table", "//home/shop/prices", attributes={{"dynamic": True{more}}})\n'
    "prices = SparkSession.builder.getOrCreate().read{how}\n"
)


_ENRICH = """
SCHEMA = "id long, name string"


def names_of(ids):
    return list(yt.lookup_rows("//home/shop/names", [{{"id": one}} for one in ids]))


def looked_up(ids):
    try:
        return names_of(ids)
    {handled}


def enriched(pieces):
    for piece in pieces:
        piece["name"] = looked_up(piece["id"])
        yield piece


@F.udf
def named(amount):
    return looked_up([amount])


"""
_NAMES = "SESSION = SparkSession.builder.getOrCreate()\n{use}\n"


def _prices(how: str, more: str = "") -> dict[str, str]:
    """Return what creates a table and reads it whole."""
    return {"setup": _PRICES.format(how=how.format(path='"//home/shop/prices"'), more=more)}


def _second(consumer: str = "other", queue: str = "orders", checkpoint: str = "other") -> str:
    """Return a second query, which shares what is "job"."""
    return f"""
def second(spark):
    rows = (
        spark.readStream.format("yt")
        .option("consumer_path", "//home/shop/{consumer}/consumer")
        .option("include_service_columns", "true")
        .option("max_rows_per_partition", "5000")
        .load("//home/shop/{queue}")
    )
    return (
        rows.writeStream.format("yt")
        .option("checkpointLocation", "yt:///home/shop/{checkpoint}/checkpoint")
        .trigger(processingTime="10 seconds")
        .start("//home/shop/other/output")
    )


"""


FAULTS = [
    # -- settings ----------------------------------------------------------------------------------
    Fault("timeout", IDEMPOTENT, settings(IDEMPOTENT, **{_TIMEOUT: None})),
    Fault("timeout", IDEMPOTENT, settings(IDEMPOTENT, **{_TIMEOUT: "30s"})),
    Fault(
        "timeout", TRANSACTION, settings(TRANSACTION, **{_TIMEOUT: "20"}),
        settings(TRANSACTION, **{_TIMEOUT: "5m"}),
    ),
    Fault("async-log-purge", IDEMPOTENT, settings(IDEMPOTENT, **{_PURGE: None})),
    Fault("async-log-purge", TRANSACTION, settings(TRANSACTION, **{_PURGE: "true"})),
    Fault(
        "no-effect", IDEMPOTENT,
        settings(IDEMPOTENT, spark__streaming__stopGracefullyOnShutdown="true"),
        settings(IDEMPOTENT, spark__sql__streaming__stopTimeout="60000"),
    ),
    Fault(
        "no-effect", TRANSACTION,
        settings(TRANSACTION, spark__yt__streaming__pingInterval="10"),
        settings(TRANSACTION, spark__sql__adaptive__enabled="false"),
    ),
    Fault(
        "no-effect", IDEMPOTENT,
        settings(IDEMPOTENT, spark__sql__streaming__adaptiveExecution__enabled="true"),
    ),
    Fault(
        "speculation", TRANSACTION, settings(TRANSACTION, spark__speculation="true"),
        settings(TRANSACTION, spark__speculation="false"),
    ),
    # -- the transactional mode --------------------------------------------------------------------
    Fault("job-proxy", TRANSACTION, {"submit": ""}),
    Fault("job-proxy", TRANSACTION, {"submit": f"{_PROXY}=true"}),
    Fault("task-retries", TRANSACTION, settings(TRANSACTION, spark__task__maxFailures=None)),
    Fault("task-retries", TRANSACTION, settings(TRANSACTION, spark__task__maxFailures="4")),
    Fault(
        "task-retries", TRANSACTION,
        settings(TRANSACTION, spark__stage__maxConsecutiveAttempts=None),
    ),
    Fault(
        "task-retries", TRANSACTION, settings(TRANSACTION, spark__task__maxFailures="8"),
        {**settings(_KEYED, spark__task__maxFailures="8"), "key": ("amount",)},
    ),
    Fault(
        "dynamic-allocation", TRANSACTION,
        settings(TRANSACTION, spark__dynamicAllocation__enabled="true"),
        settings(TRANSACTION, spark__dynamicAllocation__enabled="false"),
    ),
    Fault("tablet-limit", TRANSACTION, settings(TRANSACTION, spark__yt__write__dynBatchSize=None)),
    Fault(
        "tablet-limit", TRANSACTION,
        settings(TRANSACTION, spark__yt__write__dynBatchSize="20000"),
        {
            "settings": {
                **without(TRANSACTION.settings, "spark.yt.write.dynBatchSize"),
                "spark.ytsaurus.write.dynBatchSize": "1000",
            }
        },
    ),
    Fault("old-version", TRANSACTION, {"requirements": "ytsaurus-spyt ~= 2.10.0\n"}),
    Fault("old-version", TRANSACTION, {"requirements": "pyspark ~= 3.4.1\n"}),
    Fault(
        "old-version", TRANSACTION, settings(TRANSACTION, spark__ytsaurus__spyt__version="2.10.0"),
        settings(TRANSACTION, spark__ytsaurus__spyt__version="2.11.2"),
    ),
    # What fixes the mode's own fault is not in a hand-written job: the receiver is another mode.
    Fault(
        "commit-log", replace(IDEMPOTENT, submit=TRANSACTION.submit),
        settings(IDEMPOTENT, spark__yt__streaming__transactional="true"),
    ),
    # -- reader and writer -------------------------------------------------------------------------
    Fault("checkpoint-path", IDEMPOTENT, {"checkpoint": "//home/shop/job/checkpoint"}),
    Fault("checkpoint-path", TRANSACTION, {"checkpoint": "yt://home/shop/job/checkpoint"}),
    Fault("checkpoint-path", IDEMPOTENT, {"checkpoint": "/var/home/shop/job/checkpoint"}),
    Fault(
        "checkpoint-path", _CONFIGURED,
        {**settings(_CONFIGURED, **{_CHECKPOINTS: "//home/shop/checkpoints"})},
    ),
    Fault("checkpoint-local", IDEMPOTENT, {"checkpoint": "file:///home/shop/job/checkpoint"}),
    Fault("checkpoint-local", IDEMPOTENT, {"checkpoint": ""}),
    Fault("checkpoint-local", _CONFIGURED, settings(_CONFIGURED, **{_CHECKPOINTS: None})),
    Fault(
        "output-mode", IDEMPOTENT, {"sink": '.format("yt").outputMode("update")'},
        {"sink": '.format("yt").outputMode("append")'},
    ),
    Fault(
        "no-row-limit", IDEMPOTENT,
        {"reader": {**IDEMPOTENT.reader, "max_rows_per_partition": "1000000000"}},
        {"reader": {**IDEMPOTENT.reader, "max_rows_per_partition": "100000"}},
    ),
    *(
        Fault("no-effect", TRANSACTION, {"reader": {**TRANSACTION.reader, option: "1000"}})
        for option in ("maxOffsetsPerTrigger", "startingOffsets", "failOnDataLoss", "cluster")
    ),
    # -- several queries ---------------------------------------------------------------------------
    Fault(
        "shared-checkpoint", IDEMPOTENT, {"setup": _second(checkpoint="job")},
        {"setup": _second()},
    ),
    Fault(
        "shared-consumer", IDEMPOTENT, {"setup": _second(consumer="job")},
        {"setup": _second(consumer="job", queue="returns")},
    ),
    # -- state -------------------------------------------------------------------------------------
    Fault(
        "no-watermark", TRANSACTION,
        {"steps": (_COUNT,), **settings(TRANSACTION, **{_PARTITIONS: "8"})},
        {"steps": (_WATERMARK, _COUNT), **settings(TRANSACTION, **{_PARTITIONS: "8"})},
    ),
    Fault(
        "no-watermark", TRANSACTION,
        {"steps": ('.dropDuplicates(["id"])',), **settings(TRANSACTION, **{_PARTITIONS: "8"})},
    ),
    Fault(
        "state-partitions", TRANSACTION, {"steps": (_WATERMARK, _COUNT)},
        {"steps": (_WATERMARK, _COUNT), **settings(TRANSACTION, **{_PARTITIONS: "8"})},
    ),
    Fault("no-trigger", IDEMPOTENT, {"trigger": ""}),
    Fault("available-now", TRANSACTION, {"trigger": ".trigger(availableNow=True)"}),
    Fault("available-now", IDEMPOTENT, {"trigger": ".trigger(once=True)"}),
    Fault(
        "no-row-limit", IDEMPOTENT,
        {"reader": without(IDEMPOTENT.reader, "max_rows_per_partition")},
    ),
    Fault("no-consumer", IDEMPOTENT, {"consumer": ""}),
    Fault("no-consumer", TRANSACTION, {"consumer": ""}),
    Fault("no-await", IDEMPOTENT, {"wait": ""}),
    Fault("at-least-once", _NO_KEYS, {}, {"key": ("amount",)}),
    Fault(
        "foreach-batch", TRANSACTION, {"sink": ".foreachBatch(lambda rows, number: None)"},
    ),
    Fault(
        "same-queue-twice", TWO_QUEUES, {"queues": ("//home/shop/orders", "//home/shop/orders")},
    ),
    Fault(
        "composite-types", IDEMPOTENT,
        {"reader": {**IDEMPOTENT.reader, "parsing_type_v3": "true"}},
        {
            "reader": {**IDEMPOTENT.reader, "parsing_type_v3": "true"},
            "writer": {"write_type_v3": "true"},
        },
    ),
    Fault(
        "composite-types", TRANSACTION, {"writer": {"write_type_v3": "true"}},
        {
            "reader": {**TRANSACTION.reader, "parsing_type_v3": "true"},
            "writer": {"write_type_v3": "true"},
        },
    ),
    Fault(
        "composite-types", TRANSACTION,
        {"steps": ('.withColumn("both", F.struct("amount", "vat"))',)},
        {"steps": ('.withColumn("both", F.col("amount") + F.col("vat"))',)},
    ),
    # -- the idempotent receiver -------------------------------------------------------------------
    *(
        Fault("positions-lost", IDEMPOTENT, {"steps": planted}, {"steps": corrected})
        for planted, corrected in (
            (('.select("amount", "vat")',), ('.select("tablet", "row", "amount")',)),
            (('.select("tablet", "amount")',), ('.select("*", F.lit(1).alias("one"))',)),
            (('.drop("row")',), ('.drop("vat")',)),
            (
                ('.selectExpr("amount * 2 as twice")',),
                ('.selectExpr("tablet", "row as number", "amount")',),
            ),
            (
                ('.select(F.col("tablet").alias("t"), F.col("row").alias("r"))', '.select("row")'),
                ('.select(F.col("tablet").alias("t"), F.col("row").alias("r"))', '.drop("row")'),
            ),
            (('.withColumn("row", F.lit(1))',), ('.withColumn("row", F.col("row") + 0)',)),
            (
                (".transform(lambda rows: rows.select('amount'))",),
                (".transform(lambda rows: rows.select(rows.tablet, rows['row']))",),
            ),
        )
    ),
    Fault(
        "positions-lost", TWO_QUEUES, {"steps": ('.select("source", "tablet")',)},
        {"steps": ('.select("source", "tablet", "row")',)},
    ),
    Fault(
        "queue-key", TWO_QUEUES, {"of_queue": IDEMPOTENT.of_queue, "key": ("tablet", "row")},
    ),
    Fault("queue-key", TWO_QUEUES, {"key": ("tablet", "row")}),
    Fault("output-not-keyed", IDEMPOTENT, {"setup": 'yt.create("table", "//home/shop/job/output", '
        'attributes={"schema": [{"name": "tablet", "type": "int64"}]})\n', "key": ()}),
    *(
        Fault("not-deterministic", IDEMPOTENT, step(planted), step(corrected))
        for planted, corrected in (
            ('.withColumn("id", F.expr("uuid()"))', '.withColumn("id", F.expr("md5(amount)"))'),
            ('.withColumn("part", F.rand())', '.withColumn("part", F.col("amount") % 8)'),
            ('.where("rand() < 0.5")', '.where("amount % 2 = 0")'),
            (".sample(0.5)", '.where(F.col("amount") > 1)'),
            ('.withColumn("at", F.current_timestamp())', '.withColumn("at", F.col("ordered"))'),
            (
                '.withColumn("n", F.monotonically_increasing_id())',
                '.withColumn("n", F.hash("amount"))',
            ),
        )
    ),
    *(
        Fault(
            "not-deterministic", IDEMPOTENT,
            {**step('.withColumn("x", marked_udf("amount"))'),
             "helpers": _UDF.format(name="marked", body=planted)},
            {**step('.withColumn("x", marked_udf("amount"))'),
             "helpers": _UDF.format(name="marked", body="str(value)")},
        )
        for planted in ("uuid.uuid4().hex", "random.random()", "datetime.now().isoformat()")
    ),
    *(
        Fault("not-one-to-one", IDEMPOTENT, step(planted), step(corrected))
        for planted, corrected in (
            ('.withColumn("item", F.explode("items"))', '.withColumn("item", F.col("items")[0])'),
            ('.selectExpr("tablet", "row", "posexplode(items)")', '.selectExpr("*", "items[0]")'),
            ('.groupBy("tablet", "row").count()', '.withColumn("count", F.size("items"))'),
            ('.join(known, "amount")', '.withColumn("known", F.lit(known))'),
            ('.dropDuplicates(["amount"])', '.where("amount > 0")'),
            (".transform(lambda r: r.distinct())", '.transform(lambda r: r.where("amount > 0"))'),
        )
    ),
    # -- queues and consumers ----------------------------------------------------------------------
    Fault(
        "consumer-not-vital", IDEMPOTENT, {"setup": _REGISTER.format(vital="vital=False")},
        {"setup": _REGISTER.format(vital="vital=True")},
    ),
    Fault(
        "consumer-not-vital", TRANSACTION, {"shell": _SHELL.format(vital="non-vital")},
        {"shell": _SHELL.format(vital="vital")},
    ),
    Fault(
        "trimmed-by-age", IDEMPOTENT, {"setup": _QUEUE.format(path="//home/shop/orders", n=0)},
        {"setup": _QUEUE.format(path="//home/shop/orders", n=1)},
    ),
    Fault(
        "trimmed-by-age", TRANSACTION,
        {"shell": "yt set //home/shop/orders/@min_data_versions 0\n"},
        {"shell": "yt set //home/shop/job/output/@min_data_versions 0\n"},
    ),
    Fault(
        "trimmed-by-age", TRANSACTION,
        {"setup": 'yt.set("//home/shop/orders/@min_data_versions", 0)\n'},
        {"setup": 'yt.set("//home/shop/orders/@min_data_versions", 1)\n'},
    ),
    Fault(
        "unflushed-rows", TRANSACTION, _prices(".yt({path})"),
        _prices(".yt({path})", ', "enable_dynamic_store_read": True'),
    ),
    Fault(
        "unflushed-rows", IDEMPOTENT, _prices('.format("yt").load({path})'),
        _prices('.format("yt").load("//home/shop/rates")'),
    ),
    Fault(
        "unflushed-rows", IDEMPOTENT, _prices('.format("yt").option("path", {path}).load()'),
        {
            **_prices('.format("yt").option("path", {path}).load()'),
            "shell": "yt set //home/shop/prices/@enable_dynamic_store_read %true\n",
        },
    ),
    # -- functions of foreachBatch ---------------------------------------------------------------
    Fault(
        "written-back", TRANSACTION,
        {"helpers": _BATCH.format(read="STATE", more="pass"), **_MERGED}, _BOTH,
    ),
    *(
        Fault(
            rule, TRANSACTION,
            {"helpers": _BATCH.format(read='"//home/shop/names"', more=more), **_MERGED}, _BOTH,
        )
        for rule, more in (
            ("driver-deletes", 'yt.delete_rows(STATE, [{"id": 1}])'),
            ("separate-writes", 'rows.write.format("yt").save("//home/shop/history")'),
            ("separate-writes", 'yt.insert_rows("//home/shop/history", rows.collect())'),
        )
    ),
    *(
        Fault(
            "endless-table", TRANSACTION,
            {"helpers": _LOOP.format(target=planted)}, {"helpers": _LOOP.format(target=corrected)},
        )
        for planted, corrected in (
            ('yt.TablePath("//home/shop/history", append=True)',
             'yt.TablePath("//home/shop/history")'),
            ('"<append=%true>//home/shop/history"', '"//home/shop/history"'),
        )
    ),
    Fault(
        "endless-table", TRANSACTION,
        {"helpers": _APPENDED.format(more='.mode("append")'), "sink": ".foreachBatch(kept)"},
        {
            "helpers": _APPENDED.format(
                more='.mode("append").option("inconsistent_dynamic_write", True)'
            ),
            "sink": ".foreachBatch(kept)",
        },
    ),
    # -- references --------------------------------------------------------------------------------
    *(
        Fault(
            "swallowed-lookup", TRANSACTION,
            {"helpers": _ENRICH.format(handled=planted), "steps": (step_,)},
            {"helpers": _ENRICH.format(handled=corrected), "steps": (step_,)},
        )
        for step_ in (".mapInPandas(enriched, SCHEMA)", '.withColumn("name", named("amount"))')
        for planted, corrected in (
            ("except:\n        return []", "except:\n        raise"),
            ("except Exception as error:\n        print(error)\n        return []",
             "except KeyError:\n        return []"),
            ("except (ValueError, yt.YtError):\n        pass",
             "except yt.YtError as error:\n        raise ValueError from error"),
        )
    ),
    *(
        Fault(
            "large-broadcast", TRANSACTION,
            {"setup": _NAMES.format(use=planted), "steps": (".where(known)",)},
            {"setup": _NAMES.format(use=corrected), "steps": (".where(known)",)},
        )
        for planted, corrected in (
            ('names = F.broadcast(SESSION.read.format("yt").load("//home/shop/names"))',
             'names = SESSION.read.format("yt").load("//home/shop/names")'),
            ('table = SESSION.read.yt("//home/shop/names")\nnames = F.broadcast(table)',
             'names = F.broadcast(SESSION.createDataFrame([(1, "a")]))'),
            ('names = SESSION.sparkContext.broadcast(dict(yt.read_table("//home/shop/names")))',
             'names = SESSION.sparkContext.broadcast({{1: "a"}})'),
        )
    ),
]  # fmt: skip


def named(job: Job, way: str, folder: Path) -> set[str]:
    """Write a job and return the rules that doctor names."""
    folder.mkdir()
    WAYS[way](job, folder)
    found, read = command_line.diagnosed(folder)
    assert read.files.unread == ()
    assert len(read.queries) == 1 + ("def second" in job.setup)
    assert read.is_known
    for finding in found:
        assert finding.line, finding
        assert (folder / finding.file).is_file()
    return {finding.rule for finding in found}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "fault", FAULTS, ids=[f"{number}-{fault.rule}" for number, fault in enumerate(FAULTS)]
)
def test_a_planted_fault_is_named_alone_and_its_correction_is_not(
    fault: Fault, way: str, tmp_path: Path
) -> None:
    corrected = named(replace(fault.job, **fault.corrected), way, tmp_path / "corrected")
    planted = named(replace(fault.job, **fault.planted), way, tmp_path / "planted")
    assert fault.rule not in corrected
    assert planted - corrected == {fault.rule}
    # The mode itself cannot be corrected in a hand-written job.
    has_function = "foreachBatch" in str(fault.corrected)  # a fault of its own
    assert corrected <= {"commit-log", *(["foreach-batch"] if has_function else [])}


def test_every_rule_is_planted() -> None:
    assert {fault.rule for fault in FAULTS} == set(RULES)


@pytest.mark.parametrize("way", WAYS)
def test_jobs_without_a_fault(way: str, tmp_path: Path) -> None:
    assert named(IDEMPOTENT, way, tmp_path / "one") == set()
    assert named(TWO_QUEUES, way, tmp_path / "two") == set()
    assert named(TRANSACTION, way, tmp_path / "transactional") == {"commit-log"}


@pytest.mark.parametrize(
    "steps",
    [
        ".select(*[F.col(name) for name in NAMES])",
        '.select(NAMED + ["amount"])',
        '.withColumn("id", F.concat_ws("-", F.lit("q"), T, R)).select("id", "amount")',
        '.withColumn("id", F.struct(GIVEN.tablet, GIVEN.row)).select("id", "amount")',
        '.withColumnRenamed(GIVEN.tablet, "t").withColumnRenamed(GIVEN.row, "r").select("t", "r")',
        '.selectExpr("`tablet` as t", "row AS r").drop("tablet").select("r", "t")',
        '.selectExpr("`tablet` as t", "row as r", "*").drop("tablet", "row")',
        '.alias("q").select("q.*")',
        '.select(F.struct("tablet", "row").alias("id")).select("id")',
    ],
)
@pytest.mark.parametrize("way", WAYS)
def test_positions_that_may_be_in_other_columns_are_not_lost(
    steps: str, way: str, tmp_path: Path
) -> None:
    setup = 'T, R = "tablet", "row"\nNAMES = [T, R]\nNAMED = [F.col(T), F.col(R).alias("r")]\n'
    job = replace(IDEMPOTENT, steps=(steps,), helpers=f"GIVEN = settings()\n{setup}")
    assert "positions-lost" not in named(job, way, tmp_path / "job")


# -- jobs of the shape that SPYT's documentation shows ---------------------------------------------

_PLAIN = """\
from spyt import spark_session

with spark_session() as spark:
    spark.readStream.format("yt").option("consumer_path", "//home/a/consumer") \\
        .load("//home/a/queue") \\
        .writeStream.format("yt").option("checkpointLocation", "yt:///home/a/checkpoint") \\
        .option("path", "//home/a/result").start().awaitTermination()
"""
_KEYS = """\
from pyspark.sql import SparkSession

checkpoint = "//home/a/checkpoint"
spark = SparkSession.builder.getOrCreate()
frame = spark.readStream.format("yt").option("consumer_path", "//home/a/consumer")
frame = frame.option("include_service_columns", True).load("//home/a/queue")
frame = frame.withColumnRenamed("__spyt_streaming_src_tablet_index", "t")
frame = frame.withColumnRenamed("__spyt_streaming_src_row_index", "r").select("t", "r")
query = (
    frame.writeStream.format("yt")
    .option("checkpointLocation", checkpoint)
    .option("path", "//home/a/result")
    .start()
)
"""
_SWITCHED = """\
spark = (
    SparkSession.builder.config("spark.yt.streaming.transactional", "true")
    .config("spark.ytsaurus.rpc.job.proxy.enabled", "false")
    .config("spark.streaming.stopGracefullyOnShutdown", True)
    .getOrCreate()
)
"""


def test_jobs_of_the_shape_of_the_documentation(tmp_path: Path) -> None:
    expected = {
        "plain": {"at-least-once", "no-row-limit", "no-trigger", "async-log-purge", "timeout"},
        "keys": {
            "checkpoint-path",
            "no-row-limit",
            "no-trigger",
            "async-log-purge",
            "timeout",
            "no-await",
        },
        "switched": {"commit-log", "job-proxy", "task-retries", "tablet-limit", "no-effect"},
    }
    texts = {"plain": _PLAIN, "keys": _KEYS, "switched": _SWITCHED}
    for name, text in texts.items():
        file = tmp_path / f"{name}.py"
        file.write_text(text)
        assert {finding.rule for finding in command_line.diagnosed(file)[0]} == expected[name]


# -- the command -----------------------------------------------------------------------------------


def _run(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "ytstream", "doctor", *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_command_prints_what_a_terminal_of_80_columns_shows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, text in {"a": _PLAIN, "b": _KEYS, "c": _SWITCHED}.items():
        (tmp_path / f"{name}.py").write_text(text)
    assert command_line.main(["doctor", str(tmp_path)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0] == "read 3 Python files and 0 others: 2 queries"
    assert (
        "at       c.py:4  spark.streaming.stopGracefullyOnShutdown: only DStreams read it" in lines
    )
    assert lines[-1] == "14 findings of 11 rules"


def test_rules_fit_the_screen_and_have_a_source() -> None:
    for rule in RULES.values():
        assert rule.known in ("run", "source", "documented", "derived")
        assert set(rule.rows.split(", ")) <= {"lost", "repeated", "stalled", "-"}
        assert rule.consequence.endswith(".")
        assert rule.source


def test_json_has_each_finding_complete(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "job.py").write_text(_KEYS)
    assert command_line.main(["doctor", str(tmp_path), "--json"]) == 1
    shown = json.loads(capsys.readouterr().out)
    (found,) = [each for each in shown["findings"] if each["rule"] == "checkpoint-path"]
    assert (found["file"], found["line"], found["rows"]) == ("job.py", 11, ["stalled"])
    assert shown["queries"] == 1
    assert {"what", "consequence", "source", "known", "instead"} <= found.keys()


def test_a_rule_that_was_looked_into_can_be_accepted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    WAYS["script"](TRANSACTION, tmp_path)
    assert command_line.main(["doctor", str(tmp_path)]) == 1
    assert command_line.main(["doctor", str(tmp_path), "--accept", "commit-log"]) == 0
    assert capsys.readouterr().out.endswith("nothing was found\n")
    with pytest.raises(SystemExit) as caught:
        command_line.main(["doctor", str(tmp_path), "--accept", "comit-log"])
    assert caught.value.code == 2


def test_a_path_without_a_job_is_refused(tmp_path: Path) -> None:
    done = _run(tmp_path / "gone")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error [file]: ")
    assert "does not exist" in done.stderr
    (tmp_path / "batch.py").write_text('spark.read.format("yt").load("//home/a")\n')
    (tmp_path / "broken.py").write_text("def f(:\n")
    with pytest.raises(JobError, match="no streaming query") as caught:
        command_line.diagnosed(tmp_path)
    assert "broken.py was not read: line 1: invalid syntax" in str(caught.value)


def test_a_file_that_cannot_be_read_is_shown_beside_the_findings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "job.py").write_text(_PLAIN)
    (tmp_path / "broken.py").write_text("x = (\n")
    command_line.main(["doctor", str(tmp_path)])
    assert "not read broken.py: line 1: '(' was never closed" in capsys.readouterr().out


def test_comments_and_docstrings_are_no_settings(tmp_path: Path) -> None:
    WAYS["script"](IDEMPOTENT, tmp_path)
    text = (
        '"""Run it with --conf spark.speculation=true."""\n# .config("spark.speculation", "true")\n'
    )
    (tmp_path / "more.py").write_text(text)
    (tmp_path / "more.sh").write_text("# --conf spark.streaming.stopGracefullyOnShutdown=true\n")
    assert command_line.diagnosed(tmp_path)[0] == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("run.sh", 'spark-submit --conf "spark.streaming.stopGracefullyOnShutdown=true" a.py\n'),
        (
            "Makefile",
            "run:\n\tspark-submit \\\n\t--conf spark.streaming.stopGracefullyOnShutdown=1\n",
        ),
        ("spark-defaults.conf", "spark.streaming.stopGracefullyOnShutdown  true\n"),
        ("a.yaml", 'conf:\n  "spark.streaming.stopGracefullyOnShutdown": true\n'),
        ("a.json", '{"spark.streaming.stopGracefullyOnShutdown": "true"}\n'),
        ("a.toml", "[spark]\nspark.streaming.stopGracefullyOnShutdown = true\n"),
        ("b.toml", "[spark.streaming]\nstopGracefullyOnShutdown = true\n"),
        ("a.py", 'words = ["--conf", "spark.streaming.stopGracefullyOnShutdown=true"]\n'),
        ("b.py", 'conf.setAll([("spark.streaming.stopGracefullyOnShutdown", "true")])\n'),
        ("c.py", 'KEY = "spark.streaming.stopGracefullyOnShutdown"\nconf.set(KEY, True)\n'),
        ("d.py", 'run(spark_conf={"spark.streaming.stopGracefullyOnShutdown": "true"})\n'),
    ],
)
def test_settings_are_found_wherever_they_are_given(name: str, text: str, tmp_path: Path) -> None:
    WAYS["script"](IDEMPOTENT, tmp_path)
    (tmp_path / name).write_text(text)
    (found,) = command_line.diagnosed(tmp_path)[0]
    assert (found.rule, found.file) == ("no-effect", name)
    line = text.splitlines()[found.line - 1]
    assert re.search("stopGracefullyOnShutdown|KEY, True", line)


def test_reading_a_job_loads_no_spark() -> None:
    code = (
        "import sys; import ytstream_doctor.command_line; "
        "print(sorted({'pyspark', 'spyt', 'py4j'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
