"""The use of each field of each RPC request (names: api_service.proto).

All fields of the messages in `PARTS` are named, with a dot. `EVERY` holds for all methods that have
such fields. What is neither in `EVERY` nor among a method's own is refused if it is set, as is a
field that the protocol of the SPYT wheel does not have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from google.protobuf.unknown_fields import UnknownFieldSet

from ..control.parameters import (
    AT_ONCE,
    IN_ORDER,
    LASTING,
    NO_ACCESS,
    NO_INTERRUPT,
    NO_QUOTA,
    NO_REPLICAS,
    NO_UDF,
    ONE_KIND,
    ONE_MASTER,
    OPEN,
    TUNING,
    VIRTUAL,
    WHOLE,
    Harmless,
    Known,
    Rule,
    only,
    read,
)

_NO_PINGS = Harmless("says when the client or the proxy pings; neither is ours to do")

PARTS = frozenset(
    {
        "transactional_options",
        "mutating_options",
        "master_read_options",
        "suppressable_access_tracking_options",
        "tablet_read_options",
        "tablet_range_options",
        "row_batch_read_options",
        "versioned_read_options",
    }
)

EVERY: dict[str, Rule] = {
    **read("prerequisite_options", "transactional_options.transaction_id"),
    "transactional_options.ping": _NO_PINGS,
    "transactional_options.ping_ancestors": _NO_PINGS,
    "transactional_options.suppress_transaction_coordinator_sync": ONE_MASTER,
    "transactional_options.suppress_upstream_sync": ONE_MASTER,
    "transactional_options.suppress_strongly_ordered_transaction_barrier": ONE_MASTER,
    "mutating_options.mutation_id": Harmless("each request arrives once"),
    "mutating_options.retry": only(False),
    "master_read_options.read_from": ONE_MASTER,
    "master_read_options.expire_after_successful_update_time": ONE_MASTER,
    "master_read_options.expire_after_failed_update_time": ONE_MASTER,
    "master_read_options.cache_sticky_group_size": ONE_MASTER,
    "master_read_options.disable_per_user_cache": ONE_MASTER,
    "master_read_options.success_staleness_bound": ONE_MASTER,
    "suppressable_access_tracking_options.suppress_access_tracking": NO_ACCESS,
    "suppressable_access_tracking_options.suppress_modification_tracking": NO_ACCESS,
    "suppressable_access_tracking_options.suppress_expiration_timeout_renewal": NO_ACCESS,
    "tablet_read_options.read_from": NO_REPLICAS,
    "tablet_read_options.cached_sync_replicas_timeout": NO_REPLICAS,
    "versioned_read_options.read_mode": only(0),
}

_ATTRIBUTES = read("attributes", "legacy_attributes")
_CLONE: dict[str, Rule] = {
    **read("src_path", "dst_path", "recursive", "force"),
    **read("preserve_account", "preserve_owner", "preserve_acl"),
    **read("preserve_creation_time", "preserve_modification_time"),
    **read("preserve_expiration_time", "preserve_expiration_timeout"),
    "allow_secondary_index_abandonment": Harmless("tables have no secondary indices"),
    "enable_cross_cell_copying": NO_QUOTA,
    "pessimistic_quota_check": NO_QUOTA,
}
_TABLETS = read(
    "path", "tablet_range_options.first_tablet_index", "tablet_range_options.last_tablet_index"
)
_TUNED = dict.fromkeys(
    (
        "enable_code_cache",
        "enable_parallelize_unordered_group_by",
        "execution_backend",
        "execution_pool",
        "expression_builder_version",
        "hyper_log_log_precision",
        "max_join_batch_size",
        "max_subqueries",
        "memory_limit_per_node",
        "merge_versioned_rows",
        "min_row_count_per_subquery",
        "new_range_inference",
        "optimization_level",
        "range_expansion_limit",
        "rowset_processing_batch_size",
        "statistics_aggregation",
        "use_lookup_cache",
        "use_order_by_in_join_subqueries",
        "verbose_logging",
        "write_rowset_size",
    ),
    TUNING,
)
_LIMITS: dict[str, Rule] = {
    **read("row_batch_read_options.max_row_count", "row_batch_read_options.max_data_weight"),
    "row_batch_read_options.data_weight_per_row_hint": TUNING,
    "replica_consistency": NO_REPLICAS,
}
_SESSION = read("producer_path", "queue_path", "session_id")

_OPERATION = read("operation_id", "operation_alias")

OF_METHODS: dict[str, Mapping[str, Rule]] = {
    # Cypress
    "GetNode": {
        **read("path"),
        **_ATTRIBUTES,
        "max_size": VIRTUAL,
    },
    "ListNode": {**read("path", "max_size"), **_ATTRIBUTES},
    "ExistsNode": read("path"),
    "SetNode": read("path", "value", "recursive", "force"),
    "MultisetAttributesNode": {**read("path", "subrequests"), "force": only(False)},
    "CreateNode": read(
        "path",
        "type",
        "attributes",
        "recursive",
        "force",
        "ignore_existing",
        "lock_existing",
        "ignore_type_mismatch",
    ),
    "RemoveNode": read("path", "recursive", "force"),
    "CopyNode": {**_CLONE, **read("ignore_existing", "lock_existing")},
    "MoveNode": _CLONE,
    "ConcatenateNodes": {**read("src_paths", "dst_path"), "fetcher": TUNING},
    "LinkNode": read(
        "src_path",
        "dst_path",
        "attributes",
        "recursive",
        "force",
        "ignore_existing",
        "lock_existing",
    ),
    "LockNode": read("path", "mode", "waitable", "child_key", "attribute_key"),
    "UnlockNode": read("path"),
    # Files and bulk reads
    "ReadFile": {**read("path", "offset", "length"), "config": TUNING},
    "WriteFile": {**read("path", "compute_md5"), "config": TUNING},
    "PartitionTables": {
        **read("paths", "data_weight_per_partition", "compressed_data_size_per_partition"),
        **read("enable_cookies"),
        "adjust_data_weight_per_partition": TUNING,
        "chunk_slice_fetcher_config": TUNING,
        "enable_key_guarantee": only(False),
        "fetch_chunk_spec_config": TUNING,
        "fetch_cookie_node_descriptors": TUNING,
        "fetcher_config": TUNING,
        "omit_inaccessible_rows": OPEN,
        "partition_mode": Harmless("partitions come in the order of the rows"),
    },
    "ReadTable": {
        **read("path", "desired_rowset_format"),
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
    "WriteTable": read("path", "config"),
    # Tables
    "MountTable": {**_TABLETS, **read("freeze")},
    "UnmountTable": {**_TABLETS, "force": AT_ONCE},
    "RemountTable": _TABLETS,
    "FreezeTable": _TABLETS,
    "UnfreezeTable": _TABLETS,
    "ReshardTable": {
        **_TABLETS,
        **read("tablet_count", "rowset_descriptor"),
        "enable_slicing": only(False),
        "uniform": only(False),
    },
    "TrimTable": read("path", "tablet_index", "trimmed_row_count"),
    "AlterTable": {
        **read("path", "schema", "dynamic"),
        "schema_modification": only(0),
        "transactional_options.transaction_id": only(),
    },
    "GetTabletInfos": {**read("path", "tablet_indexes"), "request_errors": only(False)},
    "GetTablePivotKeys": read("path", "represent_key_as_list"),
    # Rows
    "ModifyRows": {
        **read("transaction_id", "path", "row_modification_types", "rowset_descriptor"),
        "allow_missing_key_columns": only(False),
        "require_sync_replica": NO_REPLICAS,
    },
    "LookupRows": {
        **read("path", "timestamp", "columns", "keep_missing_rows", "rowset_descriptor"),
        "allow_missing_key_columns": only(False),
        "enable_partial_result": WHOLE,
        "execution_pool": TUNING,
        "multiplexing_band": TUNING,
        "replica_consistency": NO_REPLICAS,
        "retention_timestamp": only(0),
        "use_lookup_cache": TUNING,
    },
    "SelectRows": {
        **read("query", "timestamp", "allow_join_without_index"),
        **_TUNED,
        "allow_full_scan": only(True),
        "fail_on_incomplete_result": WHOLE,
        "read_from": NO_REPLICAS,
        "replica_consistency": NO_REPLICAS,
        "retention_timestamp": only(0),
        "syntax_version": only(1),
        "udf_registry_path": NO_UDF,
        "use_canonical_null_relations": only(False),
    },
    # Queues
    "PullQueue": {
        **read("queue_path", "partition_index", "offset"),
        **_LIMITS,
        "use_native_tablet_node_api": TUNING,
    },
    "PullConsumer": {**read("consumer_path", "queue_path", "partition_index", "offset"), **_LIMITS},
    "AdvanceConsumer": read(
        "transaction_id",
        "consumer_path",
        "queue_path",
        "partition_index",
        "old_offset",
        "new_offset",
    ),
    "RegisterQueueConsumer": read("queue_path", "consumer_path", "vital", "partitions"),
    "UnregisterQueueConsumer": read("queue_path", "consumer_path"),
    "ListQueueConsumerRegistrations": read("queue_path", "consumer_path"),
    "CreateQueueProducerSession": {**_SESSION, **read("user_meta")},
    "RemoveQueueProducerSession": _SESSION,
    "PushQueueProducer": {
        **_SESSION,
        **read("transaction_id", "epoch", "user_meta", "sequence_number", "rowset_descriptor"),
        "require_sync_replica": NO_REPLICAS,
    },
    # Transactions
    "StartTransaction": {
        **read("type", "timeout", "id", "parent_id", "atomicity", "attributes", "deadline"),
        **read("prerequisite_transaction_ids"),
        "auto_abort": _NO_PINGS,
        "durability": LASTING,
        "ping": _NO_PINGS,
        "ping_ancestors": _NO_PINGS,
        "pinger_address": _NO_PINGS,
        "sticky": Harmless("a tablet transaction stays on its proxy, a master one is everywhere"),
    },
    "AttachTransaction": {
        **read("transaction_id"),
        "auto_abort": _NO_PINGS,
        "ping": _NO_PINGS,
        "ping_ancestors": _NO_PINGS,
        "ping_period": _NO_PINGS,
        "pinger_address": _NO_PINGS,
    },
    "PingTransaction": read("transaction_id", "ping_ancestors"),
    "CommitTransaction": read("transaction_id"),
    "AbortTransaction": read("transaction_id"),
    "GenerateTimestamps": read("count"),
    # Operations
    "StartOperation": read("type", "spec"),
    "GetOperation": {
        **_OPERATION,
        **read("attributes", "legacy_attributes"),
        "include_runtime": AT_ONCE,
        "maximum_cypress_progress_age": AT_ONCE,
    },
    "UpdateOperationParameters": {**_OPERATION, **read("parameters")},
    "CompleteOperation": _OPERATION,
    "AbortOperation": {**_OPERATION, **read("abort_message")},
    "AbortJob": {**read("job_id"), "interrupt_timeout": NO_INTERRUPT},
    "GetJobStderr": {**_OPERATION, **read("job_id", "limit", "offset"), "type": only(0)},
    "GetFileFromCache": read("md5", "cache_path"),
    "PutFileToCache": read("path", "md5", "cache_path", "preserve_expiration_timeout"),
    # The proxy
    "Discover": {"reply_delay": AT_ONCE},
    "DiscoverProxies": dict.fromkeys(("role", "address_type", "network_name"), ONE_KIND),
    "CheckClusterLiveness": dict.fromkeys(
        ("check_cypress_root", "check_secondary_master_cells", "check_tablet_cell_bundle"), AT_ONCE
    ),
    "GetCurrentUser": {},
}

KNOWN = {name: Known(name, EVERY, own) for name, own in OF_METHODS.items()}

_LIMITED = {
    known.command: {
        name.partition(".")[0] for name in known.rules.keys() - known.free if "." in name
    }
    for known in KNOWN.values()
}
"""Method -> the parts that are looked into; of the others, every field is free."""

Fields = Sequence[tuple[Any, Any]]
"""The set fields of a message: descriptor and value, as `ListFields` gives them."""


def check(known: Known, message: Any, fields: Fields) -> None:
    """Raise YtError if a field of a request, or its value, is not supported."""
    free, limited = known.free, _LIMITED[known.command]
    for field, value in fields:
        name = field.name
        if name in free:
            continue
        if name not in PARTS:
            known.check_limited(name, value)
        elif name in limited:
            for part, given in value.ListFields():
                if (full := f"{name}.{part.name}") not in free:
                    known.check_limited(full, given)
    for unknown in UnknownFieldSet(message):
        known.check_limited(f"field {unknown.field_number}", unknown.data)
