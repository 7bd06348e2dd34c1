"""The rows of one tablet of an ordered table, many to a block.

A row of its own costs half as much again in memory as its bytes, and lies between other small
objects: when a queue goes, a page that holds one of those cannot be given back. A block of many
rows is given back as a whole.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from typing import overload

BLOCK = 1 << 18
"""Bytes from which on the last rows become a block."""


@dataclass(slots=True)
class Span:
    """Rows that follow each other in the bytes of a block."""

    data: bytes
    begin: int
    ends: list[int]

    @property
    def begins(self) -> list[int]:
        """Return where each row begins: where the one before it ends."""
        return [self.begin, *self.ends[:-1]]

    @property
    def size(self) -> int:
        """Return the bytes of all rows."""
        return self.ends[-1] - self.begin if self.ends else 0

    def rows(self) -> list[bytes]:
        return list(map(self.data.__getitem__, map(slice, self.begins, self.ends)))


class RowLog(Sequence[bytes]):
    """Rows in their order. They are added at the end and dropped at the beginning."""

    def __init__(self, rows: Iterable[bytes] = ()) -> None:
        self._blocks: list[tuple[bytes, bytes]] = []
        """Of each block the rows' bytes, and the ends of the rows as 32-bit numbers."""
        self._starts = [0]
        """Of each block, and of the rows that are in none: the number of rows before it."""
        self._dropped = 0
        """How many of the rows that are still in the first block are dropped."""
        self._fresh: list[bytes] = []
        self._size = 0
        self.extend(rows)

    def copy(self) -> RowLog:
        """Return a log with the same rows; blocks never change and are shared."""
        made = RowLog()
        made._blocks, made._starts = list(self._blocks), list(self._starts)
        made._dropped, made._fresh, made._size = self._dropped, list(self._fresh), self._size
        return made

    def extend(self, rows: Iterable[bytes]) -> None:
        known = len(self._fresh)
        self._fresh += rows
        self._size += sum(map(len, self._fresh[known:] if known else self._fresh))
        if self._size >= BLOCK:
            ends = array("I", accumulate(map(len, self._fresh)))
            self._blocks.append((b"".join(self._fresh), ends.tobytes()))
            self._starts.append(self._starts[-1] + len(self._fresh))
            self._fresh, self._size = [], 0

    def drop(self, count: int) -> None:
        """Drop the first rows; a block goes when all of its rows are dropped."""
        first = self._dropped + count
        gone = min(bisect_right(self._starts, first + self._starts[0]) - 1, len(self._blocks))
        self._dropped = first - (self._starts[gone] - self._starts[0])
        del self._blocks[:gone], self._starts[:gone]
        if not self._blocks:
            self._size -= sum(map(len, self._fresh[: self._dropped]))
            del self._fresh[: self._dropped]
            self._dropped = 0

    def __len__(self) -> int:
        return self._starts[-1] - self._starts[0] - self._dropped + len(self._fresh)

    @overload
    def __getitem__(self, item: int) -> bytes: ...
    @overload
    def __getitem__(self, item: slice) -> list[bytes]: ...
    def __getitem__(self, item: int | slice) -> bytes | list[bytes]:
        if isinstance(item, int):
            return self[range(len(self))[item] :][0]
        start, end, _ = item.indices(len(self))
        return [row for span in self.spans(start, end) for row in span.rows()]

    def __iter__(self) -> Iterator[bytes]:
        return chain.from_iterable(span.rows() for span in self.spans(0, len(self)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RowLog | list) and list(self) == list(other)

    def spans(self, start: int, end: int) -> Iterator[Span]:
        """Yield the rows of a slice block by block, uncut."""
        base = self._starts[0] + self._dropped
        first, last = base + start, base + end
        for number in range(bisect_right(self._starts, first) - 1, len(self._blocks)):
            before = self._starts[number]
            if before >= last:
                return
            data, packed = self._blocks[number]
            low, high = max(first - before, 0), min(last, self._starts[number + 1]) - before
            ends = memoryview(packed).cast("I")
            yield Span(data, ends[low - 1] if low else 0, ends[low:high].tolist())
        loose = self._starts[-1]
        if last > loose:
            fresh = self._fresh[max(first - loose, 0) : last - loose]
            yield Span(b"".join(fresh), 0, list(accumulate(map(len, fresh))))
