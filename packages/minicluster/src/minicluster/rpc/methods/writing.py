"""Bulk writes of static tables, as Spark's batch writer makes them: a stream for each task."""

from __future__ import annotations

from typing import Any

from google.protobuf.message import DecodeError

from ...control.parameters import read
from ...core.errors import PROTOCOL, YtError, generic, not_supported
from ...cypress.ypath import parse_rich
from ...tables.static import row_weight_limit
from .. import rowsets
from ..messages import text
from ..protos import api
from ..rowsets import WIRE, fill_schema, unpack
from ..service import Invocation, method
from .cypress import from_yson


@method("WriteTable", parameters=read("path config"))
async def write_table(call: Invocation) -> None:
    """Send the table's schema, take blocks of rows, apply nothing before the client's null.

    Source: server/rpc_proxy/api_service.cpp, WriteTableImpl. A real proxy takes the lock of the
    table in an upload transaction before it sends the schema; here it is taken at the end (model).
    """
    message = call.message
    rich = parse_rich(text(message.path))
    tables = call.cluster.tables
    config = from_yson(message.config) if message.config else {}
    blocks = tables.blocks(rich.path, rich.attributes, row_weight_limit(config), call.transaction)
    meta: Any = api("TWriteTableMeta")()
    fill_schema(meta.schema, blocks.schema)
    await call.stream.write(meta.SerializeToString())
    call.stream.end()
    async for block in call.stream.chunks():
        blocks.add(*_rowset(block))
    tables.write_blocks(rich.path, blocks, call.transaction)


def _rowset(block: bytes) -> tuple[list[str], bytes]:
    """Return (names that it adds to the name table, rowset) of a block. Raises YtError."""
    parts = unpack(block)
    if len(parts) != 2:
        raise generic(f"Expected 2 parts in a row stream block, got {len(parts)}")
    try:
        descriptor = api("TRowsetDescriptor").FromString(parts[0])
    except DecodeError as error:
        raise YtError(PROTOCOL, f"Error deserializing rowset descriptor: {error}") from None
    if descriptor.rowset_format != WIRE:
        raise not_supported("rows that are not in the wire format (WriteTable)")
    return rowsets.names(descriptor), parts[1]
