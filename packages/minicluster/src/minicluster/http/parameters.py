"""The use of each parameter of each HTTP command (names: client/driver/*_commands.cpp).

`EVERY` holds for all commands: clients add these to requests of any kind. A command's own rules
override them. What is neither in `EVERY` nor among a command's own is refused.
"""

from __future__ import annotations

from collections.abc import Mapping

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
from ..core import ids

EVERY: dict[str, Rule] = {
    **read("input_format", "output_format"),
    **read("prerequisite_transaction_ids", "prerequisite_revisions"),
    **read("mutation_id", "retry"),
    "transaction_id": Harmless(
        "the client adds it to each request inside a transaction; this command works in none"
    ),
    "ping": Harmless("a command takes no time in which a transaction could expire"),
    "ping_ancestor_transactions": Harmless("only ping_transaction pings"),
    "timeout": AT_ONCE,
    "suppress_transaction_coordinator_sync": ONE_MASTER,
    "suppress_upstream_sync": ONE_MASTER,
    "read_from": ONE_MASTER,
    "disable_per_user_cache": ONE_MASTER,
    "expire_after_successful_update_time": ONE_MASTER,
    "expire_after_failed_update_time": ONE_MASTER,
    "success_staleness_bound": ONE_MASTER,
    "cache_sticky_group_size": ONE_MASTER,
    "rpc_hedging_delay": NO_REPLICAS,
    "suppress_access_tracking": NO_ACCESS,
    "suppress_modification_tracking": NO_ACCESS,
    "suppress_expiration_timeout_renewal": NO_ACCESS,
}

_TX = read("transaction_id")
_VALUE = read("return_only_value")
_PLACE = read("recursive", "ignore_existing", "lock_existing", "force")
_CLONE: dict[str, Rule] = {
    **read("source_path", "destination_path", "recursive", "force"),
    **read("preserve_account", "preserve_owner", "preserve_acl"),
    **read("preserve_creation_time", "preserve_modification_time"),
    **read("preserve_expiration_time", "preserve_expiration_timeout"),
    "pessimistic_quota_check": NO_QUOTA,
    "enable_cross_cell_copying": NO_QUOTA,
}
_TABLETS = read("path", "first_tablet_index", "last_tablet_index")
_WRITE: dict[str, Rule] = {
    **read("path", "transaction_id", "atomicity"),
    "durability": LASTING,
    "require_sync_replica": NO_REPLICAS,
    "table_writer": TUNING,
}
_SNAPSHOT: dict[str, Rule] = {
    **read("timestamp", "transaction_id"),
    "retention_timestamp": only(0),
    "versioned_read_options": only({"read_mode": "default"}),
    "replica_consistency": NO_REPLICAS,
    "use_lookup_cache": TUNING,
    "execution_pool": TUNING,
}
_SELECT: dict[str, Rule] = {
    **read("query", "allow_join_without_index", "enable_statistics"),
    "allow_full_scan": only(True),
    "enable_code_cache": TUNING,
    "execution_backend": TUNING,
    "expression_builder_version": TUNING,
    "fail_on_incomplete_result": WHOLE,
    "max_subqueries": TUNING,
    "merge_versioned_rows": TUNING,
    "min_row_count_per_subquery": TUNING,
    "new_range_inference": TUNING,
    "range_expansion_limit": TUNING,
    "syntax_version": only(1),
    "udf_registry_path": NO_UDF,
    "use_canonical_null_relations": only(False),
    "verbose_logging": TUNING,
    "workload_descriptor": TUNING,
}
_LIMITS: dict[str, Rule] = {
    **read("max_row_count", "max_data_weight"),
    "data_weight_per_row_hint": TUNING,
    "replica_consistency": NO_REPLICAS,
    "use_native_tablet_node_api": TUNING,
}
_POSITION = read("consumer_path", "queue_path", "partition_index")
_SESSION = read("producer_path", "queue_path", "session_id")

_OPERATION = read("operation_id", "operation_alias")
_ONE_SOURCE = Harmless("operations and their jobs are kept in one place")

OF_COMMANDS: dict[str, Mapping[str, Rule]] = {
    # Cypress
    "get": {
        **read("path", "attributes"),
        **_TX,
        **_VALUE,
        "max_size": VIRTUAL,
    },
    "exists": {**read("path"), **_TX, **_VALUE},
    "list": {**read("path", "attributes", "max_size"), **_TX, **_VALUE},
    "set": {**read("path", "recursive", "force"), **_TX},
    "multiset_attributes": {**read("path"), **_TX, "force": only(False)},
    "remove": {**read("path", "recursive", "force"), **_TX},
    "create": {
        **read("type", "path", "attributes", "ignore_type_mismatch"),
        **_PLACE,
        **_TX,
        "sync": AT_ONCE,
    },
    "link": {**read("target_path", "link_path", "attributes"), **_PLACE, **_TX},
    "copy": {**_CLONE, **read("ignore_existing", "lock_existing"), **_TX},
    "move": {**_CLONE, **_TX},
    "concatenate": {
        **read("source_paths", "destination_path"),
        **_TX,
        "uniqualize_chunks": only(False),
    },
    "lock": {**read("path", "mode", "waitable", "child_key", "attribute_key"), **_TX},
    "unlock": {**read("path"), **_TX},
    # Files and static tables
    "read_file": {
        **read("path", "offset", "length", "etag", "etag_revision"),
        **_TX,
        "file_reader": TUNING,
    },
    "write_file": {**read("path", "compute_md5"), **_TX, "file_writer": TUNING},
    "read_table": {
        **read("path", "control_attributes"),
        **_TX,
        "omit_inaccessible_columns": OPEN,
        "omit_inaccessible_rows": OPEN,
        "start_row_index_only": only(False),
        "table_reader": TUNING,
        "unordered": IN_ORDER,
    },
    "write_table": {
        **read("path", "table_writer"),
        **_TX,
        "max_row_buffer_size": TUNING,
    },
    "alter_table": {
        **read("path", "schema", "dynamic"),
        "schema_modification": only("none"),
        "transaction_id": only(ids.NULL),
    },
    # Dynamic tables
    "mount_table": {**_TABLETS, **read("freeze")},
    "unmount_table": {**_TABLETS, "force": AT_ONCE},
    "remount_table": _TABLETS,
    "freeze_table": _TABLETS,
    "unfreeze_table": _TABLETS,
    "reshard_table": {
        **_TABLETS,
        **read("tablet_count", "pivot_keys", "trimmed_row_counts"),
        "enable_slicing": only(False),
        "uniform": only(False),
    },
    "trim_rows": read("path", "tablet_index", "trimmed_row_count"),
    "get_tablet_infos": {**read("path", "tablet_indexes"), "request_errors": only(False)},
    "insert_rows": {
        **_WRITE,
        **read("update"),
        "aggregate": only(False),
        "allow_missing_key_columns": only(False),
        "lock_type": only("exclusive"),
    },
    "delete_rows": {**_WRITE, "lock_type": only("exclusive")},
    "lock_rows": {
        **read("path", "transaction_id", "locks", "lock_type"),
        "atomicity": Harmless("that of the transaction holds"),
        "durability": LASTING,
    },
    "lookup_rows": {
        **_SNAPSHOT,
        **read("path", "column_names", "keep_missing_rows"),
        "cached_sync_replicas_timeout": NO_REPLICAS,
        "enable_partial_result": WHOLE,
        "table_writer": TUNING,
        "versioned": only(False),
    },
    "select_rows": {**_SNAPSHOT, **_SELECT},
    # Queues
    "register_queue_consumer": read("queue_path", "consumer_path", "vital", "partitions"),
    "unregister_queue_consumer": read("queue_path", "consumer_path"),
    "list_queue_consumer_registrations": read("queue_path", "consumer_path"),
    "pull_queue": {**read("queue_path", "partition_index", "offset"), **_LIMITS},
    "pull_queue_consumer": {**_POSITION, **read("offset"), **_LIMITS},
    "advance_queue_consumer": {
        **_POSITION,
        **read("old_offset", "new_offset"),
        **_TX,
        "client_side": Harmless("the offset ends in the same row of the consumer"),
    },
    "create_queue_producer_session": {**_SESSION, **read("user_meta")},
    "remove_queue_producer_session": _SESSION,
    "push_queue_producer": {
        **_SESSION,
        **read("epoch", "sequence_number", "user_meta"),
        **_TX,
        "require_sync_replica": NO_REPLICAS,
    },
    # Transactions
    "start_transaction": {
        **read("type", "timeout", "deadline", "attributes", "atomicity"),
        **_TX,
        "durability": LASTING,
        "start_cypress_transaction": Harmless("a master transaction is one for Cypress"),
        "sticky": Harmless("the only HTTP proxy keeps every transaction"),
        "suppress_start_timestamp_generation": TUNING,
    },
    "ping_transaction": {**_TX, **read("ping_ancestor_transactions")},
    "commit_transaction": _TX,
    "abort_transaction": {**_TX, "force": Harmless("an abort always succeeds")},
    "generate_timestamp": {},
    # Operations
    "start_operation": {**read("operation_type", "spec"), **_TX},
    "get_operation": {
        **_OPERATION,
        **read("attributes"),
        "include_runtime": AT_ONCE,
        "include_scheduler": AT_ONCE,
        "maximum_cypress_progress_age": AT_ONCE,
    },
    "list_operations": {
        **read("user", "state", "type", "filter", "with_failed_jobs", "limit", "attributes"),
        **read("from_time", "to_time", "cursor_time", "cursor_direction", "include_counters"),
        "enable_ui_mode": only(False),
        "pool": only(),
        "pool_tree": only(),
        "access": only(),
        "include_archive": _ONE_SOURCE,
        "archive_fetching_timeout": _ONE_SOURCE,
    },
    "abort_operation": {**_OPERATION, **read("abort_message")},
    "complete_operation": _OPERATION,
    "update_operation_parameters": {**_OPERATION, **read("parameters")},
    "list_jobs": {
        **_OPERATION,
        **read("job_state", "state", "address", "task_name", "sort_field", "sort_order"),
        **read("limit", "offset", "with_stderr"),
        "job_type": only("vanilla"),
        "type": only("vanilla"),
        "with_spec": only(True),
        "with_fail_context": only(False),
        "with_competitors": only(False),
        "with_monitoring_descriptor": only(False),
        "with_interruption_info": only(False),
        "attributes": Harmless("every attribute is shown"),
        **dict.fromkeys(
            (
                "data_source",
                "include_cypress",
                "include_controller_agent",
                "include_runtime",
                "include_scheduler",
                "include_archive",
                "running_jobs_lookbehind_period",
            ),
            _ONE_SOURCE,
        ),
    },
    "get_job": {**_OPERATION, **read("job_id", "attributes")},
    "get_job_stderr": {
        **_OPERATION,
        **read("job_id", "limit", "offset"),
        "type": only("user_job_stderr"),
    },
    "abort_job": {**read("job_id"), "interrupt_timeout": NO_INTERRUPT},
    "get_file_from_cache": {**read("md5", "cache_path"), **_TX},
    "put_file_to_cache": {
        **read("path", "md5", "cache_path", "preserve_expiration_timeout"),
        **_TX,
    },
    # The cluster
    "get_supported_features": {},
    "get_version": {},
    "check_permission": {**read("user", "permission", "path", "columns"), **_TX},
    "add_member": read("member", "group"),
    "remove_member": read("member", "group"),
    "check_cluster_liveness": {
        "check_cypress_root": AT_ONCE,
        "check_secondary_master_cells": AT_ONCE,
        "check_tablet_cell_bundle": AT_ONCE,
    },
    "get_current_user": {},
    "discover_proxies": {
        **dict.fromkeys(("role", "address_type", "network_name", "ignore_balancers"), ONE_KIND),
        "type": only("rpc"),
    },
    "execute_batch": {**read("requests"), "concurrency": TUNING},
}
"""By the first of a command's names."""

KNOWN = {name: Known(name, EVERY, own) for name, own in OF_COMMANDS.items()}
