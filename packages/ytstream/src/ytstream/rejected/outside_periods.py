"""Rows that belong to no open period of an archive, into the output `rejected`.

The task that writes pieces only counts them. So a batch that has any is read once more: each row of
an archive with the row of the queue that it is made of.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ..connector.carried_rows import CarriedRows, carried, is_lost_at
from ..connector.java import each
from ..connector.spark_plan import analysed, analysed_by
from ..connector.tablet_transactions import Tablets
from ..errors import JobError
from ..errors.error_codes import ErrorCode
from ..job import REJECTED, JobContext
from ..ledger import steady_time
from ..outputs.archives import REASONS, Skipped
from ..outputs.output_frames import OutputFrames
from ..outputs.sink import write
from ..spark.source import ARRIVED, INNER_POSITION
from . import tagging

_FINISHED = "ytstream_finished"
"""What is observed of the finished rows, where outputs() makes the archive's of them."""
_WRITE = "WriteToMicroBatchDataSourceV1"
"""What Spark puts around the plan of a batch."""
_ORIGIN = "$origin"


@dataclass(frozen=True)
class OutsideRows:
    """Writes the rows of one batch that its archives have skipped."""

    context: JobContext
    tablets: Tablets
    outputs: OutputFrames

    def write(
        self, rows: DataFrame, execution: Any, number: int, skipped: Mapping[str, Skipped]
    ) -> None:
        """Write them, in the batch's transaction if it has one. Raises JobError where it cannot."""
        for output, one in skipped.items():
            found = self._rejected(rows, execution, output, one)
            found = found.withColumn("time", F.lit(steady_time.now()))
            write(found, REJECTED, self.context, self.tablets.java, number)

    def _rejected(
        self, rows: DataFrame, execution: Any, output: str, skipped: Skipped
    ) -> DataFrame:
        root, java = analysed_by(execution), self.tablets.java
        if root.name == _WRITE:
            root = root.children[0]
        if lost := is_lost_at(root, REJECTED):
            raise _unknown(output, skipped, lost)
        again = carried(rows, root, REJECTED, java)
        names = {str(column.name()): _place(again, column) for column in each(root.jvm.output())}
        found = again.rows
        if self.context.job.split is None:
            places = names
            origin = {name: F.col(f"c{place}") for name, place in again.origin.items()}
        else:
            marked = again.rows.observe(_FINISHED, F.count(F.lit(1)).alias("rows"))
            seen = {n: p for n, p in names.items() if n != ARRIVED}
            visible = marked.select(*(F.col(f"c{p}").alias(n) for n, p in seen.items()))
            frame = self.outputs.split(visible)[output]
            node = analysed(frame)
            if lost := is_lost_at(node, _FINISHED):
                raise _unknown(output, skipped, lost)
            more = carried(frame, node, _FINISHED, java)
            found, columns_of = more.rows, each(node.jvm.output())
            places = {str(column.name()): _place(more, column) for column in columns_of}
            origin = {n: F.col(f"c{more.origin[f'c{p}']}") for n, p in again.origin.items()}
        by = skipped.archive.by
        time = origin[ARRIVED] if by is None else F.col(f"c{places[by]}")
        reason = reason_of(time, skipped)
        chosen = found.select(*(c.alias(n) for n, c in origin.items()), reason.alias(_ORIGIN))
        chosen = chosen.filter(F.col(_ORIGIN).isNotNull())
        queues = len(self.context.settings.queues)
        key = [*(["queue_id"] if queues > 1 else []), *INNER_POSITION.values()]
        chosen = chosen.dropDuplicates(key)
        columns = tagging.columns(chosen.schema, self.context.job, queues, F.col(_ORIGIN))
        return chosen.select(*columns)


def reason_of(time: Expression, skipped: Skipped) -> Expression:
    """Return why a row of that time is skipped, null for others: the rules of Period.java."""
    seconds, (oldest, newest, refused) = skipped.archive.seconds, skipped.bounds
    micros, length = F.unix_micros(time.cast("timestamp")), seconds * 1_000_000
    # Whole numbers: a quotient of doubles may round up to the next period.
    begin = (micros - F.pmod(micros, F.lit(length))) / F.lit(1_000_000)
    return (
        F.when(time.isNull(), F.lit(REASONS["no-time"]))
        .when(begin < oldest, F.lit(REASONS["too-old"]))
        .when(begin > newest, F.lit(REASONS["too-new"]))
        .when(begin + seconds <= refused, F.lit(REASONS["late"]))
    )


def _place(rows: CarriedRows, column: Any) -> int:
    return rows.places[int(column.exprId().id())]


def _unknown(output: str, skipped: Skipped, operator: str) -> JobError:
    said = ", ".join(f"{count} rows: {reason}" for reason, count in skipped.rows.items())
    return JobError(
        f"{output!r} has rows that belong to no open period ({said}), and behind {operator} the "
        "job cannot tell which rows of the queue they are made of",
        "let REJECT in transform.py keep out the rows of the queue that they come from",
        code=ErrorCode.PLAN,
    )
