"""The RPC methods by area; each module registers its own in the table of methods."""

from ..service import METHODS
from . import (
    cypress,
    files,
    operations,
    proxy,
    queues,
    reading,
    tables,
    tablets,
    transactions,
    writing,
)

__all__ = [
    "METHODS",
    "cypress",
    "files",
    "operations",
    "proxy",
    "queues",
    "reading",
    "tables",
    "tablets",
    "transactions",
    "writing",
]
