"""Queues: consumers, producers and the queue agent."""
