"""Rows of static tables, which are written in bulk."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise, repeat
from typing import Any

from ..core.errors import YtError, generic, not_supported
from ..rows import wire
from ..rows.computed import filled
from ..rows.from_stream import BlockReader
from ..rows.from_wire import Key, key_of
from ..rows.from_yson import encode
from ..rows.schema import Column, TableSchema, check_value, violation
from .ordered import data_weight
from .table import Table
from .upload import Upload

# client/table_client/public.h
SORT_ORDER_VIOLATION = 301
UNIQUE_KEY_VIOLATION = 306
ROW_WEIGHT_LIMIT_EXCEEDED = 308

# Documentation, "static tables", limitations: `max_row_weight` of `table_writer`.
DEFAULT_ROW_WEIGHT = 16 << 20
MAX_ROW_WEIGHT = 128 << 20

NO_ATTRIBUTES: Mapping[str, Any] = {}


def row_weight_limit(writer: Any) -> int:
    """Return the weight that each row has to stay below, by the options of a table writer."""
    most = writer.get("max_row_weight", DEFAULT_ROW_WEIGHT) if isinstance(writer, dict) else writer
    if not isinstance(most, int) or not 0 < most <= MAX_ROW_WEIGHT:
        raise generic(f"Error reading parameter /table_writer/max_row_weight: {most!r}")
    return most


@dataclass(frozen=True)
class Written:
    """Checked rows for a static table: instead of its own, or after them.

    They are stored rows, under a name table that begins with the columns of the schema.
    """

    upload: Upload
    names: list[str]
    rows: list[bytes]
    chunks: tuple[tuple[int, int], ...] = ()
    """As `Table.static_chunks`; none for a write, whose rows get the time when it ends."""

    def onto(self, table: Table) -> Table:
        """Return the table with these rows. Raises YtError if that breaks its order."""
        own = [column.name for column in self.upload.schema.columns]
        kept = table.static_rows if self.upload.append else []
        names = list(table.static_names or own) if kept else list(self.names)
        numbers = [_number(names, name) for name in self.names]
        added = self.rows
        if numbers != list(range(len(numbers))):
            added = [renumbered(row, numbers) for row in added]
        rows = [*kept, *added]
        if self.upload.schema.sorted:
            check_order(self.upload.schema, rows)
        chunks = (*(table.static_chunks if kept else ()), *self.chunks)
        return replaced(table, self.upload, rows, names, chunks)


class Blocks:
    """Rows that a client sends block by block, checked as they come."""

    def __init__(self, wanted: Upload, most: int) -> None:
        self.schema = wanted.schema
        self._upload = wanted
        self._most = most
        self._reader = BlockReader(wanted.schema)
        self._rows: list[bytes] = []

    def add(self, names: Sequence[str], rowset: bytes) -> None:
        """Take in a rowset; `names` go to the end of the client's name table. Raises YtError."""
        self._reader.learn(names)
        if (usual := self._reader.usual_rows(rowset)) is not None:
            for row in usual:
                require_weight(row, self._most)
            self._rows += usual
            return
        for row, valid in self._reader.rows(rowset):
            require_weight(row, self._most)
            self._rows.append(row if valid else complete(self.schema, row))

    @property
    def written(self) -> Written:
        return Written(self._upload, self._reader.names, self._rows)


def from_items(wanted: Upload, items: Iterable[Mapping[str, Any]], most: int) -> Written:
    """Check rows given as maps; each has to weigh less than `most`. Raises YtError."""
    schema = wanted.schema
    names, rows = encode(schema, items)
    if schema.strict and len(names) > len(schema.columns):
        raise violation(f'Unknown column "{names[len(schema.columns)]}" in strict schema')
    for row in rows:
        require_weight(row, most)
    return Written(wanted, names, [complete(schema, row) for row in rows])


def require_weight(row: bytes, most: int) -> None:
    # A row has at least as many bytes as it weighs.
    if len(row) >= most and (weight := data_weight(row)) >= most:
        limits = {"row_weight": weight, "row_weight_limit": most}
        raise YtError(ROW_WEIGHT_LIMIT_EXCEEDED, "Row weight is too large", limits)


def _number(names: list[str], name: str) -> int:
    """Return the number of a name in a name table, which grows by it if need be."""
    if name not in names:
        names.append(name)
    return names.index(name)


def renumbered(row: bytes, numbers: Sequence[int]) -> bytes:
    """Return the row under another name table: value `i` of the old is `numbers[i]` of the new."""
    return wire.from_chunks(
        [
            wire.renumbered(piece, numbers[number])
            for number, piece in sorted(wire.chunks(row).items(), key=lambda item: numbers[item[0]])
        ]
    )


def replaced(
    table: Table,
    wanted: Upload,
    rows: list[bytes],
    names: list[str],
    chunks: tuple[tuple[int, int], ...],
) -> Table:
    """Return the table with the schema that a write asked for, and with these rows."""
    return replace(
        table,
        schema=wanted.schema,
        schema_mode=wanted.schema_mode,
        static_rows=rows,
        static_names=names,
        static_chunks=chunks,
        _readers={},
    )


def times(table: Table) -> Iterator[int]:
    """Yield when each row of a static table was written."""
    return chain.from_iterable(repeat(time, count) for count, time in table.static_chunks)


def complete(schema: TableSchema, row: bytes) -> bytes:
    """Return the row with a value, checked, for every column of the schema."""
    if schema.computed:
        row = _with_computed(schema, row)
    pieces = wire.chunks(row)
    given = {column: (kind, value) for column, kind, value in wire.values(row)}
    for index, column in enumerate(schema.columns):
        kind, value = given.get(index, (wire.NULL, None))
        check_value(column, kind, value)
        if column.sort_order and kind == wire.ANY:
            raise not_supported(f'a list or a map in the key column "{column.name}"')
        if index not in pieces:
            pieces[index] = wire.encode_value(index, wire.NULL, None)
    return wire.from_chunks([pieces[index] for index in sorted(pieces)])


def _with_computed(schema: TableSchema, row: bytes) -> bytes:
    """Return the row with the values of its computed columns, which no client may give.

    Source: ytlib/table_client/schemaless_multi_chunk_writer.cpp, EvaluateComputedColumns.
    """
    pieces = wire.chunks(row)
    for index, _ in schema.computed:
        if index in pieces:
            raise violation(
                f'Column "{schema.columns[index].name}" is computed automatically and should not '
                "be provided by user"
            )
    whole = filled(pieces, schema.computed, 1 + max([len(schema.columns), *pieces]))
    return wire.from_chunks([*whole.values()])


def check_order(schema: TableSchema, stored: Sequence[bytes]) -> None:
    keys = [key_of(row, schema.key_count) for row in stored]
    for before, after in pairwise(keys):
        if before > after:
            raise YtError(SORT_ORDER_VIOLATION, "Sort order violation", _shown(before, after))
        if schema.unique_keys and before == after:
            raise YtError(UNIQUE_KEY_VIOLATION, "Duplicate key", _shown(before))


def _shown(*keys: Key) -> dict[str, Any]:
    return {"keys": [[str(value) for value in key[1::2]] for key in keys]}


def all_rows(table: Table) -> list[bytes]:
    """Return every row in order: by key, or by tablet and row index."""
    if not table.dynamic:
        return table.static_rows
    if table.sorted:
        return [row for _, row in table.data.scan()]
    return [row for tablet in table.tablets for row in tablet.data.rows]


def columns_of(table: Table) -> list[Column]:
    """Return the columns that `all_rows` numbers: the schema's, then those that no schema names."""
    extra = table.static_names[len(table.schema.columns) :]
    return [*table.schema.columns, *(Column(name, "any", "yson") for name in extra)]
