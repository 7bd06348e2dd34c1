"""Reading tables in bulk: which rows a rich path names, and how a path is cut into partitions.

Static tables are read by row index or key, sorted dynamic ones by key, ordered dynamic ones by
tablet and row index (documentation, "YPath", ranges). Dynamic tables need not be mounted for it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from yt import yson

from ..core.errors import generic, not_supported
from ..cypress.ypath import RichPath, parse_rich
from ..rows import wire
from ..rows.from_wire import Key, key_of
from ..rows.from_yson import from_yson
from ..rows.rowset import RowsetColumn
from ..rows.schema import Column, TableSchema
from . import static
from .commands import Tables
from .ordered import data_weight
from .table import Table, pivot_to_yson

AFTER = (256,)
"""Behind a key in the tuples that order keys: greater than every key that begins with it."""

Limit = Mapping[str, Any]
NO_LIMIT: Limit = {}


@dataclass
class Reading:
    """The answer to a read: the columns in their order, and the rows with ids in that order."""

    columns: list[Column]
    rows: list[bytes]
    start_row_index: int = 0

    @property
    def schema(self) -> TableSchema:
        return TableSchema(tuple(self.columns))

    @property
    def rowset_columns(self) -> list[RowsetColumn]:
        return [column.described for column in self.columns]


LACKING = frozenset(
    {
        "access_method",
        "input_query",
        "rename_columns",
        "retention_timestamp",
        "versioned_read_options",
    }
)
"""Attributes of a path that change what is read, on a real cluster (client/ypath/rich.cpp)."""


def read_table(tables: Tables, path: str, *, tx: str | None = None) -> Reading:
    """Return the rows that a rich path names. Raises YtError."""
    rich = parse_rich(path)
    if lacking := LACKING & rich.attributes.keys():
        raise not_supported(f"reading a path with {', '.join(sorted(lacking))}")
    _, table = tables.node(rich.path, tx)
    timestamp = rich.attributes.get("timestamp")
    found: list[bytes] = []
    for lower, upper in _ranges(rich):
        found.extend(_rows(table, lower, upper, timestamp))
    columns, selected = _select(static.columns_of(table), rich.columns, found)
    first = _ranges(rich)[0][0].get("row_index", 0) if not table.dynamic and rich.ranges else 0
    return Reading(columns, selected, first)


def partition_table(tables: Tables, path: str, weight: int, *, tx: str | None = None) -> list[Any]:
    """Cut the path into paths of one range each, of about `weight` bytes: YSON with attributes.

    A path that has ranges already is cut into these. Static tables are cut by rows, sorted dynamic
    ones at their pivot keys.
    """
    rich = parse_rich(path)
    _, table = tables.node(rich.path, tx)
    given = [limits for limits in _ranges(rich) if limits != (NO_LIMIT, NO_LIMIT)]
    cuts: list[tuple[Limit, Limit]]
    if given:
        cuts = given
    elif not table.dynamic:
        cuts = _cut_by_rows(table, max(weight, 1))
    elif table.sorted:
        keys = [{"key": pivot_to_yson(tablet.pivot)} for tablet in table.tablets]
        cuts = list(zip(keys, [*keys[1:], NO_LIMIT], strict=True))
    else:
        # SPYT cuts such tables by tablets itself, for this very reason.
        raise not_supported("partitioning of an ordered dynamic table")
    others = {name: value for name, value in rich.attributes.items() if name != "ranges"}
    if rich.columns is not None:
        others["columns"] = rich.columns
    return [
        # SPYT takes it for granted that each range has both limits.
        _text(rich.path, {**others, "ranges": [{"lower_limit": lower, "upper_limit": upper}]})
        for lower, upper in cuts
    ]


def _text(path: str, attributes: dict[str, Any]) -> str:
    text = yson.dumps(attributes, yson_format="text", yson_type="map_fragment").decode()
    return f"<{text}>{path}"


def _cut_by_rows(table: Table, weight: int) -> list[tuple[Limit, Limit]]:
    count = len(table.static_rows)
    parts = max(1, sum(map(data_weight, table.static_rows)) // weight)
    step = max(1, -(-count // parts))
    return [
        ({"row_index": start}, {"row_index": min(start + step, count)})
        for start in range(0, count, step)
    ]


def _ranges(rich: RichPath) -> list[tuple[Limit, Limit]]:
    """Yield (lower, upper) limits, at least one pair; limits without a condition come out empty."""
    if rich.ranges is None:
        return [(NO_LIMIT, NO_LIMIT)]
    found = []
    for item in rich.ranges:
        exact = item.get("exact")
        lower, upper = item.get("lower_limit", NO_LIMIT), item.get("upper_limit", NO_LIMIT)
        if exact is not None:
            lower, upper = exact, _successor(exact)
        found.append((_meaningful(lower), _meaningful(upper)))
    return found


def _meaningful(limit: Limit) -> Limit:
    return {name: value for name, value in limit.items() if name != "key" or value}


def _successor(limit: Limit) -> Limit:
    if "key" in limit:
        return {"key_bound": ["<=", limit["key"]]}
    name = "row_index" if "row_index" in limit else "tablet_index"
    return {**limit, name: limit[name] + 1}


def _rows(table: Table, lower: Limit, upper: Limit, timestamp: int | None) -> list[bytes]:
    if not table.dynamic:
        return _static_rows(table, lower, upper)
    if not table.sorted and any(
        name in limit for limit in (lower, upper) for name in ("key", "key_bound")
    ):
        # server/master/table_server/table_node_proxy.cpp, ValidateReadLimit
        raise generic("Key selectors are not supported for unsorted tables")
    if table.sorted:
        low, high = (_key(table.schema, limit) for limit in (lower, upper))
        return [row for _, row in table.data.scan(timestamp, low, high)]
    return list(_ordered_rows(table, lower, upper, timestamp))


def _static_rows(table: Table, lower: Limit, upper: Limit) -> list[bytes]:
    found = table.static_rows
    bounds = [0, len(found)]
    for end, limit in enumerate((lower, upper)):
        key = _key(table.schema, limit)
        if "row_index" in limit:
            bounds[end] = max(int(limit["row_index"]), 0)
        elif key is not None:
            count = table.schema.key_count
            bounds[end] = bisect_left(found, key, key=lambda row: key_of(row, count))
    return found[bounds[0] : bounds[1]]


def _ordered_rows(
    table: Table, lower: Limit, upper: Limit, timestamp: int | None
) -> Iterator[bytes]:
    for limit in (lower, upper):
        if not limit.keys() <= {"tablet_index", "row_index"}:
            raise generic("Ordered dynamic tables are read by tablet and row index only")
    low = (lower.get("tablet_index", 0), lower.get("row_index", 0))
    high = (upper.get("tablet_index", len(table.tablets)), upper.get("row_index", 0))
    for index, tablet in enumerate(table.tablets):
        data = tablet.data
        start, end = data.trimmed, data.total if timestamp is None else data.end_at(timestamp)
        if index < low[0] or index > high[0]:
            continue
        if index == low[0]:
            start = max(start, low[1])
        if index == high[0]:
            end = min(end, high[1])
        yield from data.rows[max(start - data.trimmed, 0) : max(end - data.trimmed, 0)]


def _key(schema: TableSchema, limit: Limit) -> Key | None:
    """Return a limit as a key that orders before or after the rows it divides; None for none."""
    if "key_bound" in limit:
        relation, values = limit["key_bound"]
        after = relation in (">", "<=")
    elif "key" in limit:
        values, after = limit["key"], False
    else:
        return None
    if not schema.sorted:
        raise generic("Only a sorted table can be read by key")
    parts: list[Any] = []
    for column, value in zip(schema.columns, values, strict=False):
        kind = getattr(value, "attributes", {}).get("type")
        if kind == "min":
            return tuple(parts)
        if kind == "max":
            return (*parts, *AFTER)
        code, decoded = from_yson(column, value)
        parts += [code, 0 if decoded is None else decoded]
    return (*parts, *AFTER) if after else tuple(parts)


def _select(
    columns: list[Column], names: list[str] | None, found: list[bytes]
) -> tuple[list[Column], list[bytes]]:
    if names is None or names == [column.name for column in columns]:
        return columns, found
    # Columns that the table does not have are left out, as YT does for a column selector.
    wanted = [index for index, column in enumerate(columns) if column.name in set(names)]
    selected = []
    for row in found:
        pieces = wire.chunks(row)
        selected.append(
            wire.from_chunks(
                [
                    wire.renumbered(pieces[index], new)
                    for new, index in enumerate(wanted)
                    if index in pieces
                ]
            )
        )
    return [columns[index] for index in wanted], selected
