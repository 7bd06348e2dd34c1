"""Data of a sorted dynamic table: per key, the versions of its row.

Keys are kept apart from their order: writes go into a dictionary, and a read by order sorts the
list first.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Container, Iterable, Iterator, Sequence

from ..core.errors import generic
from ..rows.from_wire import Key, Update

# `min_data_ttl` of a table by default, in the seconds of a timestamp's high bits. All versions but
# the last are dropped when older, so snapshot reads reach back that far (documentation, "sorted
# dynamic tables", deleting old data).
_KEEP = 1800 << 30

VERSIONS = 1000
"""Versions of one row at most, if a table is not told otherwise (model: a real cluster keeps all of
the last half an hour, on disk)."""

Stamps = tuple[int, ...]
"""When each column of a row was last written, by the column's index; 0 for a column that was not
written since the row was deleted."""

Version = tuple[int, bytes | None, Stamps | None, Update | None]
"""(commit timestamp, stored row or None for a deletion, stamps or None for a row written whole,
values that were aggregated, as they were written).

The row holds all columns, also those that its write left alone, and aggregated values: a read looks
at one version only.
"""


def stamps_after(
    version: Version | None, written: Container[int], columns: int, timestamp: int
) -> Stamps | None:
    """Return the stamps of a row of so many columns after a write of some of them."""
    before, row, stamps, _ = version or (0, None, None, None)
    if stamps is None:
        stamps = (before if row is not None else 0,) * columns
    after = tuple(timestamp if i in written else stamp for i, stamp in enumerate(stamps))
    return None if min(after) == timestamp else after


def _drop(versions: list[Version], count: int) -> None:
    """Drop the oldest versions; what was added to them becomes a plain value, as in a compaction
    (ytlib/table_client/versioned_row_merger.cpp)."""
    del versions[:count]
    if versions and versions[0][3]:
        versions[0] = (*versions[0][:3], None)


class SortedData:
    """Rows of one table by key."""

    def __init__(self) -> None:
        self._versions: dict[Key, list[Version]] = {}
        self._order: list[Key] = []
        self._ordered = True
        self._cut: set[Key] = set()
        """Rows that have lost versions: a read before the first of those that are left fails."""

    def __len__(self) -> int:
        """Return the number of keys ever written."""
        return len(self._versions)

    def put(
        self,
        key: Key,
        row: bytes | None,
        timestamp: int,
        most: int = VERSIONS,
        stamps: Stamps | None = None,
        added: Update | None = None,
    ) -> None:
        """Add a version; timestamps of one key must grow. `most` versions remain."""
        versions = self._versions.get(key)
        if versions is None:
            self._versions[key] = [(timestamp, row, stamps, added)]
            self._order.append(key)
            self._ordered = False
            return
        versions.append((timestamp, row, stamps, added))
        horizon = timestamp - _KEEP
        if versions[1][0] < horizon or len(versions) > most:
            drop = max(0, len(versions) - most)
            while drop < len(versions) - 1 and versions[drop + 1][0] < horizon:
                drop += 1
            _drop(versions, drop)
            self._cut.add(key)

    def versions(self, key: Key) -> Sequence[Version]:
        """Return the versions of a row, the oldest first."""
        return self._versions.get(key, ())

    def last(self, key: Key) -> Version | None:
        """Return the last version of a row, if it has any."""
        versions = self._versions.get(key)
        return versions[-1] if versions else None

    def last_write(self, key: Key) -> int:
        """Return the commit timestamp of the last version; 0 when there was none."""
        versions = self._versions.get(key)
        return versions[-1][0] if versions else 0

    def newer_write(self, keys: Iterable[Key], timestamp: int) -> tuple[Key, int] | None:
        """Return one of these keys that was written after that time, and when; None for none."""
        find = self._versions.get
        for key in keys:
            versions = find(key)
            if versions is not None and versions[-1][0] > timestamp:
                return key, versions[-1][0]
        return None

    def get(self, key: Key, timestamp: int | None = None) -> bytes | None:
        """Return the row as a read at that timestamp sees it; the last version for None."""
        for written, row, _, _ in reversed(self._versions.get(key, ())):
            if timestamp is None or written <= timestamp:
                return row
        if key in self._cut:
            # server/node/tablet_node/sorted_chunk_store.cpp and others, retained timestamp
            first = self._versions[key][0][0]
            raise generic(f"Timestamp {timestamp} is less than retained timestamp {first}")
        return None

    def expire(self, death: int, fewest: int) -> None:
        """Drop versions before a time, but for the `fewest` last ones; rows may go whole."""
        gone = []
        for key, versions in self._versions.items():
            old = bisect_left(versions, (death,))
            # The last version before that time is what a read at that time sees.
            drop = min(old, len(versions) - fewest)
            if drop <= 0:
                continue
            _drop(versions, drop)
            if versions:
                self._cut.add(key)
            else:
                gone.append(key)
        for key in gone:
            del self._versions[key]
            self._cut.discard(key)
        if gone:
            self._order, self._ordered = list(self._versions), False

    def scan(
        self, timestamp: int | None = None, low: Key | None = None, high: Key | None = None
    ) -> Iterator[tuple[Key, bytes]]:
        """Yield (key, row) in key order, from `low` on and before `high`."""
        order = self.order()
        start = bisect_left(order, low) if low is not None else 0
        end = bisect_left(order, high) if high is not None else len(order)
        for key in order[start:end]:
            row = self.get(key, timestamp)
            if row is not None:
                yield key, row

    def order(self) -> list[Key]:
        """Return all keys ever written, in order, with the keys of deleted rows."""
        if not self._ordered:
            self._order.sort()
            self._ordered = True
        return self._order

    def rewrite(
        self,
        row: Callable[[bytes], bytes],
        key: Callable[[bytes], Key],
        places: Sequence[int | None],
    ) -> None:
        """Change the form of all rows; only the last versions of rows that exist are left.

        `places` are the former indexes of the columns, None for a new one.
        """
        versions = self._versions
        self._versions, self._order, self._ordered = {}, [], True
        shared: dict[Stamps, Stamps] = {}
        for history in versions.values():
            timestamp, last, stamps, _ = history[-1]
            if last is None:
                continue
            if stamps is not None or None in places:
                moved = tuple(
                    0 if place is None else stamps[place] if stamps else timestamp
                    for place in places
                )
                # Rows that were written together have equal ones: they take memory once.
                stamps = shared.setdefault(moved, moved)
            changed = row(last)
            self.put(key(changed), changed, timestamp, stamps=stamps)

    def count(self) -> int:
        return sum(versions[-1][1] is not None for versions in self._versions.values())
