"""Data of a sorted dynamic table: per key, the versions of its row.

Keys are kept apart from their order: writes go into a dictionary, and a read by order sorts the
list first.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

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
    version: Version | None, written: Collection[int], columns: int, timestamp: int
) -> Stamps | None:
    """Return the stamps of a row of so many columns after a write of some of them."""
    if len(written) == columns:
        return None
    before, row, stamps, _ = version or (0, None, None, None)
    if stamps is None:
        stamps = (before if row is not None else 0,) * columns
    return tuple(timestamp if i in written else stamp for i, stamp in enumerate(stamps))


class SortedData:
    """Rows of one table by key."""

    def __init__(self) -> None:
        self._last: dict[Key, Version] = {}
        """Apart from the versions before it: nearly all reads and writes need this one alone."""
        self._older: dict[Key, list[Version]] = {}
        """The versions before the last, the oldest first; most rows have none."""
        self._order: list[Key] = []
        self._ordered = True
        self._cut: set[Key] = set()
        """Rows that have lost versions: a read before the first of those that are left fails."""

    def __len__(self) -> int:
        """Return the number of keys ever written."""
        return len(self._last)

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
        self.put_all([(key, (timestamp, row, stamps, added))], most)

    def put_all(self, versions: Iterable[tuple[Key, Version]], most: int) -> None:
        """Add a version to each of these rows, as `put` does."""
        last, order, known = self._last, self._order, len(self._order)
        for key, version in versions:
            before, last[key] = last.get(key), version
            if before is None:
                order.append(key)
            else:
                self._keep(key, before, version[0], most)
        self._ordered = self._ordered and len(order) == known

    def _keep(self, key: Key, before: Version, timestamp: int, most: int) -> None:
        """Keep the version of a row that was the last one until a write at `timestamp`."""
        older = self._older.setdefault(key, [])
        older.append(before)
        horizon = timestamp - _KEEP
        # The last version before that time is what a read at that time sees.
        drop = max(bisect_left(older, (horizon,)) - 1, len(older) + 1 - most)
        if drop > 0:
            self._forget(key, drop)

    def _forget(self, key: Key, count: int) -> None:
        """Drop the oldest versions of a row, but not the last one. What was added to them becomes a
        plain value, as in a compaction (ytlib/table_client/versioned_row_merger.cpp)."""
        older = self._older[key]
        del older[:count]
        timestamp, row, stamps, _ = older[0] if older else self._last[key]
        if older:
            older[0] = (timestamp, row, stamps, None)
        else:
            self._last[key] = (timestamp, row, stamps, None)
            del self._older[key]
        self._cut.add(key)

    def versions(self, key: Key) -> Sequence[Version]:
        """Return the versions of a row, the oldest first."""
        last = self._last.get(key)
        return () if last is None else (*self._older.get(key, ()), last)

    def last(self, key: Key) -> Version | None:
        """Return the last version of a row, if it has any."""
        return self._last.get(key)

    def last_write(self, key: Key) -> int:
        """Return the commit timestamp of the last version; 0 when there was none."""
        last = self._last.get(key)
        return last[0] if last else 0

    def newer_write(self, keys: Iterable[Key], timestamp: int) -> tuple[Key, int] | None:
        """Return one of these keys that was written after that time, and when; None for none."""
        find = self._last.get
        for key in keys:
            last = find(key)
            if last is not None and last[0] > timestamp:
                return key, last[0]
        return None

    def get(self, key: Key, timestamp: int | None = None) -> bytes | None:
        """Return the row as a read at that timestamp sees it; the last version for None."""
        last = self._last.get(key)
        return None if last is None else self._seen(key, last, timestamp)

    def rows(self, keys: Sequence[Key], timestamp: int | None = None) -> list[bytes | None]:
        """Return `get` of each key."""
        return [
            None
            if last is None
            else last[1]
            if timestamp is None or last[0] <= timestamp
            else self._seen(key, last, timestamp)
            for key, last in zip(keys, map(self._last.get, keys), strict=True)
        ]

    def _seen(self, key: Key, last: Version, timestamp: int | None) -> bytes | None:
        if timestamp is None or last[0] <= timestamp:
            return last[1]
        older = self._older.get(key, [])
        for written, row, _, _ in reversed(older):
            if written <= timestamp:
                return row
        if key in self._cut:
            # server/node/tablet_node/sorted_chunk_store.cpp and others, retained timestamp
            first = (older or [last])[0][0]
            raise generic(f"Timestamp {timestamp} is less than retained timestamp {first}")
        return None

    def expire(self, death: int, fewest: int) -> None:
        """Drop versions before a time, but for the `fewest` last ones; rows may go whole."""
        gone = []
        for key, last in self._last.items():
            if fewest and key not in self._older:
                continue
            versions = [*self._older.get(key, ()), last]
            # The last version before that time is what a read at that time sees.
            drop = min(bisect_left(versions, (death,)), len(versions) - fewest)
            if drop == len(versions):
                gone.append(key)
            elif drop > 0:
                self._forget(key, drop)
        for key in gone:
            del self._last[key]
            self._older.pop(key, None)
            self._cut.discard(key)
        if gone:
            self._order, self._ordered = list(self._last), False

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
        versions = self._last
        self._last, self._older, self._order, self._ordered = {}, {}, [], True
        shared: dict[Stamps, Stamps] = {}
        for timestamp, last, stamps, _ in versions.values():
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
        return sum(row is not None for _, row, _, _ in self._last.values())
