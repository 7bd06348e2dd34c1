"""When the cluster has written rows of a queue: their column `$timestamp`."""

from collections.abc import Collection

from yt.common import YtError

from ..cluster.client import Client
from ..schema.table_schema import SERVICE_COLUMNS
from .queue_layout import Position

TIMESTAMP = SERVICE_COLUMNS[0].name
"""The column. Not every queue has it: its owner has to declare it."""


def row_timestamps(
    client: Client, path: str, rows: Collection[Position]
) -> dict[Position, int | None] | None:
    """Return the timestamps of those of the rows that are there; None for a queue without them."""
    if not rows:
        return {}
    query = (
        f"[$tablet_index], [$row_index], [{TIMESTAMP}] from [{path}] "
        f"where ([$tablet_index], [$row_index]) in ({', '.join(map(str, sorted(rows)))})"
    )
    try:
        found = [*client.select_rows(query)]
    except YtError as error:
        if TIMESTAMP in str(error):
            return None
        raise
    return {
        (int(row["$tablet_index"]), int(row["$row_index"])): (
            None if row[TIMESTAMP] is None else int(row[TIMESTAMP])
        )
        for row in found
    }
