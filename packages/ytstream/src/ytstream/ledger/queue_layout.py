"""The layout of a queue: into which tablets it is cut, recognised by their ids.

A reshard gives every tablet a new id, and puts the rows of tablets that it removes behind those of
the last one that stays, under other numbers (YTsaurus, server/master/tablet_server,
ReshardTableImpl). A remount and a move to another cell keep the ids. Values only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any, NamedTuple


class QueueLayout(NamedTuple):
    """The tablets of a queue; short, since the ledger's head holds one for each queue."""

    #: How many there are.
    tablets: int
    #: A hash of their ids, in order.
    ids: str


def layout_of(tablets: Iterable[Mapping[str, Any]]) -> QueueLayout:
    """Return the layout that a table's attribute `tablets` describes."""
    ids = [str(tablet["tablet_id"]) for tablet in tablets]
    return QueueLayout(len(ids), sha256("\n".join(ids).encode()).hexdigest()[:32])


def is_grown(
    known: QueueLayout, now: QueueLayout, ends: Mapping[int, int], upper: Sequence[int]
) -> bool:
    """Return whether ``now`` is ``known`` with more tablets: they are empty, no row has moved.

    ``ends`` are the rows that were read next under ``known``, ``upper`` one past the last rows now.
    A tablet that is shorter than what was read of it was removed in between, and made again.
    """
    return now.tablets > known.tablets and all(
        row <= upper[partition] for partition, row in ends.items() if partition < now.tablets
    )


def is_drained(ends: Mapping[int, int], upper: Sequence[int]) -> bool:
    """Return whether the rows up to ``ends``, in a former layout, are all rows of the present one.

    It may have had fewer tablets for a time: the rows of those beyond are behind the last one's. Or
    they were trimmed, and nothing is behind it. Tablets that came again later are empty.
    """
    before = max((partition + 1 for partition, row in ends.items() if row), default=0)
    rows = [ends.get(partition, 0) for partition in range(before)]
    return any(
        [*upper] == [*kept[:-1], kept[-1] + moved, *[0] * (len(upper) - len(kept))]
        for count in range(1, len(upper) + 1)
        for kept in [(rows + [0] * count)[:count]]
        for moved in {0, sum(rows[count:])}
    )
