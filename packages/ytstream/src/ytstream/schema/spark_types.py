"""Which Spark type a column of each YTsaurus type takes, and which columns nothing can write.

How SPYT reads a column is in ytstream_tools/testing/type_conversion.py, for sample rows and tests.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .columns import Column, spelled, type_name

if TYPE_CHECKING:  # provision and submit need no Spark
    from pyspark.sql.types import DataType

_WRITABLE: Mapping[str, Sequence[str]] = {
    # No wider than what SPYT reads the column as: the value that does not fit comes some day.
    "int8": ["byte"],
    "int16": ["byte", "short"],
    "int32": ["byte", "short", "integer"],
    "int64": ["byte", "short", "integer", "long"],
    "interval": ["byte", "short", "integer", "long"],
    "uint8": ["byte", "short"],
    "uint16": ["byte", "short", "integer"],
    "uint32": ["byte", "short", "integer", "long"],
    "uint64": ["byte", "short", "integer", "long", "uint64"],
    "float": ["float", "double"],
    "double": ["float", "double"],
    "bool": ["boolean"],
    "string": ["string", "binary"],
    "utf8": ["string"],
    "json": ["string"],
    "date": ["date"],
    "timestamp": ["timestamp", "timestamp_ntz"],
    "yson": ["yson", "binary"],
    "list": ["array"],
    "struct": ["struct"],
    "tuple": ["struct"],
    "variant": ["struct"],
    "dict": ["map"],
    **{name: [name] for name in ("datetime", "date32", "datetime64", "timestamp64", "interval64")},
}
"""By type name: the Spark types that SPYT's sink writes into that column such that they come back
equal, SPYT's own among them. Shown by running the connector; int into double, for instance, ends in
"Illegal value" there (DynTableRowConverter, UnversionedValue)."""

_NO_KEYS = ("uuid", "json", "yson", "decimal")
"""Kinds of keys that lookup() does not send: SPYT has no way to write the value."""
_TIMES = ("date", "timestamp")
_CASTABLE = frozenset(
    ("boolean", "byte", "short", "integer", "long", "float", "double", "string", "binary")
).union(_TIMES)
"""Names of types that Spark's cast() knows."""


_NUMBERS = ("byte", "short", "integer", "long", "float", "double")
"""Names of Spark's numbers."""


_UNWRITABLE: Mapping[str, str] = {
    "decimal": "SPYT's sink cannot write decimals: store int64 minor units or a string",
    "uuid": "SPYT's sink sends a uuid as text, the table wants 16 bytes: declare utf8",
}
"""Types that SPYT reads and cannot write back: refused at the start, not in the tenth batch."""
_NO_TIMES_INSIDE = (
    "dates and times inside lists, structs and dicts are sent as plain integers and refused by the "
    "table: declare and cast them to int64 or a string"
)


def never_written(column: Column) -> str | None:
    """Return why SPYT's sink writes nothing into a column of that type; None when it does."""
    for depth, kind in _kinds(column.type):
        if kind not in _WRITABLE:
            problem = _UNWRITABLE.get(kind, f"SPYT's sink cannot write {spelled(column.type)}")
        elif depth and kind in _TIMES:
            problem = _NO_TIMES_INSIDE
        else:
            continue
        return f"column {column.name}: {problem}"
    return None


def holds_any(columns: Sequence[Column]) -> bool:
    """Return whether a column is `any`, or has it inside."""
    return any(kind == "yson" for column in columns for _, kind in _kinds(column.type))


def _kinds(type_: Any, depth: int = 0) -> Iterator[tuple[int, str]]:
    """Yield the names of the types that a yt.type_info type is made of, and their depths."""
    kind = type_name(type_)
    if kind != "optional":
        yield depth, kind
    inner = [getattr(type_, name, None) for name in ("item", "key", "value")]
    items = getattr(type_, "items", ())
    inner += [item[1] if isinstance(item, tuple) else item for item in items]
    for part in filter(None, inner):
        yield from _kinds(part, depth + (kind != "optional"))


def unlike_key(key: Column, name: str, data_type: DataType) -> str | None:
    """Return why the column ``name`` of that Spark type cannot hold values of a key.

    None when it can. A cast would end the job on a value that does not fit: try_cast gives null,
    which matches nothing.
    """
    fitting = () if type_name(key.type) in _NO_KEYS else _WRITABLE.get(type_name(key.type), ())
    if data_type.typeName() in fitting:
        return None
    if not fitting:
        return f"a key of type {spelled(key.type)} cannot be looked up"
    castable = [kind for kind in fitting if kind in _CASTABLE and kind != "binary"]
    remedy = "Spark casts nothing to it, so take a column of a queue that has this type"
    if castable:
        quoted = json.dumps(f"try_cast(`{name}` AS {castable[-1].upper()})", ensure_ascii=False)
        remedy = f"use F.expr({quoted}), which is null for a value that does not fit"
    return (
        f"it is Spark's {data_type.simpleString()}, the key column {key.name} is "
        f"{spelled(key.type)}: {remedy}"
    )


_STORED: Mapping[str, str] = {
    "byte": "int8",
    "short": "int16",
    "integer": "int32",
    "long": "int64",
    "float": "float",
    "double": "double",
    "boolean": "bool",
    "string": "utf8",
    "binary": "string",
    "date": "date",
    "timestamp": "timestamp",
    "timestamp_ntz": "timestamp",
}
"""By Spark type: the type of tables.py in which a new column is stored."""


def line_of_tables(name: str, data_type: DataType) -> str | None:
    """Return the line of tables.py for a column of that Spark type; None where it is not plain."""
    stored = _STORED.get(data_type.typeName())
    return None if stored is None else f'Column("{name}", "{stored}")'


def widest(column: Column, data_type: DataType) -> str | None:
    """Return the name of the Spark type that has all numbers of the column.

    None if the given type has them, and for what are not numbers.
    """
    fitting = [name for name in _WRITABLE[type_name(column.type)] if name in _NUMBERS]
    given = data_type.typeName()
    return fitting[-1] if given in fitting[:-1] else None


def unwritable(column: Column, data_type: DataType, maker: str = "transform()") -> str | None:
    """Return why SPYT's sink could not write ``data_type`` into ``column``; None when it can.

    ``maker`` is the function that gives the rows.
    """
    kind = type_name(column.type)
    if (given := data_type.typeName()) in (fitting := _WRITABLE[kind]):
        return None
    gives = "null and no type" if given == "void" else f"Spark's {data_type.simpleString()}"
    # Spark casts little to bytes, and texts go into a string as they are.
    castable = [name for name in fitting if name in _CASTABLE and name != "binary"]
    remedy = f'cast it, .cast("{castable[-1]}")' if castable else "give it that type"
    return (
        f"column {column.name}: {maker} gives {gives}, the table has "
        f"{spelled(column.type)}: {remedy}, or change tables.py"
    )
