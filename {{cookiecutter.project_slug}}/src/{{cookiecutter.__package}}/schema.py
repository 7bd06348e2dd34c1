"""Columns as tables.py names them, as YTsaurus stores them, and as Spark carries them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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

    @property
    def stored_type(self) -> Any:
        """The type as the table stores it; ``any`` is never required."""
        return self.type if self.required else ti.Optional[self.type]


def columns(table: str, described: Sequence[tuple[str, Any, bool]]) -> list[Column]:
    """The columns of one list of tables.py.

    Raises JobError naming the list and the entry: not (name, type, required), a type that YTsaurus
    does not have, a name twice.
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
        result.append(Column(name, resolved, required))
    if not result:
        raise JobError(f"tables.py: {table} has no columns", "list at least one")
    return result


def table_schema(described: Sequence[Column]) -> Any:
    """A strict ytsaurus-client TableSchema; unique keys where there are keys."""
    schema = TableSchema(strict=True, unique_keys=any(column.key for column in described))
    for column in described:
        schema.add_column(
            column.name, column.stored_type, sort_order="ascending" if column.key else None
        )
    return schema


def differences(wanted: Any, found: Any, *, ignore: frozenset[str] = frozenset()) -> list[str]:
    """How ``found`` departs from ``wanted`` (TableSchemas), a line each, ``ignore`` left out."""
    want = {c.name: c for c in wanted.columns if c.name not in ignore}
    have = {c.name: c for c in found.columns if c.name not in ignore}
    lines = [f"column {name}: missing" for name in want if name not in have]
    lines += [f"column {name}: not in tables.py" for name in have if name not in want]
    for name in want.keys() & have.keys():
        if str(want[name].type) != str(have[name].type):
            lines.append(f"column {name}: is {have[name].type}, wanted {want[name].type}")
        if (want[name].sort_order or None) != (have[name].sort_order or None):
            lines.append(
                f"column {name}: sort order is {have[name].sort_order or 'none'}, "
                f"wanted {want[name].sort_order or 'none'}"
            )
    keys = [c.name for c in wanted.columns if c.sort_order]
    if not lines and keys != [c.name for c in found.columns if c.sort_order]:
        lines.append(f"key columns are in another order, wanted {', '.join(keys)}")
    if bool(wanted.unique_keys) != bool(found.unique_keys):
        lines.append(f"unique_keys is {bool(found.unique_keys)}, wanted {bool(wanted.unique_keys)}")
    return sorted(lines)


_INTEGERS = (spark.ByteType, spark.ShortType, spark.IntegerType, spark.LongType)
_UDTS = ("datetime", "date32", "datetime64", "timestamp64", "interval64")


def _is(*accepted: type[spark.DataType]) -> Callable[[spark.DataType], bool]:
    return lambda data_type: isinstance(data_type, accepted)


def _is_udt(name: str) -> Callable[[spark.DataType], bool]:
    # SPYT's own types are user-defined types of Spark, known to Python by their SQL name alone.
    return lambda data_type: name in (type(data_type).__name__.lower() + data_type.simpleString())


#: By type name: which Spark types SPYT's sink writes into that column such that they come back
#: equal. Shown by running the connector; int into double, for instance, ends in "Illegal value"
#: there (DynTableRowConverter, UnversionedValue).
_WRITABLE: Mapping[str, Callable[[spark.DataType], bool]] = {
    name: accepts
    for names, accepts in (
        ("int8 int16 int32 int64 uint8 uint16 uint32 interval", _is(*_INTEGERS)),
        ("uint64", lambda given: isinstance(given, _INTEGERS) or _is_udt("uint64")(given)),
        ("float double", _is(spark.FloatType, spark.DoubleType)),
        ("bool", _is(spark.BooleanType)),
        ("string", _is(spark.StringType, spark.BinaryType)),
        ("utf8 json", _is(spark.StringType)),
        ("date", _is(spark.DateType)),
        ("timestamp", _is(spark.TimestampType, spark.TimestampNTZType)),
        ("yson", lambda given: isinstance(given, spark.BinaryType) or _is_udt("yson")(given)),
        ("list", _is(spark.ArrayType)),
        ("struct tuple variant", _is(spark.StructType)),
        ("dict", _is(spark.MapType)),
        *((name, _is_udt(name)) for name in _UDTS),
    )
    for name in names.split()
}

#: Types that SPYT reads and cannot write back: refused at the start, not in the tenth batch.
_UNWRITABLE: Mapping[str, str] = {
    "decimal": "SPYT's sink cannot write decimals: store int64 minor units or a string",
    "uuid": "SPYT's sink sends a uuid as text, the table wants 16 bytes: declare utf8",
}

_TIMES = (spark.DateType, spark.TimestampType, spark.TimestampNTZType)


def unwritable(column: Column, data_type: spark.DataType) -> str | None:
    """Why SPYT's sink could not write ``data_type`` into ``column``; None when it can."""
    name = ti.serialize_yson(column.type, human_readable=False).decode()
    kind = type_name(column.type)
    if kind in _UNWRITABLE:
        return f"column {column.name}: {_UNWRITABLE[kind]}"
    if _has_nested_time(data_type):
        return (
            f"column {column.name}: dates and times inside lists, structs and dicts are sent as "
            "plain integers and refused by the table: cast them to int64 or a string"
        )
    accepts = _WRITABLE.get(kind)
    if accepts is None:
        return f"column {column.name}: type {name} is not supported by this job"
    if not accepts(data_type):
        return (
            f"column {column.name}: transform() gives {data_type.simpleString()}, the table has "
            f"{kind}: cast it, e.g. .cast(...), or change tables.py"
        )
    return None


def type_name(type_: Any) -> str:
    """The lower-case name of a yt.type_info type: ``int64``, ``list``, ``yson`` ..."""
    return str(type_.name).lower()


def _has_nested_time(data_type: spark.DataType, *, nested: bool = False) -> bool:
    parts: list[spark.DataType] = []
    if isinstance(data_type, spark.ArrayType):
        parts = [data_type.elementType]
    elif isinstance(data_type, spark.MapType):
        parts = [data_type.keyType, data_type.valueType]
    elif isinstance(data_type, spark.StructType):
        parts = [field.dataType for field in data_type.fields]
    is_time = isinstance(data_type, _TIMES)
    return (nested and is_time) or any(_has_nested_time(part, nested=True) for part in parts)
