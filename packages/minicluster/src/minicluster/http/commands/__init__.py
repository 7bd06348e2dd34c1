"""The commands, by what they work on; importing them fills the table of commands."""

from ..registry import COMMANDS
from . import (  # noqa: F401
    batch,
    cypress,
    files,
    operations,
    queues,
    static,
    system,
    tables,
    transactions,
)

__all__ = ["COMMANDS"]
