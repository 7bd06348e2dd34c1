"""The causes that `why` knows: a table of functions over the facts, in the order of their weight.

Each returns what it has found, or None. A cause higher in the table explains those below it: a
table that is not mounted makes the lag grow, for example. So the first one is the answer, and the
others are told as well.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from ytstream.cluster import mounting
from ytstream.cluster.operation import DRIVER, EXECUTOR
from ytstream.errors.error_codes import ErrorCode
from ytstream.instance.lock import PING_SECONDS
from ytstream.job import REJECTED
from ytstream.recovery.emptied_totals import INTENT
from ytstream.text_table import counted, duration

from ..status.alert_limits import (
    LATE_SHARE_OF_LIMIT,
    REJECTED_SHARE,
    STALLED_SECONDS,
    TOTAL_SHARE,
)
from ..status.job_status import ProcessState
from ..submitting.version_history import StartState
from . import references, slowness
from .backlog import without_batch
from .facts import Attempt, Facts
from .finding import Finding

_CLOCK_SECONDS = 30.0
"""A clock that differs by less changes nothing that anybody would notice."""
_SILENT_PINGS = 3
"""Pings that may be missed before a holder counts as silent."""
_STARTS_PER_DAY = 3
"""More starts in a day are worth a look."""
_RECENT_SECONDS = 3600.0
"""An attempt that ended longer ago explains nothing now."""
_MEMORY_LIMIT = 1200
"""NJobProxy::EErrorCode::MemoryLimitExceeded (YTsaurus, yt/yt/ytlib/job_proxy/public.h)."""
_HEAP_FULL = 52
"""SparkExitCode.OOM (Apache Spark): a process whose Java heap is full. SPYT makes 1 of a driver's.
"""
_ONLY_READ = ("queue", "reference")
"""Tables that may be frozen: batches only read them."""
_PREEMPTION = "preemption"
"""EAbortReason::Preemption as the API spells it (YTsaurus, yt/yt/client/scheduler/public.h)."""


@dataclass(frozen=True)
class Cause:
    """A named cause."""

    name: str
    look: Callable[[Facts], Finding | None]
    is_healthy: bool = False
    """Whether nothing has to be done about it."""


def causes_of(found: Facts) -> Iterator[tuple[Cause, Finding]]:
    """Yield the causes that the facts speak for, the most likely one first."""
    for cause in CAUSES:
        if finding := cause.look(found):
            yield cause, finding


def _token(found: Facts) -> Finding | None:
    if found.refused is not ErrorCode.TOKEN:
        return None
    return Finding(
        f"{found.settings.proxy} refuses the token, or there is none",
        ("export YT_TOKEN=...", f"then {found.make('why')} again", "a job that ran with the same "
         f"token needs a new one, too: {found.make('submit')} puts it into the job's vault"),
    )  # fmt: skip


def _outage(found: Facts) -> Finding | None:
    if found.refused is None or found.refused is ErrorCode.TOKEN:
        return None
    return Finding(
        f"the cluster {found.settings.proxy} does not answer from here [{found.refused}]",
        ("the job waits for it and goes on automatically: nothing is lost",
         "check `proxy` in the configuration and this machine's network; ask the administrators"),
    )  # fmt: skip


def _rights(found: Facts) -> Finding | None:
    if ErrorCode.PERMISSION not in found.unread.values() and not found.missing_to_read:
        return None
    listed = found.missing_to_read or ("a right to read " + ", ".join(sorted(found.unread)),)
    return Finding("this user may not read what `why` needs", (*listed, "ask the paths' owners"))


def _missing(found: Facts) -> Finding | None:
    gone = [one for one in found.tables if one.is_missing]
    if not gone:
        return None
    named = ", ".join(f"{one.name} {one.path}" for one in gone)
    return Finding(
        f"not there: {named}",
        (f"if it never was: {found.make('provision')}", "if somebody removed it: restore it first"),
    )


def _unmounted(found: Facts) -> Finding | None:
    closed = [
        one
        for one in found.tables
        if one.state not in ("", "mounted")
        and not (one.state == "frozen" and one.name.startswith(_ONLY_READ))
    ]
    if not closed:
        return None
    commands = ((one, *mounting.command(one.state, is_built=one.is_built)) for one in closed)
    return Finding(
        "; ".join(f"{one.name} {one.path} is {one.state}" for one in closed),
        tuple(f"yt {word} {one.path} {options}" for one, word, options in commands),
    )


def _foreign(found: Facts) -> Finding | None:
    """Return whose the ledger, consumer, checkpoint or an output is, if it is another job's."""
    others = [
        f"{one.name} {one.path} belongs to the job {one.owner[0]!r} with the ledger {one.owner[1]}"
        for one in found.tables
        if one.owner is not None
    ]
    head = found.head
    if head is not None and head.marker.get("job") not in (None, found.job):
        others.insert(0, f"the ledger {found.settings.ledger} belongs to the job "
                         f"{head.marker['job']!r}, this is {found.job!r}")  # fmt: skip
    if not others:
        return None
    return Finding(
        "; ".join(others),
        ("correct `ledger`, `consumer` and [outputs] in the configuration, or `name` in job.py",),
    )


def _damaged(found: Facts) -> Finding | None:
    """Return that the head row of the ledger cannot be read."""
    if found.unread.get("status") is not ErrorCode.LEDGER_DAMAGED:
        return None
    return Finding(
        f"the head row of the ledger {found.settings.ledger} is malformed",
        ("if a newer version of the runtime has written it: run that version",
         "if somebody has changed it: restore the row, or write a new one that continues at the "
         f"consumer: {found.make('rewind TO=rows')}"),
    )  # fmt: skip


def _recreated(found: Facts) -> Finding | None:
    if found.end_code != ErrorCode.QUEUE_RECREATED:
        return None
    return Finding(
        "a queue was dropped and recreated: its rows are numbered from 0",
        (f"{found.make('rewind TO=earliest')}, or TO=latest",),
    )


def _trimmed(found: Facts) -> Finding | None:
    if found.head is None or found.status is None:
        return None
    lost = [one for one in found.status.partitions if one.first > one.next]
    if not lost:
        return None
    rows = sum(one.first - one.next for one in lost)
    return Finding(
        f"{counted(rows, 'row')} were trimmed before this job read them, in "
        + ", ".join(f"{one.queue} partition {one.number}" for one in lost),
        ("these rows are lost: tell whoever reads the outputs",
         'set on_data_loss = "skip" in the configuration, then '
         f"{found.start}: it continues after the gap",
         "ask the queue's owner for a longer retention"),
    )  # fmt: skip


def _quota(found: Facts) -> Finding | None:
    if not found.full:
        return None
    said = "; ".join(
        f"account {one.account}: {one.resource} is used up ({one.used} of {one.limit})"
        for one in found.full
    )
    names = {one.account for one in found.full}
    return Finding(
        said,
        ("remove data of the account, or ask its owner for more: the job then goes on",
         *(f"yt get //sys/accounts/{name}/@resource_usage" for name in sorted(names))),
    )  # fmt: skip


def _state(found: Facts) -> Finding | None:
    if found.end_code != ErrorCode.STATE_DAMAGED:
        return None
    return Finding(
        "the job ended because Spark cannot read its state",
        (f"{found.make('rewind TO=state DRY_RUN=1')} names the damaged files",
         'docs/operations.md, "A damaged state", says what to do and what it costs'),
    )  # fmt: skip


def _proxies(found: Facts) -> Finding | None:
    if found.proxies != 0:
        return None
    return Finding(
        f"no RPC proxy has the role {found.settings.proxy_role!r}",
        ("ask the administrators to bring it back, or correct `proxy_role` in the configuration, "
         f"then {found.replace}",),
    )  # fmt: skip


def _consumer(found: Facts) -> Finding | None:
    head, status = found.head, found.status
    if head is None or status is None:
        return None
    moved = [
        one
        for one in status.partitions
        if one.number in head.ends.get(one.queue, {}) and one.consumer != one.next
    ]
    if not moved:
        return None
    said = ", ".join(
        f"{one.queue} partition {one.number}: consumer {one.consumer}, ledger {one.next}"
        for one in moved
    )
    return Finding(
        f"something else has moved the consumer: {said}",
        ("find out who; the ledger is right",
         f"to go on where the ledger is: {found.make('rewind TO=rows')}",
         f"to accept the new rows: name them, {found.make('rewind')} with "
         'TO="rows QUEUE:PARTITION=ROW ..."'),
    )  # fmt: skip


def _lock(found: Facts) -> Finding | None:
    lock = found.lock
    if lock is None or not (lock.is_dead or lock.silent_seconds > _SILENT_PINGS * PING_SECONDS):
        return None
    return Finding(
        f"the lock is held by a process that has ended: {lock.owner}, silent for "
        f"{duration(lock.silent_seconds)}",
        ("it is free within 30 s of the last ping, and a start waits for it; to end it now:",
         f"yt abort-tx {lock.transaction}"),
    )  # fmt: skip


def _clock(found: Facts) -> Finding | None:
    clocks = {"the driver's": found.ahead_driver, "this machine's": found.ahead_here}
    wrong = {name: ahead for name, ahead in clocks.items() if abs(ahead) > _CLOCK_SECONDS}
    if not wrong:
        return None
    said = ", ".join(
        f"{name} clock is {duration(abs(ahead))} {'ahead of' if ahead > 0 else 'behind'} the "
        "cluster's"
        for name, ahead in wrong.items()
    )
    return Finding(
        said,
        ("correct it there (NTP)", "until then do not trust seconds in `status`, event times that "
         "come from that clock, and `rewind to-time`"),
    )  # fmt: skip


def _memory(found: Facts) -> Finding | None:
    for of in (EXECUTOR, DRIVER):
        runs = [one for one in found.attempts if one.of == of]
        killed = [one for one in runs if _MEMORY_LIMIT in one.codes]
        full = [one for one in runs if one.exit_code == _HEAP_FULL]
        if ended := [one for one in (*killed[:1], *full[:1]) if _is_recent(found, one)]:
            said = (
                f"the cluster has killed {counted(len(killed), f'{of} job')} for memory"
                if ended[0] in killed
                else f"{counted(len(full), f'{of} job')} ended because the Java heap was full"
            )
            return Finding(
                said,
                (f"raise {of}_memory under [submit] of the configuration, or lower "
                 f"max_rows_per_partition, then {found.replace}",),
            )  # fmt: skip
    return None


def _preempted(found: Facts) -> Finding | None:
    runs = [one for one in found.attempts if one.of == DRIVER]
    preempted = [one for one in runs if one.abort_reason == _PREEMPTION]
    if not preempted or not _is_recent(found, preempted[0]):
        return None
    return Finding(
        f"the driver was preempted {counted(len(preempted), 'time')}: its pool has no guarantee "
        "for it",
        ("YTsaurus starts it again, nothing is lost",
         "ask for a guarantee of the pool, or name another `pool`"),
    )  # fmt: skip


def _is_recent(found: Facts, run: Attempt) -> bool:
    """Return whether an attempt has ended lately: what ended it may still be so."""
    if not run.ended:
        return False
    age = found.time - datetime.fromisoformat(run.ended)
    return age.total_seconds() < _RECENT_SECONDS


def _permission(found: Facts) -> Finding | None:
    """Return that the job's user may not do what the job does."""
    status = found.status
    if status is None or status.process != ProcessState.FAILED:
        return None
    if found.end_code != ErrorCode.PERMISSION:
        return None
    return Finding(
        f"the job's user lacks a right: {found.end_said}",
        ("`check --permissions job --user NAME` names each right that the user lacks, and the "
         "command that grants it", f"then {found.start}"),
    )  # fmt: skip


def _never(found: Facts) -> Finding | None:
    status = found.status
    if status is None or status.process != ProcessState.NEVER:
        return None
    if found.operation is not None and not found.operation.is_final:
        return Finding(
            f"operation {found.operation.id} is {found.operation.state}, and has not come to its "
            "first start",
            (found.make("logs"), "without a driver in it: ask for resources in the pool"),
        )
    return Finding("the job has never started", (found.make("submit"),))


def _failed(found: Facts) -> Finding | None:
    status = found.status
    if status is None or status.process != ProcessState.FAILED:
        return None
    if _state(found) is not None or _permission(found) is not None:
        return None
    return Finding(
        f"the job ended with the error [{found.end_code}]: {found.end_said}",
        (f"docs/operations.md explains it, under Messages; {found.make('capture failed')} makes a "
         "test of the rows of the batch", f"correct the cause, then {found.start}",
         *_former_version(found)),
    )  # fmt: skip


def _former_version(found: Facts) -> tuple[str, ...]:
    """Return how to start the version before the last one, if another one has had a batch."""
    versions = found.status.versions if found.status is not None else ()
    if not versions:
        return ()
    newest = versions[0].identity
    worked = (one for one in versions if one.state == StartState.WORKS and one.identity != newest)
    if (former := next(worked, None)) is None:
        return ()
    return (
        f"or start the version that ran before, commit {former.commit}: `git checkout "
        f"{former.commit}`, then {found.make('submit')}",
    )


def _cut_off(found: Facts) -> Finding | None:
    """Return that totals are being emptied: a table may have no path, and no start goes through."""
    if found.head is None or INTENT not in found.head.marker:
        return None
    return Finding(
        "a `rewind` with TOTALS=empty was cut off, and its tables may be empty already",
        ("repeat that `make rewind`, with TOTALS=empty: it does what is left",),
    )


def _killed(found: Facts) -> Finding | None:
    status = found.status
    if status is None or status.process != ProcessState.KILLED:
        return None
    if found.operation is not None and not found.operation.is_final:
        return None  # the next attempt is under way
    return Finding(
        "the last process was killed, and has not said why",
        (
            *((f"{found.make('logs')} has its end",) if found.was_submitted else ()),
            f"{found.start}: nothing is lost",
        ),
    )


def _stopped(found: Facts) -> Finding | None:
    status = found.status
    if status is None or status.process != ProcessState.ENDED:
        return None
    return Finding("the job was stopped, and nothing failed", (found.start,))


def _unequal(found: Facts) -> Finding | None:
    """Return that a map has written other rows than it has read."""
    head = found.head
    if head is None or not found.is_one_to_one or not head.totals.read:
        return None
    written = sum(head.totals.written.get(name, 0) for name in ("output", REJECTED))
    if (difference := head.totals.read - written) == 0:
        return None
    return Finding(
        f"a map has read {counted(abs(difference), 'row')} {'more' if difference > 0 else 'less'} "
        "than it has written, since its first batch",
        ("if transform() leaves rows out: nothing, remove the alert's rule",
         f"else find the release: {found.make('status')} lists the versions; correct transform.py, "
         f"then {found.replace}"),
    )  # fmt: skip


def _total(found: Facts) -> Finding | None:
    """Return which totals are near the ends of their types."""
    near = [one for one in found.status.sums if one.share > TOTAL_SHARE] if found.status else []
    if not near:
        return None
    return Finding(
        "; ".join(one.text for one in near),
        ("all totals are right until then: find the keys, with `order by COLUMN desc limit 10`",
         "if rows are wrong: let REJECT keep them out; else write to a new output in larger units"),
    )  # fmt: skip


def _rejected(found: Facts) -> Finding | None:
    status = found.status
    if status is None:
        return None
    read, kept_out = sum(batch.read for batch in status.batches), sum(status.rejected.values())
    if not read or kept_out <= REJECTED_SHARE * read:
        return None
    reasons = sorted(status.rejected.items(), key=lambda pair: -pair[1])
    return Finding(
        f"{100 * kept_out / read:.0f}% of the rows of the last "
        f"{counted(len(status.batches), 'batch')} were rejected: "
        + ", ".join(f"{rows} {reason}" for reason, rows in reasons if rows),
        ("ask the queue's producer what has changed",
         f"if REJECT of transform.py is wrong: correct it, then {found.replace}"),
    )  # fmt: skip


def _late(found: Facts) -> Finding | None:
    """Return that many rows come behind the watermark: more than half of `late_limit`."""
    status, limit = found.status, found.settings.late_limit
    if status is None:
        return None
    share = REJECTED_SHARE if limit is None else LATE_SHARE_OF_LIMIT * limit
    read, late = sum(batch.read for batch in status.batches), status.late
    if not read or late <= share * read:
        return None
    return Finding(
        f"{counted(late, 'row')}, {100 * late / read:.0f}% of those of the last "
        f"{counted(len(status.batches), 'batch')}, came behind the watermark",
        ("ask the queue's producer whether a source was away or a clock is wrong",
         f"if such rows are normal: widen the watermark in transform.py, then {found.replace}"),
    )  # fmt: skip


def _unsealed(found: Facts) -> Finding | None:
    """Return what holds a period of an archive open; the oldest row that waits decides."""
    status = found.status
    archives = [one for one in status.archives if one.overdue_seconds] if status else []
    if status is None or not archives or archives[0].overdue_seconds <= STALLED_SECONDS:
        return None
    one = archives[0]
    waiting = [p for p in status.partitions if p.lag]
    said = f"{one.output}: {one.open} has no table, {duration(one.overdue_seconds)} after its end"
    if not waiting:
        return Finding(
            f"{said}, and the job has read all rows",
            (f"{found.make('logs')}: a line that begins with `archive` says what keeps the table "
             "out of its folder",
             f"{found.make('check')} says whether the queues have the times of their rows"),
        )  # fmt: skip
    oldest = max(waiting, key=lambda p: p.seconds or 0.0)
    since = f", the first for {duration(oldest.seconds)}" if oldest.seconds else ""
    return Finding(
        f"{said}: {counted(oldest.lag, 'row')} of {oldest.queue}, tablet {oldest.number}, wait"
        f"{since}",
        ("the period is complete once they are read",
         f"to do without them: {found.make('seal')} PERIOD={one.open}, which says what that means"),
    )  # fmt: skip


def _restarts(found: Facts) -> Finding | None:
    status = found.status
    if status is None or status.process != ProcessState.RUNNING or status.epochs <= _STARTS_PER_DAY:
        return None
    return Finding(
        f"the job has started again {counted(status.epochs, 'time')} in the last day, deploys "
        "included",
        (f"{found.make('logs')}: lines with `failure` say why it has done so on its own",),
    )


def _idle(found: Facts) -> Finding | None:
    status = found.status
    if status is None or status.process != ProcessState.RUNNING or status.lag:
        return None
    return Finding(
        "the job runs and has read every row: no new rows come",
        ("ask the queue's producers if there should be some",),
    )


def _works(found: Facts) -> Finding | None:
    status = found.status
    if status is None or status.process != ProcessState.RUNNING or not status.lag:
        return None
    waited = without_batch(status)
    if waited is None or waited > STALLED_SECONDS:
        return None
    if not any(one.epoch == found.head.epoch for one in status.batches if found.head is not None):
        return Finding("the job runs, and its first batch since the start has not ended yet", ())
    return Finding("the job runs, and its batches end", ())


CAUSES: Sequence[Cause] = (
    Cause("token", _token),
    Cause("outage", _outage),
    Cause("rights", _rights),
    Cause("cut_off", _cut_off),
    Cause("missing", _missing),
    Cause("unmounted", _unmounted),
    Cause("reference", references.unfit),
    Cause("overloaded", references.refused),
    Cause("foreign", _foreign),
    Cause("damaged", _damaged),
    Cause("recreated", _recreated),
    Cause("trimmed", _trimmed),
    Cause("quota", _quota),
    Cause("proxies", _proxies),
    Cause("consumer", _consumer),
    Cause("memory", _memory),
    Cause("preempted", _preempted),
    Cause("lock", _lock),
    Cause("clock", _clock),
    Cause("never", _never),
    Cause("state", _state),
    Cause("permission", _permission),
    Cause("failed", _failed),
    Cause("killed", _killed),
    Cause("stopped", _stopped),
    Cause("unequal", _unequal),
    Cause("total", _total),
    Cause("rejected", _rejected),
    Cause("late", _late),
    Cause("unsealed", _unsealed),
    Cause("batch", slowness.long_batch),
    Cause("tablet", slowness.hot_tablet),
    Cause("requests", slowness.slow_requests),
    Cause("lookups", slowness.slow_lookups),
    Cause("writes", slowness.slow_writes),
    Cause("store", slowness.slow_state),
    Cause("cut", slowness.cut_batches),
    Cause("cores", slowness.few_cores),
    Cause("transform", slowness.slow_transform),
    Cause("behind", slowness.behind),
    Cause("trigger", slowness.long_trigger),
    Cause("restarts", _restarts),
    Cause("idle", _idle, is_healthy=True),
    Cause("works", _works, is_healthy=True),
)
