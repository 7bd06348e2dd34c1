"""The layout of a queue: into which tablets it is cut, recognised by their ids.

A reshard gives every tablet a new id, and puts the rows of tablets that it removes behind those of
the last one that stays, under other numbers (YTsaurus, server/master/tablet_server,
ReshardTableImpl). A remount and a move to another cell keep the ids. Values only.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import accumulate
from typing import Any, NamedTuple

Position = tuple[int, int]
"""A partition and the number of a row in it."""


class QueueLayout(NamedTuple):
    """The tablets of a queue; short, since the ledger's head holds one for each queue."""

    tablets: int
    """How many there are."""
    ids: str
    """A hash of their ids, in order."""


def layout_of(tablets: Iterable[Mapping[str, Any]]) -> QueueLayout:
    """Return the layout that a table's attribute `tablets` describes."""
    ids = [str(tablet["tablet_id"]) for tablet in tablets]
    return QueueLayout(len(ids), sha256("\n".join(ids).encode()).hexdigest()[:32])


def is_grown(
    known: QueueLayout,
    now: QueueLayout,
    ends: Mapping[int, int],
    upper: Sequence[int],
    newer: Collection[Position],
) -> bool:
    """Return whether ``now`` is ``known`` with more tablets: they are empty, no row has moved.

    ``ends`` are the rows that were read next under ``known``, ``upper`` one past the last rows now.
    A tablet was removed in between and made again if it is shorter than what was read of it, or if
    the last row that was read is ``newer`` than that.
    """
    return now.tablets > known.tablets and all(
        row <= upper[partition] and (partition, row - 1) not in newer
        for partition, row in ends.items()
        if partition < now.tablets
    )


def is_drained(
    ends: Mapping[int, int], lower: Sequence[int], upper: Sequence[int], newer: Collection[Position]
) -> bool:
    """Return whether the rows up to ``ends``, in a former layout, are all rows of the present one.

    ``newer`` are those of telling_rows() that were written after the job has read up to ``ends``.
    """
    return any(rows.isdisjoint(newer) for rows in _shrunk(ends, lower, upper))


def telling_rows(
    ends: Mapping[int, int], lower: Sequence[int], upper: Sequence[int]
) -> set[Position]:
    """Return the rows whose age tells whether a layout is grown or drained; they may be trimmed."""
    last = {(partition, row - 1) for partition, row in ends.items() if partition < len(upper)}
    rows = last.union(*_shrunk(ends, lower, upper))
    return {(partition, row) for partition, row in rows if row >= 0}


def _shrunk(
    ends: Mapping[int, int], lower: Sequence[int], upper: Sequence[int]
) -> Iterator[set[Position]]:
    """Yield the rows that tell, for each way of a reshard that explains the numbers of rows.

    A queue of ``ends`` rows had ``count`` tablets for a time. The rows of those beyond are behind
    the last one's, or they were trimmed, and nothing is behind it. (Trimmed tablets can be removed:
    ValidateReshardRemove of YTsaurus' tablets wants only whole chunks.) Tablets that came again
    later are empty. Where rows of the others were trimmed, it is not known that none of these were.

    Trimmed rows and unread ones may have the same number. Then an unread row is on one of the two
    sides of the place where the rows of a tablet should end: the first tablet whose rows end behind
    that place has unread rows at its end, and they begin before it.
    """
    used = max((partition + 1 for partition, row in ends.items() if row), default=0)
    rows = [ends.get(partition, 0) for partition in range(used)]
    for count in range(1, len(upper) + 1):
        *kept, last = (rows + [0] * count)[:count]
        for moved in ([], rows[count:]) if not any(lower) else ([],):
            bounds = [*accumulate((last, *moved))]
            if [*upper] == [*kept, bounds[-1], *[0] * (len(upper) - count)]:
                sides = [(count - 1, row - before) for row in bounds for before in (0, 1)]
                yield {*((number, row - 1) for number, row in enumerate(kept)), *sides}
