"""In how many tasks Spark works on a micro-batch.

SPYT reads each partition of a queue in a task of its own, and writes in the same task. The start of
a task costs more than many rows do. So a batch is gathered into as many tasks as there are cores,
unless one of them would then have much more to do than the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from pyspark.sql import DataFrame

from ..connector.choose_connector import gather

START_ROWS = 1_000
"""What the start of a task costs, in rows: Spark sends it, and SPYT asks the cluster for the
transaction and for the output's schema (YtStreamingSink.addBatch)."""

Ends = Sequence[Mapping[int, int]]
"""For each place that reads a queue: partition -> the row after the last one of a batch."""


@dataclass
class TaskCoalescing:
    """The tasks of one query's batches."""

    _ends: Ends = field(default=())

    def gathered(self, rows: DataFrame, plan: Any, ends: Ends) -> DataFrame:
        """Return the rows of the batch that ends there, in fewer tasks where that is faster.

        ``plan`` is the query's execution of this batch (IncrementalExecution). The first batch
        stays as it is: where it begins is not known here.
        """
        sizes, self._ends = sizes_of(self._ends, ends), ends
        cores = rows.sparkSession.sparkContext.defaultParallelism
        if not is_faster(sizes, cores):
            return rows
        # Spark's plan has other parts than the queues after a shuffle. Not asked of the rows: they
        # have a plan of their own around it, and to plan that takes as long as a request.
        if plan.toRdd().getNumPartitions() != len(sizes):
            return rows
        gather(plan, cores)
        return rows.coalesce(cores)


def sizes_of(begins: Ends, ends: Ends) -> list[int]:
    """Return the rows of each of Spark's partitions; none without ``begins``.

    A queue without new rows has no partition there (YtStreamingSource.getBatch).
    """
    sizes = []
    for before, after in zip(begins, ends, strict=False):
        rows = [after[partition] - before.get(partition, 0) for partition in sorted(after)]
        sizes += rows if any(rows) else []
    return sizes


def is_faster(sizes: Sequence[int], cores: int) -> bool:
    """Return whether ``cores`` tasks of neighbouring partitions end before a task for each does."""
    if len(sizes) <= cores:
        return False
    apart = max((sum(sizes) + len(sizes) * START_ROWS) / cores, max(sizes) + START_ROWS)
    # As Spark groups partitions that prefer no host (DefaultPartitionCoalescer).
    bounds = [group * len(sizes) // cores for group in range(cores + 1)]
    together = max(sum(sizes[first:end]) for first, end in pairwise(bounds)) + START_ROWS
    return together <= apart
