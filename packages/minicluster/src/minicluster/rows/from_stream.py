"""Rows that a client streams into a static table: blocks in the wire format become stored rows.

The rules and the wording of refusals: ReorderAndValidateRows in
ytlib/table_client/schemaless_multi_chunk_writer.cpp.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from yt import yson

from ..core.errors import generic
from . import wire
from .from_wire import RowReader
from .schema import SYSTEM_COLUMNS, Column, TableSchema, violation


class BlockReader:
    """Numbers the rows of one client as a table of this schema does.

    `names` is the name table of the rows that come out: the columns of the schema, then others.
    """

    def __init__(self, schema: TableSchema) -> None:
        self.names = [column.name for column in schema.columns]
        self._schema = schema
        self._fast: RowReader | None = None
        self._numbers: list[int] = []

    def learn(self, names: Sequence[str]) -> None:
        """Take in names that a block adds to the client's name table."""
        for name in names:
            if name not in self.names:
                if self._schema.strict:
                    raise violation(f'Unknown column "{name}" in strict schema')
                self.names.append(name)
            self._numbers.append(self.names.index(name))
        usual = self._numbers == list(range(len(self._schema.columns)))
        self._fast = RowReader(self._schema, self.names, "") if usual and self._plain() else None

    def _plain(self) -> bool:
        """Return whether every valid row of the schema can be stored as it came.

        A value of any type may go into an `any` column, and it has to be valid YSON if it is an
        `any` itself.
        """
        return all(
            column.wire_type != wire.ANY and column.name not in SYSTEM_COLUMNS
            for column in self._schema.columns
        )

    def usual_rows(self, rowset: bytes) -> list[bytes] | None:
        """Return the rows of a block that are all stored as they came; None: look at each."""
        if self._fast is None or len(rowset) < 8:
            return None
        return self._fast.usual_rows(rowset, int.from_bytes(rowset[:8], "little"))

    def rows(self, rowset: bytes) -> Iterator[tuple[bytes, bool]]:
        """Yield (row, whether it is known to be valid) for the rows of a block. Raises YtError."""
        words = wire.words_of(rowset)
        position = 1
        for _ in range(wire.row_count(words)):
            plain = self._fast.plain(rowset, words, position) if self._fast else None
            if plain is not None:
                position, row = plain
                yield row, True
                continue
            end = wire.row_end(words, position)
            if words[position] == wire.MISSING_ROW:
                raise generic("Unexpected null row")
            yield self._row(rowset[position << 3 : end << 3]), False
            position = end
        wire.require_end(words, position)

    def _row(self, row: bytes) -> bytes:
        pieces: dict[int, bytes] = {}
        for client_id, kind, value in wire.values(row):
            if client_id >= len(self._numbers):
                raise generic(f"Name with id {client_id} is not found in name table")
            number = self._numbers[client_id]
            if number in pieces:
                raise generic(f'Duplicate "{self.names[number]}" column in unversioned row')
            column = self._schema.columns[number] if number < len(self._schema.columns) else None
            pieces[number] = wire.encode_value(number, *_value(column, kind, value))
        return wire.from_chunks([pieces[number] for number in sorted(pieces)])


def _value(column: Column | None, kind: int, value: wire.Value) -> tuple[int, wire.Value]:
    """Return the wire type and value that are stored, as `from_yson` makes them of YSON."""
    wanted = column.wire_type if column is not None else kind
    if kind in (wire.ANY, wire.COMPOSITE):
        try:
            wire.to_python(kind, value)
        except (yson.YsonError, ValueError) as error:
            raise violation(f"Not a valid YSON: {error}") from None
        if wanted == wire.COMPOSITE:
            return wanted, value
    elif wanted == wire.ANY and kind != wire.NULL and column and not column.sort_order:
        return wanted, yson.dumps(wire.to_python(kind, value), yson_format="binary")
    return kind, value
