"""The status of a job, read from the cluster: as text, JSON, metrics and alerts."""
