"""Hand-written jobs for the tests of doctor: the same pieces, written in three ways."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

SETTINGS: Mapping[str, str] = {
    "spark.hadoop.yt.timeout": "300s",
    "spark.sql.streaming.asyncLogPurge.enabled": "false",
}
"""Settings that every job needs."""
TRANSACTIONAL: Mapping[str, str] = {
    "spark.yt.streaming.transactional": "true",
    "spark.task.maxFailures": "1",
    "spark.stage.maxConsecutiveAttempts": "1",
    "spark.yt.write.dynBatchSize": "2000",
}
_READER: Mapping[str, str] = {"max_rows_per_partition": "5000"}
_POSITIONS = (
    '.withColumnRenamed("__spyt_streaming_src_tablet_index", "tablet")',
    '.withColumnRenamed("__spyt_streaming_src_row_index", "row")',
)


@dataclass(frozen=True)
class Job:
    """What a job is made of; ``of_queue`` are the steps before queues are united."""

    settings: Mapping[str, str]
    reader: Mapping[str, str]
    consumer: str = "//home/shop/job/consumer"
    submit: str = ""
    queues: tuple[str, ...] = ("//home/shop/orders",)
    of_queue: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()
    helpers: str = ""
    writer: Mapping[str, str] | None = None
    checkpoint: str = "yt:///home/shop/job/checkpoint"
    trigger: str = '.trigger(processingTime="10 seconds")'
    sink: str = '.format("yt")'
    wait: str = "query.awaitTermination()"
    key: tuple[str, ...] = ()
    setup: str = ""
    requirements: str = "ytsaurus-spyt ~= 2.11.2\npyspark ~= 3.5.7\n"
    shell: str = ""

    def schema(self) -> str:
        """Return the schema of the output as the job's code writes it."""
        keys = [_KEY_COLUMN.format(name=name) for name in self.key]
        return f"[{', '.join([*keys, _VALUE])}]"


_KEY_COLUMN = '{{"name": "{name}", "type": "int64", "sort_order": "ascending"}}'
_VALUE = '{"name": "amount", "type": "int64"}'

IDEMPOTENT = Job(
    settings=SETTINGS,
    reader={**_READER, "include_service_columns": "true"},
    of_queue=_POSITIONS,
    steps=('.select("tablet", "row", "amount")',),
    key=("tablet", "row"),
)
TWO_QUEUES = replace(
    IDEMPOTENT,
    queues=("//home/shop/orders", "//home/shop/returns"),
    of_queue=(*_POSITIONS, '.withColumn("source", F.lit(queue))'),
    steps=(),
    key=("source", "tablet", "row"),
)
TRANSACTION = Job(
    settings={**SETTINGS, **TRANSACTIONAL},
    reader=_READER,
    submit="spark.ytsaurus.rpc.job.proxy.enabled=false",
    steps=('.where("amount > 0")',),
)


def without(values: Mapping[str, str], key: str) -> dict[str, str]:
    """Return a mapping without one key."""
    return {name: value for name, value in values.items() if name != key}


# -- three ways to write a job ---------------------------------------------------------------------


def script(job: Job, folder: Path) -> None:
    """Write one file from top to bottom, its settings in the builder."""
    builder = "".join(f'    .config("{key}", "{value}")\n' for key, value in job.settings.items())
    parts, names = [], []
    for number, queue in enumerate(job.queues):
        names.append(f"frame_{number}")
        parts.append(
            f'queue = "{queue}"\nframe_{number} = (\n    spark.readStream.format("yt")\n'
            f"{_lines(_consumer(job) | dict(job.reader))}"
            f"    .load(queue)\n{_indented(job.of_queue)})\n"
        )
    united = names[0] + "".join(f".unionByName({name})" for name in names[1:])
    writer = (
        f'query = (\n    rows.writeStream.outputMode("append"){job.sink}\n'
        f'    .option("path", "//home/shop/job/output")\n{_lines(job.writer or {})}'
        f"{_lines(_checkpoint(job.checkpoint))}    {job.trigger}\n"
        "    .start()\n)\n"
    )
    (folder / "stream.py").write_text(
        _IMPORTS + f"spark = (\n    SparkSession.builder\n{builder}    .getOrCreate()\n)\n"
        + _created(job, '"//home/shop/job/output"') + job.setup + "\n" + job.helpers + "\n"
        + "".join(parts) + f"rows = (\n    {united}\n{_indented(job.steps)})\n"
        + writer + job.wait + "\n"
    )  # fmt: skip
    conf = f" \\\n  --conf {job.submit}" if job.submit else ""
    _files(job, folder, f"#!/bin/sh\nspark-submit --master ytsaurus://c{conf} \\\n  stream.py\n")


def functions(job: Job, folder: Path) -> None:
    """Write a package of small functions, its constants apart, its settings in spark-defaults."""
    package = folder / "src" / "shop"
    package.mkdir(parents=True)
    queues = "".join(f'"{queue}", ' for queue in job.queues)
    scheme, _, rest = job.checkpoint.partition("home/")
    (package / "paths.py").write_text(
        f'ROOT = "home/shop/job"\nQUEUES = [{queues}]\nCONSUMER = "{job.consumer}"\n'
        'OUTPUT = "//home/shop/job/output"\n'
        f'CHECKPOINT = f"{scheme}{{ROOT}}/{rest.rpartition("/")[2]}"\n'
    )
    reads = "read(spark, QUEUES[0])"
    if len(job.queues) > 1:
        reads = "reduce(lambda one, other: one.union(other), [read(spark, q) for q in QUEUES])"
    (package / "flow.py").write_text(
        _IMPORTS + "from functools import reduce\n"
        "from shop import paths\nfrom shop.paths import CONSUMER, QUEUES\n\n\n"
        "def read(spark, queue):\n    reader = spark.readStream.format(\"yt\")\n"
        + ('    reader = reader.option("consumer_path", CONSUMER)\n' if job.consumer else "")
        + "    return (\n        reader\n"
        f"{_lines(job.reader)}    .load(queue)\n{_indented(job.of_queue)}    )\n\n\n"
        f"{job.helpers}\n\ndef transform(rows):\n    rows = rows.withColumn(\"seen\", F.lit(1))\n"
        f"    return (\n        rows\n{_indented(job.steps)}    )\n\n\n"
        'def write(rows, path):\n    return (\n        rows.writeStream.outputMode("append")'
        + f"{job.sink}\n{_lines(job.writer or {})}"
        + ("    .option('checkpointLocation', paths.CHECKPOINT)\n" if job.checkpoint else "")
        + f"    {job.trigger}\n    .start(path)\n    )\n\n\n"
        "def main():\n    spark = SparkSession.builder.appName(\"shop\").getOrCreate()\n"
        f"    query = write(transform({reads}), paths.OUTPUT)\n"
        f"    {job.wait or 'return query'}\n\n\n"
        + 'if __name__ == "__main__":\n    main()\n'
    )  # fmt: skip
    (package / "tables.py").write_text(
        _IMPORTS + "from shop import paths\n" + _created(job, "paths.OUTPUT") + job.setup + "\n"
    )
    lines = [f"{key}   {value}" for key, value in job.settings.items()]
    lines += [job.submit.replace("=", " ")] if job.submit else []
    (folder / "spark-defaults.conf").write_text("# of this job\n" + "\n".join(lines) + "\n")
    _files(job, folder, "")


def a_class(job: Job, folder: Path) -> None:
    """Write a class that keeps frames as attributes; options as dictionaries, settings as YAML."""
    reader = {**_consumer(job), **job.reader}
    queues = ", ".join(f'"{queue}"' for queue in job.queues)
    writer = {"path": "//home/shop/job/output", **_checkpoint(job.checkpoint)}
    body = "self.rows = self.one(self.queues[0])"
    if len(job.queues) > 1:
        body = (
            "self.rows = None\n        for queue in self.queues:\n"
            "            part = self.one(queue)\n"
            "            self.rows = part if self.rows is None else self.rows.union(part)"
        )
    wait = job.wait.replace("query", "self.query") or "pass"
    (folder / "job.py").write_text(
        _IMPORTS + _created(job, '"//home/shop/job/output"') + job.setup + "\n" + job.helpers
        + f"\nREADER = {dict(reader)!r}\n\n\nclass Stream:\n    queues = [{queues}]\n\n"
        "    def __init__(self, spark):\n        self.spark = spark\n\n"
        "    def one(self, queue):\n"
        '        stream = self.spark.readStream.format("yt").options(**READER)\n'
        f"        return (\n            stream.load(queue)\n{_indented(job.of_queue)}        )\n\n"
        f"    def run(self):\n        {body}\n        rows = (\n            self.rows\n"
        f"{_indented(job.steps)}        )\n"
        f"        options = {({**writer, **(job.writer or {})})!r}\n"
        f"        self.query = (\n            rows.writeStream{job.sink}.options(**options)\n"
        f"            {job.trigger}\n            .start()\n        )\n        {wait}\n\n\n"
        "Stream(SparkSession.builder.getOrCreate()).run()\n"
    )  # fmt: skip
    both = dict(job.settings)
    if job.submit:
        key, _, value = job.submit.partition("=")
        both[key] = value
    lines = "".join(f'  {key}: "{value}"\n' for key, value in both.items())
    (folder / "deploy.yaml").write_text(f"# how the job is submitted\nsparkConf:\n{lines}")
    _files(job, folder, "")


WAYS: Mapping[str, Callable[[Job, Path], None]] = {
    "script": script,
    "functions": functions,
    "class": a_class,
}

_IMPORTS = (
    "import random\nimport uuid\nfrom datetime import datetime\n\nimport spyt\n"
    "from pyspark.sql import SparkSession\nfrom pyspark.sql import functions as F\n"
    "import yt.wrapper as yt\n\n"
)


def _created(job: Job, path: str) -> str:
    if not job.key:
        return ""
    return (
        f"SCHEMA = {job.schema()}\n"
        f'yt.create("table", {path}, attributes={{"dynamic": True, "schema": SCHEMA}})\n'
    )


def _consumer(job: Job) -> dict[str, str]:
    return {"consumer_path": job.consumer} if job.consumer else {}


def _checkpoint(path: str) -> dict[str, str]:
    return {"checkpointLocation": path} if path else {}


def _lines(options: Mapping[str, str]) -> str:
    return "".join(f'    .option("{name}", "{value}")\n' for name, value in options.items())


def _indented(steps: tuple[str, ...]) -> str:
    return "".join(f"    {step}\n" for step in steps)


def _files(job: Job, folder: Path, submit: str) -> None:
    (folder / "requirements.txt").write_text(job.requirements)
    if submit or job.shell:
        (folder / "run.sh").write_text(submit + job.shell)
