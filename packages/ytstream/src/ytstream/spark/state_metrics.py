"""What Spark's state store says of a state: how many rows it has, and whether it is large.

To know how many rows RocksDB holds, Spark looks each row up that it writes
(``trackTotalNumberOfRows``). A deduplication writes a row only if its key is not there, and an
aggregation looks each key up before, and both tell how many rows they have written and removed. So
the ledger counts their rows, and Spark does not: see ``rows_after``.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..log import GrowthThresholds

ROWS = "numTotalStateRows"
"""How many rows the state has, by Spark's own count: a metric of each operator with state (Spark,
StateStoreWriter)."""
UPDATED, REMOVED = "numUpdatedStateRows", "numRemovedStateRows"
STORES = "numStateStoreInstances"
"""How many rows a batch has written and removed, and in how many stores: one for each task."""
TRACKING = "spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows"
"""Whether Spark counts the rows in RocksDB. It counts the present ones when this is set again."""
MEMORY = "stateMemory"
"""What it takes: metrics of the same operators."""
TIMES: Sequence[str] = ("allUpdatesTimeMs", "allRemovalsTimeMs", "commitTimeMs")
FILES = "rocksdbSstFileSize"
"""The bytes of the files of RocksDB: a metric of its own (Spark, RocksDBStateStoreProvider)."""
LOOKED_UP = "StateStoreRestoreExec.numOutputRows"
"""What an aggregation gives that looks its rows up: each row, and what the state has of its key."""
SAVED = ("StateStoreSaveExec.numUpdatedStateRows", "StateStoreSaveExec.numRowsDroppedByWatermark")
"""What becomes of these rows: they are written, or late. The state has no key of late rows."""
METRICS: Sequence[str] = (ROWS, UPDATED, REMOVED, LOOKED_UP, *SAVED, STORES, MEMORY, FILES, *TIMES)
_IDS = "dedupe"
"""Operators whose state is ids that came by, and no rows to come (Spark, statefulOperators)."""


def keys_of(progress: Mapping[str, Any], rows: int | None) -> int | None:
    """Return how many keys of the state may still get rows; None for a job without state.

    ``rows`` are those of the state by the ledger; None: as Spark counts them.
    """
    operators = progress.get("stateOperators", ())
    grouping = [one for one in operators if _IDS not in one.get("operatorName", "")]
    if rows is not None and len(grouping) == len(operators) > 0:
        return rows
    return sum(one["numRowsTotal"] for one in grouping) if operators else None


def rows_after(before: int | None, found: Mapping[str, int], stores: int) -> int | None:
    """Return the rows of a state after a batch, by those before it.

    Not all that an aggregation has written is new. ``found`` has METRICS. None: not known, since a
    task of the ``stores`` was counted twice, as where it was repeated for another task.
    """
    if before is None or found[STORES] != stores:
        return None
    known = found[LOOKED_UP] - sum(found[name] for name in SAVED)
    return before + found[UPDATED] - known - found[REMOVED]


def remarks(
    progress: Mapping[str, Any], rows: int | None, large_state_bytes: int, said: GrowthThresholds
) -> Iterator[str]:
    """Yield what a person should know of a batch; nothing for a job without state.

    ``rows`` are those of the state by the ledger; None: as Spark counts them, if it does.
    """
    operators = progress.get("stateOperators", ())
    rows = rows if rows is not None else sum(operator["numRowsTotal"] for operator in operators)
    size = sum(map(_size, operators))
    has_files = any(FILES in operator.get("customMetrics", {}) for operator in operators)
    where, more = (
        ("on the executors' disks", "disk") if has_files else ("in the executors' heaps", "memory")
    )
    if said.is_new("state", size, large_state_bytes):
        counted = f"{rows} rows, " if rows else ""
        yield (
            f"the state has grown to {counted}{size / 1024**2:.0f} MiB {where}: shorten the "
            f"watermark's delay, or give the executors more {more}"
        )


def _size(operator: Mapping[str, Any]) -> int:
    """Return the bytes of an operator's state.

    The memory of RocksDB is mostly a cache: with the hours it fills up to its limit, however small
    the state is. Until the first file is written, the state is in that memory.
    """
    files: int = operator.get("customMetrics", {}).get(FILES, 0)
    return files or int(operator["memoryUsedBytes"])
