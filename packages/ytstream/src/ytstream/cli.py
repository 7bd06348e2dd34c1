"""The command line: one function for each command.

What needs Spark is imported by the commands that need it: `status` looks at the cluster alone.
"""

import argparse
import os
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import chain
from pathlib import Path
from typing import cast

from yt.common import YtError

from . import (
    capacity,
    conditions,
    environment,
    log,
    own_operation,
    provision,
    shipped,
    toml_file,
    user_errors,
)
from .cluster import Client, connect, explained
from .config import DEFAULT_CONFIG, Settings, load
from .declaration import verify, verify_configuration
from .errors import JobError, OutageError, RestartableError, SupersededError
from .guarantees import guarantee_of
from .job import Connection, Job
from .recovery import before_start, operator, stopping
from .recovery.lock import alone
from .version import __version__, version_of

#: Commands that read a job, which may be older than the tables.py here; none on a cluster.
try:
    from .testing.commands import COMMANDS as MORE
except ModuleNotFoundError:
    MORE = {}


def _provision(connection: Connection, given: argparse.Namespace) -> None:
    """Create, mount and register what the job needs; repeatable."""
    if given.dry_run:
        print(*provision.findings(connection), "nothing was changed", sep="\n")
        return
    print(*provision.provision(connection) or ["everything is in place already"], sep="\n")


def _check(connection: Connection, given: argparse.Namespace) -> None:
    """Verify tables, offsets, session and the plan of transform(); changes nothing."""
    if given.user is not None and given.permissions is None:
        raise JobError("--user goes with --permissions", "add it, or leave --user out")
    if given.permissions is not None:
        from .operating import permissions  # not on a cluster

        print(permissions.check(connection, given.permissions, given.user))
        return
    from .connector import own
    from .operating import retention  # not on a cluster
    from .query import packages, pipeline, session, supervisor

    print(provision.check(connection))
    for remark in chain(
        retention.remarks(connection.client, connection.settings),
        capacity.remarks(connection),
        conditions.remarks(connection.job.reject, connection.settings.spark_confs),
    ):
        print(f"remark: {remark}")
    for note in before_start.preview(connection):
        print(f"at the next start: {note}")
    if not connection.settings.submit.brings_packages:
        shipped.verify_imports(connection.job.package, connection.job.kind.packages)
    connection = provision.sized(connection)
    with session.opened(connection) as spark:
        flow = pipeline.flow_of(spark, connection, supervisor.read_reference(spark, connection))
        version, connector = spark.version, own.line(spark, connection.settings)
    for remark in flow.outputs.remarks():
        print(f"remark: {remark}")
    if wanted := connection.job.kind.packages:
        print(f"\npackages ok: {packages.found(wanted).versions}, here and on the executors")
    print(
        f"\nsession ok: Spark {version}, SPYT {version_of('spyt')}, patch in effect, "
        f"checkpoint {connection.values['checkpoint_uri']}\n{connector}\n"
        f"{'outputs()' if connection.job.split else 'transform()'} ok: the columns of OUTPUTS"
    )


def _run(connection: Connection, given: argparse.Namespace) -> None:
    """Stream until SIGTERM or SIGINT, which let the micro-batch finish."""
    if given.dry_run:
        print(*before_start.preview(connection), "nothing was changed", sep="\n")
        return
    from .query import supervisor

    # The lock goes first: Spark may take long to close. The query has stopped by then, and a task
    # that hangs in Spark commits nothing once another process has raised the epoch.
    with ExitStack() as session, alone(connection):
        supervisor.run(connection, session)


def _stop(connection: Connection, given: argparse.Namespace) -> None:
    """Ask the running job, wherever it runs, to finish its micro-batch and end; wait for it."""
    if given.dry_run:
        print(stopping.rehearse(connection))
        return
    try:
        print(stopping.stop(connection, print))
    except YtError:  # not before: a queue that is not mounted does not hinder it
        provision.require(connection, "the job cannot be asked to stop", declared=False)
        raise


def _migrate(connection: Connection, given: argparse.Namespace) -> None:
    """After the guarantee or the outputs were changed, or a queue removed: take the job over."""
    if given.dry_run:
        print(*operator.rehearse_migrate(connection), sep="\n")
        return
    from .query import jvm, session

    with alone(connection), jvm.explained_jvm():
        print(*operator.migrate(connection, session.open_tablets(connection)), sep="\n")


def _rewind(connection: Connection, given: argparse.Namespace) -> None:
    """Move the job to other rows, with an empty checkpoint: rows are read again or skipped."""
    to, rows, options = given.to, given.rows, {"overwrite": given.overwrite}
    if to == "to-time":
        from .operating import at_time  # not on a cluster

        to, (rows, said) = "rows", at_time.places(connection, at_time.parsed(rows))
        print(*said, sep="\n")
    if given.dry_run:
        print(*operator.rehearse_rewind(connection, to, rows, **options), sep="\n")
        return
    from .query import jvm, session

    with alone(connection), jvm.explained_jvm():
        tablets = session.open_tablets(connection)
        print(*operator.rewind(connection, tablets, to, rows, **options), sep="\n")


def _replay_rejected(connection: Connection, given: argparse.Namespace) -> None:
    """Put rejected rows that transform.py accepts now into the outputs; the job may run."""
    from .operating import replay  # not on a cluster
    from .query import pipeline, session, supervisor

    replay.verify_job(connection.job)  # before Spark's start
    if not given.dry_run:
        replay.verify_keys(connection, replace=given.replace)
    connection = provision.sized(connection)
    with session.opened(connection) as spark:
        known = supervisor.read_reference(spark, connection)
        flow = pipeline.flow_of(spark, connection, known)
        if given.dry_run:
            said = replay.rehearse(spark, connection, flow, remove_dropped=given.remove_dropped)
            print(*said, sep="\n")
        else:
            chosen = {"replace": given.replace, "remove_dropped": given.remove_dropped}
            print(replay.replay(spark, connection, flow, log.say, **chosen))


def _submit(connection: Connection, given: argparse.Namespace) -> int:
    """Start the job on the cluster, wait for its first batch; words after -- go to spark-submit."""
    from .operating import looks, replacing, versions  # not on a cluster
    from .submitting.submit import submit

    say = partial(print, flush=True)
    if given.replace:
        return replacing.run(connection, given.config, given.words, say, force=given.force)
    if given.force:
        raise JobError("--force goes with --replace", "FORCE=1 with REPLACE=1; nothing was started")
    kept = versions.Versions(connection.client, connection.settings)
    record = versions.Kept(kept)
    print(submit(connection, given.config, given.words, say, looks.LOOKS, record))
    kept.replace(None)
    return 0


def _logs(connection: Connection, given: argparse.Namespace) -> None:
    """Show what driver and executors of the job's operation have written."""
    from .operating import logs  # not on a cluster

    for line in (logs.follow if given.follow else logs.logs)(connection):
        print(line, flush=True)


def _rows(connection: Connection, given: argparse.Namespace) -> None:
    """Put rows of sample/rows.py into the queues of a cluster on this machine."""
    with user_errors.user_code("sample/ cannot be imported"):
        from sample import SAMPLE

    from .demo import tables

    print(tables.fill(connection, SAMPLE, given.count, is_dry=given.dry_run))


def _demo(job: Job, _: Settings, __: Path) -> int:
    """Run the job on a minicluster, kill it at the worst moment, and count every row."""
    # Not on a cluster: neither the sample nor this part of the runtime is shipped with the job.
    with user_errors.user_code("sample/ cannot be imported"):
        from sample import SAMPLE

    from .demo import screen

    return screen.main(job, SAMPLE)


def _tables(job: Job, settings: Settings, _: Path) -> int:
    """Show the tables that `provision` creates, as YTsaurus describes them."""
    from .operating import describe  # not on a cluster

    print(describe.tables(job, settings))
    return 0


def _confs(job: Job, settings: Settings, config: Path) -> int:
    """Show every Spark and checkpoint setting with its reason, and [submit] with its files."""
    from .operating import describe  # not on a cluster

    origins = toml_file.read(config).origins
    print(describe.conf_table(job, settings), describe.submit_table(settings, origins), sep="\n\n")
    return 0


def _alerts(job: Job, settings: Settings, _: Path) -> int:
    """Print rules for Prometheus, for what `metrics` serves and what the cluster exports."""
    from .operating import alerts  # not on a cluster

    print(alerts.text(job, settings))
    return 0


_ON_THE_CLUSTER = (
    _provision, _check, _rows, _run, _stop, _migrate, _rewind, _replay_rejected, _submit, _logs,
)  # fmt: skip
#: These change something on the cluster; `submit` has a dry run of its own.
_CHANGING = (
    "provision", "rows", "run", "stop", "migrate", "rewind", "drain", "replay-rejected"
)  # fmt: skip
#: Commands that talk to the cluster, and those that need the configuration alone.
ON_THE_CLUSTER: dict[str, Callable[[Connection, argparse.Namespace], int | None]] = {
    function.__name__.lstrip("_").replace("_", "-"): function for function in _ON_THE_CLUSTER
} | {name: command.run for name, command in MORE.items()}
#: These start a JVM.
WITH_SPARK = ("check", "run", "migrate", "rewind", "replay-rejected", "rehearse")
HERE: dict[str, Callable[[Job, Settings, Path], int]] = {
    function.__name__.lstrip("_"): function for function in (_demo, _tables, _confs, _alerts)
}


def run(package: str, import_job: Callable[[], Job], words: Sequence[str] | None = None) -> int:
    """Run one command of the job in ``package``; ``words`` default to those of the process.

    Returns the exit code: 0; 1 for a refusal or failure; 3 when another instance has started since;
    4 when a limit of `status` is exceeded; 5 when `submit --replace` has brought the former version
    back, or when a rehearsal differs. argparse exits with 2 for wrong usage.
    """
    given = _parser(package).parse_args(words)
    if given.command not in WITH_SPARK:
        return _command(import_job, given)
    # Before the job imports pyspark, whose types and readers SPYT extends (spyt/__init__.py).
    from .query import jvm

    code = _command(import_job, given)
    jvm.leave_if_hung(code)
    return code


def _command(import_job: Callable[[], Job], given: argparse.Namespace) -> int:
    log.set_up()
    if given.command == "demo":  # it starts a cluster of its own
        environment.leave_clusters()
    settings: Settings | None = None
    try:
        for number in (signal.SIGINT, signal.SIGTERM):  # the imports are over
            signal.signal(number, signal.default_int_handler)
        verify(declared := user_errors.imported(import_job))
        settings = load(given.config)
        job = declared.reading(len(settings.queues))
        verify_configuration(job, settings, guarantee_of(job))
        if given.command in HERE:
            with explained(settings):
                return HERE[given.command](job, settings, given.config)
        print(f"cluster: {settings.proxy}", file=sys.stderr, flush=True)
        if settings.accept:
            print(f"accepted: {', '.join(settings.accept)}", file=sys.stderr, flush=True)
        if given.command == "submit":
            from .submitting import look, submit

            if given.dry_run:
                offline = Connection(cast("Client", None), settings, job, guarantee_of(job))
                print(submit.rehearse(offline, given.config, given.words))
                return 0
        with explained(settings):
            connected = connect(settings)
            connection = Connection(connected, settings, job, guarantee_of(job), given.config)
            if given.command == "submit":
                look.verify_operations(connection.client, settings.proxy)
            # YTsaurus starts a lost driver again, and refusals would use up its attempts; a person
            # is told at once.
            if given.command == "run" and "YT_OPERATION_ID" in os.environ:
                from .query import supervisor

                supervisor.wait_mounted(connection)
            if given.command not in ("provision", "check", "stop", "submit", "logs", "page"):
                provision.require(connection, declared=given.command not in MORE)
            return ON_THE_CLUSTER[given.command](connection, given) or 0
    except (JobError, RestartableError) as error:
        hint = ""
        if isinstance(error, RestartableError):
            remedy = (
                error.remedy if isinstance(error, OutageError) else "try again; nothing was lost"
            )
            hint = f"\n  -> {remedy}"
        log.fail(f"{error}{hint}")
        if isinstance(error, JobError) and given.command == "run":
            own_operation.end(error, settings.proxy if settings is not None else None)
        return 3 if isinstance(error, SupersededError) else 1
    except KeyboardInterrupt:
        print(
            "interrupted: steps that were done stay; the command can be repeated", file=sys.stderr
        )
        return 130
    return 0


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is not positive")
    return number


def _parser(package: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=f"python -m {package}",
        description="Commands of one Structured Streaming job on YTsaurus.",
    )
    parser.add_argument(
        "--version", action="version", version=f"ytstream {__version__}, SPYT {version_of('spyt')}"
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, function in (ON_THE_CLUSTER | HERE).items():
        command = commands.add_parser(name, help=function.__doc__, description=function.__doc__)
        flag = partial(command.add_argument, action="store_true")
        default = f"default: {DEFAULT_CONFIG}"
        command.add_argument(
            "--config", metavar="FILE", type=Path, default=DEFAULT_CONFIG, help=default
        )
        if name == "rewind":
            to = ("earliest", "latest", "rows", "to-time")
            command.add_argument("to", choices=to, metavar="|".join(to))
            example = "e.g. rows //home/team/bids:0=42, or to-time 2026-11-21T10:00 (UTC)"
            row = "QUEUE:PARTITION=ROW|TIME"
            command.add_argument("rows", nargs="*", metavar=row, default=(), help=example)
            over = "rows of a recreated queue may replace those stored under the same positions"
            flag("--overwrite", help=over)
        if name == "replay-rejected":
            flag("--replace", help="rejected rows may replace rows with the same key")
            flag("--remove-dropped", help="rows that transform() drops leave `rejected`")
        if name == "rows":
            command.add_argument("--count", type=_positive, default=1_000, help="default: 1000")
        if name in MORE:
            MORE[name].add(command)
        if name == "logs":
            flag("--follow", help="until the operation ends")
        if name == "check":
            roles = ("job", "operator", "rehearsal")
            command.add_argument(
                "--permissions", nargs="?", choices=roles, const="job", metavar="|".join(roles),
                help="ask the cluster for these rights alone; default: those of the job",
            )  # fmt: skip
            whose = "whose rights; default: the token's"
            command.add_argument("--user", metavar="NAME", help=whose)
        if name in _CHANGING:
            flag("--dry-run", help="show what would be done; changes nothing")
        if name == "submit":
            flag("--dry-run", help="show command and files; asks no cluster")
            back = "stop the running version, start this one; without a batch of it go back"
            flag("--replace", help=back)
            again = "with --replace: also a version that runs already, or was refused before"
            flag("--force", help=again)
            command.add_argument("words", nargs="*", metavar="-- WORD")
    return parser
