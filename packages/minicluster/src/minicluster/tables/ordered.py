"""Data of an ordered dynamic table: per tablet, rows with absolute indexes, never reused."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from struct import Struct

from ..rows import wire
from .row_log import RowLog, Span

_LENGTH = Struct("<I")


@dataclass
class OrderedData:
    """Rows of one tablet; the first of `rows` has the index `trimmed`.

    `commits` lists (commit timestamp, index after the last row of that commit), growing in both: a
    row's time and what a snapshot read may see both follow from it.
    """

    rows: RowLog = field(default_factory=RowLog)
    trimmed: int = 0
    commits: list[tuple[int, int]] = field(default_factory=list)
    data_weight: int = 0
    """Cumulative, of all rows ever written with the column `$cumulative_data_weight`."""
    chunks: list[int] = field(default_factory=list)
    """Indexes after the last row of each chunk. Rows become a chunk when the tablet is unmounted
    or frozen (model: a real cluster flushes a mounted one now and then as well)."""
    dropped: int = 0
    """Index after the last chunk that trimming has removed."""

    @property
    def total(self) -> int:
        """Index after the last row: `total_row_count` of a tablet."""
        return self.trimmed + len(self.rows)

    def append(self, rows: Iterable[bytes], timestamp: int) -> None:
        self.rows.extend(rows)
        self.commits.append((timestamp, self.total))

    def flush(self) -> None:
        """Make a chunk of the rows that are in none."""
        if self.total > (self.chunks[-1] if self.chunks else self.dropped):
            self.chunks.append(self.total)

    def drop_chunks(self) -> None:
        """Remove the chunks without rows; a trimmed row in any other stays with its chunk."""
        while self.chunks and self.chunks[0] <= self.trimmed:
            self.dropped = self.chunks.pop(0)

    def trim(self, trimmed_row_count: int) -> None:
        """Drop rows before that index; beyond the end means all, backwards means nothing."""
        end = min(trimmed_row_count, self.total)
        if end > self.trimmed:
            self.rows.drop(end - self.trimmed)
            self.trimmed = end
            dead = bisect_right(self.commits, end, key=lambda commit: commit[1])
            # The last commit stays: `last_row_commit_time` is asked of an empty tablet too.
            del self.commits[: min(dead, len(self.commits) - 1)]
            self.drop_chunks()

    def end_at(self, timestamp: int) -> int:
        """Return the index after the last row that a read at that timestamp sees."""
        seen = bisect_right(self.commits, timestamp, key=lambda commit: commit[0])
        return self.commits[seen - 1][1] if seen else self.trimmed

    def commit_timestamp(self, row_index: int) -> int | None:
        """Return the time at which a row was written; None if there is no such row."""
        if not self.trimmed <= row_index < self.total:
            return None
        return self.commits[bisect_right(self.commits, row_index, key=lambda commit: commit[1])][0]

    @property
    def last_commit(self) -> int:
        """Timestamp of the last commit; 0 when there was none."""
        return self.commits[-1][0] if self.commits else 0

    def spans(self, offset: int, count: int, weight: int | None = None) -> tuple[int, list[Span]]:
        """Return (first index, rows) from `offset` on, or from the first untrimmed row.

        With a `weight`, as many rows as fit into so many bytes.
        """
        start = max(offset, self.trimmed)
        first = start - self.trimmed
        last = min(first + count, len(self.rows))
        found = list(self.rows.spans(first, last)) if last > first else []
        # A row has at least as many bytes as it weighs.
        if weight is not None and sum(span.size for span in found) > weight:
            rows = (row for span in found for row in span.rows())
            return self.spans(start, within_weight(rows, weight))
        return start, found


def data_weight(row: bytes) -> int:
    """Return the weight of a row's values and of the row (GetDataWeight in client/table_client)."""
    weight, position = 1, 8
    while position < len(row):
        kind = row[position + 2]  # id, type, flags, length: 2, 1, 1 and 4 bytes
        if kind >= wire.STRING:
            (length,) = _LENGTH.unpack_from(row, position + 4)
            weight += length
            position += 8 + (length + 7 & ~7)
        elif kind == wire.NULL:
            position += 8
        else:
            weight += 1 if kind == wire.BOOLEAN else 8
            position += 16
    return weight


def within_weight(rows: Iterable[bytes], limit: int) -> int:
    """Return how many leading rows fit into `limit` bytes; at least one, as on the server."""
    total = count = 0
    for row in rows:
        if total >= limit:
            return max(count, 1)
        total += data_weight(row)
        count += 1
    return count


def stamped(
    rows: list[bytes],
    timestamp_id: int | None,
    weight_id: int | None,
    timestamp: int,
    weight: int,
) -> tuple[list[bytes], int]:
    """Return rows with `$timestamp` and `$cumulative_data_weight` where the schema has them, and
    the weight of the last one (server/node/tablet_node/ordered_dynamic_store.cpp, WriteRow)."""
    if timestamp_id is None and weight_id is None:
        return rows, weight
    extra = (timestamp_id is not None) + (weight_id is not None)
    time = b"" if timestamp_id is None else wire.encode_value(timestamp_id, wire.UINT64, timestamp)
    if weight_id is None:
        return [wire.extended(row, time, extra) for row in rows], weight
    result = []
    for row in rows:
        weight += data_weight(row) + 8 * extra
        result.append(
            wire.extended(row, time + wire.encode_value(weight_id, wire.INT64, weight), extra)
        )
    return result, weight


_MORE = [(count + 2).to_bytes(8, "little") for count in range(wire.MAX_VALUES_PER_ROW + 1)]
"""By the number of a row's values: how a row with two more of them begins."""


def numbered(spans: Iterable[Span], width: int, partition: int, first: int) -> list[bytes]:
    """Return rows with tablet and row index, under the column ids `width` and `width + 1`."""
    head = (
        wire.encode_value(width, wire.INT64, partition)
        + wire.encode_value(width + 1, wire.INT64, 0)[:8]
    )
    tail = Struct(f"<{len(head)}sQ").pack
    found: list[bytes] = []
    for span in spans:
        data, start = span.data, first + len(found)
        # The first two bytes are the number of values: there are no more than 1024.
        found += [
            _MORE[data[at] + 256 * data[at + 1]] + data[at + 8 : end] + tail(head, index)
            for index, (at, end) in enumerate(zip(span.begins, span.ends, strict=True), start)
        ]
    return found
