"""Columns as YTsaurus stores them, and as Spark carries them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import yt.type_info as ti
from yt.wrapper.schema import TableSchema

from .columns import Column, spelled, type_name

if TYPE_CHECKING:  # provision and submit need no Spark
    from pyspark.sql.types import DataType

#: Filled in by the tablets; the Queue Agent needs them for lag and throughput figures
#: (YTsaurus documentation, "Queues").
SERVICE_COLUMNS = (
    Column("$timestamp", ti.Uint64, required=False),
    Column("$cumulative_data_weight", ti.Int64, required=False),
)


def table_schema(columns: Sequence[Column]) -> Any:
    """Return a strict ytsaurus-client TableSchema, with unique keys where there are keys."""
    schema = TableSchema(strict=True, unique_keys=any(column.key for column in columns))
    for column in columns:
        stored = column.type if column.required else ti.Optional[column.type]
        schema.add_column(column.name, stored, sort_order="ascending" if column.key else None)
    return schema


def split_by_position(tablets: Mapping[str, int]) -> dict[str, Any]:
    """Return the attributes of a table whose key is the position, for queues of those tablets.

    Rows go to the end of their tablet's key range: unsplit, one tablet would take all writes, and
    the balancer would merge small tablets again (YTsaurus, "Tablet balancing").
    """
    return {
        "pivot_keys": _pivot_keys(tablets),
        "tablet_balancer_config": {"enable_auto_reshard": False},
    }


def _pivot_keys(tablets: Mapping[str, int]) -> list[list[object]]:
    """Return the first keys of the output's tablets, one for each tablet of each queue."""
    several = len(tablets) > 1
    keys: list[list[object]] = [
        [queue, tablet] if several else [tablet]
        for queue, count in sorted(tablets.items())
        for tablet in range(count)
    ]
    return [[], *keys[1:]]


def differences(
    wanted: Any, found: Any, *, ignore: frozenset[str] = frozenset(), said_by: str = "tables.py"
) -> list[str]:
    """Return how ``found`` differs from ``wanted`` (TableSchemas), without columns ``ignore``.

    ``said_by`` names what ``wanted`` was made of.
    """
    want = {c.name: c.type for c in wanted.columns if c.name not in ignore}
    have = {c.name: c.type for c in found.columns if c.name not in ignore}
    lines = _of_columns(want, have, said_by)
    if (a := _key(wanted)) != (b := _key(found)):
        lines.append(f"the table's key columns are {b}, those of {said_by} {a}")
    elif wanted.unique_keys and not found.unique_keys:
        lines.append("the table's keys are not unique (unique_keys is false), and they must be")
    return sorted(lines)


def unlike(columns: Sequence[Column], stored: Any) -> list[str]:
    """Return how a table's attribute `schema` differs from ``columns``, read by their names.

    The table may have more columns, in any order, and any key.
    """
    want = {c.name: c.type for c in table_schema(columns).columns}
    have = {c.name: c.type for c in TableSchema.from_yson_type(stored).columns if c.name in want}
    return sorted(_of_columns(want, have, "tables.py"))


def _of_columns(want: Mapping[str, Any], have: Mapping[str, Any], said_by: str) -> list[str]:
    lines = [
        f"column {name}: the table lacks it, {said_by} has it" for name in want.keys() - have.keys()
    ]
    lines += [
        f"column {name}: the table has it, {said_by} does not" for name in have.keys() - want.keys()
    ]
    for name in want.keys() & have.keys():
        if line := _difference(want[name], have[name], said_by):
            lines.append(f"column {name}: {line}")
    return lines


def _difference(wanted: Any, found: Any, said_by: str) -> str | None:
    """Return how the types of a column differ, in the words of tables.py; None if they do not."""
    inner, has = _required(wanted), _required(found)
    if str(inner) != str(has):
        return f"the table has {spelled(has)}, {said_by} says {spelled(inner)}"
    if str(wanted) == str(found):
        return None
    if inner is wanted:
        return f"the table may hold null, {said_by} says required=True: remove that"
    return f"the table requires a value, {said_by} lacks required=True: add that"


def _required(type_: Any) -> Any:
    return type_.item if type_name(type_) == "optional" else type_


def _key(schema: Any) -> str:
    """Return the key columns; only one that is not ascending is said to be sorted otherwise."""
    keys = [(c.name, c.sort_order) for c in schema.columns if c.sort_order]
    order = (name if way == "ascending" else f"{name} ({way})" for name, way in keys)
    return ", ".join(order) or "none"


#: By type name: the Spark types that SPYT's sink writes into that column such that they come back
#: equal, SPYT's own among them. Shown by running the connector; int into double, for instance, ends
#: in "Illegal value" there (DynTableRowConverter, UnversionedValue).
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

_TIMES = ("date", "timestamp")
#: Names of types that Spark's cast() knows.
_CASTABLE = frozenset(
    ("boolean", "byte", "short", "integer", "long", "float", "double", "string", "binary")
).union(_TIMES)


#: Types that SPYT reads and cannot write back: refused at the start, not in the tenth batch.
_UNWRITABLE: Mapping[str, str] = {
    "decimal": "SPYT's sink cannot write decimals: store int64 minor units or a string",
    "uuid": "SPYT's sink sends a uuid as text, the table wants 16 bytes: declare utf8",
}
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


def unwritable(column: Column, data_type: DataType, maker: str = "transform()") -> str | None:
    """Return why SPYT's sink could not write ``data_type`` into ``column``; None when it can.

    ``maker`` is the function that gives the rows.
    """
    kind = type_name(column.type)
    if (given := data_type.typeName()) in (fitting := _WRITABLE[kind]):
        return None
    gives = "null and no type" if given == "void" else f"Spark's {data_type.simpleString()}"
    castable = [name for name in fitting if name in _CASTABLE]
    remedy = f'cast it, .cast("{castable[-1]}")' if castable else "give it that type"
    return (
        f"column {column.name}: {maker} gives {gives}, the table has "
        f"{spelled(column.type)}: {remedy}, or change tables.py"
    )
