"""The ways in which a case is run, each as a query of a session that is its own.

- the documentation's listing: SPYT's pages on Structured Streaming as they stand, with SPYT's own
  defaults (tests of the template say where it loses rows);
- the job: what `run` does once its session is open, its supervisor included;
- noop: the rows are made by Spark's own rate source, and nothing takes them.

Added to the listing: a trigger, `max_rows_per_partition`, and in kinds with state the number of
state partitions, so that both cut the same batches and keep the same state.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from bench import jobs
from bench.cases import LISTING, NOOP, Case, Size
from tests.support import spyt_example, state_stores
from tests.support.job_thread import JobThread
from tests.support.waiting import eventually
from ytstream.instance.lock import alone
from ytstream.job import JobContext
from ytstream.provisioning import job_objects
from ytstream.query import supervisor
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
    """Give the query of a way once it runs; when the block is left, it and its state are gone."""
    state_stores.do_not_wait(spark)
    try:
        with _query(way, case, size, context, spark, folder) as query:
            yield query
    finally:
        state_stores.unload(spark)


@contextmanager
def _query(
    way: str, case: Case, size: Size, context: JobContext, spark: SparkSession, folder: str
) -> Iterator[StreamingQuery]:
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
    rows = _transformed(context, spyt_example.read(spark, context), spark)
    return spyt_example.written(rows, context)


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
    job = JobThread(context, spark)
    job.start()
    try:
        active = eventually(
            lambda: spark.streams.active,
            _START_SECONDS,
            what="the start of the job",
            meanwhile=lambda: not job.is_over,
            said=lambda: str(job.error),
            error=RuntimeError,
        )
        yield active[0]
    finally:
        job.end()
    if job.error is not None:
        raise job.error


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
