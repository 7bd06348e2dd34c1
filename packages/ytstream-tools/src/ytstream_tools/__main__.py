"""``python -m ytstream_tools``: the light commands, without Java, Spark, or the job's code.

Which job it is, the ledger says: each start writes the job's settings to it.
"""

import argparse
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from ytstream import cli
from ytstream.cluster.client import client_of, explained
from ytstream.commands import stop
from ytstream.commands.command import Command
from ytstream.errors import JobError
from ytstream.errors.error_codes import ErrorCode
from ytstream.guarantees import guarantee_of
from ytstream.job import JobContext
from ytstream.ownership import job_record
from ytstream.settings import job_settings
from ytstream.settings.job_settings import Settings, token
from ytstream.version import __version__

from .commands import drain, fleet, logs, metrics, status, why

COMMANDS = (*(one.COMMAND for one in (status, why, logs)), stop.COMMAND, drain.COMMAND,
            metrics.COMMAND)  # fmt: skip
"""Those of one job."""


def main(words: Sequence[str] | None = None) -> int:
    """Run one command, and return its exit code; see ytstream.cli.run()."""
    given = parser().parse_args(words)
    if given.command == fleet.NAME:
        return cli.reported(fleet.NAME, lambda: fleet.run(given))
    if given.command == "dashboard":
        from .status import dashboard

        print(dashboard.text())
        return 0
    command = next(one for one in COMMANDS if one.name == given.command)
    return cli.reported(command.name, lambda: _run(command, given))


def _run(command: Command, given: argparse.Namespace) -> int:
    settings = _settings(given)
    client = client_of(settings.proxy, token(settings), patient=True)
    with explained(settings):
        record = job_record.read(client, settings.ledger)
    if given.config is None:
        settings = job_record.settings_of(record, settings.proxy)
    job = job_record.job_of(record).reading(len(settings.queues))
    words = (
        "" if given.config else shlex.join(["--proxy", settings.proxy, "--ledger", given.ledger])
    )
    context = JobContext(client, settings, job, guarantee_of(job), given.config or Path(), words)
    return cli.execute(command, context, given)


def _settings(given: argparse.Namespace) -> Settings:
    """Return the settings of the file, or as much as finds the ledger."""
    if given.config is not None:
        return job_settings.load(given.config)
    proxy = given.proxy or os.environ.get("YT_PROXY", "")
    if not (proxy and given.ledger):
        raise JobError(
            "nothing says which job it is",
            "name its --proxy and --ledger, or the --config of its repository",
            code=ErrorCode.USAGE,
        )
    return Settings(proxy, (), "", "", given.ledger, {})


def parser() -> argparse.ArgumentParser:
    """Return the parser of all light commands."""
    made = argparse.ArgumentParser(
        prog="python -m ytstream_tools",
        description="Commands for a person on call, without Java, Spark or the job's repository.",
    )
    made.add_argument("--version", action="version", version=f"ytstream-tools {__version__}")
    commands = made.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for command in COMMANDS:
        added = commands.add_parser(
            command.name, help=command.help, description=command.description
        )
        added.add_argument(
            "--config", metavar="FILE", type=Path, help="the configuration of the job's repository"
        )
        added.add_argument("--proxy", metavar="P", help="the cluster (default: YT_PROXY)")
        added.add_argument(
            "--ledger", metavar="PATH", help="the job's ledger, which has the job's settings"
        )
        command.add_to(added)
    fleet.add_to(commands.add_parser(fleet.NAME, help=fleet.HELP, description=fleet.HELP))
    commands.add_parser("dashboard", help="Print a Grafana dashboard for what `metrics` serves.")
    return made


if __name__ == "__main__":
    sys.exit(main())
