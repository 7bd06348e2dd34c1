"""Columns as tables.py names them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import yt.type_info as ti

from ..errors import JobError
from ..errors.error_codes import ErrorCode

_TYPES = (
    "Int8", "Int16", "Int32", "Int64", "Uint8", "Uint16", "Uint32", "Uint64", "Float", "Double",
    "Bool", "String", "Utf8", "Json", "Uuid", "Date", "Datetime", "Timestamp", "Interval",
    "Date32", "Datetime64", "Timestamp64", "Interval64",
)  # fmt: skip
NAMED_TYPES: Mapping[str, Any] = {name.lower(): getattr(ti, name) for name in _TYPES} | {
    "boolean": ti.Bool,
    "any": ti.Yson,
}
"""Names that tables.py may use for a column's type. Composites are written with yt.type_info, for
instance ``ti.List[ti.Utf8]``."""

_NAMES = {type_: name for name, type_ in reversed([*NAMED_TYPES.items()])}
"""The first name of each type."""


@dataclass(frozen=True)
class Column:
    """One column of a table."""

    name: str
    """1 to 256 characters, without dots and backticks. `$` and `@` may not be first."""
    type: Any
    """A name such as "int64" or "utf8", or a yt.type_info type such as ti.List[ti.Utf8]. Do not add
    the outer Optional."""
    required: bool = False
    """Whether the column never holds null."""
    key: bool = False
    """Whether it is a key column. Key columns come first. The table is sorted by them, and each key
    is unique."""
    aggregate: str | None = None
    """"sum", "min", "max" or "first": transform() gives what each row contributes, and the table
    keeps the total. All columns of the output that are not keys then need one."""


_NUMBERS = (ti.Int64, ti.Uint64, ti.Double)
AGGREGATES: Mapping[str, tuple[Any, ...]] = {
    "sum": _NUMBERS,
    "min": (*_NUMBERS, ti.Bool, ti.String),
    "max": (*_NUMBERS, ti.Bool, ti.String),
    "first": (*_NUMBERS, ti.Bool, ti.String, ti.Yson),
}
"""Function -> the types that it takes. An aggregate column has a physical type (YTsaurus,
ytlib/table_client/schema.cpp, ValidateAggregatedColumns; functions_builtin_registry.cpp)."""
_PHYSICAL = {
    "int64": (ti.Int8, ti.Int16, ti.Int32, ti.Interval, ti.Interval64, ti.Date32, ti.Datetime64,
              ti.Timestamp64),
    "uint64": (ti.Uint8, ti.Uint16, ti.Uint32, ti.Date, ti.Datetime, ti.Timestamp),
    "double": (ti.Float,),
    "string": (ti.Utf8, ti.Json, ti.Uuid),
}  # fmt: skip
"""What to use instead of a type that no function takes."""


Described = Column | tuple[str, Any, bool]
"""A column as tables.py may write it: a Column, or (name, type, required)."""


def resolved(table: str, described: Sequence[Described]) -> tuple[Column, ...]:
    """Return the columns of one list of tables.py with yt.type_info types.

    Raises JobError naming the list and what is wrong: an entry, a type, a repeated name, a key.
    """
    result: list[Column] = []
    for position, entry in enumerate(described):
        name = getattr(entry, "name", None)
        where = f"tables.py, {table}[{position}], " + (f"column {name}" if name else repr(entry))
        column = _column(where, entry)
        # Spark ignores the case of names.
        if column.name.lower() in {other.name.lower() for other in result}:
            raise JobError(
                f"{where}: duplicate column name",
                "rename one of the columns",
                code=ErrorCode.TABLES,
            )
        if not 1 <= len(column.name.encode()) <= 256 or column.name.startswith(("$", "@")):
            raise JobError(
                f"{where}: not a column name",
                "use 1 to 256 characters; names with $ are YTsaurus' own",
                code=ErrorCode.TABLES,
            )
        if {*".`"} & {*column.name}:
            raise JobError(
                f"{where}: Spark takes a dot in a name for a field of a struct, and a backtick for "
                "a quote",
                "leave the column out, a queue may have more than the job reads; or rename it"
                if table == "QUEUE"
                else "rename it",
                code=ErrorCode.TABLES,
            )
        if column.key and result and not result[-1].key:
            raise JobError(
                f"{where}: a key column after one that is not",
                "list the key columns first",
                code=ErrorCode.TABLES,
            )
        if column.key and not is_comparable(column.type):
            raise JobError(
                f"{where}: a key cannot be of type {spelled(column.type)}",
                "use a number, a text, a boolean or a time as the key",
                code=ErrorCode.TABLES,
            )
        if column.aggregate is not None and (problem := _of_aggregate(column)):
            raise JobError(f"{where}: {problem[0]}", problem[1], code=ErrorCode.TABLES)
        result.append(column)
    if not result:
        raise JobError(
            f"tables.py: {table} has no columns", "list at least one", code=ErrorCode.TABLES
        )
    return tuple(result)


def _of_aggregate(column: Column) -> tuple[str, str] | None:
    """Return what is wrong with the function of a column, and what to do; None if it fits."""
    function, type_ = str(column.aggregate), column.type
    if column.key:
        return "a key column cannot have aggregate=", "leave it out"
    if function not in AGGREGATES:
        return (
            f"ytstream has no aggregate function {column.aggregate!r}",
            f"use one of {', '.join(AGGREGATES)}; of an average, keep the sum and the count: the "
            "reader divides",
        )
    if type_ in AGGREGATES[function]:
        return None
    fitting = ", ".join(map(spelled, AGGREGATES[function]))
    remedy = f"use one of {fitting}"
    for name, types in _PHYSICAL.items():
        if type_ in types and NAMED_TYPES[name] in AGGREGATES[function]:
            remedy = f'use "{name}", in which the values of {spelled(type_)} fit'
    if type_ in (ti.Date, ti.Datetime, ti.Timestamp):
        remedy = 'use "int64" and give the time as a number, e.g. F.unix_micros("date_time")'
    return f"aggregate={function!r} does not go with type {spelled(type_)}", remedy


def is_totals(columns: Sequence[Described]) -> bool:
    """Return whether the table adds up what is written: its value columns have functions."""
    return any(getattr(column, "aggregate", None) is not None for column in columns)


def key_of(columns: Sequence[Column]) -> tuple[str, ...]:
    """Return the names of the key columns, in their order."""
    return tuple(column.name for column in columns if column.key)


def _rejected(queues: int) -> tuple[Column, ...]:
    return (
        *((Column("queue_id", ti.Utf8, key=True),) if queues > 1 else ()),
        Column("tablet_index", ti.Int64, key=True),
        Column("row_index", ti.Int64, key=True),
        Column("reason", ti.Utf8, required=True),
        Column("time", ti.Timestamp, required=True),
        Column("row", ti.Utf8, required=True),
    )


REJECTED_COLUMNS = _rejected(1)
"""In tables.py: the columns that the output of rejected rows has to have. Which these are depends
on the number of queues, so it is this very value that counts, not what is in it."""


def rejected_columns(queues: int) -> tuple[Column, ...]:
    """Return the columns that the output of rejected rows has to have, with that many queues."""
    return REJECTED_COLUMNS if queues == 1 else _rejected(queues)


def type_name(type_: Any) -> str:
    """Return the lower-case name of a yt.type_info type: ``int64``, ``list``, ``yson`` ..."""
    return str(type_.name).lower()


def spelled(type_: Any) -> str:
    """Return a yt.type_info type as tables.py writes it: ``int64``, ``ti.List[ti.Utf8]`` ..."""
    return _NAMES.get(type_) or _spelled(type_)


def _spelled(type_: Any) -> str:
    """Return a type as it is written inside another one."""
    inner: list[str] = []
    for each in ("item", "key", "value"):
        inner += [_spelled(part)] if (part := getattr(type_, each, None)) is not None else []
    for part in getattr(type_, "items", ()):
        named = isinstance(part, tuple)
        inner.append(f'"{part[0]}": {_spelled(part[1])}' if named else _spelled(part))
    if tag := getattr(type_, "tag", None):
        inner.append(f'"{tag}"')
    if type_name(type_) == "decimal":
        return f"ti.Decimal({type_.precision}, {type_.scale})"
    return f"ti.{type_.name}[{', '.join(inner)}]" if inner else f"ti.{type_.name}"


def _column(where: str, entry: Any) -> Column:
    column = Column(*entry) if isinstance(entry, tuple) and len(entry) == 3 else entry
    if not (
        isinstance(column, Column)
        and isinstance(column.name, str)
        and isinstance(column.required, bool)
        and isinstance(column.key, bool)
    ):
        raise JobError(
            f"{where}: wanted a Column, or (name, type, required)",
            'e.g. Column("price", "int64", required=True)',
            code=ErrorCode.TABLES,
        )
    type_ = NAMED_TYPES.get(column.type) if isinstance(column.type, str) else column.type
    if type_ is not None and ti.is_valid_type(type_) and type_name(type_) in ("optional", "null"):
        raise JobError(
            f"{where}: {spelled(type_)} may be null",
            "name the type inside it, and leave required=True out: the column may then be null",
            code=ErrorCode.TABLES,
        )
    if type_ is None or not ti.is_valid_type(type_):
        raise JobError(
            f"{where}: there is no type {column.type!r}",
            f"use a yt.type_info type or one of {', '.join(NAMED_TYPES)}",
            code=ErrorCode.TABLES,
        )
    return replace(column, type=type_)


def is_comparable(type_: Any) -> bool:
    """Return whether a sorted table may have a key of this type.

    The types are those of YTsaurus, "Sorted dynamic tables".
    """
    return type_ in NAMED_TYPES.values() and type_ not in (ti.Yson, ti.Json)
