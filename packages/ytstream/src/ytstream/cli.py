"""The command line of a job: finds the command, connects it to its cluster, and reports errors.

What needs Spark is imported by the commands that need it.
"""

import argparse
import os
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import cast

from . import log
from .cluster import abort_own_operation
from .cluster.client import Client, connect, explained
from .commands.command import Command, RequiredTables
from .commands.registry import LAPTOP_PACKAGES, Registry, registry, remedy
from .declaration import outline, user_errors
from .declaration.validation import verify, verify_configuration
from .errors import JobError, RestartableError, SupersededError, open_files
from .errors.error_codes import ErrorCode
from .guarantees import guarantee_of
from .job import Job, JobContext
from .provisioning import job_objects
from .settings import environment
from .settings.job_settings import DEFAULT_CONFIG, Settings, load
from .version import __version__, version_of


def run(package: str, import_job: Callable[[], Job], words: Sequence[str] | None = None) -> int:
    """Run one command of the job in ``package``; ``words`` default to those of the process.

    Returns the exit code: 0; 1 for an error; 3 when another instance has started since; 4 when a
    limit of `status` is exceeded; 5 when `submit --replace` has brought the former version back, or
    when a rehearsal differs. `why` returns 1 if it knows no cause. argparse exits with 2 for wrong
    usage. 141 when nobody reads what the command prints, as for programs that SIGPIPE ends.
    """
    words = sys.argv[1:] if words is None else words
    known = registry()
    try:
        known.verify(next((word for word in words if not word.startswith("-")), ""))
    except JobError as error:
        log.set_up()
        log.fail(str(error), error.code)
        return 1
    given = parser(package, known).parse_args(words)
    command = known.commands[given.command]
    if command.writes_tables:
        import_job = partial(_sound_or_outlined, import_job, package, command.name)
    if not command.starts_jvm:
        return _command(import_job, command, given)
    if command.early_jvm and not getattr(given, "dry_run", False):
        from .connector import early_jvm

        with suppress(JobError):  # where it is needed, it is said
            early_jvm.begin(load(given.config), command.early_jvm)
    # Before the job imports pyspark, whose types and readers SPYT extends (spyt/__init__.py).
    from .spark import jvm_process

    code = _command(import_job, command, given)
    jvm_process.leave_if_hung(code)
    return code


def _command(import_job: Callable[[], Job], command: Command, given: argparse.Namespace) -> int:
    loaded: list[Settings] = []

    def work() -> int:
        verify(declared := user_errors.imported(import_job))
        loaded.append(settings := load(given.config))
        job = declared.reading(len(settings.queues))
        if not command.writes_tables:
            verify_configuration(job, settings, guarantee_of(job))
        if command.offline is not None:
            with explained(settings):
                return command.offline(job, settings, given.config)
        client = cast("Client", None)
        return execute(
            command, JobContext(client, settings, job, guarantee_of(job), given.config), given
        )

    def ended(error: JobError) -> None:
        if command.name == "run":
            abort_own_operation.end(error, loaded[0].proxy if loaded else None)

    if command.starts_cluster:
        environment.leave_clusters()
    return reported(command.name, work, ended)


def _sound_or_outlined(import_job: Callable[[], Job], package: str, command: str) -> Job:
    """Return the job, or as much of it as job.py says where the rest of the package is damaged."""
    try:
        verify(job := user_errors.imported(import_job))
        return job
    except JobError as error:
        outlined = outline.of(package)
        if outlined is None:
            raise
        print(f"{error.message}\n  -> `{command}` goes on without it", file=sys.stderr)
        return outlined


def reported(
    name: str, work: Callable[[], int], ended: Callable[[JobError], None] = lambda _: None
) -> int:
    """Do the work of the command ``name``; return its exit code, or report what it raises.

    ``ended`` is told of a JobError.
    """
    log.set_up()
    try:
        for number in (signal.SIGINT, signal.SIGTERM):  # the imports are over
            signal.signal(number, signal.default_int_handler)
        code = work()
        _flush()
        return code
    except (JobError, RestartableError) as error:
        hint = f"\n  -> {error.remedy}" if isinstance(error, RestartableError) else ""
        log.fail(f"{error}{hint}", error.code)
        if isinstance(error, JobError):
            ended(error)
        return 3 if isinstance(error, SupersededError) else 1
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in LAPTOP_PACKAGES:  # a module of the user's, or of a cluster
            raise
        package = missing.replace("_", "-")
        log.fail(
            f"`{name}` needs the package {package}, which is not installed here\n"
            f"  -> {remedy(missing)}",
            ErrorCode.NOT_INSTALLED,
        )
        return 1
    except BrokenPipeError:  # `status | head -1`
        _discard_output()
        return 128 + signal.SIGPIPE
    except OSError as error:
        if not open_files.is_exhausted(error):
            raise
        log.fail(str(open_files.exhausted()), ErrorCode.OPEN_FILES)
        return 1
    except KeyboardInterrupt:
        print(
            "interrupted: steps that were done stay; the command can be repeated", file=sys.stderr
        )
        return 130


def _flush() -> None:
    """Write what was printed, while an error can still be reported."""
    try:
        if sys.stdout is not None:  # closed, as by `>&-`
            sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        _discard_output()
        raise JobError(
            f"the output cannot be written: {error.strerror}",
            "write it to another file",
            code=ErrorCode.FILE,
        ) from error


def _discard_output() -> None:
    """Keep Python from failing when it flushes once more at its end.

    The signal itself stays ignored: it would also end the process when a server closes a connection
    (documentation of Python's module signal, "Note on SIGPIPE").
    """
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def execute(command: Command, unconnected: JobContext, given: argparse.Namespace) -> int:
    """Connect the job to its cluster and run a command there; return its exit code."""
    settings = unconnected.settings
    if command.names_cluster(given):
        print(f"cluster: {settings.proxy}", file=sys.stderr, flush=True)
        if settings.accept:
            print(f"accepted: {', '.join(settings.accept)}", file=sys.stderr, flush=True)
    if command.without_cluster is not None:
        code = command.without_cluster(unconnected, given)
        if code is not None:
            return code
    with explained(settings):
        context = replace(unconnected, client=connect(settings))
        if command.before is not None:
            command.before(context)
        if command.tables is not RequiredTables.NONE:
            job_objects.require(
                context,
                declared=command.tables is not RequiredTables.MOUNTED,
                migrating=command.tables is RequiredTables.ALTERABLE,
            )
        assert command.run is not None
        return command.run(context, given) or 0


def parser(package: str, known: Registry | None = None) -> argparse.ArgumentParser:
    """Return the parser of all commands that can run here."""
    known = known or registry()
    epilog = None
    if known.missing:
        names = ", ".join(known.missing)
        epilog = f"{names}: commands of the package ytstream-tools. To have them, {remedy()}"
    made = argparse.ArgumentParser(
        prog=f"python -m {package}",
        description="Commands of one Structured Streaming job on YTsaurus.",
        epilog=epilog,
    )
    made.add_argument(
        "--version", action="version", version=f"ytstream {__version__}, SPYT {version_of('spyt')}"
    )
    commands = made.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, command in known.commands.items():
        added = commands.add_parser(name, help=command.help, description=command.description)
        default = f"default: {DEFAULT_CONFIG}"
        added.add_argument(
            "--config", metavar="FILE", type=Path, default=DEFAULT_CONFIG, help=default
        )
        command.add_to(added)
    return made
