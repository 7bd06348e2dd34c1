"""The commands, by what they work on; importing them fills the table of commands."""

from ..registry import COMMANDS
from . import batch, cypress, files, queues, static, system, tables, transactions  # noqa: F401

__all__ = ["COMMANDS"]
