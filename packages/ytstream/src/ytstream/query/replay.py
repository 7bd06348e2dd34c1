"""Rows of the output `rejected` that transform.py accepts by now: into the outputs, once.

The rows of one chunk go through REJECT, transform() and outputs() as they are now. What passes is
written through SPYT's sink into a tablet transaction of the runtime's own, which deletes those rows
from `rejected` and tells the ledger. So two replays at the same time, or one beside the running
job, write no row twice.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from .. import ledger
from ..columns import key_of
from ..connector import inside, jvm_of
from ..errors import JobError
from ..job import REJECTED, Connection, Job
from ..tablets import Tablets, Transaction
from . import reject
from .outputs import computed
from .pipeline import Flow
from .row_json import INEXACT, is_inexact
from .sink import write_outputs
from .source import INNER_POSITION

#: Rows of one transaction, far below the 100 000 of one tablet that it may touch.
CHUNK = 10_000


def replay(
    spark: SparkSession, connection: Connection, flow: Flow, say: Callable[[str], None]
) -> str:
    """Replay all rejected rows; return how many passed and how many stay.

    Raises JobError as verify_job() does. What was done before an error stays done.
    """
    verify_job(connection.job)
    tablets = Tablets(jvm_of(spark), connection.settings)
    passed = stayed = inexact = 0
    last: tuple[Any, ...] = ()
    while True:
        with tablets.transaction() as transaction:
            found = transaction.select(_query(connection, last))
            if not found:
                break
            keys = _replay(spark, connection, flow, tablets, transaction, found)
        passed, stayed = passed + keys, stayed + len(found) - keys
        inexact += sum(map(is_inexact, (row["row"] for row in found)))
        last = tuple(found[-1][name] for name in _key(connection))
        say(f"{passed} rows went into the outputs, {stayed} are still rejected")
    said = f"{passed} rows went into the outputs; {stayed} stay in {_path(connection)}"
    if inexact:
        said += f", {inexact} of them since JSON cannot hold them: column `row`, {INEXACT}"
    return said


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
    with computed(reject.tagged(_arrived(spark, connection, flow, found), job)) as rows:
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
    row = ledger.replay_row({**written, REJECTED: -len(deleted)}, started)
    transaction.modify(connection.settings.ledger, ledger.COLUMNS, [row])
    return len(deleted)


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
    values = ", ".join(f'"{value}"' if isinstance(value, str) else str(value) for value in last)
    after = f" where ({key}) > ({values})" if last else ""
    return f"{key}, reason, row from [{_path(connection)}]{after} order by {key} limit {CHUNK}"


def _key(connection: Connection) -> tuple[str, ...]:
    return key_of(connection.job.output_columns[REJECTED])


def _path(connection: Connection) -> str:
    return connection.settings.outputs[REJECTED]
