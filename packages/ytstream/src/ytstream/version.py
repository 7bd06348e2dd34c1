"""The version of the runtime: the first number changes when a job's own files have to change."""

__version__ = "1.0.0"
