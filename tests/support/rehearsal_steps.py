"""What a rehearsal may ask of a cluster."""

from __future__ import annotations

from ytstream_tools.replay import rehearsal as rehearsal

READS = {
    "get", "exists", "list", "select_rows", "lookup_rows", "get_tablet_infos", "get_operation",
    "list_operations", "list_jobs", "get_version", "list_queue_consumer_registrations",
    "get_supported_features", "check_permission", "discover_proxies",
}  # fmt: skip
"""What a token that may only read can ask a cluster."""
