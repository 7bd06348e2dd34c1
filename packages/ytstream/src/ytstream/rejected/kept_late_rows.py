"""The late rows of a micro-batch, into the output `rejected` with what they missed.

Spark drops them inside its operators and says only how many there were (late_rows.py). So a batch
in which it has dropped any is read once more up to those operators, each row with the row of the
queue that it is made of. The queues and the watermark in the batch's entry of the offset log do not
change, so a batch that runs again finds the same rows.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ..connector.batch_counts import metric
from ..connector.carried_rows import carried, may_multiply
from ..connector.java import Java
from ..connector.late_droppers import Dropper, droppers
from ..connector.pyspark_internals import free
from ..connector.spark_plan import analysed_by, execution_of, late_watermark
from ..connector.tablet_transactions import Tablets
from ..errors import RestartableError
from ..errors.error_codes import ErrorCode
from ..job import LATE, REJECTED, JobContext
from ..ledger import steady_time
from ..ledger.batch_row_ranges import Ranges
from ..outputs.row_json import TIME
from ..outputs.sink import write
from ..spark.source import INNER_POSITION
from . import tagging
from .late_rows import DROPPED, LateRows
from .read_again import verify_read_again

NOTE = "$late"
"""In the JSON of a late row: the watermark, what the row missed, and of how many."""
_MISSED, _OF, _DROPS, _NEWEST = "$missed", "$of", "$drops", "$newest"
"""The columns of each row behind those of the queue: what it missed, of how many, how often it was
dropped, and the newest time by which it was."""
_PLACE, _IS_LATE, _ROW = "$place", "$is_late", "$row"
"""Of what an operator gets: the time or window, and whether it is late. And a row as a whole."""


@dataclass(frozen=True)
class KeptLateRows:
    """The late rows of one micro-batch, computed and not written yet."""

    rows: DataFrame
    """With the columns of the output, and what is known of each."""
    figures: LateRows

    def write(self, context: JobContext, tablets: Tablets, number: int) -> None:
        """Write them into their output, in the batch's transaction if it has one."""
        rows = self.rows.drop(_DROPS, _NEWEST)
        rows = rows.withColumn("time", F.lit(steady_time.now()))
        write(rows, REJECTED, context, tablets.java, number)

    def free(self) -> None:
        """Free what they take."""
        free(self.rows)


@dataclass(frozen=True)
class LateRowsReader:
    """The second readings of the batches of one query that have late rows."""

    context: JobContext
    tablets: Tablets
    uncounted: Collection[str] = ()
    """Queues whose rows the plan does not count once."""

    def read(
        self, rows: DataFrame, execution: Any, name: str, planned: Ranges
    ) -> KeptLateRows | None:
        """Return the late rows of the batch ``rows``, called ``name``; None without any.

        Raises RestartableError when the second reading gives other rows.
        """
        dropped = metric(execution, DROPPED, self.tablets.java)
        watermark = late_watermark(execution, DROPPED) if dropped else None
        if watermark is None:
            return None
        late = self._late(rows, droppers(analysed_by(execution)), watermark)
        done = late.localCheckpoint(eager=True)
        try:
            verify_read_again(execution_of(late), name, planned, self.uncounted)
            sums = F.count(F.lit(1)), F.sum(_DROPS), F.max(_NEWEST)
            count, drops, newest = done.agg(*sums).collect()[0]
            # Spark counts the rows of one group and one task as one, see late_rows.py.
            if (drops or 0) < dropped:
                raise RestartableError(
                    f"batch {name} dropped {dropped} late rows while it read its rows, and "
                    f"{drops or 0} when it read them again",
                    code=ErrorCode.OTHER_ROWS,
                )
        except BaseException:
            free(done)
            raise
        return KeptLateRows(done, LateRows(count, watermark, newest))

    def _late(self, rows: DataFrame, found: Sequence[Dropper], watermark: int) -> DataFrame:
        """Return the late rows as the output holds them, but for the time."""
        java, job = self.tablets.java, self.context.job
        queues = len(self.context.settings.queues)
        is_one = len(found) == 1 and not may_multiply(found[0].arriving, REJECTED)
        parts = (_of(rows, one, watermark, java) for one in found)
        late = _alone(next(parts)) if is_one else _together(reduce(DataFrame.union, parts), queues)
        note = F.struct(
            F.date_format(F.timestamp_millis(F.lit(watermark)), TIME).alias("watermark"),
            F.col(_MISSED).alias("missed"),
            F.col(_OF).alias("of"),
        ).alias(NOTE)
        columns = tagging.columns(late.schema, job, queues, F.lit(LATE), note)
        return late.select(*columns, _DROPS, _NEWEST)


def _of(rows: DataFrame, dropper: Dropper, watermark: int, java: Java) -> DataFrame:
    """Return what an operator gets in a batch: rows of the queues, each with a time or a window."""
    again = carried(rows, dropper.arriving, REJECTED, java)
    place = again.places[dropper.time]
    time, is_window = F.col(f"c{place}"), again.rows.schema[place].dataType.typeName() == "struct"
    # As Spark's own condition of it (WatermarkSupport.watermarkExpression).
    end = time["end"] if is_window else time
    texts = [F.date_format(one, TIME) for one in ([time["start"], end] if is_window else [time])]
    return again.rows.select(
        *(F.col(f"c{index}").alias(name) for name, index in again.origin.items()),
        F.concat_ws("/", *texts).alias(_PLACE),
        (end <= F.timestamp_millis(F.lit(watermark))).alias(_IS_LATE),
        F.unix_millis(end.cast("timestamp")).alias(_NEWEST),
    )


def _alone(rows: DataFrame) -> DataFrame:
    """Return the late ones of rows of which each is made of another row of the queues."""
    more = {_MISSED: F.array(_PLACE), _OF: F.lit(1), _DROPS: F.lit(1)}
    return rows.filter(F.col(_IS_LATE)).withColumns(more)


def _together(rows: DataFrame, queues: int) -> DataFrame:
    """Return the rows of the queues of which some rows are late, once each."""
    key = [*(["queue_id"] if queues > 1 else []), *INNER_POSITION.values()]
    row = F.struct(
        *(f"`{name}`" for name in rows.columns if name not in (_PLACE, _IS_LATE, _NEWEST))
    )

    def late(value: Any) -> Expression:
        return F.when(F.col(_IS_LATE), value)

    grouped = rows.groupBy(*key).agg(
        F.first(row).alias(_ROW),
        F.sort_array(F.collect_set(late(F.col(_PLACE)))).alias(_MISSED),
        F.size(F.collect_set(_PLACE)).alias(_OF),
        F.count(late(1)).alias(_DROPS),
        F.max(late(F.col(_NEWEST))).alias(_NEWEST),
    )
    return grouped.filter(F.col(_DROPS) > 0).select(f"{_ROW}.*", _MISSED, _OF, _DROPS, _NEWEST)
