"""The YTsaurus cluster: its client, operations, mounting and resharding of tables."""
