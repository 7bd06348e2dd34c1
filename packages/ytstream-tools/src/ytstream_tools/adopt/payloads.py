"""Columns of type `any` that hold objects: the fields that the sample's rows have in common.

A first transform() reads them with json_of() and from_json(), and gives each a column.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yt.type_info as ti
from yt.yson import YsonBoolean

from ytstream.schema.columns import Column, type_name
from ytstream.schema.string_values import canonical, is_string

from .source_rows import Row

_DEPTH = 4
"""Objects inside objects become columns down to this depth. Deeper ones are text."""
_FIELDS = 40
"""More fields than that are the keys of a dictionary. It stays text."""
_DDL: Mapping[Any, str] = {
    ti.Int64: "BIGINT", ti.Double: "DOUBLE", ti.Bool: "BOOLEAN", ti.Utf8: "STRING",
}  # fmt: skip
"""What Spark calls a type in a schema."""
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
"""A name that Spark's SQL takes without quotes."""
_UNUSABLE = re.compile(r'^$|^\$|[`"\\.\x00-\x1f\x7f]')
"""In a name: what ends a quoted one or a string, what YTsaurus' JSON writes in another way."""


@dataclass(frozen=True)
class Part:
    """A field of an `any` column as a column of its own."""

    column: Column
    source: str
    """The column of the queue, and the names from there."""
    path: tuple[str, ...]
    rows: int
    """How many rows have it."""

    @property
    def reference(self) -> str:
        """How Spark names the field in a column that from_json() has made."""
        return ".".join(map(_name, (self.source, *self.path)))

    def value(self, row: Row) -> Any:
        """Return the value in a row as the column has it; None where there is none."""
        found = row[self.source]
        for name in self.path:
            found = _items(found).get(name) if isinstance(found, Mapping) else None
        return _plain(found) if _kind(found) in (self.column.type, ti.Int64) else None


def of(columns: Sequence[Column], rows: Sequence[Row]) -> list[Part]:
    """Return the fields of the `any` columns that hold an object in most of their rows."""
    taken = {column.name.lower() for column in columns}
    parts = list[Part]()
    for column in columns:
        if type_name(column.type) not in ("yson", "any"):
            continue
        for path, type_, count in _fields([row[column.name] for row in rows], _DEPTH):
            name = _free(path, column.name, taken)
            taken.add(name.lower())
            parts.append(Part(Column(name, type_), column.name, path, count))
    return parts


def schema(parts: Iterable[Part]) -> str:
    """Return the schema for from_json() of the parts of one column, a field a line."""
    tree = dict[str, Any]()
    for part in parts:
        inner = tree
        for name in part.path[:-1]:
            inner = inner.setdefault(name, {})
        inner[part.path[-1]] = _DDL[part.column.type]
    return ",\n".join(_lines(tree, ""))


def _lines(tree: Mapping[str, Any], indent: str) -> Iterator[str]:
    for name, kind in tree.items():
        if isinstance(kind, str):
            yield f"{indent}{_name(name)}{':' if indent else ''} {kind}"
        else:
            inside = ",\n".join(_lines(kind, f"{indent}    "))
            yield f"{indent}{_name(name)}{':' if indent else ''} STRUCT<\n{inside}\n{indent}>"


def is_plain(name: str) -> bool:
    """Return whether Spark takes the name without quotes."""
    return _PLAIN.fullmatch(name) is not None


def _name(name: str) -> str:
    return name if is_plain(name) else f"`{name}`"


def _fields(values: Sequence[Any], depth: int) -> Iterator[tuple[tuple[str, ...], Any, int]]:
    """Yield path, type and number of rows of each field; nothing where few values are objects."""
    there = [value for value in values if _kind(value) is not None]
    objects = [_items(value) for value in there if _is_object(value)]
    if not objects or len(objects) * 2 <= len(there):
        return
    by_name: dict[str, list[Any]] = {}
    for found in objects:
        for name, value in found.items():
            by_name.setdefault(name, []).append(value)
    if len(by_name) > _FIELDS:
        return
    known = set[str]()  # Spark ignores the case of a name
    for name, inner in by_name.items():
        present = [value for value in inner if _kind(value) is not None]
        if _UNUSABLE.search(name) or name.lower() in known or not present:
            continue
        known.add(name.lower())
        parts = list(_fields(present, depth - 1)) if depth > 1 else []
        for path, type_, count in parts:
            yield (name, *path), type_, count
        if not parts:
            yield (name,), _type_of(present), len(present)


def _type_of(values: Sequence[Any]) -> Any:
    """Return a type that all values fit; anything but numbers and booleans is text."""
    kinds = set(map(_kind, values))
    if len(kinds) == 1:
        return kinds.pop()
    return ti.Double if kinds == {ti.Int64, ti.Double} else ti.Utf8


def _kind(value: Any) -> Any:
    """Return the type of a value; None for null."""
    if value is None or type(value).__name__ == "YsonEntity":
        return None
    if isinstance(value, bool | YsonBoolean):
        return ti.Bool
    if isinstance(value, int):
        return ti.Int64 if -(2**63) <= value < 2**63 else ti.Utf8
    return ti.Double if isinstance(value, float) else ti.Utf8


def _is_object(value: Any) -> bool:
    # JSON shows a value with attributes in another way.
    return isinstance(value, Mapping) and not getattr(value, "attributes", None)


def _items(value: Mapping[Any, Any]) -> dict[str, Any]:
    named = ((canonical(name), item) for name, item in value.items())
    return {name: item for name, item in named if isinstance(name, str)}


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool | YsonBoolean):
        return None if value is None else bool(value)
    if isinstance(value, int | float):
        return int(value) if isinstance(value, int) else float(value)
    return canonical(value) if is_string(value) else repr(value)


def _free(path: tuple[str, ...], column: str, taken: set[str]) -> str:
    """Return a name for the column that no other one has."""
    short = re.sub(r"\W", "_", "_".join(path))
    names = (short, f"{column}_{short}", *(f"{column}_{short}_{n}" for n in range(2, 1_000)))
    return next(name for name in names if name.lower() not in taken)
