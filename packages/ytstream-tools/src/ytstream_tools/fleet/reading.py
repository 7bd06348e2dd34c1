"""Reads where each job is: one request for each, and a few for all of them together."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum, auto
from typing import Any

from yt.common import YtError

from ytstream.cluster.client import plain
from ytstream.cluster.operation import FINAL
from ytstream.cluster.server_errors import UNMOUNTED
from ytstream.errors import JobError
from ytstream.ledger import archive_rows, ledger_rows
from ytstream.ledger.ledger_rows import Head
from ytstream.ownership.job_record import RECORD
from ytstream.schema.periods import named

from ..status.alert_limits import (
    FULL_BATCHES,
    STALLED_SECONDS,
    STARTS_PER_HOUR,
    UNSEALED_SECONDS,
)
from .discovery import SeenOperation

_MOST_ROWS = 20_000
"""Without a record, the default of `max_rows_per_partition`."""


class JobState(StrEnum):
    """The status of a job; those that need somebody come first."""

    FAILED = auto()
    KILLED = auto()
    UNREADABLE = auto()
    STALLED = auto()
    BEHIND = auto()
    STARTING = auto()
    FOREIGN = auto()
    """The ledger is a copy, or names another path than it has: nobody runs it."""
    RUNNING = auto()
    STOPPED = auto()
    NEVER = "never started"


_ORDER = {state: number for number, state in enumerate(JobState)}


@dataclass(frozen=True)
class FleetJob:
    """One job."""

    ledger: str
    state: JobState
    job: str = ""
    owner: str = ""
    repository: str = ""
    commit: str = ""
    runtime: str = ""
    guarantee: str = ""
    lag: int | None = None
    seconds: float | None = None
    """Since the last batch, or since the start that has had none."""
    restarts: int | None = None
    alerts: Sequence[str] = ()
    archives: Mapping[str, str] = field(default_factory=dict)
    """Archive -> up to when all of its tables are there; empty: no table yet."""
    why: str = ""
    """The code of the error that ended it, or why it cannot be read."""

    @property
    def rank(self) -> tuple[int, int, float, str]:
        """What needs somebody first."""
        return _ORDER[self.state], -len(self.alerts), -(self.lag or 0), self.ledger


@dataclass(frozen=True)
class _Rows:
    """What one ledger says."""

    head: Head | None = None
    written: float = 0.0
    """When the head was written last."""
    end: tuple[str, str] | None = None
    """How the last process has ended: its owner, and its error's code."""
    closed: Mapping[str, int] = field(default_factory=dict)
    """Archive -> the end of the last period up to which all tables are there."""
    problem: str = ""


@dataclass
class Fleet:
    """Reads jobs again and again; knows how many tablets their queues have."""

    client: Any
    tablets: dict[str, int] = field(default_factory=dict)

    def read(
        self, ledgers: Iterable[str], operations: Sequence[SeenOperation], now: datetime
    ) -> list[FleetJob]:
        """Return all jobs, those that need somebody first."""
        newest = {one.ledger: one for one in reversed(operations)}
        paths = list(dict.fromkeys((*newest, *ledgers)))
        rows = {path: _rows(self.client, path) for path in paths}
        records = self._records(paths)
        heads = {path: found.head for path, found in rows.items() if found.head is not None}
        ends = self._ends(sorted({queue for head in heads.values() for queue in head.queues}))
        owners = self._lock_owners({path: records.get(path, {}) for path in paths})
        jobs = [
            _job(path, rows[path], records.get(path, {}), newest.get(path), ends,
                 owners.get(path), now)
            for path in paths
        ]  # fmt: skip
        return sorted(jobs, key=lambda job: job.rank)

    def _records(self, paths: Sequence[str]) -> dict[str, Mapping[str, Any]]:
        answers = self._asked({path: ("get", (f"{path}/@{RECORD}",)) for path in paths})
        return {path: plain(found) for path, found in answers.items()}

    def _ends(self, queues: Sequence[str]) -> dict[str, list[int]]:
        """Return the row after the last one of each partition of each queue."""
        new = {path: ("get", (f"{path}/@tablet_count",)) for path in queues
               if path not in self.tablets}  # fmt: skip
        self.tablets |= {path: int(count) for path, count in self._asked(new).items()}
        asked = {
            path: ("get_tablet_infos", (path, list(range(self.tablets[path]))))
            for path in queues
            if path in self.tablets
        }
        return {
            path: [int(info["total_row_count"]) for info in found["tablets"]]
            for path, found in self._asked(asked).items()
        }

    def _lock_owners(self, records: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
        """Return who holds each job's lock."""
        consumers = {path: str(record.get("consumer") or f"{path.rpartition('/')[0]}/consumer")
                     for path, record in records.items()}  # fmt: skip
        locks = self._asked({
            path: ("get", (f"{consumer.rpartition('/')[0]}/@locks",))
            for path, consumer in consumers.items()
        })  # fmt: skip
        held = {
            path: str(lock["transaction_id"])
            for path, found in locks.items()
            for lock in found
            if lock.get("child_key") == f"{consumers[path].rpartition('/')[2]}.lock"
            and lock.get("state") == "acquired"
        }
        asked = {path: ("get", (f"#{id_}/@job",)) for path, id_ in held.items()}
        return {path: str(owner) for path, owner in self._asked(asked).items()}

    def _asked(self, requests: Mapping[str, tuple[str, tuple[Any, ...]]]) -> dict[str, Any]:
        """Ask for all in one request; what the cluster does not give is left out."""
        if not requests:
            return {}
        batch = self.client.create_batch_client()
        answers = {name: getattr(batch, method)(*words) for name, (method, words)
                   in requests.items()}  # fmt: skip
        batch.commit_batch()
        return {name: one.get_result() for name, one in answers.items() if one.is_ok()}


def _rows(client: Any, ledger: str) -> _Rows:
    """Ask one ledger, in one request."""
    query = (
        f"kind, epoch, batch, queues, state, ended from [{ledger}] "
        f'where kind in ("head", "stop", "end") or {archive_rows.STATES}'
    )
    try:
        found = {str(row["kind"]): row for row in client.select_rows(query)}
        head = ledger_rows.head_of(ledger, iter(found.values()))
    except (YtError, JobError) as error:
        code = error.code if isinstance(error, JobError) else first_code(error)
        return _Rows(problem=str(code))
    end = ledger_rows.end_of(found["end"]) if "end" in found else None
    written = ledger_rows.time_of(found["head"]["ended"]).timestamp() if head is not None else 0.0
    states = {kind.partition("/")[2]: [row] for kind, row in found.items() if "/" in kind}
    closed = {name: archive_rows.state_of(rows)[0].announced for name, rows in states.items()}
    return _Rows(head, written, (end.owner, end.code) if end is not None else None, closed)


def first_code(error: YtError) -> str:
    """Return why a ledger cannot be read, in a word."""
    if error.contains_code(901):
        return "permission"
    if error.is_resolve_error():
        return "not there"
    return "not mounted" if any(map(error.contains_code, UNMOUNTED)) else "error"


def _job(
    path: str, rows: _Rows, record: Mapping[str, Any], seen: SeenOperation | None,
    ends: Mapping[str, list[int]], holder: str | None, now: datetime,
) -> FleetJob:  # fmt: skip
    head, note = rows.head, {**record.get("note", {}), **(seen.note if seen else {})}
    marker = plain(head.marker) if head is not None else {}
    job = FleetJob(
        path,
        JobState.NEVER,
        job=str(record.get("job") or marker.get("job") or note.get("job", "")),
        owner=seen.user if seen is not None else "",
        repository=str(note.get("repository", "")),
        commit=str(note.get("commit", "")),
        runtime=str(record.get("runtime") or note.get("runtime", "")),
        guarantee=str(record.get("guarantee") or marker.get("guarantee", "")),
        archives={name: named(end) if end else "" for name, end in rows.closed.items()},
    )
    if rows.problem:
        return replace(job, state=JobState.UNREADABLE, why=rows.problem)
    if record and record.get("ledger") != path:
        return replace(job, state=JobState.FOREIGN, why=f"a copy of {record.get('ledger')}")
    is_operated = seen is not None and seen.state not in FINAL
    if head is None or head.folder is None:
        return replace(job, state=JobState.STARTING if is_operated else JobState.NEVER)
    starts = [datetime.fromisoformat(one) for one in record.get("starts", ())]
    today = [one for one in starts if one > now - timedelta(days=1)]
    lag = _lag(head, ends)
    job = replace(
        job,
        lag=lag,
        seconds=max(0.0, now.timestamp() - rows.written),
        restarts=max(0, len(today) - 1) if record else None,
    )
    state = _state(head, rows, holder, is_operated=is_operated)
    most = int(record.get("max_rows_per_partition", _MOST_ROWS))
    alerts = [*_alerts(state, job, most, starts, now)]
    if state is not JobState.STOPPED and _is_unsealed(rows, record, now):
        alerts.append("YtstreamPeriodNotSealed")
    if state is JobState.RUNNING and "YtstreamStalled" in alerts:
        state = JobState.STALLED
    elif state is JobState.RUNNING and "YtConsumerLagRows" in alerts:
        state = JobState.BEHIND
    why = rows.end[1] if state is JobState.FAILED and rows.end is not None else ""
    return replace(job, state=state, alerts=alerts, why=why)


def _lag(head: Head, ends: Mapping[str, list[int]]) -> int | None:
    """Return how many rows wait; None if a queue cannot be read."""
    queues = [queue for queue in head.queues if queue not in head.removed]
    if any(queue not in ends for queue in queues):
        return None
    return sum(
        max(0, end - head.ends.get(queue, {}).get(partition, 0))
        for queue in queues
        for partition, end in enumerate(ends[queue])
    )


def _state(head: Head, rows: _Rows, holder: str | None, *, is_operated: bool) -> JobState:
    if rows.end is not None and rows.end[0] == head.owner:
        if is_operated:
            return JobState.STARTING
        return JobState.FAILED if rows.end[1] else JobState.STOPPED
    if holder is not None and holder.rpartition(",")[0] == head.owner.rpartition(",")[0]:
        return JobState.RUNNING
    return JobState.STARTING if is_operated else JobState.KILLED


def _alerts(
    state: JobState, job: FleetJob, most: int, starts: Sequence[datetime], now: datetime
) -> Iterable[str]:
    """Yield the alerts that one look can tell of; those of a trend need Prometheus."""
    if state in (JobState.FAILED, JobState.KILLED):
        yield "YtstreamEndedWithoutStop"
    if state is not JobState.STOPPED and job.lag and (job.seconds or 0.0) > STALLED_SECONDS:
        yield "YtstreamStalled"
    if sum(one > now - timedelta(hours=1) for one in starts) > STARTS_PER_HOUR:
        yield "YtstreamRestarts"
    if (job.lag or 0) > FULL_BATCHES * most:
        yield "YtConsumerLagRows"


def _is_unsealed(rows: _Rows, record: Mapping[str, Any], now: datetime) -> bool:
    """Return whether a period of an archive has no table long after it could be complete."""
    declared = record.get("archives", {})
    return any(
        end and end + int(one["period"]) + int(one["lateness"]) + UNSEALED_SECONDS < now.timestamp()
        for name, one in declared.items()
        for end in [rows.closed.get(name, 0)]
    )


def now() -> datetime:
    """Return the time."""
    return datetime.now(UTC)
