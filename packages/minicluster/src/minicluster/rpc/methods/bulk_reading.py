"""Bulk reads of tables, as Spark's batch reader makes them: partitions, then a stream for each."""

from __future__ import annotations

from typing import Any

from ...control.parameters import IN_ORDER, OPEN, TUNING, Harmless, each, only, read
from ...core.errors import not_supported
from ...rows import wire
from ...tables.ordered import data_weight
from ...tables.ranges import Reading, partition_table, read_table
from ..messages import text
from ..protos import api
from ..rowsets import WIRE, describe, fill_schema, pack
from ..service import Invocation, method

ROWS = 10_000
"""Rows of one attachment at most."""
DEFAULT_PARTITION = 1 << 30


@method(
    "PartitionTables",
    parameters={
        **read("paths data_weight_per_partition compressed_data_size_per_partition enable_cookies"),
        **each(
            "adjust_data_weight_per_partition chunk_slice_fetcher_config "
            "fetch_chunk_spec_config fetch_cookie_node_descriptors fetcher_config",
            TUNING,
        ),
        "enable_key_guarantee": only(False),
        "omit_inaccessible_rows": OPEN,
        "partition_mode": Harmless("partitions come in the order of the rows"),
    },
)
def partition_tables(call: Invocation) -> None:
    """Answer with one rich path per partition, in the textual form that YPaths have."""
    message = call.message
    if message.enable_cookies:
        raise not_supported("partition cookies (distributed reading)")
    weight = (
        message.data_weight_per_partition
        or message.compressed_data_size_per_partition
        or DEFAULT_PARTITION
    )
    for item in message.paths:
        for cut in partition_table(call.cluster.tables, text(item), weight, tx=call.transaction):
            partition = call.reply.partitions.add()
            partition.table_ranges.append(cut.encode())


@method(
    "ReadTable",
    parameters={
        **read("path desired_rowset_format"),
        "arrow_fallback_rowset_format": Harmless("Arrow, which may need it, is refused"),
        "config": TUNING,
        "enable_any_unpacking": only(True),
        "enable_range_index": only(False),
        "enable_row_index": only(False),
        "enable_table_index": only(False),
        "omit_inaccessible_columns": OPEN,
        "omit_inaccessible_rows": OPEN,
        "unordered": IN_ORDER,
    },
)
async def read_rows(call: Invocation) -> None:
    """Send meta, blocks of rows and a null attachment, then respond."""
    message = call.message
    if message.desired_rowset_format != WIRE:
        # It would need an Arrow library; SPYT asks for it when the table is optimized for scan.
        raise not_supported('reading in Arrow format (use the read option "arrow_enabled"="false")')
    reading = read_table(call.cluster.tables, text(message.path), tx=call.transaction)
    statistics = _statistics(reading, len(reading.rows))
    meta = api("TRspReadTableMeta")(start_row_index=reading.start_row_index)
    meta.statistics.CopyFrom(statistics)
    fill_schema(meta.schema, reading.schema)
    await call.stream.write(meta.SerializeToString())
    # A block without rows ends the table: the native client waits for it before the stream's end.
    for start in range(0, len(reading.rows) + ROWS, ROWS):
        block = reading.rows[start : start + ROWS]
        descriptor = api("TRowsetDescriptor")()
        if start == 0:
            # Later ones name only what was added to the name table, which is nothing.
            describe(descriptor, reading.rowset_columns)
        rowset = pack(descriptor.SerializeToString(), wire.join(list(block)))
        await call.stream.write(pack(rowset, statistics.SerializeToString()))
    await call.stream.finish()


def _statistics(reading: Reading, count: int) -> Any:
    statistics = api("TRowsetStatistics")(total_row_count=count)
    weight = sum(map(data_weight, reading.rows))
    statistics.data_statistics.row_count = count
    statistics.data_statistics.data_weight = weight
    statistics.data_statistics.uncompressed_data_size = weight
    statistics.data_statistics.compressed_data_size = weight
    return statistics
