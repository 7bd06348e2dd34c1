"""`metrics`: the status for Prometheus."""

import argparse

from ytstream.commands.command import Command, RequiredTables
from ytstream.job import JobContext


def _once(unconnected: JobContext, given: argparse.Namespace) -> int | None:
    """Print them without connecting first: a cluster that does not answer is a figure, too."""
    from ..status import prometheus

    if not given.once:
        return None
    print(prometheus.once(unconnected), end="")
    return 0


def _run(context: JobContext, given: argparse.Namespace) -> None:
    from ..status import prometheus

    prometheus.serve(context, given.address, given.port)


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--once", action="store_true", help="print them and exit")
    loopback = "default: only this machine can ask"
    parser.add_argument("--address", default="127.0.0.1", metavar="A", help=loopback)
    parser.add_argument("--port", type=int, default=9464, help="default: 9464")


COMMAND = Command(
    name="metrics",
    help="Serve lag, rows, batches and state to Prometheus. Needs no driver.",
    run=_run,
    without_cluster=_once,
    arguments=_arguments,
    tables=RequiredTables.MOUNTED,
)
