"""The same bids, written in several ways in one session.

    python sinks.py OUTCOME ROUNDS WAY...

The ways follow one another, in several rounds. Each round begins with another way. A round before
them warms the session up and counts the idle requests.

- ``documentation``: SPYT's page on Structured Streaming as it stands, its default write size;
- ``sink``: the job of before the ledger: its fence and its small writes, SPYT's sink;
- ``ledger``: the job as it is: foreachBatch, audit, ledger;
- ``rejects``: the same, with one row in a hundred in the output ``rejected``.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from minicluster import testing
from minicluster.client import Client, Entry
from packages.ytstream.tests.examples import example, settings_of
from ytstream import confs, provision
from ytstream.cluster import connect
from ytstream.demo.tables import produce
from ytstream.guarantees import guarantee_of
from ytstream.guarantees.transactional import FENCE
from ytstream.job import Connection, Job
from ytstream.query import pipeline, session
from ytstream.query.watch import Watch, finished_tasks
from ytstream.recovery import before_start
from ytstream.recovery.epoch import Epoch
from ytstream.tablets import Tablets

QUEUES = 2
#: Of four tablets each: batches of 120 000 rows, of about a second on two cores.
ROWS_PER_PARTITION = 15_000
BATCH_ROWS = 4 * QUEUES * ROWS_PER_PARTITION
#: Of a run; the first one is left out of its figures.
BATCHES = 6
IDLE_SECONDS = 15.0
TRIGGER_SECONDS = 1.0
_WRITE_SIZE = "spark.yt.write.dynBatchSize"
#: What the job of before the ledger wrote at a time.
_SMALL_WRITE = min(2_000, BATCH_ROWS // 50)


@dataclass
class Figures:
    """What the runs of one way gave; a run's first batch is left out."""

    #: Of each round, the seconds of its batches.
    rounds: list[list[float]] = field(default_factory=list)
    requests: list[float] = field(default_factory=list)
    idle_requests: int = 0
    batch_rows: int = BATCH_ROWS


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
        spark.conf.set(_WRITE_SIZE, str(_SMALL_WRITE))
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
    flow = pipeline.flow_of(spark, connection)
    query, _ = pipeline.start(flow, connection, tablets, epoch)
    return Running(query, Watch(connection, epoch, query, partial(finished_tasks, spark)).look)


WAYS: dict[str, Callable[[Connection, SparkSession], Running]] = {
    "documentation": partial(_by_sink, as_documented=True),
    "sink": partial(_by_sink, as_documented=False),
    "ledger": _by_ledger,
    "rejects": _by_ledger,
}


def _job(way: str) -> Job:
    if way != "rejects":
        return example("transactional", "map", QUEUES).job
    job = example("transactional", "map", QUEUES, rejects=True).job
    return replace(job, reject={"one in a hundred": "event_id LIKE '%00'"})


def measure(rounds: int, wanted: Sequence[str]) -> dict[str, Figures]:
    """Return the figures of each way that is wanted."""
    sample = example("transactional", "map", QUEUES).sample
    bids = sample.make(BATCHES * BATCH_ROWS // QUEUES, 7, 0)
    found = {way: Figures() for way in wanted}
    os.environ.setdefault("PYSPARK_SUBMIT_ARGS", "--master local[2] pyspark-shell")
    with testing.start() as cluster:
        spark = None
        for number in range(rounds + 1):
            ways = deque(wanted)
            ways.rotate(-number)
            for way in ways:
                root, job = f"//home/{way}-{number}", _job(way)
                settings = replace(
                    settings_of(job, root, proxy=cluster.http, queues=QUEUES),
                    max_rows_per_partition=ROWS_PER_PARTITION,
                    trigger_seconds=TRIGGER_SECONDS,
                    dyn_batch_size=None,
                )
                connection = Connection(connect(settings), settings, job, guarantee_of(job))
                provision.provision(connection)
                connection = provision.sized(connection)
                spark = spark or session.open_session(connection)
                for queue in settings.queues:
                    produce(connection.client, queue, bids, 4)
                cluster.client.journal.clear()
                running = WAYS[way](connection, spark)
                try:
                    seconds = _batches(running, connection)
                    if number:
                        found[way].rounds.append(seconds[1:])
                        found[way].requests.append(_per_batch(cluster.client.journal()))
                    else:
                        found[way].idle_requests = _idle(running, cluster.client)
                finally:
                    running.query.stop()
                # Rows that stay would slow the minicluster down from round to round.
                connection.client.remove(root, recursive=True)
    return found


def _batches(running: Running, connection: Connection) -> list[float]:
    """Wait for all batches; return the seconds of each. Raises RuntimeError for a row too few."""
    query = running.query
    while (last := query.lastProgress) is None or last["batchId"] < BATCHES - 1:
        if not query.isActive:
            raise RuntimeError(str(query.exception()))
        running.look(time.monotonic())
        time.sleep(0.2)
    paths = connection.settings.outputs.values()
    written = sum(int(connection.client.get(f"{path}/@row_count")) for path in paths)
    done = [batch for batch in query.recentProgress if batch["numInputRows"]]
    if {batch["numInputRows"] for batch in done} != {BATCH_ROWS}:
        raise RuntimeError(f"not batches of {BATCH_ROWS} rows: {done}")
    if written != BATCHES * BATCH_ROWS:
        raise RuntimeError(f"{written} rows came out, {BATCHES * BATCH_ROWS} went in")
    return [batch["durationMs"]["triggerExecution"] / 1000 for batch in done]


def _per_batch(journal: list[Entry]) -> float:
    """Return the requests from the first batch's last move of the consumer to the last batch's.

    Each batch reads each partition, and moves the consumer there.
    """
    moves = [number for number, entry in enumerate(journal) if entry.method == "AdvanceConsumer"]
    return (moves[-1] - moves[4 * QUEUES - 1]) / (len(moves) / (4 * QUEUES) - 1)


def _idle(running: Running, cluster: Client) -> int:
    """Return the requests of IDLE_SECONDS without rows."""
    time.sleep(2 * TRIGGER_SECONDS)
    before, end = sum(cluster.journal.counts().values()), time.monotonic() + IDLE_SECONDS
    while time.monotonic() < end:
        running.look(time.monotonic())
        time.sleep(0.2)
    return sum(cluster.journal.counts().values()) - before


def main(outcome: Path, rounds: int, wanted: Sequence[str]) -> None:
    """Write the figures to OUTCOME as JSON."""
    found = measure(rounds, wanted)
    outcome.write_text(json.dumps({way: asdict(figures) for way, figures in found.items()}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
