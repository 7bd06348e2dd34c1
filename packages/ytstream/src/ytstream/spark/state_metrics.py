"""Remarks on Spark's state store: a state that is large."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..log import GrowthThresholds

ROWS = "numTotalStateRows"
"""How many rows the state has, by Spark's own count: a metric of each operator with state (Spark,
StateStoreWriter)."""
MEMORY = "stateMemory"
"""What it takes: metrics of the same operators."""
TIMES: Sequence[str] = ("allUpdatesTimeMs", "allRemovalsTimeMs", "commitTimeMs")
FILES = "rocksdbSstFileSize"
"""The bytes of the files of RocksDB: a metric of its own (Spark, RocksDBStateStoreProvider)."""
METRICS: Sequence[str] = (ROWS, MEMORY, FILES, *TIMES)
_IDS = "dedupe"
"""Operators whose state is ids that came by, and no rows to come (Spark, statefulOperators)."""


def keys_of(progress: Mapping[str, Any]) -> int | None:
    """Return how many keys of the state may still get rows; None for a job without state."""
    operators = progress.get("stateOperators", ())
    rows = (o["numRowsTotal"] for o in operators if _IDS not in o.get("operatorName", ""))
    return sum(rows) if operators else None


def remarks(
    progress: Mapping[str, Any], large_state_bytes: int, said: GrowthThresholds
) -> Iterator[str]:
    """Yield what a person should know of a batch; nothing for a job without state."""
    operators = progress.get("stateOperators", ())
    rows = sum(operator["numRowsTotal"] for operator in operators)
    size = sum(map(_size, operators))
    has_files = any(FILES in operator.get("customMetrics", {}) for operator in operators)
    where, more = (
        ("on the executors' disks", "disk") if has_files else ("in the executors' heaps", "memory")
    )
    if said.is_new("state", size, large_state_bytes):
        yield (
            f"the state has grown to {rows} rows, {size / 1024**2:.0f} MiB {where}: shorten the "
            f"watermark's delay, or give the executors more {more}"
        )


def _size(operator: Mapping[str, Any]) -> int:
    """Return the bytes of an operator's state.

    The memory of RocksDB is mostly a cache: with the hours it fills up to its limit, however small
    the state is. Until the first file is written, the state is in that memory.
    """
    files: int = operator.get("customMetrics", {}).get(FILES, 0)
    return files or int(operator["memoryUsedBytes"])
