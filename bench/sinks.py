"""The same bids, written in three ways in one session.

    python sinks.py OUTCOME ROUNDS

Three ways to write the same bids, one after the other in one session, several rounds:

- ``documentation``: SPYT's page on Structured Streaming as it stands, its default write size;
- ``sink``: the job of before the ledger: its fence and its small writes, SPYT's sink;
- ``ledger``: the job as it is: foreachBatch, audit, ledger.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from minicluster import testing
from tests.ytstream.examples import example, settings_of
from ytstream import confs, provision
from ytstream.cluster import connect
from ytstream.demo.tables import produce
from ytstream.guarantees import guarantee_of
from ytstream.guarantees.transactional import FENCE
from ytstream.job import Connection
from ytstream.query import pipeline, session
from ytstream.query.batch import Batch
from ytstream.query.watch import Watch
from ytstream.recovery import before_start
from ytstream.recovery.epoch import Epoch
from ytstream.tablets import Tablets

QUEUES = 2
ROWS = 200_000
#: By 8 tablets: batches of 40 000 rows.
ROWS_PER_PARTITION = 5_000
IDLE_SECONDS = 15.0
TRIGGER_SECONDS = 1.0
_WRITE_SIZE = "spark.yt.write.dynBatchSize"


@dataclass(frozen=True)
class Figures:
    """What one run of one way gave; the first batch is left out of all."""

    rows_per_second: float
    requests: float
    idle_requests: float


@dataclass(frozen=True)
class Running:
    """A query, and what its supervisor would do beside it."""

    query: StreamingQuery
    look: Callable[[float], None]


def _events(spark: SparkSession, connection: Connection) -> DataFrame:
    """Return the bids as SPYT's reader gives them."""
    names = [column.name for column in connection.job.queue_columns]
    options = {
        **confs.filled(iter(confs.READER), connection.values),
        "include_service_columns": "false",
    }
    frames = [
        spark.readStream.format("yt").options(**options).load(queue).select(*names)
        for queue in connection.settings.queues
    ]
    return frames[0].unionByName(frames[1])


def _by_sink(connection: Connection, spark: SparkSession, *, as_documented: bool) -> Running:
    rows = connection.job.transform(_events(spark, connection))
    if as_documented:
        spark.conf.unset(_WRITE_SIZE)
    else:
        rows = rows.filter(FENCE)
        spark.conf.set(_WRITE_SIZE, str(connection.settings.dyn_batch_size))
    query = (
        rows.writeStream.format("yt")
        .outputMode("append")
        .option("path", connection.settings.output)
        .option("checkpointLocation", f"yt:/{connection.settings.checkpoint}")
        .options(**confs.filled(iter(confs.SINK), connection.values))
        .trigger(processingTime=f"{TRIGGER_SECONDS:.0f} seconds")
        .start()
    )
    return Running(query, lambda _: None)


def _by_ledger(connection: Connection, spark: SparkSession) -> Running:
    spark.conf.set(_WRITE_SIZE, str(connection.settings.dyn_batch_size))
    tablets = Tablets(spark._jvm, connection.settings)
    epoch, _ = before_start.prepare(connection, tablets, Epoch())
    query = pipeline.start(pipeline.flow_of(spark, connection), Batch(connection, tablets, epoch))
    return Running(query, Watch(connection, epoch, query).look)


WAYS: dict[str, Callable[[Connection, SparkSession], Running]] = {
    "documentation": partial(_by_sink, as_documented=True),
    "sink": partial(_by_sink, as_documented=False),
    "ledger": _by_ledger,
}


def measure(rounds: int) -> dict[str, list[Figures]]:
    """Return the figures of each way, a list of rounds."""
    job = example("transactional", "map", QUEUES).job
    found: dict[str, list[Figures]] = {way: [] for way in WAYS}
    os.environ.setdefault("PYSPARK_SUBMIT_ARGS", "--master local[2] pyspark-shell")
    with testing.start() as cluster:
        spark = None
        for number in range(rounds + 1):  # the first one warms the session up
            for way, start in WAYS.items():
                settings = replace(
                    settings_of(job, f"//home/{way}-{number}", proxy=cluster.http, queues=QUEUES),
                    max_rows_per_partition=ROWS_PER_PARTITION,
                    trigger_seconds=TRIGGER_SECONDS,
                    dyn_batch_size=None,
                )
                connection = Connection(connect(settings), settings, job, guarantee_of(job))
                provision.provision(connection)
                connection = provision.sized(connection)
                spark = spark or session.open_session(connection)
                _produce(connection)
                figures = _run(cluster, connection, spark, start)
                if number:
                    found[way].append(figures)
    return found


def _produce(connection: Connection) -> None:
    bids = example("transactional", "map", QUEUES).sample.make(ROWS // QUEUES, 7, 0)
    for queue in connection.settings.queues:
        tablets = int(connection.client.get(f"{queue}/@tablet_count"))
        source = iter(bids)
        while chunk := list(islice(source, 20_000)):
            produce(connection.client, queue, chunk, tablets)


def _run(
    cluster: testing.Running,
    connection: Connection,
    spark: SparkSession,
    start: Callable[[Connection, SparkSession], Running],
) -> Figures:
    total = ROWS
    running = start(connection, spark)
    done: list[dict[str, Any]] = []
    ends: list[int] = []
    try:
        while sum(batch["numInputRows"] for batch in done) < total:
            running.look(time.monotonic())
            fresh = [
                batch
                for batch in running.query.recentProgress
                if batch["numInputRows"] and batch["batchId"] >= len(done)
            ]
            if fresh:
                done += fresh
                ends.append(len(cluster.client.journal()))
            if not running.query.isActive:
                raise RuntimeError(str(running.query.exception()))
            time.sleep(0.02)
        time.sleep(2 * TRIGGER_SECONDS)
        before, end = len(cluster.client.journal()), time.monotonic() + IDLE_SECONDS
        while time.monotonic() < end:
            running.look(time.monotonic())
            time.sleep(0.2)
        idle = len(cluster.client.journal()) - before
    finally:
        running.query.stop()
    written = int(connection.client.get(f"{connection.settings.output}/@row_count"))
    if written != total:
        raise RuntimeError(f"{written} rows came out, {total} went in")
    warm = done[1:]
    seconds = sum(batch["durationMs"]["triggerExecution"] for batch in warm) / 1000
    requests = (ends[-1] - ends[0]) / (len(done) - 1)
    return Figures(sum(batch["numInputRows"] for batch in warm) / seconds, requests, idle)


def main(outcome: Path, rounds: int) -> None:
    """Write the figures to OUTCOME as JSON."""
    found = measure(rounds)
    outcome.write_text(
        json.dumps({way: [asdict(run) for run in runs] for way, runs in found.items()})
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
