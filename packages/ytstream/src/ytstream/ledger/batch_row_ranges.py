"""Where a micro-batch begins and ends: the rows of each partition that it has to read.

It begins where the ledger's head ends. Spark's source of rows decides where it ends
(connector/jvm/QueueSource.java, at most ``max_rows_per_partition``); the offset log has it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..errors import RestartableError
from ..errors.error_codes import ErrorCode


@dataclass(frozen=True)
class RowRange:
    """The rows of one partition that a batch has to read: from ``first`` to before ``end``."""

    first: int
    end: int

    @property
    def count(self) -> int:
        """How many rows these are."""
        return self.end - self.first

    @property
    def sum(self) -> int:
        """The sum of their row numbers."""
        return (self.first + self.end - 1) * self.count // 2


Ranges = Mapping[str, Mapping[int, RowRange]]
"""Queue -> partition -> the rows to read."""


def ranges(
    name: str,
    queues: Sequence[str],
    begins: Mapping[str, Mapping[int, int]],
    ends: Sequence[Mapping[int, int]],
) -> dict[str, dict[int, RowRange]]:
    """Return the rows that the batch must read, without a gap.

    Raises RestartableError for a batch that ends before it begins, and as verify_partitions() does.
    """
    found = {}
    for path, wanted in zip(queues, ends, strict=True):
        verify_partitions(name, path, begins[path], wanted)
        partitions = {
            partition: RowRange(begins[path].get(partition, 0), end)
            for partition, end in wanted.items()
        }
        if wrong := [f"{p}: {rows}" for p, rows in partitions.items() if rows.count < 0]:
            raise RestartableError(
                f"batch {name} was planned to end before its first row, partition {wrong[0]}",
                code=ErrorCode.OTHER_ROWS,
            )
        found[path] = {partition: rows for partition, rows in partitions.items() if rows.count}
    return found


def verify_partitions(
    name: str, path: str, begin: Mapping[int, int], planned: Mapping[int, int]
) -> None:
    """Raise RestartableError for a batch that lacks a partition whose rows were read.

    Outputs without SPYT's transaction keep what a batch writes, so this must be seen before it
    writes.
    """
    if gone := [
        partition for partition, row in begin.items() if row > 0 and partition not in planned
    ]:
        raise RestartableError(
            f"{path} was resharded: batch {name} was planned without its partition {gone[0]}",
            code=ErrorCode.QUEUE_RESHARDED,
        )
