"""Starts the job as a YTsaurus operation through spark-submit (SPYT's direct submit)."""

import fcntl
import re
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from yt.common import YtError

from ytstream.cluster import operation
from ytstream.cluster.client import explained, first_line
from ytstream.cluster.operation import Operation
from ytstream.errors import JobError
from ytstream.errors.error_codes import ErrorCode
from ytstream.job import JobContext
from ytstream.ledger.positions import read_head
from ytstream.provisioning import job_objects

from . import launch_plan, spark_submit
from .first_batch import FirstBatchWait
from .launch_plan import LaunchPlan
from .preflight import PreflightCheck, look

_REASON = re.compile(r"^.*?(?:YTsaurusError|Exception|Error): (.*)$", re.MULTILINE)
"""What the Java client and SPYT throw, in the trace that spark-submit prints."""


def rehearse(context: JobContext, config: Path, words: Sequence[str]) -> str:
    """Return what a submit would start, and its call; asks no cluster, writes nothing."""
    made = launch_plan.plan_of(context, config, words)
    line = spark_submit.printed(spark_submit.command(made, made.folder / "operation.id"))
    return f"{launch_plan.shown(made)}\n\n{line}"


class StartRecord:
    """Records the status of a start. This one records nothing: see version_history.py."""

    def planned(self, made: LaunchPlan, epoch: int) -> LaunchPlan:
        """Return the plan with what tells this start from others."""
        return replace(made, identity={"epoch": epoch})

    def started(self, made: LaunchPlan, id_: str) -> None:
        """Remember the operation."""

    def works(self, made: LaunchPlan, seen: Sequence[tuple[str, float]]) -> None:
        """Remember that it has come to its first batch, and what was ``seen`` until then."""

    def failed(self, made: LaunchPlan, why: str) -> None:
        """Remember that it has not; before it is ended."""


def submit(
    context: JobContext,
    config: Path,
    words: Sequence[str],
    say: Callable[[str], None],
    looks: Sequence[PreflightCheck],
    record: StartRecord | None = None,
) -> str:
    """Start the job, and return what shows that it works.

    Raises JobError for what a look before finds, a submit that fails, or a driver that does not
    come to its first batch; then nothing runs that did not run before.
    """
    record = record or StartRecord()
    with prepared(context, config, words, record, looks) as made:
        say(f"{launch_plan.shown(made)}\n")
        return begin(made, say, record)


@contextmanager
def prepared(
    context: JobContext,
    config: Path,
    words: Sequence[str],
    record: StartRecord,
    looks: Sequence[PreflightCheck],
) -> Iterator[LaunchPlan]:
    """Look, build what is shipped, and keep other submits of this repository out."""
    made = launch_plan.plan_of(context, config, words)
    with _alone(made.folder):
        look(made, looks)
        made = launch_plan.plan_of(job_objects.sized(context), config, words)
        launch_plan.build(made, config)
        head = read_head(context.settings.ledger, context.client.select_rows)
        yield record.planned(made, head.epoch if head is not None else 0)


def begin(
    made: LaunchPlan, say: Callable[[str], None], record: StartRecord, seconds: float | None = None
) -> str:
    """Start what was prepared, and return what shows that it works, within so many seconds.

    Raises JobError when it does not; then its operation has been ended.
    """
    context, id_ = made.context, None
    try:
        id_ = _hand_over(made, say)
        record.started(made, id_)
        say(f"operation {id_}, alias {context.settings.alias}")
        if address := operation.address(context.client, id_):
            say(address)
        wait = FirstBatchWait(context, id_, made.identity["epoch"], say, seconds=seconds)
        done = wait.first_batch()
        record.works(made, wait.seen)
        return done
    except KeyboardInterrupt:
        if id_ is None:
            say("interrupted: asking the cluster whether anything was started")
        say(_interrupted(made, id_))
        raise
    except JobError as error:
        record.failed(made, error.message)
        ended = _undo(made, id_, error.message)
        raise JobError("\n".join((error.message, *ended)), error.remedy, code=error.code) from error


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Lock the files that a submit builds. Raises JobError while another submit runs."""
    folder.mkdir(exist_ok=True)
    with (folder / "submit.lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise JobError(
                "another submit of this repository runs",
                "wait for its end",
                code=ErrorCode.ANOTHER_SUBMIT,
            ) from None
        yield


def _hand_over(made: LaunchPlan, say: Callable[[str], None]) -> str:
    """Call spark-submit and return the operation's id. Raises JobError with its reason."""
    dump, log = made.folder / "operation.id", made.folder / "submit.log"
    dump.unlink(missing_ok=True)
    name = log.relative_to(made.folder.parent)
    say(f"spark-submit uploads the files and starts the operation; its log is {name}")
    with log.open("w", encoding="utf-8") as out:
        code = subprocess.run(
            spark_submit.command(made, dump),
            env=spark_submit.environment(made),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            check=False,
        ).returncode
    found = dump.read_text(encoding="utf-8").strip() if dump.exists() else ""
    if code == 0 and found:
        return found
    said = log.read_text(encoding="utf-8", errors="replace")
    raise JobError(
        f"spark-submit failed: {reason(said) or f'it ended with code {code} and no reason'}",
        f"correct it and submit again; the whole log is {log}",
        code=ErrorCode.SUBMIT_FAILED,
    )


def reason(said: str) -> str:
    """Return the innermost reason that a trace of spark-submit gives, in one line."""
    found = _REASON.findall(said)
    if not found:
        return next((line for line in reversed(said.splitlines()) if line.startswith("Error")), "")
    line = str(found[-1]).partition("; full error: ")[0]
    return line.rpartition("<== ")[2].strip("' ")


def _started(made: LaunchPlan) -> str | None:
    """Return the id of an operation that was started though spark-submit has not said so."""
    dump = made.folder / "operation.id"
    if dump.exists():
        return dump.read_text(encoding="utf-8").strip() or None
    found = _of_this_submit(made)
    return found.id if found is not None else None


def _of_this_submit(made: LaunchPlan) -> Operation | None:
    """Return the operation under the alias, if this submit has started it and it runs."""
    found = operation.get(made.context.client, alias=made.settings.alias)
    mine = made.identity.get("submit")
    is_ours = found is not None and found.note.get("submit") == mine
    return found if found is not None and is_ours and not found.is_final else None


def _undo(made: LaunchPlan, id_: str | None, why: str) -> list[str]:
    """End what was started; return what was, a line each."""
    client = made.context.client
    try:
        with explained(made.settings):
            id_ = id_ or _started(made)
            found = operation.get(client, id_) if id_ is not None else None
            line = f"submit has ended it: {why.splitlines()[0]}"
            ended = [*operation.abort(client, found, line)] if found is not None else []
    except Exception as error:
        what = f"operation {id_}" if id_ else "what may have been started"
        return [f"{what} could not be ended: {error}; end it by {made.context.make('stop')}"]
    return [f"ended: {one}" for one in ended]


def _interrupted(made: LaunchPlan, id_: str | None) -> str:
    status, stop = made.context.make("status"), made.context.make("stop")
    try:
        id_ = id_ or _started(made)
    except (YtError, OSError) as error:
        return (
            f"interrupted: whether anything was started is not known, since the cluster does not "
            f"answer ({first_line(error)}); {status} shows it, by the alias "
            f"{made.settings.alias}"
        )
    if id_ is None:
        return "interrupted: nothing was started"
    return (
        f"interrupted: operation {id_} runs on, alias {made.settings.alias}; {status} shows it, "
        f"{stop} ends it"
    )
