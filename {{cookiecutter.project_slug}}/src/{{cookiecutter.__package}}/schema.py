"""Columns as tables.py names them, as YTsaurus stores them, and as Spark carries them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yt.type_info as ti
from pyspark.sql import types as spark
from yt.wrapper.schema import TableSchema

from .errors import JobError

#: What tables.py may write for a column's type; composites are written with yt.type_info, for
#: instance ``ti.List[ti.Utf8]``.
NAMED_TYPES: Mapping[str, Any] = {
    name.lower(): getattr(ti, name)
    for name in (
        *("Int8", "Int16", "Int32", "Int64", "Uint8", "Uint16", "Uint32", "Uint64"),
        *("Float", "Double", "Bool", "String", "Utf8", "Json", "Uuid"),
        *("Date", "Datetime", "Timestamp", "Interval"),
        *("Date32", "Datetime64", "Timestamp64", "Interval64"),
    )
} | {"boolean": ti.Bool, "any": ti.Yson}


@dataclass(frozen=True)
class Column:
    """One column of a table. ``type`` is a yt.type_info type without the outer Optional."""

    name: str
    type: Any
    required: bool
    key: bool = False


def columns(
    table: str, described: Sequence[tuple[str, Any, bool]], key: Sequence[str] = ()
) -> list[Column]:
    """The columns of one list of tables.py, those of ``key`` in front.

    Raises JobError naming the list and what is wrong: an entry, a type, a name twice, the key.
    """
    result: list[Column] = []
    for position, entry in enumerate(described):
        where = f"tables.py, {table}[{position}] = {entry!r}"
        if len(entry) != 3 or not isinstance(entry[0], str) or not isinstance(entry[2], bool):
            raise JobError(
                f"{where}: wanted (name, type, required)", 'e.g. ("price", "int64", True)'
            )
        name, type_, required = entry
        resolved = NAMED_TYPES.get(type_) if isinstance(type_, str) else type_
        if resolved is None or not ti.is_valid_type(resolved):
            raise JobError(
                f"{where}: no such type",
                f"use a yt.type_info type or one of {', '.join(NAMED_TYPES)}",
            )
        if name in {column.name for column in result}:
            raise JobError(f"{where}: the name stands twice", "rename one of the columns")
        result.append(Column(name, resolved, required, name in key))
    if not result or not set(key) <= {column.name for column in result}:
        problem = f"tables.py: {table} has no columns, or not all of its key {list(key)}"
        raise JobError(problem, "list at least one, and those of the key")
    return sorted(result, key=lambda column: not column.key)


def table_schema(described: Sequence[Column]) -> Any:
    """A strict ytsaurus-client TableSchema; unique keys where there are keys."""
    schema = TableSchema(strict=True, unique_keys=any(column.key for column in described))
    for column in described:
        stored = column.type if column.required else ti.Optional[column.type]
        schema.add_column(column.name, stored, sort_order="ascending" if column.key else None)
    return schema


def differences(wanted: Any, found: Any, *, ignore: frozenset[str] = frozenset()) -> list[str]:
    """How ``found`` departs from ``wanted`` (TableSchemas), a line each, ``ignore`` left out."""
    want = {c.name: c for c in wanted.columns if c.name not in ignore}
    have = {c.name: c for c in found.columns if c.name not in ignore}
    lines = [f"column {name}: missing" for name in want if name not in have]
    lines += [f"column {name}: not in tables.py" for name in have if name not in want]
    pairs = [
        ("key columns", _key(wanted), _key(found)),
        ("unique_keys", bool(wanted.unique_keys), bool(found.unique_keys)),
        *((f"column {c}", want[c].type, have[c].type) for c in want.keys() & have.keys()),
    ]
    lines += [f"{what}: is {b}, wanted {a}" for what, a, b in pairs if str(a) != str(b)]
    return sorted(lines)


def _key(schema: Any) -> str:
    return ", ".join(f"{c.name} {c.sort_order}" for c in schema.columns if c.sort_order) or "none"


#: By type name: the Spark types that SPYT's sink writes into that column such that they come back
#: equal, SPYT's own among them. Shown by running the connector; int into double, for instance, ends
#: in "Illegal value" there (DynTableRowConverter, UnversionedValue).
_WRITABLE: Mapping[str, str] = {
    # No wider than what SPYT reads the column as: the value that does not fit comes some day.
    "int8": "byte",
    **dict.fromkeys(("int16", "uint8"), "byte short"),
    **dict.fromkeys(("int32", "uint16"), "byte short integer"),
    **dict.fromkeys(("int64", "uint32", "interval"), "byte short integer long"),
    "uint64": "byte short integer long uint64",
    **dict.fromkeys(("float", "double"), "float double"),
    "bool": "boolean",
    "string": "string binary",
    **dict.fromkeys(("utf8", "json"), "string"),
    "timestamp": "timestamp timestamp_ntz",
    "yson": "yson binary",
    "list": "array",
    **dict.fromkeys(("struct", "tuple", "variant"), "struct"),
    "dict": "map",
    "date": "date",
    **{name: name for name in ("datetime", "date32", "datetime64", "timestamp64", "interval64")},
}

#: Types that SPYT reads and cannot write back: refused at the start, not in the tenth batch.
_UNWRITABLE: Mapping[str, str] = {
    "decimal": "SPYT's sink cannot write decimals: store int64 minor units or a string",
    "uuid": "SPYT's sink sends a uuid as text, the table wants 16 bytes: declare utf8",
}


def unwritable(column: Column, data_type: spark.DataType) -> str | None:
    """Why SPYT's sink could not write ``data_type`` into ``column``; None when it can."""
    kind = type_name(column.type)
    if any(isinstance(part, _TIMES) for part in _parts(data_type)):
        problem = (
            "dates and times inside lists, structs and dicts are sent as plain integers and "
            "refused by the table: cast them to int64 or a string"
        )
    elif kind not in _WRITABLE:
        problem = _UNWRITABLE.get(kind, f"type {column.type} is not supported by this job")
    elif data_type.typeName() not in _WRITABLE[kind].split():
        problem = (
            f"transform() gives {data_type.simpleString()}, the table has {kind}: cast it, e.g. "
            ".cast(...), or change tables.py"
        )
    else:
        return None
    return f"column {column.name}: {problem}"


def type_name(type_: Any) -> str:
    """The lower-case name of a yt.type_info type: ``int64``, ``list``, ``yson`` ..."""
    return str(type_.name).lower()


_TIMES = (spark.DateType, spark.TimestampType, spark.TimestampNTZType)


def _parts(data_type: spark.DataType) -> Iterator[spark.DataType]:
    """The types that a composite type is made of, at any depth."""
    inner = [field.dataType for field in getattr(data_type, "fields", ())]
    inner += [getattr(data_type, name, None) for name in ("elementType", "keyType", "valueType")]
    for part in filter(None, inner):
        yield part
        yield from _parts(part)
