"""The ledger: one table that says where the job is, and what each micro-batch did.

The head row is the truth of every guarantee: the epoch (which process may write), the checkpoint
folder, the last batch that happened and the row where each partition is after it. Below it is a
row for each batch, written in the same transaction. A start that skips trimmed rows and `rewind`
leave a row of their moves. Three more say that a person asks the job to stop, how its last process
ended, and that a start has found nothing to read. Values only: recovery/ and query/ read and write
them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, field, fields
from datetime import UTC, datetime, timedelta
from typing import Any

import yt.type_info as ti
from yt.yson import YsonUint64

from ..errors import JobError
from ..errors.error_codes import ErrorCode
from ..schema.columns import Column
from ..schema.periods import Staged
from ..schema.sums import Bounds
from .queue_layout import QueueLayout

KEPT = 500_000
"""Batch rows that stay at most, and the partitions' ranges in them, of about 25 bytes each."""
RANGES_KEPT = 10_000_000

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

COLUMNS = (
    Column("kind", ti.Utf8, required=True, key=True),
    Column("number", ti.Int64, required=True, key=True),
    Column("epoch", ti.Int64, required=True),
    Column("batch", ti.Int64, required=True),
    Column("queues", ti.Yson),
    Column("rows_read", ti.Int64),
    Column("rows_written", ti.Yson),
    Column("started", ti.Timestamp),
    Column("ended", ti.Timestamp, required=True),
    Column("state", ti.Yson),
)
ATTRIBUTES: Mapping[str, Any] = {"min_data_versions": 1, "max_data_versions": 1}
"""Rows are never removed by age (YTsaurus, "Dynamic tables: TTL"): the head may be old."""


@dataclass(frozen=True)
class LookupTotals:
    """What all batches have looked up by key in one reference: see LookedUp."""

    rows: int = 0
    keys: int = 0
    missing: int = 0
    seconds: float = 0.0
    hits: int = 0


@dataclass(frozen=True)
class KeyChanges:
    """What happened to the keys of batches in an output with MERGE."""

    changed: int = 0
    removed: int = 0
    unchanged: int = 0
    """Keys that were left as they are: the table had a newer row, or the function returned none."""


@dataclass(frozen=True)
class Totals:
    """The rows of all batches since the ledger counts them; those of removed batch rows, too."""

    read: int = 0
    written: Mapping[str, int] = field(default_factory=dict)
    """Output -> rows."""
    rejected: Mapping[str, int] = field(default_factory=dict)
    """Reason -> rows that REJECT has kept out."""
    late: int = 0
    """Rows behind the watermark."""
    seconds: float = 0.0
    """Seconds of work."""
    without_time: int = 0
    """Rows without an event time that REJECT has not kept out."""
    lookups: Mapping[str, LookupTotals] = field(default_factory=dict)
    """Name of a reference -> what was looked up in it."""
    warned: Mapping[str, int] = field(default_factory=dict)
    """Reason -> rows that WARN has counted."""
    changes: Mapping[str, KeyChanges] = field(default_factory=dict)
    """Output with MERGE -> what happened to its keys."""


@dataclass(frozen=True)
class StoreFigures:
    """What the state store has taken at the end of a batch, in all executors together."""

    memory_bytes: int
    file_bytes: int
    """Of RocksDB, on disk; 0 for the store in memory."""
    milliseconds: int
    """Milliseconds of tasks in it during the batch."""


@dataclass(frozen=True)
class Head:
    """The head row."""

    epoch: int = 0
    owner: str = ""
    """The process that raised the epoch."""
    folder: int | None = None
    """The epoch whose checkpoint folder is in use; None until the first start is committed."""
    batch: int = -1
    """The last batch of that folder that happened, by Spark's number; -1: none."""
    number: int = 0
    """The number of the last batch row."""
    ends: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    """Queue -> partition -> the row that the next batch reads first."""
    ids: Mapping[str, str] = field(default_factory=dict)
    """Queue -> its object id. First those that the job reads, in the order in which the folder's
    offset log has them."""
    marker: Mapping[str, Any] = field(default_factory=dict)
    """Whose ledger this is: see ownership."""
    stopped: int = 0
    """The epoch whose process is asked to stop; a row of its own, so that it disturbs no batch."""
    removed: frozenset[str] = frozenset()
    """Queues that the job reads no more. One that comes back continues where it was."""
    state_rows: int | None = None
    """The rows of the state after the batch, as Spark counts them; None: not known, or no state."""
    state_since: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    """Queue -> partition -> the first row that the state may have to do with: it was empty before.
    """
    totals: Totals = field(default_factory=Totals)
    layouts: Mapping[str, QueueLayout] = field(default_factory=dict)
    """Queue -> the tablets whose rows ``ends`` count; 1.0.0 did not write it."""
    retired: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    """Queue -> partition that a reshard has removed -> the row after the last one that was read."""
    store: StoreFigures | None = None
    """Of the last batch; None: not known, or no state."""
    timestamp: int | None = None
    """The cluster's time at which ``ends`` were written, as a row's `$timestamp`: what was read is
    older. None: an older version wrote it."""
    sums: Mapping[str, Mapping[str, Bounds]] = field(default_factory=dict)
    """Path of an output with totals -> column with aggregate="sum" -> bounds of its totals."""

    @property
    def queues(self) -> tuple[str, ...]:
        """The queues that the job reads, in the order in which the folder's offset log has them."""
        return tuple(path for path in self.ids if path not in self.removed)


@dataclass(frozen=True)
class LookedUp:
    """What a batch has looked up in one reference."""

    by: str
    """"table": it was read whole. "keys": the batch has looked up its keys."""
    table: str
    """The id of the table, and the cluster's time as of which it was read."""
    timestamp: int
    rows: int = 0
    """Of "keys": rows that have a key, requests for one key each, and rows whose key is missing."""
    keys: int = 0
    missing: int = 0
    milliseconds: int = 0
    """How long tasks have waited for the replies."""
    hits: int = 0
    """Rows that executors had in their caches: see reference_cache_mb."""


@dataclass(frozen=True)
class BatchTimes:
    """How long the parts of one batch took, in milliseconds."""

    transform: int = 0
    """Reading and computing its rows; with SPYT's connector also writing them."""
    write: int = 0
    """Waiting for the cluster while it wrote them."""
    verify: int = 0
    """Asking the ledger and the consumer where the job is: two small requests."""
    commit: int = 0
    """Of the batch before: writing its row of the ledger, and its commit. 0: not known."""


@dataclass(frozen=True)
class BatchRow:
    """The rows and the times of one batch."""

    ranges: Mapping[str, Mapping[int, tuple[int, int]]]
    """Queue -> partition -> its first row and the row after its last one."""
    written: Mapping[str, int]
    """Output -> rows."""
    started: datetime
    ended: datetime
    tables: Mapping[str, str] = field(default_factory=dict)
    """Static output -> the path of the table of the batch's rows."""
    late: int = 0
    """How many rows were behind the watermark; they are in no output."""
    rejected: Mapping[str, int] = field(default_factory=dict)
    """Reason -> rows that REJECT has kept out."""
    limit: int = 0
    """The most rows of a partition that it could read, where `batch_seconds` has chosen them; 0:
    `max_rows_per_partition`."""
    without_time: int = 0
    """How many rows had no event time; a job that groups by time has them in no output."""
    lookups: Mapping[str, LookedUp] = field(default_factory=dict)
    """Name of a reference -> what was looked up in it."""
    warned: Mapping[str, int] = field(default_factory=dict)
    """Reason -> rows that WARN has counted."""
    times: BatchTimes | None = None
    """None: an older version wrote the row."""
    pieces: Sequence[Staged] = ()
    """What the batch has written for tables of periods."""
    changes: Mapping[str, KeyChanges] = field(default_factory=dict)
    """Output with MERGE -> what happened to its keys."""

    @property
    def read(self) -> int:
        """How many rows the batch has read."""
        return sum(end - first for rows in self.ranges.values() for first, end in rows.values())


@dataclass(frozen=True)
class Move:
    """A start that continues elsewhere than where the batch before it ended."""

    kind: str
    """Why: "skip" of rows that were trimmed before they were read, or "rewind"."""
    rows: Mapping[str, Mapping[int, tuple[int, int]]]
    """Queue -> partition -> the row that would have been read next, and the row that is."""


def added(totals: Totals, done: BatchRow) -> Totals:
    """Return the totals after a batch."""
    return Totals(
        read=totals.read + done.read,
        written=_sums(totals.written, done.written),
        rejected=_sums(totals.rejected, done.rejected),
        late=totals.late + done.late,
        seconds=totals.seconds + (done.ended - done.started).total_seconds(),
        without_time=totals.without_time + done.without_time,
        lookups={
            **totals.lookups,
            **{n: _more(totals.lookups, n, one) for n, one in done.lookups.items()},
        },
        warned=_sums(totals.warned, done.warned),
        changes=_all_changes(totals.changes, done.changes),
    )


def _all_changes(
    known: Mapping[str, KeyChanges], more: Mapping[str, KeyChanges]
) -> dict[str, KeyChanges]:
    none = KeyChanges()
    pairs = {name: (known.get(name, none), more.get(name, none)) for name in {**known, **more}}
    return {
        name: KeyChanges(*map(sum, zip(astuple(one), astuple(other), strict=True)))
        for name, (one, other) in pairs.items()
    }


def _more(known: Mapping[str, LookupTotals], name: str, one: LookedUp) -> LookupTotals:
    before = known.get(name, LookupTotals())
    return LookupTotals(
        rows=before.rows + one.rows,
        keys=before.keys + one.keys,
        missing=before.missing + one.missing,
        seconds=before.seconds + one.milliseconds / 1000,
        hits=before.hits + one.hits,
    )


def batch_name(epoch: int, batch: int) -> str:
    """Return the name of a batch in the log, in messages and in `status`: epoch and number."""
    return f"{epoch}-{batch}"


def last_name(head: Head) -> str:
    """Return the name of the last batch that happened, or of the start that none has followed."""
    folder = head.folder or 0
    return batch_name(folder, head.batch) if head.batch >= 0 else f"the start of epoch {folder}"


def kept(head: Head) -> int:
    """Return how many batch rows stay; each batch removes the oldest one beyond them."""
    return min(KEPT, RANGES_KEPT // max(1, sum(map(len, head.ends.values()))))


def head_query(ledger: str) -> str:
    """Return the query that reads the head row, and the one that asks the job to stop."""
    return f'kind, epoch, batch, queues, state from [{ledger}] where kind in ("head", "stop")'


def last_query(ledger: str) -> str:
    """Return the query that reads number and epoch of the last batch row."""
    return f'number, epoch from [{ledger}] where kind = "batch" order by number desc limit 1'


def first_query(ledger: str) -> str:
    """Return the query that reads number, epoch and batch of the oldest batch row."""
    return f'number, epoch, batch from [{ledger}] where kind = "batch" order by number limit 1'


def count_query(ledger: str) -> str:
    """Return the query that counts the batch rows, and reads the lowest number."""
    counts = "sum(1) as rows, min(number) as first"
    return f'{counts} from [{ledger}] where kind = "batch" group by 1 as one'


def numbers_query(ledger: str) -> str:
    """Return the query that reads number, epoch and batch of all batch rows, in their order."""
    return f'number, epoch, batch from [{ledger}] where kind = "batch" order by number limit {KEPT}'


def newest_query(ledger: str, count: int) -> str:
    """Return the query that reads what the last batches did, the newest first."""
    return (
        "number, epoch, batch, rows_read, rows_written, started, ended, state "
        f'from [{ledger}] where kind = "batch" order by number desc limit {count}'
    )


def tables_query(ledger: str, batches: Iterable[tuple[int, int]]) -> str:
    """Return the query that reads the rows of some batches, each given by epoch and number."""
    listed = ", ".join(map(str, batches))
    return (
        f'epoch, batch, state from [{ledger}] where kind = "batch" and (epoch, batch) in ({listed})'
    )


def tables_of(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the tables that a batch's row names: static output -> path."""
    state = row["state"]
    return state.get("tables", {}) if isinstance(state, Mapping) else {}


def late_of(row: Mapping[str, Any]) -> int:
    """Return how many rows of a batch were behind the watermark."""
    state = row["state"]
    return int(state.get("late", 0)) if isinstance(state, Mapping) else 0


def without_time_of(row: Mapping[str, Any]) -> int:
    """Return how many rows of a batch had no event time."""
    state = row["state"]
    return int(state.get("without_time", 0)) if isinstance(state, Mapping) else 0


def limit_of(row: Mapping[str, Any]) -> int:
    """Return how many rows of a partition a batch could read; 0: `max_rows_per_partition`."""
    state = row["state"]
    return int(state.get("limit", 0)) if isinstance(state, Mapping) else 0


def rejected_of(row: Mapping[str, Any]) -> Mapping[str, int]:
    """Return how many rows of a batch REJECT has kept out, by reason; empty for an old row."""
    state = row["state"]
    return _counts(state.get("rejected", {})) if isinstance(state, Mapping) else {}


def lookups_of(row: Mapping[str, Any]) -> Mapping[str, LookedUp]:
    """Return what a batch has looked up, by reference; empty for an old row."""
    state = row["state"]
    found = state.get("lookups", {}) if isinstance(state, Mapping) else {}
    return {str(name): _looked_up(one) for name, one in found.items()}


def _looked_up(one: Mapping[str, Any]) -> LookedUp:
    by, table, *figures = (one.get(field.name, 0) for field in fields(LookedUp))
    return LookedUp(str(by), str(table), *map(int, figures))


def times_of(row: Mapping[str, Any]) -> BatchTimes | None:
    """Return how long the parts of a batch took; None for an old row."""
    found = row["state"].get("times") if isinstance(row["state"], Mapping) else None
    return None if found is None else BatchTimes(**{str(n): int(ms) for n, ms in found.items()})


def warned_of(row: Mapping[str, Any]) -> Mapping[str, int]:
    """Return how many rows of a batch WARN has counted, by reason."""
    state = row["state"]
    return _counts(state.get("warned", {})) if isinstance(state, Mapping) else {}


def changes_of(row: Mapping[str, Any]) -> Mapping[str, KeyChanges]:
    """Return what happened to the keys of a batch, by output with MERGE."""
    state = row["state"]
    return _changes(state.get("changes", {})) if isinstance(state, Mapping) else {}


def ranges_of(row: Mapping[str, Any]) -> Mapping[str, Mapping[int, tuple[int, int]]]:
    """Return the rows that a batch has read: queue -> partition -> first, and after the last."""
    return _pairs(row, "rows")


def moves_query(ledger: str) -> str:
    """Return the query that reads where starts and rewinds have moved the job."""
    return f'kind, epoch, queues, ended from [{ledger}] where kind in ("skip", "rewind")'


def moved_of(row: Mapping[str, Any]) -> Mapping[str, Mapping[int, tuple[int, int]]]:
    """Return where a move went: queue -> partition -> the row that came next, and that does."""
    return _pairs(row, "moved")


def time_of(value: Any) -> datetime:
    """Return a time of the table."""
    return _EPOCH + timedelta(microseconds=int(value))


def head_of(ledger: str, rows: Iterator[Mapping[str, Any]], *, repair: bool = False) -> Head | None:
    """Return the head out of the answer to ``head_query``; None before the first start.

    Raises JobError for a row that this runtime did not write; with ``repair`` returns its epoch.
    """
    found = {str(row["kind"]): row for row in rows}
    if "head" not in found:
        return None
    try:
        row, state = found["head"], found["head"]["state"]
        return Head(
            epoch=int(row["epoch"]),
            owner=str(state["owner"]),
            folder=None if state["folder"] is None else int(state["folder"]),
            batch=int(row["batch"]),
            number=int(state["number"]),
            ends={str(q["path"]): _rows(q["ends"]) for q in row["queues"]},
            ids={str(q["path"]): str(q["id"]) for q in row["queues"]},
            marker={str(key): value for key, value in state["marker"].items()},
            stopped=int(found["stop"]["epoch"]) if "stop" in found else 0,
            removed=frozenset(str(q["path"]) for q in row["queues"] if q.get("removed")),
            state_rows=None if state.get("rows") is None else int(state["rows"]),
            state_since={str(q["path"]): _rows(q["since"]) for q in row["queues"] if "since" in q},
            totals=_totals(state.get("totals", {})),
            layouts={
                str(q["path"]): QueueLayout(int(q["layout"][0]), str(q["layout"][1]))
                for q in row["queues"]
                if "layout" in q
            },
            retired={str(q["path"]): _rows(q["retired"]) for q in row["queues"] if "retired" in q},
            store=StoreFigures(*map(int, state["store"])) if "store" in state else None,
            timestamp=None if state.get("timestamp") is None else int(state["timestamp"]),
            sums={
                str(path): {str(name): Bounds(*map(int, pair)) for name, pair in by.items()}
                for path, by in state.get("sums", {}).items()
            },
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        if repair:  # the table's schema lets no other value into that column
            return Head(int(found["head"]["epoch"]))
        raise JobError(
            f"the head row of the ledger {ledger} is malformed: {error!r}",
            "restore the row, or use `rewind`, which writes a new one",
            code=ErrorCode.LEDGER_DAMAGED,
        ) from error


def head_row(head: Head) -> dict[str, Any]:
    """Return the table's row of ``head``."""
    since = head.state_since
    return {
        "kind": "head",
        "number": 0,
        "epoch": head.epoch,
        "batch": head.batch,
        "queues": [
            {
                "path": path,
                "id": head.ids[path],
                "ends": _texts(head.ends.get(path, {})),
                **({"removed": True} if path in head.removed else {}),
                **({"since": _texts(since[path])} if path in since else {}),
                **({"layout": [*head.layouts[path]]} if path in head.layouts else {}),
                **({"retired": _texts(head.retired[path])} if head.retired.get(path) else {}),
            }
            for path in head.ids
        ],
        "ended": microseconds(datetime.now(UTC)),
        "state": {
            "owner": head.owner,
            "folder": head.folder,
            "number": head.number,
            "marker": dict(head.marker),
            **({"timestamp": head.timestamp} if head.timestamp is not None else {}),
            **({"rows": head.state_rows} if head.state_rows is not None else {}),
            **({"store": [*astuple(head.store)]} if head.store is not None else {}),
            **({"totals": asdict(head.totals)} if head.totals != Totals() else {}),
            **({"sums": _sums_row(head.sums)} if head.sums else {}),
        },
    }


def _sums_row(sums: Mapping[str, Mapping[str, Bounds]]) -> dict[str, Any]:
    """Return the bounds as YSON has them: numbers beyond int64 are unsigned."""
    return {
        path: {name: [b.least, YsonUint64(b.most)] for name, b in by.items()}
        for path, by in sums.items()
    }


def stop_row(epoch: int) -> dict[str, Any]:
    """Return the row that asks the process of ``epoch`` to stop."""
    return {
        "kind": "stop",
        "number": 0,
        "epoch": epoch,
        "batch": -1,
        "ended": microseconds(datetime.now(UTC)),
    }


def look_row(epoch: int) -> dict[str, Any]:
    """Return the row that says that the start of ``epoch`` has looked and found nothing to read."""
    return {**stop_row(epoch), "kind": "look"}


def look_query(ledger: str) -> str:
    """Return the query that reads the epoch of the last start that has found nothing to read."""
    return f'epoch from [{ledger}] where kind = "look"'


def connector_row(epoch: int, said: str) -> dict[str, Any]:
    """Return the row that says which connector the process of ``epoch`` runs on."""
    return {**stop_row(epoch), "kind": "connector", "state": {"said": said}}


def connector_query(ledger: str) -> str:
    """Return the query that reads which connector the last process runs on."""
    return f'epoch, state from [{ledger}] where kind = "connector"'


def end_row(epoch: int, owner: str, how: str, code: str = "") -> dict[str, Any]:
    """Return the row that says how the process ``owner`` ended."""
    state = {"owner": owner, "how": how, "code": code}
    return {**stop_row(epoch), "kind": "end", "state": state}


@dataclass(frozen=True)
class End:
    """How and when the process ``owner`` ended; ``code`` is its error's, empty after a stop."""

    epoch: int
    owner: str
    how: str
    code: str
    ended: int


def end_query(ledger: str) -> str:
    """Return the query that reads how the last process ended."""
    return f'epoch, state, ended from [{ledger}] where kind = "end"'


def end_of(row: Mapping[str, Any]) -> End:
    """Return the end that a row of the table tells of.

    Up to version 1.0 a row had no code, and ``how`` of an error began with a word for it.
    """
    state = row["state"]
    was_failure = str(state["how"]).startswith("failed: ")
    code = state.get("code", ErrorCode.UNEXPECTED if was_failure else "")
    return End(
        int(row["epoch"]), str(state["owner"]), str(state["how"]), str(code), int(row["ended"])
    )


def batch_row(head: Head, done: BatchRow) -> dict[str, Any]:
    """Return the table's row of the batch that ``head`` ends with."""
    state = {
        **({"tables": dict(done.tables)} if done.tables else {}),
        **({"late": done.late} if done.late else {}),
        **({"limit": done.limit} if done.limit else {}),
        **({"without_time": done.without_time} if done.without_time else {}),
        **({"rejected": dict(done.rejected)} if any(done.rejected.values()) else {}),
        **(
            {"lookups": {n: asdict(one) for n, one in done.lookups.items()}} if done.lookups else {}
        ),
        **({"warned": dict(done.warned)} if any(done.warned.values()) else {}),
        **({"times": asdict(done.times)} if done.times is not None else {}),
        **({"pieces": [one.piece.id for one in done.pieces]} if done.pieces else {}),
        **(
            {"changes": {n: asdict(one) for n, one in done.changes.items()}} if done.changes else {}
        ),
    }
    return {
        "kind": "batch",
        "number": head.number,
        "epoch": head.epoch,
        "batch": head.batch,
        "queues": [
            {"path": path, "rows": {str(p): list(pair) for p, pair in ranges.items()}}
            for path, ranges in done.ranges.items()
        ],
        "rows_read": done.read,
        "rows_written": dict(done.written),
        "started": microseconds(done.started),
        "ended": microseconds(done.ended),
        **({"state": state} if state else {}),
    }


def move_row(epoch: int, move: Move) -> dict[str, Any]:
    """Return the row of what the start of ``epoch`` has skipped, or where a rewind went."""
    return {
        "kind": move.kind,
        "number": epoch,
        "epoch": epoch,
        "batch": -1,
        "queues": [
            {"path": path, "moved": {str(p): list(pair) for p, pair in sorted(rows.items())}}
            for path, rows in move.rows.items()
        ],
        "ended": microseconds(datetime.now(UTC)),
    }


def _pairs(row: Mapping[str, Any], name: str) -> dict[str, dict[int, tuple[int, int]]]:
    return {
        str(queue["path"]): {int(p): (int(a), int(b)) for p, (a, b) in queue[name].items()}
        for queue in row["queues"] or ()
    }


def _totals(found: Mapping[str, Any]) -> Totals:
    return Totals(
        read=int(found.get("read", 0)),
        written=_counts(found.get("written", {})),
        rejected=_counts(found.get("rejected", {})),
        late=int(found.get("late", 0)),
        seconds=float(found.get("seconds", 0.0)),
        without_time=int(found.get("without_time", 0)),
        lookups={
            str(name): LookupTotals(
                rows=int(one["rows"]),
                keys=int(one["keys"]),
                missing=int(one["missing"]),
                seconds=float(one["seconds"]),
                hits=int(one.get("hits", 0)),
            )
            for name, one in found.get("lookups", {}).items()
        },
        warned=_counts(found.get("warned", {})),
        changes=_changes(found.get("changes", {})),
    )


def _sums(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    return {name: one.get(name, 0) + other.get(name, 0) for name in {**one, **other}}


def _changes(found: Mapping[str, Any]) -> dict[str, KeyChanges]:
    return {str(name): KeyChanges(**_counts(one)) for name, one in found.items()}


def _counts(found: Mapping[str, Any]) -> dict[str, int]:
    return {str(name): int(count) for name, count in found.items()}


def _rows(texts: Mapping[str, Any]) -> dict[int, int]:
    return {int(partition): int(row) for partition, row in texts.items()}


def _texts(rows: Mapping[int, int]) -> dict[str, int]:
    return {str(partition): row for partition, row in sorted(rows.items())}


def microseconds(time: datetime) -> int:
    """Return a time as a row holds it."""
    return int(time.timestamp() * 1_000_000)
