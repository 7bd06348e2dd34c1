"""A command of a job's command line, as one object."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from ..job import Job, JobContext
from ..settings.job_settings import Settings

#: Runs a command on a cluster, and returns its exit code or nothing.
OnCluster = Callable[[JobContext, argparse.Namespace], int | None]
#: Runs a command that needs only the declaration and the configuration.
Offline = Callable[[Job, Settings, Path], int]


class RequiredTables(StrEnum):
    """Which tables a command needs before it runs."""

    NONE = "none"
    #: The tables exist and are mounted; the declaration in tables.py may be newer.
    MOUNTED = "mounted"
    #: They also have the columns of tables.py. Aggregate functions may be missing.
    ALTERABLE = "alterable"
    #: They have all that tables.py says.
    DECLARED = "declared"


def _always(_: argparse.Namespace) -> bool:
    """Print the cluster, whatever the arguments are."""
    return True


def _no_arguments(_: argparse.ArgumentParser) -> None:
    """Take no arguments."""


@dataclass(frozen=True, kw_only=True)
class Command:
    """One command: give ``run`` or ``offline``, or a ``without_cluster`` that always answers."""

    name: str
    #: One sentence, shown by --help.
    help: str
    run: OnCluster | None = None
    offline: Offline | None = None
    #: Adds the command's own arguments to its parser.
    arguments: Callable[[argparse.ArgumentParser], None] = _no_arguments
    tables: RequiredTables = RequiredTables.DECLARED
    #: Whether the command starts a JVM.
    starts_jvm: bool = False
    #: Whether another instance of the job may not run at the same time.
    needs_stopped_job: bool = False
    #: What the command changes on the cluster; empty if nothing. It then takes --dry-run.
    changes: str = ""
    #: Whether the command starts a cluster of its own, so that no variable may name another.
    starts_cluster: bool = False
    #: Whether the command writes tables.py, so that it also runs where tables.py is damaged.
    writes_tables: bool = False
    #: Runs once the cluster is connected, before the tables are verified.
    before: Callable[[JobContext], None] | None = None
    #: Answers without a cluster where it returns an exit code: a dry run that asks nothing.
    without_cluster: Callable[[JobContext, argparse.Namespace], int | None] | None = None
    #: Whether the cluster of the configuration matters with these arguments, so that it is printed.
    names_cluster: Callable[[argparse.Namespace], bool] = _always

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
