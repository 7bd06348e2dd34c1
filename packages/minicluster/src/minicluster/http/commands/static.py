"""Rows of static tables, and bulk reads of dynamic ones."""

from __future__ import annotations

from typing import Any

from ...control.parameters import IN_ORDER, OPEN, TUNING, each, only, read
from ...core import ids
from ...core.errors import not_supported
from ...cypress.ypath import parse_rich
from ...rows import wire
from ...rows.named import shown
from ...rows.rowset import Rowset
from ...tables.ranges import Reading
from ...tables.ranges import read_table as read_rows
from ...tables.static import row_weight_limit
from ...tables.upload import upload
from ..arrow_format import Typed
from ..registry import STRUCTURED, TABULAR, Invocation, WithParameters, command


@command(
    "read_table",
    parameters={
        **read("path control_attributes transaction_id"),
        "omit_inaccessible_columns": OPEN,
        "omit_inaccessible_rows": OPEN,
        "start_row_index_only": only(False),
        "table_reader": TUNING,
        "unordered": IN_ORDER,
    },
    output=TABULAR,
    heavy=True,
    schemaless=True,
)
def read_table(call: Invocation) -> Any:
    path = call.rich()
    asked = [name for name, wanted in call.mapping("control_attributes").items() if wanted]
    if asked:
        raise not_supported(f"read_table with control attributes ({', '.join(sorted(asked))})")
    reading = read_rows(call.cluster.tables, path, tx=call.tx)
    rowset = Rowset(reading.rowset_columns, reading.rows)
    parameters = {
        "start_row_index": reading.start_row_index,
        "approximate_row_count": len(reading.rows),
    }
    wanted = call.format("output")
    if wanted.name == "arrow":
        return WithParameters(Typed(reading.columns, reading.rows), parameters)
    return WithParameters(shown(rowset, positional=wanted.positional), parameters)


@command(
    "get_table_columnar_statistics",
    parameters={
        **read("paths transaction_id"),
        **each("fetcher_mode max_chunks_per_node_fetch enable_early_finish", TUNING),
        "enable_read_size_estimation": only(False),
    },
    output=STRUCTURED,
    heavy=True,
)
def get_table_columnar_statistics(call: Invocation) -> Any:
    """Count values. Model: nothing is said of the least and the greatest values.

    Source: client/driver/table_commands.cpp, TGetTableColumnarStatisticsCommand.
    """
    paths = call.require("paths")
    return [_statistics(read_rows(call.cluster.tables, path, tx=call.tx)) for path in paths]


def _statistics(reading: Reading) -> dict[str, Any]:
    names = [column.name for column in reading.rowset_columns]
    weights, counts = dict.fromkeys(names, 0), dict.fromkeys(names, 0)
    for row in reading.rows:
        for column, kind, value in wire.values(row):
            if kind != wire.NULL:
                counts[names[column]] += 1
                weights[names[column]] += len(value) if isinstance(value, bytes) else 8
    return {
        "column_data_weights": weights,
        "legacy_chunks_data_weight": 0,
        "column_non_null_value_counts": counts,
        "chunk_row_count": len(reading.rows),
        "legacy_chunk_row_count": 0,
    }


@command(
    "write_table",
    parameters={**read("path table_writer transaction_id"), "max_row_buffer_size": TUNING},
    input=TABULAR,
    volatile=True,
    heavy=True,
)
def write_table(call: Invocation) -> None:
    rich = parse_rich(call.rich())
    tables = call.cluster.tables
    schema = upload(tables.node(rich.path, call.tx)[1], rich.attributes).schema
    most = row_weight_limit(call.mapping("table_writer"))
    rows = call.rows(schema)
    tables.write(rich.path, rows, attributes=rich.attributes, most=most, tx=call.tx)


@command(
    "alter_table",
    parameters={
        **read("path schema dynamic"),
        "schema_modification": only("none"),
        "transaction_id": only(ids.NULL),
    },
    volatile=True,
)
def alter_table(call: Invocation) -> None:
    dynamic = call.flag("dynamic") if call.get("dynamic") is not None else None
    call.cluster.tables.alter(call.path(), schema=call.get("schema"), dynamic=dynamic)
