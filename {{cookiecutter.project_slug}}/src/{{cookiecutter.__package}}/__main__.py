"""The command line: provision, check, run, status, migrate, rewind."""

import argparse
import logging
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from spyt.version import __version__ as spyt_version

from . import maintenance, monitor, provision, session, supervisor
from .cluster import connect, explained
from .errors import JobError, RestartableError
from .settings import DEFAULT_CONFIG, Settings, load


def _provision(settings: Settings, _: argparse.Namespace) -> None:
    """Create, mount and register what the job needs; repeatable."""
    with explained(settings):
        done = provision.provision(connect(settings), settings)
    print(*done or ["everything is in place already"], sep="\n")


def _check(settings: Settings, _: argparse.Namespace) -> None:
    """Verify tables, registration and session; changes nothing."""
    with explained(settings):
        client = connect(settings)
        print(provision.check(client, settings))
        settings = provision.sized(client, settings)
    spark = session.open_session(settings)
    print(
        f"\nsession ok: Spark {spark.version}, SPYT {spyt_version}, patch in effect, "
        f"checkpoint {settings.checkpoint_uri}"
    )
    spark.stop()


def _run(settings: Settings, _: argparse.Namespace) -> None:
    """Stream until SIGTERM or SIGINT, which let the micro-batch finish."""
    supervisor.run(settings)


def _status(settings: Settings, _: argparse.Namespace) -> None:
    """Show queues, offsets and lag as a table."""
    with explained(settings):
        client = connect(settings)
        provision.require(client, settings)
        print(monitor.status(client, settings))


def _migrate(settings: Settings, _: argparse.Namespace) -> None:
    """After the guarantee was changed: take consumer and checkpoint over."""
    with explained(settings), supervisor.alone(settings) as (client, _lock):
        print(*maintenance.migrate(client, settings), sep="\n")


def _rewind(settings: Settings, given: argparse.Namespace) -> None:
    """Move the consumer, with a new checkpoint: rows are read again or skipped."""
    with explained(settings), supervisor.alone(settings) as (client, _lock):
        print(*maintenance.rewind(client, settings, given.to, given.rows), sep="\n")


COMMANDS = {
    function.__name__.lstrip("_"): function
    for function in (_provision, _check, _run, _status, _migrate, _rewind)
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit code is 0, 1 for a refusal or failure, 2 for wrong usage."""
    arguments = _parser().parse_args(argv)
    logging.basicConfig(format="%(asctime)s %(message)s", datefmt="%H:%M:%S")
    logging.getLogger("job").setLevel(logging.INFO)
    # They log errors as JSON; what is raised is explained here.
    for kind in ("DataFrame", "SQL"):
        logging.getLogger(f"{kind}QueryContextLogger").setLevel(logging.CRITICAL)
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)  # the package's own is over
        settings = load(arguments.config)
        print(f"cluster: {settings.proxy}", file=sys.stderr, flush=True)
        if settings.accept:
            print(f"accepted: {', '.join(settings.accept)}", file=sys.stderr, flush=True)
        COMMANDS[arguments.command](settings, arguments)
    except (JobError, RestartableError) as error:
        hint = "" if isinstance(error, JobError) else "\n  -> try again; nothing was lost"
        print(f"error: {error}{hint}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=f"python -m {__package__}", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, function in COMMANDS.items():
        command = commands.add_parser(name, help=function.__doc__, description=function.__doc__)
        default = f"default: {DEFAULT_CONFIG}"
        command.add_argument(
            "--config", metavar="FILE", type=Path, default=DEFAULT_CONFIG, help=default
        )
        if name == "rewind":
            command.add_argument("to", choices=("earliest", "latest", "rows"))
            command.add_argument("rows", nargs="*", metavar="QUEUE:PARTITION=ROW")
    return parser


if __name__ == "__main__":
    sys.exit(main())
