"""Starts, replaces and rolls back the job on a cluster."""
