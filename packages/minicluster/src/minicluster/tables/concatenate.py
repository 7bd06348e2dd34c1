"""Files or static tables, one after another, into one: how clients end a parallel write."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from ..core.errors import YtError, generic, not_supported
from ..cypress.commands import Cypress
from ..cypress.files import File
from ..cypress.ypath import RichPath, parse_rich
from ..rows import wire
from ..rows.from_wire import Key, key_of
from ..rows.schema import Column, TableSchema, violation
from . import static
from .table import Table
from .upload import Upload


def concatenate(
    cypress: Cypress, sources: Sequence[Any], destination: Any, *, tx: str | None
) -> None:
    """Replace the destination's content by that of the sources, or append with `<append=%true>`.

    All must be of one type. Raises YtError. Source: ytlib/api/native/client_cypress_impl.cpp,
    TNodeConcatenator.
    """
    target = parse_rich(destination)
    append = target.attributes.get("append") in (True, "true")
    node = cypress.resolve(target.path, tx=tx)
    payloads = [_whole(cypress, parse_rich(path), node.type, tx) for path in sources]
    if node.type == "file":
        pieces = [node.payload, *payloads] if append else payloads
        made: Any = File(b"".join(piece.data for piece in pieces))
    elif node.type == "table":
        _require_static("Destination", target.path, "into dynamic table", node.payload)
        for path, payload in zip(sources, payloads, strict=True):
            _require_static("Source", parse_rich(path).path, "of dynamic tables", payload)
        made = joined(node.payload, payloads, append=append)
    else:
        raise generic(f'Type of {target.path} must be either file or table, not "{node.type}"')
    cypress.set_payload(target.path, made, tx=tx)


def _whole(cypress: Cypress, source: RichPath, type: str, tx: str | None) -> Any:
    node = cypress.resolve(source.path, tx=tx)
    if node.type != type:
        raise generic(
            f'Type of {source.path} mismatches that of destination: expected "{type}", '
            f'actual "{node.type}"'
        )
    if source.columns is not None or source.ranges is not None:
        raise not_supported("concatenate with columns or ranges of a source")
    return node.payload


def _require_static(role: str, path: str, what: str, table: Table) -> None:
    if table.dynamic:
        raise generic(f"{role} table {path} is dynamic, concatenation {what} is not supported")


def joined(table: Table, sources: Sequence[Table], *, append: bool) -> Table:
    """Return the static table with the rows of others instead of its own, or after them."""
    wanted = inferred(table, sources, append)
    schema = wanted.schema
    names = list(table.static_names if append and table.static_rows else ())
    names = names or [column.name for column in schema.columns]
    pieces = [_piece(source, schema, names) for source in sources if source.static_rows]
    if append and table.static_rows:
        pieces.insert(0, (table.static_rows, table.static_chunks))
    if schema.sorted:
        pieces = _in_order(schema, pieces)
    rows = [row for rows, _ in pieces for row in rows]
    if schema.sorted:
        static.check_order(schema, rows)
    chunks = tuple(chunk for _, chunks in pieces for chunk in chunks)
    return static.replaced(table, wanted, rows, names, chunks)


Piece = tuple[list[bytes], tuple[tuple[int, int], ...]]
"""Rows of one source, and its chunks: they keep the time of their writes."""


def _piece(source: Table, schema: TableSchema, names: list[str]) -> Piece:
    if source.schema == schema and source.static_names == names:  # checked when it was written
        return source.static_rows, source.static_chunks
    rows = renamed(static.columns_of(source), source.static_rows, schema, names)
    return rows, source.static_chunks


def renamed(
    columns: Sequence[Column], rows: Iterable[bytes], schema: TableSchema, names: list[str]
) -> list[bytes]:
    """Return rows of these columns under the name table `names`, which grows by them.

    Raises YtError for a row that the schema does not take.
    """
    numbers = []
    for column in columns:
        if column.name not in names:
            if schema.strict:
                raise violation(f'Unknown column "{column.name}" in strict schema')
            names.append(column.name)
        numbers.append(names.index(column.name))
    found = []
    for row in rows:
        values = [
            wire.renumbered(piece, numbers[number]) for number, piece in wire.chunks(row).items()
        ]
        found.append(static.complete(schema, wire.from_chunks(values)))
    return found


def _in_order(schema: TableSchema, pieces: list[Piece]) -> list[Piece]:
    """Return pieces of sorted rows by their first keys. Raises YtError if they overlap."""
    count = schema.key_count

    def ends(piece: Piece) -> tuple[Key, Key]:
        return key_of(piece[0][0], count), key_of(piece[0][-1], count)

    ordered = sorted(pieces, key=ends)
    for before, after in pairwise(ordered):
        if ends(before)[1] > ends(after)[0]:
            raise YtError(static.SORT_ORDER_VIOLATION, "Chunks ranges are overlapping")
    return ordered


def inferred(table: Table, sources: Sequence[Table], append: bool) -> Upload:
    """Return what the table is afterwards: one that has no schema takes that of the sources.

    They must all have the same one, but for the order. If not, there is none, nor an order.
    Source: ytlib/table_client/schema_inferer.cpp.
    """
    if table.schema_mode == "strong":
        return Upload(append, table.schema, "strong")
    if not sources:
        return Upload(append, table.schema, table.schema_mode)
    first, *others = [table, *sources] if append else sources
    schema = _unsorted(first.schema)
    if any(each.schema_mode == "weak" for each in (first, *others)) or any(
        _unsorted(each.schema) != schema for each in others
    ):
        return Upload(append, TableSchema((), strict=False), "weak")
    return Upload(append, schema, "strong")


def _unsorted(schema: TableSchema) -> TableSchema:
    columns = [replace(column, sort_order=None, extra={}) for column in schema.columns]
    by_name = sorted(columns, key=lambda column: column.name)
    return TableSchema(tuple(by_name), schema.strict)
