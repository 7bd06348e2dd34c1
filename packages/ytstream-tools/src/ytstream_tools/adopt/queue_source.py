"""Columns and rows of a queue on a cluster: attributes and rows are read, nothing is written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum

from yt.wrapper.schema import TableSchema

from ytstream.cluster.client import Client, facts
from ytstream.errors import JobError
from ytstream.errors.error_codes import ErrorCode
from ytstream.ledger import positions
from ytstream.ledger.offsets import Queue
from ytstream.schema.columns import Column, spelled, type_name
from ytstream.text_table import counted

from ..replay.batch_rows import NUMBER, PARTITION, read_range
from .source_rows import LeftOut, Row, SourceRows, split

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
    columns, left = split(columns_of(known["schema"] if known else None))
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


def read_all(client: Client, paths: Sequence[str], count: int, take: Take) -> SourceRows:
    """Read rows of each queue, ``count`` in all. The columns are those that all of them have.

    Raises JobError as ``read`` does; for queues without rows only if none has some.
    """
    found, empty = list[SourceRows](), list[JobError]()
    for number, path in enumerate(paths):
        share = count // len(paths) + (number < count % len(paths))
        try:
            found.append(read(client, path, max(share, 1), take))
        except JobError as error:
            if error.code is not ErrorCode.NO_ROWS:
                raise
            empty.append(error)
    if not found:
        raise empty[0]
    merged = found[0] if len(paths) == 1 else together(found)
    return replace(merged, notes=[*merged.notes, *(error.message for error in empty)])


def together(sources: Sequence[SourceRows]) -> SourceRows:
    """Return the rows of several queues with the columns that all of them have."""
    by_name = [{column.name: column for column in source.columns} for source in sources]
    columns, left = list[Column](), [entry for source in sources for entry in source.left_out]
    for name in dict.fromkeys(name for known in by_name for name in known):
        there = [known[name] for known in by_name if name in known]
        if why := _differing(name, there, sources, by_name):
            left.append(LeftOut(name, spelled(there[0].type), why))
        else:
            is_required = all(column.required for column in there)
            columns.append(replace(there[0], required=is_required))
    names = {column.name for column in columns}
    parts = [
        [{name: row[name] for name in row if name in names} for row in source.rows]
        for source in sources
    ]
    shares = ", ".join(f"{len(source.rows)} of {source.origin}" for source in sources)
    origin = " and ".join(source.origin for source in sources)
    choice = f"{sources[0].choice.partition(', ')[0]}: {shares}"
    notes = [note for source in sources for note in source.notes]
    return SourceRows(origin, columns, left, interleaved(parts), choice, notes)


def _differing(
    name: str,
    there: Sequence[Column],
    sources: Sequence[SourceRows],
    known: Sequence[Mapping[str, Column]],
) -> str:
    """Return why the queues do not share a column; empty if they do."""
    if len(there) < len(sources):
        lacking = next(s.origin for s, own in zip(sources, known, strict=True) if name not in own)
        return f"{lacking} has no such column that a job can read"
    types = sorted({spelled(column.type) for column in there})
    return f"the queues have other types for it: {', '.join(types)}" if len(types) > 1 else ""


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


def columns_of(stored: object) -> list[Column]:
    """Return the columns of a table's schema, as @schema has it."""
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
