"""The ways in which a case is run, each as a query of a session that is its own.

- the documentation's listing: SPYT's pages on Structured Streaming as they stand, with SPYT's own
  defaults (tests of the template say where it loses rows);
- the job: what `run` does once its session is open, its supervisor included;
- noop: the rows are made by Spark's own rate source, and nothing takes them.

Added to the listing: a trigger, `max_rows_per_partition`, and in kinds with state the number of
state partitions, so that both cut the same batches and keep the same state.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from bench import jobs
from bench.cases import LISTING, NOOP, Case, Size
from ytstream.cluster.client import connect
from ytstream.connector.spyt import POSITION
from ytstream.connector.tablet_transactions import Tablets
from ytstream.job import JobContext
from ytstream.provisioning import job_objects
from ytstream.query import supervisor
from ytstream.query.stop_signal import StopSignal
from ytstream.recovery.lock import alone
from ytstream.settings import spark_conf
from ytstream.spark import session

_START_SECONDS = 120.0
_BATCH_SECONDS = 180.0
"""A batch of a bench takes seconds: one that has not come after so long will not."""
_POLL_SECONDS = 0.2
_STEP_US = 10_500
"""Microseconds between two rows of the rate source, as in the samples."""
_BID = {
    "event_id": "concat('7-', lpad(cast(value as string), 8, '0'))",
    "auction": "1000 + value * 7919 % 100",
    "bidder": "1 + value * 7919 % 10000",
    "price": "1 + value * 104729 % 10000000",
    "channel": "elt(1 + cast(value % 5 as int), 'Google', 'Facebook', 'Baidu', 'Apple', null)",
    "url": "concat('https://auction.example/', 1000 + value * 7919 % 100, '?c=Google')",
    "date_time": f"timestamp_micros(1704067200000000 + value * {_STEP_US})",
    "extra": "elt(1 + cast(value % 4 as int), null, '', 'привет', 'a quoted text')",
}
"""The columns of a bid, out of the number of its row."""
_OTHERS = {
    "sessions": {
        "bidder": "100 * (1 + value * 1050000 div 600000000 % 12) + value * 7919 % 30",
        "date_time": "timestamp_micros(1704067200000000 + value * 1050000)",
    },
}
"""A kind whose sample has other rows: few bidders at a time, who come back after two hours."""


def opened(context: JobContext, way: str) -> SparkSession:
    """Open the session of a way."""
    if way not in (LISTING, NOOP):
        return session.open_session(context)
    session.open_tablets(context)  # the JVM, with SPYT in it
    guarantee, kind = context.guarantee.name, context.job.kind
    wanted = {"spark.hadoop.yt.proxy": context.settings.proxy}
    wanted |= spark_conf.filled(iter(spark_conf.LOCAL), {})
    if way == LISTING and guarantee == "transactional":
        wanted["spark.yt.streaming.transactional"] = "true"
        wanted["spark.ytsaurus.rpc.job.proxy.enabled"] = "false"
    if kind.is_stateful:
        wanted["spark.sql.shuffle.partitions"] = str(context.job.shuffle_partitions)
    builder = SparkSession.builder.appName(way)
    for key, value in wanted.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


@contextmanager
def running(
    way: str, case: Case, size: Size, context: JobContext, spark: SparkSession, folder: str
) -> Iterator[StreamingQuery]:
    """Give the query of a way once it runs; it is stopped when the block is left."""
    if way not in (LISTING, NOOP):
        # The lock costs a ping in five seconds. The tables of an archive depend on it.
        lock = alone(context) if context.job.archives else nullcontext()
        with lock, _supervised(context, spark) as query:
            yield query
        return
    if way == LISTING:
        writer = _listing(context, spark)
    else:
        writer = _noop(case, size, context, spark).option("checkpointLocation", folder)
    query = writer.trigger(processingTime=f"{jobs.TRIGGER_SECONDS:.0f} seconds").start()
    try:
        yield query
    finally:
        query.stop()


def _listing(context: JobContext, spark: SparkSession) -> DataStreamWriter:
    settings, job = context.settings, context.job
    is_keyed = context.guarantee.name == "idempotent"
    frames = []
    for queue in settings.queues:
        reader = (
            spark.readStream.format("yt")
            .option("consumer_path", settings.consumer)
            .option("max_rows_per_partition", settings.max_rows_per_partition)
        )
        if is_keyed:
            reader = reader.option("include_service_columns", True)
        frame = reader.load(queue)
        for name, given in POSITION.items() if is_keyed else ():
            frame = frame.withColumnRenamed(given, name)
        several = len(settings.queues) > 1
        frames.append(frame.withColumn("queue_id", F.lit(queue)) if several else frame)
    rows = _transformed(context, reduce(DataFrame.union, frames), spark)
    return (
        rows.writeStream.outputMode(job.kind.output_mode)
        .format("yt")
        .option("checkpointLocation", f"yt:/{settings.checkpoint}")
        .option("path", settings.output)
    )


def _noop(case: Case, size: Size, context: JobContext, spark: SparkSession) -> DataStreamWriter:
    numbers = (
        spark.readStream.format("rate-micro-batch")
        .option("rowsPerBatch", case.batch_rows(size))
        .option("numPartitions", case.tablets)
        .load()
    )
    columns = {
        "queue_id": "'queue'",
        "tablet_index": "value % 4",
        "row_index": "value",
        **_BID,
        **_OTHERS.get(case.processing, {}),
    }
    events = numbers.select(*(F.expr(text).alias(name) for name, text in columns.items()))
    rows = _transformed(context, events, spark)
    return rows.writeStream.outputMode(context.job.kind.output_mode).format("noop")


def _transformed(context: JobContext, events: DataFrame, spark: SparkSession) -> DataFrame:
    """Return what transform() makes of the rows; the reference of a join is read once."""
    reference = supervisor.read_reference(spark, context)
    return context.job.transform(events, *([] if reference is None else [reference]))


@contextmanager
def _supervised(context: JobContext, spark: SparkSession) -> Iterator[StreamingQuery]:
    """Run the job as `run` does, but for the lock."""
    stop = StopSignal()
    own = replace(context, client=connect(context.settings))
    tablets = Tablets(spark._jvm, own.settings)
    runner = supervisor.QueryRunner(own, spark, tablets, stop)
    errors: list[BaseException] = []

    def run() -> None:
        try:
            supervisor.supervise(own.job, runner, stop)
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        deadline = time.monotonic() + _START_SECONDS
        while not (active := spark.streams.active):
            if errors or time.monotonic() > deadline:
                raise errors[0] if errors else RuntimeError("the job did not start")
            time.sleep(_POLL_SECONDS)
        yield active[0]
    finally:
        stop.set()
        thread.join()
        tablets.beside.shutdown()
    if errors:
        raise errors[0]


def wait(query: StreamingQuery, batches: int) -> None:
    """Wait until the query has done so many batches.

    Raises RuntimeError when it has ended, and when the next batch does not come.
    """
    done, since = 0, time.monotonic()
    while done < batches:
        if not query.isActive:
            raise RuntimeError(str(query.exception()))
        if time.monotonic() > since + _BATCH_SECONDS:
            what = query.status["message"]
            raise RuntimeError(
                f"batch {done} of {batches} did not end in {_BATCH_SECONDS:.0f} s: {what}"
            )
        time.sleep(_POLL_SECONDS)
        last = query._jsq.lastProgress()
        if last is not None and last.batchId() + 1 > done:
            done, since = last.batchId() + 1, time.monotonic()


def provisioned(context: JobContext) -> JobContext:
    """Make what the job writes; return the context with its sizes."""
    job_objects.provision(context)
    return job_objects.sized(context)
