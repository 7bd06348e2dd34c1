"""`fleet`: all jobs that a token may see. It needs no repository, so it is no job's command."""

import argparse
import os

from ytstream.cluster.client import client_of, explained
from ytstream.commands.command import positive
from ytstream.errors import JobError
from ytstream.errors.error_codes import ErrorCode
from ytstream.settings.job_settings import Settings, token

NAME = "fleet"
HELP = "List every job that the token may see, those that need somebody first; changes nothing."


def run(given: argparse.Namespace) -> int:
    """Print the jobs, once or again and again."""
    from ..fleet import discovery, fleet_watch, reading, shown

    proxy = given.proxy or os.environ.get("YT_PROXY", "")
    if not proxy:
        raise JobError("no cluster is named", "name its --proxy", code=ErrorCode.USAGE)
    settings = Settings(proxy, (), "", "", "", {})
    client = client_of(proxy, token(settings), patient=False)
    with explained(settings):
        fleet = reading.Fleet(client)
        ledgers = discovery.ledgers(client, given.under)

        def read() -> list[reading.FleetJob]:
            return fleet.read(ledgers, discovery.operations(client), reading.now())

        if given.watch is not None:
            fleet_watch.watch(read, given.watch)
        else:
            print(shown.document(read()) if given.json else shown.text(read()))
    return 0


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add its arguments."""
    parser.add_argument("--proxy", metavar="P", help="the cluster (default: YT_PROXY)")
    parser.add_argument(
        "--under", metavar="FOLDER", action="append", default=[],
        help="also find ledgers below this folder. You can repeat it. Jobs with an operation of "
        "the last two days are found without it",
    )  # fmt: skip
    show = parser.add_mutually_exclusive_group()
    show.add_argument("--json", action="store_true", help="print JSON")
    show.add_argument(
        "--watch", nargs="?", type=positive, const=10, metavar="SECONDS",
        help="refresh the table every SECONDS seconds (default: 10); press Ctrl-C to exit",
    )  # fmt: skip
