"""Structs and named variants have names over HTTP, and positions in tables and over RPC.

A struct is a map of its members in the formats' default mode, and a named variant is [name, value];
stored, they are the list of the members in their order, and [index, value]. `complex_type_mode` of
a format asks for the latter (documentation, "data types" and "formats"). All other parts of a
type look the same in both. Only columns that have a name in their type are looked into: their
values are checked here, inside as well, as the server checks all composite values. The rules and
the wording of errors: client/complex_types/yson_format_conversion.cpp and scanner_factory.h,
client/table_client/validate_logical_type.cpp.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from ..core.errors import YtError, generic
from . import wire
from .rowset import Rowset
from .schema import SCHEMA_VIOLATION, TableSchema, violation
from .types import SCALARS, LogicalType, defect

Row = dict[str, Any]


def stored(schema: TableSchema, rows: list[Row], *, positional: bool) -> list[Row]:
    """Return rows as a table of this schema keeps them.

    Raises YtError for a value that does not fit. Nulls and scalars where a composite belongs are
    left to the check of the column itself.
    """
    columns = [(column.name, column.logical) for column in schema.columns if column.logical.named]
    if not columns:
        return rows
    storing = _Storing(positional)
    result = []
    for row in rows:
        changed = {
            name: storing.column(name, type_, row[name])
            for name, type_ in columns
            if name in row and _token(row[name]).startswith("begin")
        }
        result.append({**row, **changed})
    return result


def shown(rowset: Rowset, *, positional: bool = False) -> list[Row | None]:
    """Return rows of an answer as a client sees them; None is a row that was not found.

    `positional` is for reads in bulk: rows of dynamic tables are always shown with names
    (client/formats/schemaful_writer.cpp). Raises YtError for what cannot have been a value.
    """
    rows = rowset.to_dicts()
    columns = [(column.name, column.logical) for column in rowset.columns if column.logical]
    if columns and not positional:
        showing = _Showing()
        for row in rows:
            for name, type_ in columns:
                if row is not None and row.get(name) is not None:
                    row[name] = showing.value(type_, row[name])
    return rows


class _Conversion(ABC):
    """Walks a value along its type; what becomes of structs and named variants is left open."""

    def value(self, type_: LogicalType, value: Any) -> Any:
        match type_.kind:
            case "scalar":
                return self.scalar(type_, value)
            case "struct":
                return self.struct(type_, value)
            case "tagged":
                return self.value(type_.parts[0], value)
            case "optional":
                return self._optional(type_, value)
            case "list":
                return [self.value(type_.parts[0], item) for item in _list(type_, value)]
            case "dict":
                return [self._tuple(type_, pair) for pair in _list(type_, value)]
            case "tuple":
                return self._tuple(type_, value)
        return self.variant(type_, value)

    def _optional(self, type_: LogicalType, value: Any) -> Any:
        if _token(value) == "entity_value":
            return None
        inner = type_.parts[0]
        if not inner.nullable:
            return self.value(inner, value)
        return self._tuple(type_, value)

    def _tuple(self, type_: LogicalType, value: Any) -> list[Any]:
        """Return one item for each part."""
        items = _list(type_, value)
        _require_end(type_, items)
        if len(items) < len(type_.parts):
            missing = type_.parts[len(items)].where
            raise _violation(type_, f'; expected "{missing}" got "end_list"')
        return [self.value(part, item) for part, item in zip(type_.parts, items, strict=True)]

    def scalar(self, type_: LogicalType, value: Any) -> Any:
        return value

    @abstractmethod
    def struct(self, type_: LogicalType, value: Any) -> Any: ...

    def variant(self, type_: LogicalType, value: Any) -> list[Any]:
        """Return a variant of either kind, given by the index."""
        tag, item = _pair(type_, value)
        if _token(tag) != "int64_value":
            raise _unexpected(type_, "int64_value", tag)
        place = f'Error while parsing "{type_.where}": variant tag ({tag})'
        if tag < 0:
            raise generic(f"{place} is negative")
        if tag >= len(type_.parts):
            raise generic(f"{place} exceeds variant alternative count ({len(type_.parts)})")
        return [int(tag), self.value(type_.parts[tag], item)]


class _Showing(_Conversion):
    """From positions to names."""

    def value(self, type_: LogicalType, value: Any) -> Any:
        return super().value(type_, value) if type_.named else value

    def struct(self, type_: LogicalType, value: Any) -> Row:
        items = _list(type_, value)
        _require_end(type_, items)
        # A list may be shorter than the struct: nulls follow.
        items = [*items, *[None] * (len(type_.parts) - len(items))]
        members = zip(type_.names, type_.parts, items, strict=True)
        return {name: self.value(part, item) for name, part, item in members}

    def variant(self, type_: LogicalType, value: Any) -> list[Any]:
        tag, item = super().variant(type_, value)
        return [type_.names[tag] if type_.names else tag, item]


class _Storing(_Conversion):
    """From names to positions, or from positions to the same, checked."""

    def __init__(self, positional: bool) -> None:
        self._positional = positional

    def column(self, name: str, type_: LogicalType, value: Any) -> Any:
        """Return the value of a whole column."""
        try:
            return self.value(type_, value)
        except YtError as error:
            if error.code != SCHEMA_VIOLATION:
                raise
            raise violation(f'Error validating column "{name}"', [error]) from None

    def scalar(self, type_: LogicalType, value: Any) -> Any:
        kind = SCALARS[type_.scalar].wire_type
        found = _token(value)
        if kind == wire.ANY:
            if found in ("entity_value", "begin_attributes"):
                what = "entity value" if found == "entity_value" else "top level attributes"
                raise _violation(type_, f"; unexpected {what}")
            return value
        if found != _TOKENS[kind]:
            raise _violation(type_, f': expected "{_TOKENS[kind]}", found "{found}"')
        problem = defect(type_.scalar, wire.guess(value)[1])
        if problem:
            raise violation(problem)
        return value

    def struct(self, type_: LogicalType, value: Any) -> list[Any]:
        return self._in_order(type_, value) if self._positional else self._by_name(type_, value)

    def _by_name(self, type_: LogicalType, value: Any) -> list[Any]:
        if _token(value) != "begin_map":
            raise _unexpected(type_, "begin_map", value)
        given = {_text(name): item for name, item in value.items()}
        for name in given:
            if name not in type_.names:
                raise generic(f'Unknown field "{name}" while parsing "{type_.where}"')
        result = []
        for name, part in zip(type_.names, type_.parts, strict=True):
            if name in given:
                result.append(self.value(part, given[name]))
            elif part.nullable:
                result.append(None)
            else:
                raise generic(f'Field "{name}" is missing while parsing "{type_.where}"')
        return result

    def _in_order(self, type_: LogicalType, value: Any) -> list[Any]:
        items = _list(type_, value)
        _require_end(type_, items)
        for name, part in list(zip(type_.names, type_.parts, strict=True))[len(items) :]:
            if part.kind != "optional":
                raise _violation(type_, f'; struct ended before required field "{name}" is set')
        return [self.value(part, item) for part, item in zip(type_.parts, items, strict=False)]

    def variant(self, type_: LogicalType, value: Any) -> list[Any]:
        if self._positional or not type_.names:
            return super().variant(type_, value)
        tag, item = _pair(type_, value)
        if _token(tag) != "string_value":
            raise _unexpected(type_, "string_value", tag)
        name = _text(tag)
        if name not in type_.names:
            raise generic(f'Unknown variant field "{name}" while parsing "{type_.where}"')
        index = type_.names.index(name)
        return [index, self.value(type_.parts[index], item)]


_TOKENS = {
    wire.NULL: "entity_value",
    wire.INT64: "int64_value",
    wire.UINT64: "uint64_value",
    wire.DOUBLE: "double_value",
    wire.BOOLEAN: "boolean_value",
    wire.STRING: "string_value",
}


def _token(value: Any) -> str:
    """Return the YSON token that a value begins with, as errors name it."""
    if getattr(value, "attributes", None):
        return "begin_attributes"
    if isinstance(value, Mapping):
        return "begin_map"
    if isinstance(value, list):
        return "begin_list"
    return _TOKENS[wire.guess(value)[0]]


def _text(name: Any) -> str:
    return name.decode(errors="backslashreplace") if isinstance(name, bytes) else str(name)


def _list(type_: LogicalType, value: Any) -> list[Any]:
    if _token(value) != "begin_list":
        raise _unexpected(type_, "begin_list", value)
    found: list[Any] = value
    return found


def _require_end(type_: LogicalType, items: list[Any]) -> None:
    if len(items) > len(type_.parts):
        raise _unexpected(type_, "end_list", items[len(type_.parts)])


def _pair(type_: LogicalType, value: Any) -> list[Any]:
    items = _list(type_, value)
    if len(items) > 2:
        raise _unexpected(type_, "end_list", items[2])
    if len(items) < 2:
        raise _violation(type_, '; expected a tag and a value, got "end_list"')
    return items


def _unexpected(type_: LogicalType, expected: str, value: Any) -> YtError:
    found = _token(value)
    if type_.named:  # refused while it is converted; the others when they are checked
        return generic(f'Cannot parse "{type_.where}"; expected "{expected}", actual "{found}"')
    return _violation(type_, f': expected "{expected}", found "{found}"')


def _violation(type_: LogicalType, reason: str) -> YtError:
    return violation(f'Cannot parse "{type_.where}"{reason}')
