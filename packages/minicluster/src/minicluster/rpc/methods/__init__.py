"""The RPC methods by area; each module registers its own in the table of methods."""

from ..service import METHODS
from . import (
    bulk_reading,
    cypress,
    dynamic_table_rows,
    files,
    objects,
    operations,
    proxy,
    queues,
    tablets,
    transactions,
    writing,
)

__all__ = [
    "METHODS",
    "bulk_reading",
    "cypress",
    "dynamic_table_rows",
    "files",
    "objects",
    "operations",
    "proxy",
    "queues",
    "tablets",
    "transactions",
    "writing",
]
