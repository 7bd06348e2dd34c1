"""The version of the minicluster."""

__version__ = "1.0.0"
