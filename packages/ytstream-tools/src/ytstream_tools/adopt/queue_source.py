"""Columns and rows of a queue on a cluster: attributes and rows are read, nothing is written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum

from yt.wrapper.schema import TableSchema

from ytstream.cluster.client import Client, facts
from ytstream.errors import JobError
from ytstream.errors.error_codes import ErrorCode
from ytstream.ledger import positions
from ytstream.ledger.offsets import Queue
from ytstream.schema.columns import Column, type_name
from ytstream.text_table import counted

from ..replay.batch_rows import NUMBER, PARTITION, read_range
from .source_rows import Row, SourceRows, split

_PIECES = 10
"""Pieces of a partition that `spread` reads."""


class Take(StrEnum):
    """Which rows of a queue become the sample."""

    NEWEST = "newest"
    SPREAD = "spread"


def read(client: Client, path: str, count: int, take: Take) -> SourceRows:
    """Read the schema and at most ``count`` rows.

    Raises JobError for a path that is not a mounted queue with rows.
    """
    known = facts(client, path, ("type", "dynamic", "schema", "tablet_state"))
    _verify(path, known)
    columns, left = split(_columns(known["schema"] if known else None))
    if not columns:
        why = "; ".join(f"{column.name}: {column.why}" for column in left)
        raise JobError(
            f"{path} has no column that a job can read: {why}",
            "name another queue",
            code=ErrorCode.TABLES,
        )
    queue = positions.queue(client, path, {})
    chosen = [*_ranges(queue, count, take)]
    if not chosen:
        raise JobError(
            f"{path} has no rows now",
            "wait until it has some, or give rows of a file: FROM=rows.jsonl",
            code=ErrorCode.NO_ROWS,
        )
    names = ", ".join(f"[{column.name}]" for column in columns)
    parts: dict[int, list[Row]] = {}
    for partition, first, end in chosen:
        for row in read_range(client, path, names, partition, first, end):
            kept = {name: row[name] for name in row if name not in (PARTITION, NUMBER)}
            parts.setdefault(partition, []).append(kept)
    how = "the newest" if take is Take.NEWEST else "spread over what is there"
    choice = f"{how}, of {counted(len(parts), 'partition')}"
    return SourceRows(path, columns, left, interleaved([*parts.values()]), choice)


def interleaved(parts: Sequence[Sequence[Row]]) -> list[Row]:
    """Return the rows of all partitions as a job reads them: each partition at an even pace."""
    placed = [
        (number / len(rows), partition, row)
        for partition, rows in enumerate(parts)
        for number, row in enumerate(rows)
    ]
    return [row for _, _, row in sorted(placed, key=lambda entry: entry[:2])]


def _verify(path: str, known: dict[str, object] | None) -> None:
    if known is None:
        raise JobError(f"there is no {path}", "correct QUEUE", code=ErrorCode.USAGE)
    is_queue = known.get("type") == "table" and known.get("dynamic")
    listed = known.get("schema")
    is_sorted = any("sort_order" in column for column in (listed if listed else ()))  # type: ignore[attr-defined]
    if not is_queue or is_sorted:
        kind = "a sorted table" if is_sorted else f"a static {known.get('type')}"
        raise JobError(
            f"{path} is {kind if is_queue or known.get('type') == 'table' else known.get('type')}, "
            "not a queue",
            "name an ordered dynamic table",
            code=ErrorCode.USAGE,
        )
    if known.get("tablet_state") != "mounted":
        raise JobError(
            f"{path} is {known.get('tablet_state')}: its rows cannot be read",
            f"mount it, or ask its owner: yt mount-table {path}",
            code=ErrorCode.NOT_PROVISIONED,
        )


def _columns(stored: object) -> list[Column]:
    found = []
    for column in TableSchema.from_yson_type(stored).columns:
        if column.name.startswith("$"):
            continue
        is_optional = type_name(column.type) == "optional"
        type_ = column.type.item if is_optional else column.type
        found.append(Column(column.name, type_, required=not is_optional))
    return found


def _ranges(queue: Queue, count: int, take: Take) -> Iterator[tuple[int, int, int]]:
    """Yield partition, first row and the one after the last, so that ``count`` rows come out."""
    there = {
        partition: (lower, upper)
        for partition, (lower, upper) in enumerate(zip(queue.lower, queue.upper, strict=True))
        if upper > lower
    }
    left = count
    # Small partitions first: the larger ones give what those lack.
    by_size = sorted(there.items(), key=lambda item: item[1][1] - item[1][0])
    for number, (partition, (lower, upper)) in enumerate(by_size):
        share = min(upper - lower, -(-left // (len(there) - number)))
        left -= share
        if share <= 0:
            continue
        if take is Take.NEWEST or upper - lower == share:
            yield partition, upper - share, upper
            continue
        pieces = min(_PIECES, share)
        skipped = upper - lower - share
        for piece in range(pieces):
            # The first piece begins with the oldest row, and the last one ends with the newest.
            before = lower + skipped * piece // max(pieces - 1, 1)
            yield (
                partition,
                before + share * piece // pieces,
                before + share * (piece + 1) // pieces,
            )
