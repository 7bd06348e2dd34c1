"""What a state takes: memory of the JVM, files and requests in Cypress, time in the store."""

from __future__ import annotations

import re
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import mean, median
from typing import Any

from pyspark.sql import SparkSession

from bench.jobs import SHUFFLE_PARTITIONS
from minicluster.client import Entry
from ytstream.connector.java import jvm_of
from ytstream.job import JobContext

_CHANGELOG = re.compile(r"/state/.*/(\d+)(_[^/]+)?\.(changelog|delta)$")
"""The files of one version of a partition: 12.changelog, or with a name of its own since Spark 4.
"""
MIB = 1 << 20
COLUMNS: Mapping[str, str] = {
    "keys": "keys",
    "heap": "heap after a collection, MiB",
    "rss": "JVM, resident at most, MiB",
    "memory": "RocksDB, MiB",
    "files": "files of RocksDB, MiB",
    "bytes": "bytes in Cypress per batch and partition",
    "requests": "requests per batch and partition",
    "commit": "commit, s",
    "removal": "search for expired keys, s",
}
"""What is shown of a case, and how people read it."""


def of_operators(operators: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Return what Spark tells of the stores after a batch, all operators together.

    Times are sums over the tasks.
    """
    custom = [operator.get("customMetrics", {}) for operator in operators]
    return {
        "memory": sum(int(operator["memoryUsedBytes"]) for operator in operators),
        "files": sum(int(one.get("rocksdbSstFileSize", 0)) for one in custom),
        "commit": sum(int(operator.get("commitTimeMs", 0)) for operator in operators),
        "removal": sum(int(operator.get("allRemovalsTimeMs", 0)) for operator in operators),
    }


_CLEANER_SECONDS = 0.5


def heap(spark: SparkSession) -> int:
    """Return the bytes of the driver's heap that are left after collections.

    Spark frees broadcasts and shuffles after a collection has found them (ContextCleaner). So the
    next one finds more, until nothing goes.
    """
    java = jvm_of(spark).java.lang
    runtime, left = java.Runtime.getRuntime(), sys.maxsize
    while True:
        java.System.gc()
        now = int(runtime.totalMemory()) - int(runtime.freeMemory())
        if now > left - MIB:
            return now
        left = now
        time.sleep(_CLEANER_SECONDS)


def sizes(context: JobContext, spark: SparkSession) -> dict[str, Any]:
    """Return the memory of the JVM now, and the bytes in Cypress of each batch's changes."""
    pid = int(jvm_of(spark).java.lang.ProcessHandle.current().pid())
    found: defaultdict[str, int] = defaultdict(int)
    client: Any = context.client
    root = context.settings.checkpoint
    for path in client.search(root, node_type=["file"], attributes=[_SIZE]):
        if (name := _CHANGELOG.search(str(path))) is not None:
            found[name[1]] += int(path.attributes[_SIZE])
    return {
        "heap": heap(spark),
        "rss": _peak(pid),
        "bytes": found,
    }


_SIZE = "uncompressed_data_size"


def _peak(pid: int) -> int:
    """Return the most bytes that a process has had in memory."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    return int(found[1]) * 1024 if found is not None else 0


def figures(answer: Mapping[str, Any], journal: Sequence[Entry]) -> dict[str, float]:
    """Return the figures of a run: of its measured batches, or at its end."""
    batches, after = answer["batches"][answer["first"] :], answer["state"]
    begin = answer["batches"][answer["first"]]["begin"]
    end = batches[-1]["begin"] + batches[-1]["seconds"]
    asked = sum(begin <= one.time < end and "/state/" in str(one.args) for one in journal)
    # Version N + 1 of the state is the one after batch N.
    changed = [after["bytes"].get(str(batch["id"] + 1), 0) for batch in batches]
    parts = len(batches) * SHUFFLE_PARTITIONS
    return {
        "heap": after["heap"] / MIB,
        "rss": after["rss"] / MIB,
        "keys": batches[-1]["keys"],
        "memory": batches[-1]["state"]["memory"] / MIB,
        "files": batches[-1]["state"]["files"] / MIB,
        "bytes": sum(changed) / parts,
        "requests": asked / parts,
        "commit": mean(batch["state"]["commit"] for batch in batches) / 1000,
        "removal": mean(batch["state"]["removal"] for batch in batches) / 1000,
    }


def cells(found: Mapping[str, Any], way: str) -> Iterator[str]:
    """Yield the figures of a case in the order of COLUMNS, medians over the rounds."""
    rounds = [figures["ways"][way]["state"] for figures in found["rounds"]]
    for name in COLUMNS:
        value = median(one[name] for one in rounds)
        yield f"{value:,.0f}" if value >= 10 else f"{value:.1f}"
