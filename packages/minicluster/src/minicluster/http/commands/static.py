"""Rows of static tables, and bulk reads of dynamic ones."""

from __future__ import annotations

from typing import Any

from ...control.parameters import IN_ORDER, OPEN, TUNING, only, read
from ...core import ids
from ...core.errors import not_supported
from ...cypress.ypath import parse_rich
from ...rows.named import shown
from ...rows.rowset import Rowset
from ...tables.ranges import read_table as read_rows
from ...tables.static import row_weight_limit
from ...tables.upload import upload
from ..arrow_format import Typed
from ..registry import TABULAR, Invocation, WithParameters, command


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
