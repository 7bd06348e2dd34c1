"""State: what Spark remembers of rows between batches, in the checkpoint on Cypress.

State and offsets belong together. Offsets without their state, or state that is older than its
offsets, give wrong figures and no error.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pyspark import __version__ as SPARK

from .errors import JobError
from .positions import Positions

#: Parts of the state, each a task and a file per batch. As many as executors have cores is enough.
SHUFFLE_PARTITIONS = 8
#: A warning is due from here on: the state lies in the executors' heaps, twice while it is saved.
LARGE_STATE_BYTES = 512 * 1024**2

#: Parts of messages that tell of a state that was made by another transform(), or is not there.
FAILURES: Sequence[str] = (
    *("[STATE_STORE_", "[CANNOT_LOAD_STATE_STORE", "[STREAMING_STATEFUL_OPERATOR_NOT_MATCH"),
    "Error reading delta file",
)

CONFS: Mapping[str, str] = {
    # The state is cut into so many parts for good, and every batch writes a file for each: Spark's
    # 200 would be 200 new Cypress nodes per batch.
    "spark.sql.shuffle.partitions": str(SHUFFLE_PARTITIONS),
    # Versions of the state to go back to; recovery needs the last two, people want a few more.
    "spark.sql.streaming.minBatchesToRetain": "10",
    # Spark's default, said aloud: the one that was killed and restarted on SPYT's file system;
    # RocksDB was not.
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
    ),
    # Snapshots and clean-up list each folder of the state, and a listing costs 1 + 2n requests to
    # the master in SPYT's file system (YtFileSystem); Spark's 60 s is for HDFS.
    "spark.sql.streaming.stateStore.maintenanceInterval": "5min",
    # A second file beside each file of the state; Cypress checks what it stores by itself.
    **({"spark.sql.streaming.checkpoint.fileChecksum.enabled": "false"} if SPARK >= "4.1" else {}),
}


def verify(positions: Positions) -> None:
    """Raise JobError when the state in the checkpoint is cut otherwise than this job cuts it.

    Spark would keep the checkpoint's number, whatever the session says.
    """
    last = positions.checkpoint.last
    settings = last.metadata.get("conf", {}) if last is not None else {}
    frozen = settings.get("spark.sql.shuffle.partitions", str(SHUFFLE_PARTITIONS))
    if frozen != str(SHUFFLE_PARTITIONS):
        raise JobError(
            f"the state in the checkpoint has {frozen} parts, state.py says {SHUFFLE_PARTITIONS}",
            f"set SHUFFLE_PARTITIONS back to {frozen}, or use `rewind`, which starts a new "
            "checkpoint with an empty state",
        )


def without_checkpoint(positions: Positions) -> str:
    """Raises JobError: rows before the consumer's have left their traces in the state alone."""
    read = sum(sum(queue.consumed.values()) for queue in positions.queues)
    raise JobError(
        f"the checkpoint is gone and the state with it, after {read} rows",
        "restore the checkpoint as it was, or use `rewind`: `earliest` reads all rows again into "
        "an empty state (and writes their results again), `latest` begins with the next row",
    )


def remarks(progress: Mapping[str, Any]) -> list[str]:
    """What a person should know of a batch: rows that came too late, and a state that is large."""
    return list(_remarks(progress.get("stateOperators", ())))


def _remarks(operators: list[Mapping[str, Any]]) -> Iterator[str]:
    late = sum(operator.get("numRowsDroppedByWatermark", 0) for operator in operators)
    if late:
        # Spark counts them before the state, where rows of one key may be one already.
        yield f"at least {late} rows came after the watermark and were left out"
    rows = sum(operator["numRowsTotal"] for operator in operators)
    size = sum(operator["memoryUsedBytes"] for operator in operators)
    if size >= LARGE_STATE_BYTES:
        yield (
            f"WARNING: the state has grown to {rows} rows, {size / 1024**2:.0f} MiB in the "
            "executors' memory: shorten the watermark's delay, or give them more memory"
        )
