"""What a command that only reads may ask of a cluster."""

READS = {
    "get", "exists", "list", "select_rows", "lookup_rows", "get_tablet_infos", "get_operation",
    "list_operations", "list_jobs", "get_version", "list_queue_consumer_registrations",
    "get_supported_features", "check_permission", "discover_proxies",
    "Discover",  # of RPC proxies, now and then, by the JVM of earlier tests
}  # fmt: skip
"""What a token that may only read can ask a cluster."""
