"""Rows of dynamic tables, in and out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...control.parameters import NO_REPLICAS, NO_UDF, TUNING, WHOLE, Harmless, each, only, read
from ...query import Statistics, select
from ...rows import wire
from ...tables.commands import require_lookup
from ...tables.row_locks import Taken, from_bits
from .. import rowsets, versioned
from ..bus import Part
from ..messages import text
from ..service import Invocation, method
from .transactions import tablet_transaction

_IN_SEQUENCE = Harmless("a client's requests are applied in the order in which they come")
_TUNED = each(
    "enable_code_cache enable_parallelize_unordered_group_by execution_backend "
    "execution_pool expression_builder_version hyper_log_log_precision "
    "max_join_batch_size max_subqueries memory_limit_per_node "
    "merge_versioned_rows min_row_count_per_subquery new_range_inference "
    "optimization_level range_expansion_limit rowset_processing_batch_size "
    "statistics_aggregation use_lookup_cache use_order_by_in_join_subqueries "
    "verbose_logging write_rowset_size",
    TUNING,
)

SYNC_LAST_COMMITTED = 0x3FFFFFFFFFFFFF01
"""The first timestamp with a special meaning; all of them read the newest state here (model)."""


def _timestamp(value: int) -> int | None:
    return None if value >= SYNC_LAST_COMMITTED else value


@method(
    "ModifyRows",
    parameters={
        **read(
            "transaction_id path row_modification_types rowset_descriptor "
            "row_legacy_read_locks row_legacy_locks"
        ),
        "sequence_number": _IN_SEQUENCE,
        "sequence_number_source_id": _IN_SEQUENCE,
        "allow_missing_key_columns": only(False),
        "require_sync_replica": NO_REPLICAS,
    },
)
def modify_rows(call: Invocation) -> None:
    message = call.message
    locks = _locks(message)
    transaction = tablet_transaction(call)
    if any(locks) and transaction is not None:
        names = rowsets.names(message.rowset_descriptor)
        rowset, path = rowsets.joined(call.attachments), text(message.path)
        call.cluster.tables.lock_rowset(path, rowset, names, locks, transaction)
        return
    call.cluster.tables.modify_rowset(
        text(message.path),
        rowsets.joined(call.attachments),
        [*message.row_modification_types],
        rowsets.names(message.rowset_descriptor),
        tx=transaction,
    )


def _locks(message: Any) -> list[Taken]:
    """Return the locks that the client takes on each row, beside those that a write takes."""
    read = [*message.row_legacy_read_locks]
    masks = [*message.row_legacy_locks]
    if not (any(read) or any(masks)):  # the native client sends a zero for each row
        return []
    count = max(len(read), len(masks))
    given = zip(read or [0] * count, masks or [0] * count, strict=False)
    return [from_bits(*bits) for bits in given]


@method(
    "LookupRows",
    parameters={
        **read("path timestamp columns keep_missing_rows enable_partial_result rowset_descriptor"),
        "allow_missing_key_columns": only(False),
        **each("execution_pool multiplexing_band use_lookup_cache", TUNING),
        "replica_consistency": NO_REPLICAS,
        "retention_timestamp": only(0),
    },
)
def lookup_rows(call: Invocation) -> Sequence[Part]:
    message = call.message
    require_lookup(message.enable_partial_result, message.keep_missing_rows)
    rowset = call.cluster.tables.lookup(
        text(message.path),
        rowsets.joined(call.attachments),
        rowsets.names(message.rowset_descriptor),
        columns=[text(name) for name in message.columns] or None,
        timestamp=_timestamp(message.timestamp),
        keep_missing=message.keep_missing_rows,
    )
    return rowsets.write(call.reply.rowset_descriptor, rowset)


@method(
    "VersionedLookupRows",
    parameters={
        **read(
            "path timestamp columns keep_missing_rows enable_partial_result rowset_descriptor "
            "retention_config"
        ),
        "allow_missing_key_columns": only(False),
        **each("execution_pool multiplexing_band use_lookup_cache", TUNING),
        "replica_consistency": NO_REPLICAS,
    },
)
def versioned_lookup_rows(call: Invocation) -> Sequence[Part]:
    """Answer with the versions of rows; with a retention config, with as many as it keeps."""
    message = call.message
    require_lookup(message.enable_partial_result, message.keep_missing_rows)
    names = rowsets.names(message.rowset_descriptor)
    wanted = [text(name) for name in message.columns] or None
    limit = (
        message.retention_config.max_data_versions if message.HasField("retention_config") else None
    )
    table, columns, found = call.cluster.tables.versions(
        text(message.path), rowsets.joined(call.attachments), names, columns=wanted
    )
    at = _timestamp(message.timestamp)
    rows: list[bytes | None] = []
    for versions in found:
        seen = [version for version in versions if at is None or version[0] <= at]
        if seen:
            rows.append(versioned.encode(seen, table.schema.key_count, columns, limit or None))
        elif message.keep_missing_rows:
            rows.append(None)
    descriptor = call.reply.rowset_descriptor
    described = table.schema.rowset_columns()
    rowsets.describe(descriptor, [described[index] for index in columns])
    descriptor.rowset_kind = rowsets.VERSIONED
    return [wire.join(rows)]


@method(
    "SelectRows",
    parameters={
        **_TUNED,
        **read("query timestamp allow_join_without_index input_row_limit"),
        "allow_full_scan": only(True),
        "fail_on_incomplete_result": WHOLE,
        "read_from": NO_REPLICAS,
        "replica_consistency": NO_REPLICAS,
        "retention_timestamp": only(0),
        "syntax_version": only(1),
        "udf_registry_path": NO_UDF,
        "use_canonical_null_relations": only(False),
    },
)
def select_rows(call: Invocation) -> Sequence[Part]:
    message = call.message
    limit = message.input_row_limit if message.HasField("input_row_limit") else None
    statistics = None if limit is None else Statistics()
    rowset = select(
        call.cluster.tables,
        text(message.query),
        _timestamp(message.timestamp),
        join_without_key=message.allow_join_without_index,
        statistics=statistics,
    )
    if statistics is not None:
        statistics.verify(limit)
    return rowsets.write(call.reply.rowset_descriptor, rowset)
