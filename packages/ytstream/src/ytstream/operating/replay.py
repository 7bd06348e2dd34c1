"""Rows of the output `rejected` that transform.py accepts by now: into the outputs, once.

The rows of one chunk go through REJECT, transform() and outputs() as they are now. What passes is
written through SPYT's sink into a tablet transaction of the runtime's own, which deletes those rows
from `rejected` and tells the ledger. So two replays at the same time, or one beside the running
job, write no row twice. And a replay replaces no row: where the key is the position, as under
`idempotent`, a rejected row stays if an output has a row there. That one may be of another queue,
recreated under the same path, whose rows have the same positions (`rewind --overwrite`). Where an
output has another key, nothing tells which of two rows is newer: the person who replays chooses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from .. import ledger
from ..columns import key_of
from ..connector.java import jvm_of
from ..connector.spyt import inside
from ..errors import JobError
from ..job import REJECTED, Connection, Job
from ..query import reject
from ..query.outputs import computed
from ..query.pipeline import Flow
from ..query.row_json import INEXACT, is_inexact
from ..query.sink import write_outputs
from ..query.source import INNER_POSITION
from ..tablets import Tablets, Transaction

#: Rows of one transaction, far below the 100 000 of one tablet that it may touch.
CHUNK = 10_000
#: Keys that one query names.
_KEYS = 1_000


def replay(
    spark: SparkSession, connection: Connection, flow: Flow, say: Callable[[str], None]
) -> str:
    """Replay all rejected rows; return how many passed and how many stay.

    Raises JobError as verify_job() does. What was done before an error stays done.
    """
    verify_job(connection.job)
    tablets = Tablets(jvm_of(spark), connection.settings)
    passed = stayed = inexact = held = 0
    last: tuple[Any, ...] = ()
    while True:
        with tablets.transaction() as transaction:
            found = transaction.select(_query(connection, last))
            if not found:
                break
            taken = _taken(connection, transaction.select, found)
            free = [row for row in found if _place(connection, row) not in taken]
            keys = _replay(spark, connection, flow, tablets, transaction, free) if free else 0
        held += len(found) - len(free)
        passed, stayed = passed + keys, stayed + len(found) - keys
        inexact += sum(map(is_inexact, (row["row"] for row in found)))
        last = _place(connection, found[-1])
        say(f"{passed} rows went into the outputs, {stayed} are still rejected")
    said = f"{passed} rows went into the outputs; {stayed} stay in {_path(connection)}"
    if inexact:
        said += f", {inexact} of them since JSON cannot hold them: column `row`, {INEXACT}"
    if held:
        said += (
            f", {held} of them since an output has a row at their position: they were read again "
            "and accepted, or the queue was recreated"
        )
    return said


def rehearse(spark: SparkSession, connection: Connection, flow: Flow) -> list[str]:
    """Return what `replay` would do now; changes nothing. Raises JobError where it would."""
    verify_job(connection.job)
    select = connection.client.select_rows
    counts: dict[str, int] = {}
    passed = stayed = 0
    last: tuple[Any, ...] = ()
    while found := list(select(_query(connection, last))):
        taken = _taken(connection, select, found)
        free = [row for row in found if _place(connection, row) not in taken]
        keys = _count(spark, connection, flow, free, counts) if free else 0
        passed, stayed = passed + keys, stayed + len(found) - keys
        last = _place(connection, found[-1])
    keyed = _keyed(connection)
    return [
        f"{passed} rows would go into the outputs; {stayed} would stay in {_path(connection)}",
        *(
            f"{connection.settings.outputs[name]}: {rows} more"
            + (" at most: each replaces a row with its key, if there is one" * (name in keyed))
            for name, rows in counts.items()
        ),
        *(["it needs --replace: a replaced row may be newer"] if keyed else []),
        "nothing was changed",
    ]


def _count(
    spark: SparkSession, connection: Connection, flow: Flow, found: list[dict[str, Any]],
    counts: dict[str, int],
) -> int:  # fmt: skip
    """Add the rows that those of ``found`` would make to ``counts``; return how many pass."""
    rows = reject.tagged(_arrived(spark, connection, flow, found), connection)
    with computed(rows) as done:
        if keys := done.filter(F.col(reject.REASON).isNull()).count():
            passed = flow.outputs.transformed(reject.passed(done))
            with flow.outputs.finished(passed) as finished:
                for name, frame in flow.outputs.of(finished).items():
                    with computed(frame) as made:  # a count alone might skip a column that fails
                        counts[name] = counts.get(name, 0) + made.count()
    return keys


def _keyed(connection: Connection) -> list[str]:
    """Return the outputs whose key is not the position."""
    key = _key(connection)
    return [
        name
        for name, columns in connection.job.output_columns.items()
        if name != REJECTED and key_of(columns) not in ((), key)
    ]


def verify_keys(connection: Connection, *, replace: bool) -> None:
    """Raise JobError if a replay may put an older row over a newer one, unless it is wanted."""
    keyed = [] if replace else _keyed(connection)
    if keyed:
        where = ", ".join(connection.settings.outputs[name] for name in keyed)
        raise JobError(
            f"a replay may put an older row over a newer one: {where} has a key of its own",
            "--replace (REPLACE=1) if rejected rows may replace those with the same key, or send "
            "the rows into a queue of the job again; nothing was changed",
        )


def verify_job(job: Job) -> None:
    """Raise JobError for a job that rejects no rows, keeps a state or has a static output."""
    if not job.reject:
        raise JobError(
            "this job rejects no rows", "REJECT in transform.py and job.py would say which"
        )
    if job.kind.is_stateful:
        raise JobError(
            f"a job of processing {job.processing} replays no rows: its state has moved on, and "
            "they would be late or counted without the rows they belong to",
            "send the rows that transform.py accepts now into a queue of the job again while their "
            "event time is in front of the watermark; or `rewind`, which reads older rows again",
        )
    if job.static:
        raise JobError(
            f"the outputs {', '.join(job.static)} are static: their tables are those of "
            "micro-batches, and a replay is none",
            "put the rows that transform.py accepts now into a queue of the job again",
        )


def _replay(
    spark: SparkSession,
    connection: Connection,
    flow: Flow,
    tablets: Tablets,
    transaction: Transaction,
    found: list[dict[str, Any]],
) -> int:
    """Write the rows of ``found`` that pass now, and delete them; return how many."""
    job, started = connection.job, datetime.now(UTC)
    with computed(reject.tagged(_arrived(spark, connection, flow, found), connection)) as rows:
        key, names = _key(connection), {name: name for name in _key(connection)} | INNER_POSITION
        chosen = rows.filter(F.col(reject.REASON).isNull())
        deleted = [
            {name: row[names[name]] for name in key}
            for row in chosen.select(*(names[name] for name in key)).collect()
        ]
        if not deleted:
            return 0
        passed = flow.outputs.transformed(reject.passed(rows))
        java, id_, proxy = tablets.java, transaction.id, transaction.proxy
        with flow.outputs.finished(passed) as finished, inside(java, id_, proxy):
            written = write_outputs(flow.outputs.of(finished), connection, java, 0)
    transaction.modify(_path(connection), job.output_columns[REJECTED], (), deleted)
    row = _row({**written, REJECTED: -len(deleted)}, started)
    transaction.modify(connection.settings.ledger, ledger.COLUMNS, [row])
    return len(deleted)


def _row(written: Mapping[str, int], started: datetime) -> dict[str, Any]:
    """Return the row of a replay: rejected rows that went into the outputs after all."""
    now = datetime.now(UTC)
    return {
        "kind": "replay",
        "number": ledger.microseconds(now),
        "epoch": 0,
        "batch": -1,
        "rows_read": 0,
        "rows_written": dict(written),
        "started": ledger.microseconds(started),
        "ended": ledger.microseconds(now),
    }


def _arrived(
    spark: SparkSession, connection: Connection, flow: Flow, found: list[dict[str, Any]]
) -> DataFrame:
    """Return the rows as they came out of their queues. A row whose JSON is damaged is left out."""
    queue = [name for name in ("queue_id",) if name in _key(connection)]
    columns = [*queue, *INNER_POSITION, "reason", "row"]
    types = [*("string" for _ in queue), "long", "long", "string", "string"]
    schema = ", ".join(f"{name} {kind}" for name, kind in zip(columns, types, strict=True))
    frame = spark.createDataFrame([tuple(row[name] for name in columns) for row in found], schema)
    fields = [flow.arrived.schema[column.name] for column in connection.job.queue_columns]
    rows = reject.restored(frame, StructType(fields)).drop(reject.REASON)
    position = connection.guarantee.position
    return rows.withColumns({name: F.col(INNER_POSITION[name]) for name in position})


def _query(connection: Connection, last: tuple[Any, ...]) -> str:
    key = ", ".join(_key(connection))
    after = f" where ({key}) > {_literal(last)}" if last else ""
    return f"{key}, reason, row from [{_path(connection)}]{after} order by {key} limit {CHUNK}"


def _taken(
    connection: Connection, select: Callable[[str], Iterable[Any]], found: list[dict[str, Any]]
) -> set[tuple[Any, ...]]:
    """Return the keys among those of ``found`` at which an output has a row already.

    A replay reads in its transaction: a row that the job writes there later makes its commit fail.
    """
    key = _key(connection)
    names = ", ".join(key)
    taken: set[tuple[Any, ...]] = set()
    for output, columns in connection.job.output_columns.items():
        if output == REJECTED or key_of(columns) != key:
            continue
        path = connection.settings.outputs[output]
        for start in range(0, len(found), _KEYS):
            keys = [_literal(_place(connection, row)) for row in found[start : start + _KEYS]]
            query = f"{names} from [{path}] where ({names}) in ({', '.join(keys)})"
            taken |= {_place(connection, row) for row in select(query)}
    return taken


def _place(connection: Connection, row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in _key(connection))


def _literal(values: tuple[Any, ...]) -> str:
    """Return the values as a tuple of the query language."""
    shown = (f'"{value}"' if isinstance(value, str) else str(value) for value in values)
    return f"({', '.join(shown)})"


def _key(connection: Connection) -> tuple[str, ...]:
    return key_of(connection.job.output_columns[REJECTED])


def _path(connection: Connection) -> str:
    return connection.settings.outputs[REJECTED]
