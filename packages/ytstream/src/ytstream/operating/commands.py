"""Commands that look at a job from a person's machine, and `drain`, which stops it, too."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import NamedTuple

from .. import log
from ..job import Connection
from . import document, drain, limits, live, metrics, page, screen, standing

#: A year.
_MOST_HOURS = 8_784


class Command(NamedTuple):
    """One command: what it does, and the words that it takes."""

    run: Callable[[Connection, argparse.Namespace], int | None]
    add: Callable[[argparse.ArgumentParser], None]


def _status(connection: Connection, given: argparse.Namespace) -> int:
    """Show queues, offsets, lag and the last batches; needs no driver."""
    if given.watch is not None:
        live.watch(connection, given.watch)
        return 0
    found = standing.read(connection)
    print((document if given.json else screen).text(connection, found))
    over = list(limits.exceeded(found, given.max_lag, given.max_age))
    for line in over:
        log.fail(line)
    return limits.EXCEEDED if over else 0


def _metrics(connection: Connection, given: argparse.Namespace) -> None:
    """Serve lag, rows, batches and state for Prometheus; needs no driver."""
    if given.once:
        print(metrics.once(connection), end="")
    else:
        metrics.serve(connection, given.address, given.port)


def _page(connection: Connection, given: argparse.Namespace) -> None:
    """Write one HTML file with lag, rate, batches and rejected rows; needs the ledger alone."""
    print(page.write(connection, given.hours, given.output, datetime.now(UTC)))


def _drain(connection: Connection, given: argparse.Namespace) -> None:
    """Wait until the job has read the rows that are there now, and stop it."""
    say = partial(print, flush=True)
    print(drain.rehearse(connection) if given.dry_run else drain.drain(connection, say))


def positive(text: str) -> int:
    """Return the number that a word gives. Raises ArgumentTypeError for others than 1, 2, ..."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no positive number")
    return int(text)


def _hours(text: str) -> float:
    number = float(text)
    if not 0 < number <= _MOST_HOURS:
        raise argparse.ArgumentTypeError(f"{text} is not above 0 and at most {_MOST_HOURS}")
    return number


def _add_status(command: argparse.ArgumentParser) -> None:
    show = command.add_mutually_exclusive_group()
    show.add_argument("--json", action="store_true", help="print JSON")
    show.add_argument(
        "--watch", nargs="?", type=positive, const=2, metavar="SECONDS",
        help="renew a view of 80 columns so often, until Ctrl-C; default: 2",
    )  # fmt: skip
    command.add_argument(
        "--max-lag", type=limits.lag, metavar="ROWS|SECONDS",
        help="exit with 4 if more rows wait, or one waits longer: 5000, or 300s",
    )  # fmt: skip
    command.add_argument(
        "--max-age", type=limits.age, metavar="SECONDS",
        help="exit with 4 if the last batch ended longer ago, for queues that always have rows",
    )  # fmt: skip


def _add_metrics(command: argparse.ArgumentParser) -> None:
    command.add_argument("--once", action="store_true", help="print them and end")
    loopback = "default: this machine alone can ask"
    command.add_argument("--address", default="127.0.0.1", metavar="A", help=loopback)
    command.add_argument("--port", type=int, default=9464, help="default: 9464")


def _add_page(command: argparse.ArgumentParser) -> None:
    where = "default: dist/page.html"
    command.add_argument(
        "--output", type=Path, default=Path("dist/page.html"), metavar="FILE", help=where
    )
    length = "how many before the last batch; default: 24"
    command.add_argument("--hours", type=_hours, default=24.0, metavar="N", help=length)


COMMANDS = {
    "status": Command(_status, _add_status),
    "metrics": Command(_metrics, _add_metrics),
    "page": Command(_page, _add_page),
    "drain": Command(_drain, lambda _: None),
}
