"""A large reference as `make reference` leaves it, filled over RPC, where rows go in fastest."""

from __future__ import annotations

from struct import Struct

from yt.wrapper import YtClient

from bench import filled
from bench.lookups import auction
from minicluster.rows.wire import INT64, STRING
from minicluster.testing import Running
from tests.support.examples import example
from ytstream.cluster import built_reference
from ytstream.schema.columns import key_of, resolved
from ytstream.schema.table_schema import table_schema

TABLETS = 4
_ROW = Struct("<QHBBIqHBBI16sHBBIq")
"""In the wire format: the number of values, the header of each and an int64, a text, an int64."""


def make(cluster: Running, path: str, rows: int) -> None:
    """Make the table of auctions, whose keys are 0 to ``rows`` - 1, in tablets of equal size."""
    columns = resolved("REFERENCE", example("transactional", "join").job.reference)
    client = YtClient(cluster.http, token="any")
    schema = table_schema(columns).to_yson_type()
    pivots = [[], *([rows * number // TABLETS] for number in range(1, TABLETS))]
    client.create("table", path, attributes={"dynamic": True, "schema": schema})
    client.reshard_table(path, pivot_keys=pivots, sync=True)
    client.mount_table(path, sync=True)
    names = [column.name for column in columns]
    filled.write(cluster, path, names, rows, _encoded)
    client.freeze_table(path, sync=True)
    built_reference.finish(client, path, "//home/static", tuple(key_of(columns)))


def _encoded(key: int) -> bytes:
    row = auction(key)
    text = row["category"].encode()
    return _ROW.pack(
        3, 0, INT64, 0, 0, key, 1, STRING, 0, len(text), text, 2, INT64, 0, 0, row["seller"]
    )
