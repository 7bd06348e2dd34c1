"""All commands that read a job from a person's machine, and not on a cluster."""

from __future__ import annotations

import argparse
import sys
from functools import partial

from ..errors import JobError
from ..job import Connection
from ..operating import at_time, capture
from ..operating.commands import COMMANDS as OPERATING
from ..operating.commands import Command, positive
from ..recovery import complete
from ..repository import root_of


def _complete_until(connection: Connection, _: argparse.Namespace) -> None:
    """Show a time before which every row is in the outputs; the watermark of a job with state."""
    found = complete.read(connection)
    print(f"{found.name}={found.text}")
    for name in connection.settings.outputs.keys() - found.outputs.keys():
        print(f"{name}: not so, a table of it waits for its publication", file=sys.stderr)


def _capture(connection: Connection, given: argparse.Namespace) -> None:
    """Save the rows of a batch as a folder of the repository's tests; `make test` runs them."""
    if (given.batch is None) == (given.rejected is None):
        raise JobError("name a batch, or --rejected REASON", "capture 3-12, or capture failed")
    root, batch = root_of(connection.job.package), given.batch or ""
    print(capture.capture(connection, root, batch, given.rejected, given.without))


def _rehearse(connection: Connection, given: argparse.Namespace) -> int:
    """Run the deployed commit and the working tree over the last batches' rows; compare outputs."""
    from .rehearse import Wanted, rehearse  # it needs the minicluster

    since = at_time.parsed([given.since]) if given.since is not None else None
    wanted = Wanted(given.config, given.batches, since, given.commit, given.without)
    return rehearse(connection, wanted, partial(print, flush=True))


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _add_without(command: argparse.ArgumentParser, what: str) -> None:
    command.add_argument("--without", type=_names, default=(), metavar="COLUMN,...", help=what)


def _add_capture(command: argparse.ArgumentParser) -> None:
    said = "epoch and number as in the log, or `failed`: the one after the last"
    command.add_argument("batch", nargs="?", metavar="BATCH", help=said)
    command.add_argument("--rejected", metavar="REASON", help="rows that REJECT keeps out")
    _add_without(command, "columns to leave out")


def _add_rehearse(command: argparse.ArgumentParser) -> None:
    which = command.add_mutually_exclusive_group()
    which.add_argument(
        "--batches", type=positive, default=20, metavar="N", help="default: the last 20"
    )
    which.add_argument("--since", metavar="TIME", help="those since 2026-11-21T10:00 (UTC)")
    said = "compare with it; default: the one that `submit` has noted"
    command.add_argument("--commit", metavar="REVISION", help=said)
    _add_without(command, "columns not to compare")


COMMANDS = {
    **OPERATING,
    "complete-until": Command(_complete_until, lambda _: None),
    "capture": Command(_capture, _add_capture),
    "rehearse": Command(_rehearse, _add_rehearse),
}
