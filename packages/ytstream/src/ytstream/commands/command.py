"""A command of a job's command line, as one object."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from ..job import Job, JobContext
from ..settings.job_settings import Settings

OnCluster = Callable[[JobContext, argparse.Namespace], int | None]
"""Runs a command on a cluster, and returns its exit code or nothing."""
Offline = Callable[[Job, Settings, Path], int]
"""Runs a command that needs only the declaration and the configuration."""


class RequiredTables(StrEnum):
    """Which tables a command needs before it runs."""

    NONE = "none"
    MOUNTED = "mounted"
    """The tables exist and are mounted; the declaration in tables.py may be newer."""
    ALTERABLE = "alterable"
    """They also have the columns of tables.py. Aggregate functions may be missing."""
    DECLARED = "declared"
    """They have all that tables.py says."""


def _always(_: argparse.Namespace) -> bool:
    """Print the cluster, whatever the arguments are."""
    return True


def _no_arguments(_: argparse.ArgumentParser) -> None:
    """Take no arguments."""


@dataclass(frozen=True, kw_only=True)
class Command:
    """One command: give ``run`` or ``offline``, or a ``without_cluster`` that always answers."""

    name: str
    help: str
    """One sentence, shown by --help."""
    run: OnCluster | None = None
    offline: Offline | None = None
    arguments: Callable[[argparse.ArgumentParser], None] = _no_arguments
    """Adds the command's own arguments to its parser."""
    tables: RequiredTables = RequiredTables.DECLARED
    starts_jvm: bool = False
    """Whether the command starts a JVM."""
    early_jvm: str = ""
    """Options of a JVM that starts while Python imports PySpark; empty: none does."""
    needs_stopped_job: bool = False
    """Whether another instance of the job may not run at the same time."""
    changes: str = ""
    """What the command changes on the cluster; empty if nothing. It then takes --dry-run."""
    starts_cluster: bool = False
    """Whether the command starts a cluster of its own, so that no variable may name another."""
    writes_tables: bool = False
    """Whether the command writes tables.py, so that it also runs where tables.py is damaged."""
    before: Callable[[JobContext], None] | None = None
    """Runs once the cluster is connected, before the tables are verified."""
    without_cluster: Callable[[JobContext, argparse.Namespace], int | None] | None = None
    """Answers without a cluster where it returns an exit code: a dry run that asks nothing."""
    names_cluster: Callable[[argparse.Namespace], bool] = _always
    """Whether the cluster of the configuration matters with these arguments, so that it is printed.
    """

    @property
    def description(self) -> str:
        """The text of ``COMMAND --help``."""
        needs = " No other process of the job may run." if self.needs_stopped_job else ""
        changes = f" Changes {self.changes}." if self.changes else ""
        return f"{self.help}{needs}{changes}"

    def add_to(self, parser: argparse.ArgumentParser) -> None:
        """Add all arguments but --config."""
        self.arguments(parser)
        if self.changes and self.without_cluster is None:
            what = "only show what would be done"
            parser.add_argument("--dry-run", action="store_true", help=what)
        elif self.changes:
            what = "only show the command and the files"
            parser.add_argument("--dry-run", action="store_true", help=what)


def positive(text: str) -> int:
    """argparse type: a positive integer."""
    if not (text.isascii() and text.isdecimal()) or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number")
    return int(text)
