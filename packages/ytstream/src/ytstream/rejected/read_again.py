"""Whether the second reading of a batch has read the rows that were planned."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from ..connector.spark_plan import observations
from ..connector.transform_plan import observed_name
from ..errors import RestartableError
from ..errors.error_codes import ErrorCode
from ..job import REJECTED
from ..ledger.batch_row_ranges import Ranges


def verify_read_again(
    execution: Any, name: str, planned: Ranges, uncounted: Collection[str] = ()
) -> None:
    """Raise RestartableError when the batch ``name`` has read other rows for `rejected`.

    The counts of queues that are ``uncounted`` mean nothing.
    """
    metrics = observations(execution, map(observed_name, planned))
    for path, partitions in planned.items():
        parts = partitions.values()
        numbers = sum(part.count for part in parts), sum(part.sum for part in parts)
        found = metrics.get(observed_name(path))  # absent where no condition can be true
        if found and path not in uncounted and not _is(numbers, found):
            raise RestartableError(
                f"batch {name} read other rows of {path} for {REJECTED!r} than those planned",
                code=ErrorCode.OTHER_ROWS,
            )


def _is(wanted: tuple[int, int], found: Sequence[Any]) -> bool:
    """Return whether these figures are this count and this sum; without rows there is no sum.

    Nor is there one that is more than Spark's can be: see source.py.
    """
    return found[0] == wanted[0] and (found[1] or 0) == (wanted[1] if wanted[1] < 1 << 63 else 0)
