"""What Spark has counted while it computed a micro-batch: read from the JVM once, as one value."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..connector.spark_plan import observations
from ..connector.transform_plan import observed_name
from ..job import REJECTED

Metrics = Mapping[str, tuple[int, int | None]]
"""Name of an observation -> the number of rows and the sum of their row numbers."""


@dataclass(frozen=True)
class BatchMetrics:
    """The counts of one micro-batch. Spark adds to its own while it computes anything again."""

    read: Metrics
    """Of each queue; one that is absent was not counted."""
    written: Mapping[str, int]
    """Output -> rows, of the outputs that the query itself counts."""
    rejected: tuple[Any, ...] | None
    """What REJECT observes, see rejected/tagging.py. None: no row can come out at all, as Spark has
    found, and it counts none."""


def batch_metrics(
    execution: Any, queues: Sequence[str], uncounted: Collection[str] = ()
) -> BatchMetrics:
    """Read the counts of an execution; those of queues that are ``uncounted`` mean nothing."""
    counted = [observed_name(path) for path in queues if path not in uncounted]
    output = observed_name("output")
    found = observations(execution, [*counted, output, REJECTED])
    return BatchMetrics(
        read={name: found[name][:2] for name in counted if name in found},
        written={"output": found[output][0]} if output in found else {},
        rejected=found.get(REJECTED),
    )
