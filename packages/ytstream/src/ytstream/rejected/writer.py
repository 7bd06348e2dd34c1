"""The rejected rows of a micro-batch, into their output.

The query streams the rows that pass. The others it counts. Where its tasks write the output in the
batch's transaction they also send these. Otherwise the query collects them where they are few:
see collected.py. They are written then, in a request of the driver's.

Where they are many, with SPYT's connector and with Spark 3.5 the batch reads its rows once more. A
plan with state runs once, and one plan cannot give two kinds of rows. So they go through the part
of the batch's plan that gives each row its reason: there Spark has put the batch's rows in the
queues' place, and the time in the batch's entry of the offset log in the clock's
(MicroBatchExecution.runBatch). The rows of a queue do not change, so both readings give a row the
same reason, and a batch that runs again does so, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame

from ..connector import compile_java
from ..connector.choose_connector import rejected_rows
from ..connector.spark_batch import of_no_stream
from ..connector.spark_plan import Node, analysed_by, observations
from ..connector.tablet_transactions import Tablets, Transaction
from ..errors import RestartableError
from ..errors.error_codes import ErrorCode
from ..job import REJECTED, JobContext
from ..ledger import steady_time
from ..ledger.batch_row_ranges import Ranges
from ..ledger.ledger_rows import microseconds
from ..outputs.sink import write
from . import collected, tagging
from .limit import rejected
from .read_again import verify_read_again


@dataclass
class RejectedRowsWriter:
    """The second readings of the batches of one query."""

    context: JobContext
    tablets: Tablets
    _columns: list[Expression] = field(default_factory=list)
    """Those of the output, made once: see tagging.columns()."""

    def rejected_rows(self, rows: DataFrame, execution: Any) -> DataFrame:
        """Return the rejected rows of a batch as the output holds them, to be read once more."""
        return self._frame(of_no_stream(rows, _tagging(execution), self.tablets.java))

    def of_tasks(self) -> Any:
        """Return what sends the rejected rows of a batch from the tasks that write its output.

        None for a job that rejects none, or whose batches have no transaction: what is sent too
        early stays there.
        """
        context, settings = self.context, self.context.settings
        if not context.job.reject or not context.guarantee.in_transaction:
            return None
        path, columns = settings.outputs[REJECTED], context.job.output_columns[REJECTED]
        now, reasons = microseconds(steady_time.now()), [*context.job.reject]
        return rejected_rows(path, columns, settings.queues, reasons, now, self.tablets.java)

    def write(
        self,
        rows: DataFrame,
        execution: Any,
        batch: tuple[int, str],
        figures: Sequence[Any] | None,
        planned: Ranges,
        transaction: Transaction | None,
    ) -> dict[str, int]:
        """Write the rejected rows of a batch into their output; return reason -> rows.

        ``rows`` are those of the ``batch``, its number and its name; ``execution`` is that of the
        query, and ``figures`` what REJECT has observed there, if it has. ``transaction`` is the
        batch's, if it has one. Raises RestartableError when the second reading gives other rows.
        """
        counts = rejected(figures, self.context.job)
        found = self._collected(figures, counts, planned)
        if found is None:
            return self._read_again(rows, execution, batch, counts, planned)
        if not found:  # their tasks have sent them
            return dict(counts or {})
        settings, columns = self.context.settings, self.context.job.output_columns
        values = collected.values(found, columns[REJECTED], steady_time.now())
        begun = self.tablets.transaction() if transaction is None else nullcontext(transaction)
        with begun as into:
            into.insert(settings.outputs[REJECTED], columns[REJECTED], values)
        return dict(counts or {})

    def _collected(
        self, figures: Sequence[Any] | None, counts: Mapping[str, int] | None, planned: Ranges
    ) -> list[collected.Collected] | None:
        """Return the rejected rows that the query has collected; None where it has not."""
        observed = len(counts or ()) + len(self.context.job.warn)
        if figures is None or not counts or len(figures) == observed:
            return None
        lines = compile_java.lines_observed(self.tablets.java, str(figures[observed]))
        queues = self.context.settings.queues
        return None if lines is None else collected.rows_of(lines, counts, planned, queues)

    def _read_again(
        self,
        rows: DataFrame,
        execution: Any,
        batch: tuple[int, str],
        counts: Mapping[str, int] | None,
        planned: Ranges,
    ) -> dict[str, int]:
        """Write the rejected rows out of a second reading of all rows of the batch."""
        number, name = batch
        context, java = self.context, self.tablets.java
        tagged = of_no_stream(rows, _tagging(execution), java)
        execution = write(self._frame(tagged), REJECTED, context, java, number)
        verify_read_again(execution, name, planned)
        figures = observations(execution, [REJECTED]).get(REJECTED)
        again = rejected(figures, context.job) or dict.fromkeys(context.job.reject, 0)
        if counts is not None and again != counts:
            raise RestartableError(
                f"batch {name} rejected {counts} while it read its rows, and {again} when it read "
                "them again",
                code=ErrorCode.OTHER_ROWS,
            )
        return again

    def _frame(self, tagged: DataFrame) -> DataFrame:
        if not self._columns:
            queues = len(self.context.settings.queues)
            self._columns = tagging.columns(tagged.schema, self.context.job, queues)
        return tagging.frame(tagged, self._columns, steady_time.now())


def _tagging(execution: Any) -> Node:
    """Return the part of a batch's plan that gives its rows their reason: tagging.tagged()."""
    return next(n for n in analysed_by(execution).walk() if n.observation == REJECTED)
