"""A Spark session with the real SPYT, driven by JSON lines on stdin; runs under either Spark.

Each line is {"do": name, ...}; the answer is one line on stdout, {"ok": value} or {"error": text}.
Only pyspark and spyt are needed here, so that any environment with them can run it.
"""

from __future__ import annotations

import json
import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import spyt  # noqa: F401  before pyspark: it patches it

KEYS = {
    "__spyt_streaming_src_tablet_index": "tablet_index",
    "__spyt_streaming_src_row_index": "row_index",
}


class Worker:
    """The requests a test can make, by method name."""

    def __init__(self, proxy: str) -> None:
        spec = find_spec("spyt")
        assert spec is not None
        assert spec.origin is not None
        # Brings SPYT's jars and the agent that makes the transactional mode take effect.
        os.environ["SPARK_CONF_DIR"] = str(Path(spec.origin).parent / "conf")
        from pyspark.sql import SparkSession

        builder = SparkSession.builder
        for key, value in {
            "spark.hadoop.yt.proxy": f"http://{proxy}",
            "spark.hadoop.yt.user": "root",
            "spark.hadoop.yt.token": "any",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.port": "0",
            "spark.blockManager.port": "0",
            "spark.ui.enabled": "false",
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.streaming.stopTimeout": "60000",
            "spark.yt.write.dynBatchSize": "50",
        }.items():
            builder = builder.config(key, value)
        self.spark = builder.getOrCreate()
        self.spark.sparkContext.setLogLevel("ERROR")
        self.queries: dict[str, Any] = {}
        self.batches: dict[str, list[Any]] = {}

    def stream(
        self,
        queue: str,
        consumer: str,
        output: str,
        checkpoint: str,
        limit: int,
        transactional: bool = False,
        kind: str = "copy",
    ) -> dict[str, Any]:
        """Run a query until its queue is empty; return the rows of each batch."""
        from pyspark.sql import functions as F

        self.spark.conf.set("spark.yt.streaming.transactional", str(transactional).lower())
        events = (
            self.spark.readStream.format("yt")
            .option("consumer_path", consumer)
            .option("parsing_type_v3", "true")
            .option("include_service_columns", str(kind == "keyed").lower())
            .option("max_rows_per_partition", str(limit))
            .load(queue)
        )
        if kind == "keyed":
            result = events.withColumnsRenamed(KEYS).drop("$timestamp", "$cumulative_data_weight")
        elif kind == "window":
            result = (
                events.withWatermark("at", "0 seconds")
                .groupBy(F.window("at", "10 seconds").alias("window"))
                .agg(F.count("*").alias("rows"), F.sum("id").alias("total"))
                .select(F.col("window.start").cast("long").alias("start"), "rows", "total")
            )
        else:
            result = events.drop("$timestamp", "$cumulative_data_weight")
        query = (
            result.writeStream.format("yt")
            .option("checkpointLocation", f"yt:/{checkpoint}")
            .option("write_type_v3", "true")
            .trigger(processingTime="200 milliseconds")
            .start(output)
        )
        try:
            query.processAllAvailable()
            progress = [json.loads(_json(item)) for item in query.recentProgress]
        finally:
            query.stop()
        return {"batches": [item["numInputRows"] for item in progress if item["numInputRows"]]}

    def start(
        self,
        name: str,
        checkpoint: str,
        output: str | None = None,
        queue: str | None = None,
        source: str = "yt",
        select: list[str] | None = None,
        where: str = "true",
        transactional: bool = False,
        reading: dict[str, str] | None = None,
        writing: dict[str, str] | None = None,
    ) -> None:
        """Start a query that runs on; without an output, `take` gives the rows of its batches."""
        from pyspark.sql import functions as F

        # SPYT reads it at every batch (YtStreamingSource), so queries that run together must agree.
        self.spark.conf.set("spark.yt.streaming.transactional", str(transactional).lower())
        frame = self.spark.readStream.format(source).options(**(reading or {})).load(queue)
        writer = (
            frame.where(where)
            .selectExpr(*(select or ["*"]))
            .writeStream.options(**(writing or {}))
            .option("checkpointLocation", f"yt:/{checkpoint}")
            .queryName(name)
        )
        if output is None:
            batches = self.batches[name] = []

            def keep(batch: Any, number: int) -> None:
                rows = batch.select(F.spark_partition_id(), F.struct("*")).collect()
                batches.append([[partition, row.asDict()] for partition, row in rows])

            self.queries[name] = writer.foreachBatch(keep).start()
        else:
            self.queries[name] = writer.format("yt").start(output)

    def drain(self, name: str) -> None:
        """Wait until a query has processed all that is there now."""
        self.queries[name].processAllAvailable()

    def wait_failure(self, name: str, seconds: float) -> None:
        """Raise the error that a query ends with."""
        self.queries[name].awaitTermination(seconds)

    def stop(self, name: str) -> None:
        self.queries.pop(name).stop()

    def take(self, name: str) -> list[Any]:
        """Return the batches that a query without output was given: [partition, row] each."""
        return [batch for batch in self.batches[name] if batch]

    def read(
        self,
        path: str,
        where: str = "true",
        columns: list[str] | None = None,
        options: dict[str, str] | None = None,
    ) -> Any:
        """Read a table's rows through Spark's batch reader, as lists."""
        reader = self.spark.read.format("yt").options(**(options or {}))
        frame = reader.load(f"yt:/{path}").where(where)
        return [list(row) for row in frame.select(*(columns or ["*"])).collect()]

    def schema(self, path: str, options: dict[str, str] | None = None) -> dict[str, str]:
        """Return the Spark type of each column of a table."""
        frame = self.spark.read.format("yt").options(**(options or {})).load(f"yt:/{path}")
        return {field.name: field.dataType.simpleString() for field in frame.schema}

    def write(
        self,
        path: str,
        sql: str,
        partitions: int = 1,
        options: dict[str, str] | None = None,
    ) -> None:
        """Append the rows of a query to a static table, each partition in a task of its own."""
        frame = self.spark.sql(sql).repartition(partitions)
        frame.write.format("yt").options(**(options or {})).mode("append").save(path)

    def copy(self, source: str, path: str) -> None:
        """Append the rows of one table to another."""
        frame = self.spark.read.format("yt").load(f"yt:/{source}")
        frame.write.format("yt").mode("append").save(path)

    def count(self, path: str) -> int:
        return int(self.spark.read.format("yt").load(f"yt:/{path}").count())

    def version(self) -> str:
        return str(self.spark.version)


def _json(progress: Any) -> str:
    # Spark 3.5 has objects here, 4.1 maps.
    return json.dumps(progress, default=str) if isinstance(progress, dict) else str(progress.json)


def main() -> None:
    worker = Worker(sys.argv[1])
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = {"ok": getattr(worker, request.pop("do"))(**request)}
        except Exception as error:
            answer = {"error": str(error)}
        print(json.dumps(answer, default=str), flush=True)


if __name__ == "__main__":
    main()
