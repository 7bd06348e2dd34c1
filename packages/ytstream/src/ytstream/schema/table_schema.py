"""Columns as YTsaurus stores them: a table's schema, and how two of them differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import yt.type_info as ti
from yt.wrapper.schema import TableSchema

from .columns import Column, spelled, type_name

SERVICE_COLUMNS = (
    Column("$timestamp", ti.Uint64, required=False),
    Column("$cumulative_data_weight", ti.Int64, required=False),
)
"""Filled in by the tablets; the Queue Agent needs them for lag and throughput figures (YTsaurus
documentation, "Queues")."""


def table_schema(columns: Sequence[Column]) -> Any:
    """Return a strict ytsaurus-client TableSchema, with unique keys where there are keys."""
    schema = TableSchema(strict=True, unique_keys=any(column.key for column in columns))
    for column in columns:
        stored = column.type if column.required else ti.Optional[column.type]
        order = "ascending" if column.key else None
        schema.add_column(column.name, stored, sort_order=order, aggregate=column.aggregate)
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


def functions_of(stored: Any) -> dict[str, str]:
    """Return the aggregate functions of a table's attribute `schema`, by column."""
    return {column["name"]: column["aggregate"] for column in stored if column.get("aggregate")}


def with_functions(columns: Sequence[Column], stored: Any) -> tuple[list[str], Any]:
    """Return which columns of a table lack their function, and its schema with all of them."""
    schema, has = TableSchema.from_yson_type(stored), functions_of(stored)
    wanted = {column.name: column.aggregate for column in columns if column.aggregate}
    lacking = [name for name in wanted if name not in has]
    for column in schema.columns:
        column.aggregate = column.aggregate or wanted.get(column.name)
    return lacking, schema.to_yson_type()


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
