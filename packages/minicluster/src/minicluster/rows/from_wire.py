"""Rows as a client sends them become rows as a table stores them.

A written row numbers its values by the client's name table; a stored row numbers them by the
table's schema, holds every column (explicit nulls included, since SPYT refuses a rowset that lacks
one) and is valid. Rows that already look like that - the usual case - are stored as they came.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from struct import Struct, error
from typing import Any

from yt import yson

from ..core.errors import YtError, generic, not_supported
from . import wire
from .aggregates import flagged, without_flag
from .bulk import ByTablet, Expected, Narrowing, UsualRows, integer_keys, number_pieces
from .computed import filled
from .schema import SYSTEM_COLUMNS, TableSchema, check_value, violation

WRITE = 0
DELETE = 1
UPDATE = 3

TABLET_INDEX = "$tablet_index"
ROW_INDEX = "$row_index"

# Column ids of a name table that have no place in the schema.
_TABLET = -1
_SYSTEM = -2

_MOST_WORDS = wire.MAX_VALUE_LENGTH >> 3
"""No value of a shorter row is too long; a longer row is looked at value by value."""

# client/table_client/public.h
KEY_CANNOT_BE_NAN = 325
STRING_LENGTH_LIMIT_EXCEEDED = 326

_LOW = 0xFFFF_FFFF
"""Mask for a value header's low 32 bits: column id, type, flags."""

Key = tuple[Any, ...]
"""A key that Python orders as YT does: (type, value) flattened, null first, then by type."""


Update = dict[int, bytes]
"""Encoded values by column id: the changes of an update."""
Modification = tuple[int, int | None, bytes | Update]
"""(kind, tablet index if one was named, a stored row, an update or the stored form of a key)."""


class RowReader:
    """Turns rows written under one name table into stored rows of one schema."""

    def __init__(self, schema: TableSchema, names: Sequence[str], path: str) -> None:
        self.schema = schema
        self.names = list(names)
        positions = {column.name: index for index, column in enumerate(schema.columns)}
        self._stored = [
            index
            for index, column in enumerate(schema.columns)
            if column.name not in SYSTEM_COLUMNS
        ]
        self._mapping: list[int] = []
        for name in names:
            if name in SYSTEM_COLUMNS and name in positions:
                self._mapping.append(_SYSTEM)
            elif name in positions and schema.columns[positions[name]].expression is None:
                self._mapping.append(positions[name])
            elif name == TABLET_INDEX and not schema.sorted:
                self._mapping.append(_TABLET)
            else:
                # The server refuses a row, not a name table; a wrong name that no row uses is
                # harmless there, and refused here only when a row does use it.
                self._mapping.append(-3)
        self._computed = [pair for pair in schema.computed if pair[0] < schema.key_count]
        computed = {schema.columns[index].name for index, _ in self._computed}
        for name in schema.key_columns:
            if name not in self.names and name not in computed:
                raise YtError(1, f'Missing key column "{name}" in name table', {"path": path})
        self._fast = self._expectations(self._stored)
        self._usual = UsualRows(self._fast or [])
        self._spread = UsualRows(self._with_tablets() or [], named=True)
        self._added = self._of_added_numbers()
        self._key_columns = self._expectations(range(schema.key_count)) or []
        self._keys = UsualRows(self._key_columns)
        self._key_of = key_reader(schema)

    def _expectations(self, indexes: Sequence[int]) -> list[Expected] | None:
        """Return what the first values of a row should be; None if they are not these columns."""
        count = len(indexes)
        if not self._mapping[:count] == [*indexes] == [*range(count)]:
            return None
        return expectations(self.schema, indexes)

    def _of_added_numbers(self) -> list[int]:
        """Return the headers of a row that is numbers alone, some of them aggregated; else none."""
        columns = self.schema.columns
        if not self._fast or not any(column.aggregate for column in columns):
            return []
        if not all(column.fixed and not column.bounds for column in self._fast):
            return []
        return [
            expected.plain | (wire.AGGREGATE << 24 if column.aggregate else 0)
            for expected, column in zip(self._fast, columns, strict=True)
        ]

    def _with_tablets(self) -> list[Expected] | None:
        """Return what rows are that a table without a key stores, and their tablet's index."""
        width = len(self._stored)
        if not self._fast or self._mapping[width:] != [_TABLET]:
            return None
        return [*self._fast, Expected(width | wire.INT64 << 16, -1, True, (0, 1 << 31), False)]

    def rowset(self, data: bytes, kinds: Sequence[int]) -> tuple[ByTablet, list[Modification]]:
        """Return what the rows of a rowset (row count first), a kind for each, change.

        That is the rows at its beginning that are stored as they came, usually all of them, and
        the modifications by the others.
        """
        writes = not any(kinds)
        if writes and (whole := (self._spread or self._usual).whole(data, len(kinds))) is not None:
            return whole, []
        words = wire.words_of(data)
        count = wire.row_count(words)
        if count != len(kinds):
            raise wire.malformed(f"{count} rows and {len(kinds)} modification types")
        if self._added and writes and (found := number_pieces(data, self._added)) is not None:
            return {}, [(UPDATE, None, dict(enumerate(pieces))) for pieces in found]
        if self._spread and writes:
            named, position = self._at_one_look(data, 1, count)
            return {}, named + self._modifications(data, words, kinds[len(named) :], position, 1)
        if not writes or not self._usual:
            return {}, self._modifications(data, words, kinds, 1, count)
        first, position = self._usual.rows(data, 1, count)
        others = self._modifications(data, words, kinds[len(first) :], position, 1)
        return {None: first}, others

    def usual_rows(self, data: bytes, count: int) -> list[bytes] | None:
        """Return the rows of a rowset if all of them are stored as they came; else None."""
        whole = self._usual.whole(data, count)
        return None if whole is None else whole[None]

    def _modifications(
        self, data: bytes, words: Sequence[int], kinds: Sequence[int], position: int, patience: int
    ) -> list[Modification]:
        """Return the modifications by the rows from a word on, which are the last ones.

        `patience` says how many rows to look at one by one before some are looked at in runs.
        """
        result: list[Modification] = []
        add, as_it_is = result.append, self.plain
        while len(result) < len(kinds):
            for kind in kinds[len(result) : len(result) + patience]:
                plain = as_it_is(data, words, position) if kind == WRITE else None
                if plain is not None:
                    position, stored = plain
                    add((WRITE, None, stored))
                    continue
                end = wire.row_end(words, position)
                if words[position] == wire.MISSING_ROW:
                    raise wire.malformed("a missing row")
                row = data[position << 3 : end << 3]
                add(self._partial(row) if kind == WRITE else self.modification(kind, row))
                position = end
            if left := len(kinds) - len(result):
                rows, position = self._at_one_look(data, position, left)
                result += rows
                # Where rows end a run often, as those with nulls do, it is tried ever more rarely.
                patience = 1 if len(rows) > patience else 2 * patience
        wire.require_end(words, position)
        return result

    def _at_one_look(self, data: bytes, position: int, most: int) -> tuple[list[Modification], int]:
        """Return the writes by usual rows from a word on, and the word behind them."""
        rows, end = (self._spread or self._usual).rows(data, position, most)
        if not self._spread:
            return [(WRITE, None, row) for row in rows], end
        width = len(self._stored).to_bytes(8, "little")
        return [
            (WRITE, int.from_bytes(row[-8:], "little"), width + row[8:-16]) for row in rows
        ], end

    def modification(self, kind: int, row: bytes) -> Modification:
        """Return the modification by one row; a row that is written is written whole.

        Raises YtError for a row that is refused.
        """
        if kind == WRITE:
            return self._written(row)
        if kind == UPDATE:
            pieces = self._pieces(row)[1]
            if len(pieces) == self.schema.key_count:
                raise generic("At least one non-key column must be specified")
            return kind, None, pieces
        if kind == DELETE:
            return kind, None, self.key_only(row)
        raise not_supported(f"row modification type {kind}")

    def _ends_with_system_columns(self, count: int) -> bool:
        if not 0 <= count <= len(SYSTEM_COLUMNS):
            return False
        return self._mapping[len(self._stored) :][:count] == [_SYSTEM] * count

    def plain(self, data: bytes, words: Sequence[int], start: int) -> tuple[int, bytes] | None:
        """Return (its end, stored form) of the row at `start` if it can stay as it came; else None.

        That is a row which is valid, complete and numbered as the schema is. Nulls for the server's
        own columns at its end are cut off: SPYT writes them.
        """
        expected = self._fast
        if expected is None:
            return None
        try:
            tail = words[start] - len(expected)
            if tail and not self._ends_with_system_columns(tail):
                return None
            position = start + 1
            for plain, null, fixed, bounds, utf8 in expected:
                header = words[position]
                position += 1
                if header & _LOW == plain:
                    if fixed:
                        if bounds:
                            value = words[position]
                            if value >> 63 or not bounds[0] <= value <= bounds[1]:
                                return None  # negative or wrong: the long way tells them apart
                        position += 1
                        continue
                    length = header >> 32
                    if utf8:
                        begin = position << 3
                        text = data[begin : begin + length]
                        if not (text.isascii() or wire.is_text(text)):
                            return None
                    position += length + 7 >> 3
                elif header & _LOW != null:
                    return None
            end = position + tail
            if end > len(words) or end - start > _MOST_WORDS:
                return None
        except IndexError:
            return None
        if not tail:
            return end, data[start << 3 : end << 3]
        nulls = [len(expected) + place | wire.NULL << 16 for place in range(tail)]
        if [header & _LOW for header in words[position:end]] != nulls:
            return None
        count = len(expected).to_bytes(8, "little")
        return end, count + data[start + 1 << 3 : position << 3]

    def _partial(self, row: bytes) -> Modification:
        """Return the write of a row as a client of RPC sends it.

        In a sorted table, columns that it leaves out stay as they are: `insert_rows` without
        `update` fills them with nulls in the client (client/driver/table_commands.cpp,
        SetTreatMissingAsNull). Values to be aggregated are an update as well.
        """
        pieces = self._pieces(row)[1] if self.schema.sorted else {}
        whole = len(pieces) == len(self._stored) and not any(map(flagged, pieces.values()))
        if not self.schema.sorted or whole:
            return self._written(row)
        return self.modification(UPDATE, row)

    def _written(self, row: bytes) -> Modification:
        plain = self.plain(row, wire.words_of(row), 0)
        if plain is not None:
            return WRITE, None, plain[1]
        wire.require_value_count(len(self._stored))
        tablet, pieces = self._pieces(row, optional_keys=True)
        for index in self._stored:
            if index not in pieces:
                column = self.schema.columns[index]
                if column.required:
                    raise violation(f'Missing required column "{column.name}" in table schema')
                pieces[index] = wire.encode_value(index, wire.NULL, None)
        stored = [without_flag(pieces[index]) for index in self._stored]
        return WRITE, tablet, wire.from_chunks(stored)

    def keys(self, data: bytes) -> list[Key]:
        """Return the keys of a rowset (row count first) that holds exactly the key columns.

        Raises YtError.
        """
        if self._key_columns and (found := integer_keys(data, self._key_columns)) is not None:
            return [*found]
        return [self._key_of(self.key_only(_present(row))) for row in wire.split(data)]

    def key_only(self, row: bytes) -> bytes:
        """Return a key's stored form. Raises YtError unless it holds exactly the key columns."""
        if self._keys.rows(row, 0, 1)[1] << 3 == len(row):
            return row
        pieces = self._pieces(row)[1]
        count = self.schema.key_count
        if len(pieces) != count:
            raise YtError(
                1,
                f"Invalid number of key columns: expected {count}, actual {len(pieces)}",
            )
        return wire.from_chunks([pieces[index] for index in range(count)])

    def key_chunks(self, row: bytes) -> list[bytes]:
        """Return the encoded key columns of a row that may have others."""
        pieces = self._pieces(row)[1]
        return [pieces[index] for index in range(self.schema.key_count)]

    def _pieces(self, row: bytes, optional_keys: bool = False) -> tuple[int | None, Update]:
        tablet: int | None = None
        pieces: Update = {}
        keys = self.schema.key_count
        chunks = wire.chunks(row)
        given = wire.values(row)
        if len(chunks) != len(given):
            raise _duplicate(self.names, [client_id for client_id, _, _ in given])
        for client_id, kind, value in given:
            chunk = chunks[client_id]
            if client_id >= len(self._mapping):
                raise YtError(
                    1,
                    "Invalid column id during remapping: expected in range "
                    f"[0, {len(self._mapping)}), got {client_id}",
                )
            index = self._mapping[client_id]
            if index == _TABLET:
                if kind not in (wire.NULL, wire.INT64):
                    raise violation('Invalid type of "$tablet_index": expected "int64"')
                tablet = value if isinstance(value, int) else None
            elif index == _SYSTEM:
                # model: SPYT writes a null for every schema column its frame lacks, these included
                if kind != wire.NULL:
                    raise YtError(1, f'Cannot write to column "{self.names[client_id]}"')
            elif index < 0:
                raise YtError(1, f'Unexpected column "{self.names[client_id]}"')
            elif index in pieces:
                raise _duplicate([column.name for column in self.schema.columns], [index] * 2)
            else:
                column = self.schema.columns[index]
                check_value(column, kind, value)
                if flagged(chunk) and not column.aggregate:
                    raise generic(
                        f'"aggregate" flag is set for value in column "{column.name}" '
                        "which is not aggregating"
                    )
                if index < keys:
                    require_number(value)
                if isinstance(value, bytes) and len(value) > wire.MAX_VALUE_LENGTH:
                    raise _too_long(kind, len(value))
                require_yson(kind, value)
                pieces[index] = wire.renumbered(chunk, index)
        for index in range(keys):
            column = self.schema.columns[index]
            if index in pieces or column.expression is not None:
                continue
            if column.required or not optional_keys:
                raise YtError(1, f'Missing key column "{column.name}"')
        if self._computed:
            pieces = filled(pieces, self._computed, len(self.schema.columns))
        return tablet, pieces


def expectations(schema: TableSchema, indexes: Sequence[int]) -> list[Expected] | None:
    """Return what values of these columns look like; None if that needs a look at each value."""
    if len(indexes) > wire.MAX_VALUES_PER_ROW:
        return None
    result = []
    for index in indexes:
        column = schema.columns[index]
        if column.wire_type in (wire.ANY, wire.COMPOSITE, wire.NULL) or column.scalar.judge:
            return None
        if column.sort_order and column.wire_type == wire.DOUBLE:
            return None  # it may be NaN
        result.append(
            Expected(
                index | column.wire_type << 16,
                -1 if column.required else index | wire.NULL << 16,
                column.wire_type in wire.FIXED,
                column.scalar.bounds,
                column.scalar.utf8,
            )
        )
    return result


def narrowing(schema: TableSchema, wanted: Sequence[int]) -> Narrowing:
    """Return what makes rows of some columns, by their indexes, out of stored rows."""
    return Narrowing(expectations(schema, range(len(schema.columns))) or [], wanted)


def _present(row: bytes | None) -> bytes:
    if row is None:
        raise wire.malformed("a missing row")
    return row


def require_number(value: Any) -> None:
    """Raise YtError for NaN, which cannot be a key (unversioned_row.cpp, ValidateDynamicValue)."""
    if isinstance(value, float) and value != value:
        raise YtError(KEY_CANNOT_BE_NAN, 'Key of type "double" cannot be NaN')


def require_yson(kind: int, value: wire.Value) -> None:
    """Raise YtError for an `any` that is not YSON, or that has attributes of its own.

    Source: client/table_client/unversioned_row.cpp (ValidateDynamicValue, TYsonAnyValidator). A
    composite value is parsed in ValidateComplexLogicalType.
    """
    if kind not in (wire.ANY, wire.COMPOSITE) or not isinstance(value, bytes):
        return
    try:
        yson.loads(value, encoding=None)
    except yson.YsonError as error:
        raise _not_yson(_innermost(error)) from None
    if kind == wire.ANY and value.lstrip().startswith(b"<"):
        raise _not_yson("Table values cannot have top-level attributes")


def _innermost(error: yson.YsonError) -> str:
    message: Any = error.message
    inner = error.inner_errors
    while inner:
        message, inner = inner[0]["message"], inner[0].get("inner_errors")
    return message.decode() if isinstance(message, bytes) else str(message)


def _not_yson(why: str) -> YtError:
    return YtError(1, "Error occurred while parsing YSON", inner=[YtError(1, why)])


def _too_long(kind: int, length: int) -> YtError:
    return YtError(
        STRING_LENGTH_LIMIT_EXCEEDED,
        f'Value of type "{wire.TYPE_NAMES[kind]}" is too long for dynamic data: '
        f"length {length}, limit {wire.MAX_VALUE_LENGTH}",
    )


def _duplicate(names: Sequence[str], ids: Sequence[int]) -> YtError:
    name = next((names[i] for i in ids if ids.count(i) > 1 and i < len(names)), "")
    return YtError(1, f'Duplicate column "{name}" in table schema')


def key_of(row: bytes, count: int) -> Key:
    """Return the key of a stored row, whose first `count` values are the key columns."""
    parts: list[Any] = []
    for _column, kind, value in wire.values(row, count):
        parts.append(kind)
        parts.append(0 if value is None else value)
    return tuple(parts)


def key_reader(schema: TableSchema) -> Callable[[bytes], Key]:
    """Return `key_of` for the rows of one schema; it reads a key of integers at one go."""
    kinds = [column.wire_type for column in schema.columns[: schema.key_count]]
    count = len(kinds)
    if not {wire.INT64, wire.UINT64}.issuperset(kinds):
        return lambda row: key_of(row, count)
    # Row header; then per column its id, its type, flags and length, and the number.
    layout = _layout(kinds)

    def key(row: bytes) -> Key:
        if len(row) >= layout.size:
            found = layout.unpack_from(row)
            if list(found[::2]) == kinds:
                return found
        return key_of(row, count)

    return key


def update_key_reader(schema: TableSchema) -> Callable[[Update], Key]:
    """Return what gives the key of an update; a key of one integer is read at one go."""
    count = schema.key_count
    key_of = key_reader(schema)
    first = schema.columns[0].wire_type if count == 1 else wire.NULL
    numbers = {wire.INT64: Struct("<8xq"), wire.UINT64: Struct("<8xQ")}.get(first)

    def key(update: Update) -> Key:
        piece = update[0]
        if numbers is not None and piece[2] == first:
            return first, numbers.unpack(piece)[0]
        return key_of(wire.from_chunks([update[index] for index in range(count)]))

    return key


def keys_of(schema: TableSchema, rows: Sequence[bytes]) -> Iterator[Key]:
    """Return the key of each stored row; keys of integers are read at one go."""
    kinds = [column.wire_type for column in schema.columns[: schema.key_count]]
    if rows and {wire.INT64, wire.UINT64}.issuperset(kinds):
        with suppress(error):  # a row of nulls may be too short
            found = [*map(_layout(kinds).unpack_from, rows)]
            read = [*zip(*found, strict=True)][::2]
            if all(one.count(kind) == len(rows) for one, kind in zip(read, kinds, strict=True)):
                return iter(found)
    return map(key_reader(schema), rows)


def _layout(kinds: Sequence[int]) -> Struct:
    """Return what reads a row's key of these integers: of each its type, and the number."""
    codes = {wire.INT64: "q", wire.UINT64: "Q"}
    return Struct("<8x" + "".join(f"2xB5x{codes[kind]}" for kind in kinds))
