"""`submit --replace`: stops the running version, starts this one, and comes back if it was wrong.

Every step is told from Cypress: which operation runs, the records of versions, the ledger, and one
attribute that says which version to come back to. So a submitter that has died, on whatever
machine, is followed by the next one where it was.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from enum import StrEnum, auto
from pathlib import Path

from ytstream.cluster import operation
from ytstream.cluster.operation import Operation
from ytstream.errors import JobError
from ytstream.errors.error_codes import ErrorCode
from ytstream.instance import stop_request
from ytstream.instance.lock import alone
from ytstream.job import JobContext
from ytstream.ledger import ledger_rows
from ytstream.ledger.positions import read_head

from . import launch_plan, submission
from . import rollback as bringing_back
from .first_batch import FirstBatchWait
from .launch_checks import REPLACING
from .launch_plan import LaunchPlan
from .version_history import (
    DeployedVersion,
    PendingReplacement,
    StartState,
    StoredStartRecord,
    VersionHistory,
    is_same,
    latest,
)

ROLLED_BACK = 5
"""The exit code when the former version runs again."""
_FINAL_SECONDS = 120.0
"""How long an operation that was ended may take to be final."""
_POLL_SECONDS = 0.5


class ReplacementStep(StrEnum):
    """What a replacement does first."""

    NOTHING = auto()
    """The version runs already."""
    WAIT = auto()
    """An earlier submitter has started it: wait for its first batch."""
    BACK = auto()
    """It was refused, and the former version does not run: start the former version."""
    START = auto()


@dataclass(frozen=True)
class ReplacementDecision:
    """What is to be done, and the version to come back to."""

    step: ReplacementStep
    former: DeployedVersion | None


def decide(
    made: LaunchPlan,
    running: DeployedVersion | None,
    versions: Sequence[DeployedVersion],
    begun: PendingReplacement | None,
    *,
    force: bool,
) -> ReplacementDecision:
    """Return the next step. Raises JobError for a version that was refused before.

    The version to come back to is the one that runs if it works, else that of the replacement that
    has begun: what runs has not shown that it works.
    """
    kept = {one.key: one for one in versions}
    former = kept.get(begun.former) if begun is not None else None
    works = running is not None and running.state == StartState.WORKS
    if force:
        return ReplacementDecision(ReplacementStep.START, running if works else former)
    if running is not None and is_same(running, made):
        if works:
            return ReplacementDecision(ReplacementStep.NOTHING, None)
        if running.state == StartState.STARTED:
            return ReplacementDecision(ReplacementStep.WAIT, former)
    last = latest(versions, made)
    if last is not None and last.state == StartState.REFUSED:
        if former is not None and begun is not None and _is_of(begun, last):
            return ReplacementDecision(ReplacementStep.BACK, former)
        raise JobError(
            f"this version ({last.named}) was refused at {last.ended[:19]}: {last.how}",
            "commit a correction; FORCE=1 tries it again. Nothing was stopped",
            code=ErrorCode.VERSION_REFUSED,
        )
    return ReplacementDecision(ReplacementStep.START, running if works else former)


def _is_of(begun: PendingReplacement, version: DeployedVersion) -> bool:
    return (begun.files, begun.configuration) == version.identity


def run(
    context: JobContext,
    config: Path,
    words: Sequence[str],
    say: Callable[[str], None],
    *,
    force: bool = False,
) -> int:
    """Replace the running version by this one; return the exit code, and say the last line."""
    record = StoredStartRecord(VersionHistory(context.client, context.settings))
    with (
        _only(context),
        submission.prepared(context, config, words, record, REPLACING) as made,
    ):
        return Replacement(context, made, say).run(force=force)


@contextmanager
def _only(context: JobContext) -> Iterator[None]:
    """Lock the folder of versions, as a job locks its own. Raises JobError while another runs."""
    settings = replace(context.settings, consumer=context.settings.versions)
    with ExitStack() as stack:
        try:
            stack.enter_context(alone(replace(context, settings=settings)))
        except JobError as error:
            raise JobError(
                f"another `submit --replace` of this job is running: {error.message}",
                "wait for its end; nothing was changed",
                code=ErrorCode.ANOTHER_SUBMIT,
            ) from error
        yield


@dataclass
class Replacement:
    """One replacement, from what Cypress says."""

    context: JobContext
    made: LaunchPlan
    say: Callable[[str], None]
    parts: list[tuple[str, float]] = field(default_factory=list)
    """The parts of the time without a batch: what, and its seconds."""

    def __post_init__(self) -> None:
        """Keep records where the ledger is."""
        self.versions = VersionHistory(self.context.client, self.context.settings)

    @property
    def again(self) -> str:
        """The remedy where a step was left."""
        return f"call {self.context.make('submit REPLACE=1')} again: it continues from here"

    def run(self, *, force: bool) -> int:
        """Do what is left to do."""
        running = self.running()
        begun = self.versions.replacing()
        decision = decide(self.made, running, self.versions.all(), begun, force=force)
        if decision.step == ReplacementStep.NOTHING and running is not None:
            self.versions.replace(None)
            self.say(
                f"nothing to do: operation {running.operation} runs this version already "
                f"({running.named}); FORCE=1 replaces it anyway"
            )
            return 0
        if decision.step == ReplacementStep.WAIT and running is not None:
            self.say(f"operation {running.operation} was started before and has no batch yet")
            return self.tried(decision.former, lambda: self.waited(running, decision.former))
        if decision.step == ReplacementStep.BACK and decision.former is not None:
            self.say("this version was refused, and the previous one is not running again yet")
            return self.back(decision.former)
        return self.started(running, decision.former)

    # What runs

    def operation(self) -> Operation | None:
        """Return the job's operation, if it has not ended."""
        settings = self.context.settings
        found = operation.get(self.context.client, alias=settings.alias)
        is_ours = found is not None and found.note.get("ledger") == settings.ledger
        return found if found is not None and is_ours and not found.is_final else None

    def running(self) -> DeployedVersion | None:
        """Return the version that runs; one that has a batch or a first look works."""
        found = self.operation()
        if found is None:
            return None
        version = self.versions.adopt(found)
        if version.state == StartState.STARTED and self.wait(version).in_ledger(found):
            version = replace(version, state=StartState.WORKS)
            self.versions.write(version)
        return version

    def wait(self, version: DeployedVersion, seconds: float | None = None) -> FirstBatchWait:
        """Return what waits for the first batch of a version that was started."""
        epoch = version.note.get("epoch")
        if epoch is None:  # started by an older runtime
            head = read_head(self.context.settings.ledger, self.context.client.select_rows)
            is_its = head is not None and operation.id_in(head.owner) == version.operation
            epoch = 0 if head is None else head.epoch - is_its
        return FirstBatchWait(
            self.context, version.operation, int(epoch), self.say, seconds=seconds
        )

    # Steps

    def started(self, running: DeployedVersion | None, former: DeployedVersion | None) -> int:
        """Stop what runs, and start this version."""
        if former is not None:
            bringing_back.verify(self.versions, former, self.made)
            identity = self.made.identity
            self.versions.replace(
                PendingReplacement(former.key, identity["files"], identity["configuration"])
            )
        self.say(f"{launch_plan.shown(self.made)}\n")
        if running is not None:
            self.stop(running)
        record = StoredStartRecord(
            self.versions, StartState.REFUSED if former is not None else StartState.FAILED
        )
        made = replace(self.made, identity={**self.made.identity, "epoch": self.epoch()})
        limit = self.context.settings.submit.replace_seconds if former is not None else None
        began = time.monotonic()

        def start() -> str:
            done = submission.begin(made, self.say, record, limit)
            self.parts.append(("spark-submit", record.times["started"] - began))
            self.parts += _since(record.seen, time.monotonic() - record.times["started"])
            return done

        return self.tried(former, start)

    def stop(self, running: DeployedVersion) -> None:
        """Stop the running version through the ledger; wait until its operation is final."""
        began, limit = time.monotonic(), self.context.settings.submit.replace_seconds
        self.say(stop_request.stop(self.context, self.say, limit))
        self.until_final(running.operation)
        self.versions.end(running, f"replaced by commit {self.made.commit or 'none'}")
        self.parts.append(("the previous version's end", time.monotonic() - began))

    def waited(self, running: DeployedVersion, former: DeployedVersion | None) -> str:
        """Wait for a version that an earlier submitter has started."""
        limit = self.context.settings.submit.replace_seconds if former is not None else None
        try:
            done = self.wait(running, limit).first_batch()
        except JobError as error:
            state = StartState.REFUSED if former is not None else StartState.FAILED
            self.versions.end(running, error.message.splitlines()[0], state)
            self.end(running.operation)
            raise
        self.versions.write(replace(running, state=StartState.WORKS))
        return done

    def tried(self, former: DeployedVersion | None, start: Callable[[], str]) -> int:
        """Return after a start that works; else come back to the former version."""
        try:
            self.say(start())
        except JobError as error:
            if former is None:
                self.versions.replace(None)
                raise
            self.say(f"error: {error}")
            return self.back(former)
        self.versions.replace(None)
        if gap := self.gap():
            self.say(gap)
        self.say(f"this version runs: commit {self.made.commit or 'none'}")
        return 0

    def back(self, former: DeployedVersion) -> int:
        """Start the former version again, unless it runs already, and wait for its first batch."""
        found = self.operation()
        version = self.versions.adopt(found) if found is not None else None
        if version is not None and (
            version.state == StartState.REFUSED or version.identity != former.identity
        ):
            self.end(version.operation)
            version = None
        if version is None:
            self.say(f"starting the previous version again: {former.named}")
            id_ = bringing_back.start(self.versions, former, self.made, self.epoch())
            found = operation.get(self.context.client, id_)
            if found is None:
                raise JobError(
                    f"operation {id_} is gone", self.again, code=ErrorCode.OPERATION_GONE
                )
            version = self.versions.adopt(found)
        self.versions.settle(except_for=version.operation)
        try:
            self.say(self.wait(version).first_batch())
        except JobError as error:
            raise JobError(
                f"this version was refused, and the previous one, operation {version.operation}, "
                f"has no batch: {error.message}",
                f"see {self.context.make('logs')}, correct the cause, and {self.again}",
                code=ErrorCode.ROLLBACK_FAILED,
            ) from error
        self.versions.write(replace(version, state=StartState.WORKS))
        self.versions.replace(None)
        self.say(
            f"rolled back: commit {self.made.commit or 'none'} was refused, commit "
            f"{former.commit} is running again as operation {version.operation}; FORCE=1 retries "
            "the refused one"
        )
        return ROLLED_BACK

    def end(self, id_: str) -> None:
        """End an operation and its executors', and wait until it is final."""
        client = self.context.client
        found = operation.get(client, id_)
        if found is not None:
            for line in operation.abort(client, found, "`submit --replace` has refused it"):
                self.say(f"ended: {line}")
        self.until_final(id_)

    def until_final(self, id_: str) -> None:
        """Wait: until then YTsaurus may start a driver of it again, and the alias is not free."""
        until = time.monotonic() + _FINAL_SECONDS
        while (found := operation.get(self.context.client, id_)) and not found.is_final:
            if time.monotonic() > until:
                raise JobError(
                    f"operation {id_} does not end: it is {found.state}",
                    self.again,
                    code=ErrorCode.STOP_LATE,
                )
            time.sleep(_POLL_SECONDS)

    # What it took

    def epoch(self) -> int:
        """Return the last epoch until now."""
        head = read_head(self.context.settings.ledger, self.context.client.select_rows)
        return head.epoch if head is not None else 0

    def gap(self) -> str:
        """Return the seconds between the last batch of the former version and the first after."""
        if not self.parts:
            return ""
        rows = ledger_rows.newest_query(self.context.settings.ledger, 100)
        batches = list(self.context.client.select_rows(rows))
        newest = max((int(row["epoch"]) for row in batches), default=0)
        after = [row for row in batches if int(row["epoch"]) == newest]
        before = [row for row in batches if int(row["epoch"]) < newest]
        parts = ", ".join(f"{what} {seconds:.0f}" for what, seconds in self.parts)
        if not before or newest <= self.made.identity["epoch"]:
            return f"seconds by part: {parts}"
        first = min(ledger_rows.time_of(row["ended"]) for row in after)
        last = max(ledger_rows.time_of(row["ended"]) for row in before)
        return f"{(first - last).total_seconds():.0f} s between two batches, by part: {parts}"


def _since(seen: Sequence[tuple[str, float]], whole: float) -> list[tuple[str, float]]:
    """Return the parts of a wait: until executors ran, and from then on."""
    ran = next((after for line, after in seen if line.startswith("driver and executors")), None)
    if ran is None:
        return [("until the first batch", whole)]
    return [("until executors ran", ran), ("until the first batch", whole - ran)]
