"""Vanilla operations: their specs, tasks, jobs and states. Processes are the nodes' affair."""
