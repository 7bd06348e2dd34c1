"""Queues of a producer: made by hand, with any columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import yt.type_info as ti
from yt.wrapper.schema import TableSchema

from ytstream import Column
from ytstream.cluster.client import Client
from ytstream_tools.demo import demo_tables


def make_queue(
    client: Client,
    path: str,
    columns: Sequence[Column],
    rows: Sequence[Mapping[str, Any]] = (),
    tablets: int = 1,
) -> str:
    """Create a mounted queue with these rows, and return its path."""
    schema = TableSchema(strict=True)
    for column in columns:
        schema.add_column(column.name, column.type if column.required else ti.Optional[column.type])
    attributes = {"dynamic": True, "schema": schema.to_yson_type(), "tablet_count": tablets}
    client.create("table", path, recursive=True, attributes=attributes)
    client.mount_table(path, sync=True)
    demo_tables.produce(client, path, rows, tablets)
    return path
