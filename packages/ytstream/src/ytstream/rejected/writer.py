"""The rejected rows of a micro-batch: its rows are read once more, and those that pass are skipped.

The query streams the rows that pass, and counts the others. A plan with state runs once, and one
plan cannot give two kinds of rows. So a batch that has counted any reads its rows again, by the
part of its own plan that gives each row its reason: there Spark has put the batch's rows in the
queues' place, and the time in the batch's entry of the offset log in the clock's
(MicroBatchExecution.runBatch). The rows of a queue do not change, so both readings give a row the
same reason, and a batch that runs again does so, too. Where few were rejected, only these are
read: see by_position.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame

from ..connector.batch_plan import of_no_stream
from ..connector.plans import Node, analysed_by, observed
from ..connector.tablet_transactions import Tablets
from ..connector.transform_plan import observed_name
from ..errors import RestartableError
from ..errors.error_codes import ErrorCode
from ..job import REJECTED, JobContext
from ..outputs.audit import Ranges
from ..outputs.sink import write
from . import by_position, tagging
from .limit import rejected


@dataclass
class RejectedRowsWriter:
    """The second readings of the batches of one query."""

    context: JobContext
    tablets: Tablets
    #: Those of the output, made once: see reject.columns().
    _columns: list[Expression] = field(default_factory=list)

    def rejected_rows(self, rows: DataFrame, execution: Any) -> DataFrame:
        """Return the rejected rows of a batch as the output holds them, to be read once more."""
        return self._frame(of_no_stream(rows, _tagging(execution), self.tablets.java))

    def write(
        self,
        rows: DataFrame,
        execution: Any,
        batch: tuple[int, str],
        counts: Mapping[str, int] | None,
        planned: Ranges,
    ) -> dict[str, int]:
        """Write the rejected rows of a batch into their output; return reason -> rows.

        ``rows`` are those of the ``batch``, its number and its name; ``execution`` is that of the
        query, and ``counts`` what it has counted, if it has. Raises RestartableError when the
        second reading gives other rows.
        """
        number, name = batch
        context, java = self.context, self.tablets.java
        tagged, wanted = self._read(rows, execution, counts, planned)
        metrics = dict(observed(write(self._frame(tagged), REJECTED, context, java, number)))
        for path, numbers in wanted.items():
            found = metrics.get(observed_name(path))  # absent where no condition can be true
            if found and not _is(numbers, found):
                raise RestartableError(
                    f"batch {name} read other rows of {path} for {REJECTED!r} than those planned",
                    code=ErrorCode.OTHER_ROWS,
                )
        again = rejected(metrics, context.job) or dict.fromkeys(context.job.reject, 0)
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
        return tagging.frame(tagged, self._columns, datetime.now(UTC))

    def _read(
        self, rows: DataFrame, execution: Any, counts: Mapping[str, int] | None, planned: Ranges
    ) -> tuple[DataFrame, dict[str, tuple[int, int]]]:
        """Return rows of the batch with their reason, the rejected ones among them.

        And for each queue how many they must be, and the sum of their numbers.
        """
        node, others = _tagging(execution), {}
        parts = {path: [(r.count, r.sum) for r in rows.values()] for path, rows in planned.items()}
        found = dict(observed(execution)).get(REJECTED)
        places = by_position.positions(found, counts or {}, planned)
        if places is not None:
            with suppress(RestartableError):  # all rows are read then, and what is missing is named
                sized = [column.name for column in self.context.job.queue_columns]
                others = by_position.selected(rows, node, places, self.tablets, sized)
                parts = {p: [(len(k), sum(k)) for k in keys.values()] for p, keys in places.items()}
        wanted = {p: (sum(n for n, _ in x), sum(s for _, s in x)) for p, x in parts.items()}
        return of_no_stream(rows, node, self.tablets.java, others), wanted


def _is(wanted: tuple[int, int], found: Any) -> bool:
    """Return whether a row of figures has this count and this sum; without rows it has none.

    Nor has it one that is more than Spark's can be: see source.py.
    """
    has = None if found.isNullAt(1) else found.get(1)
    return found.get(0) == wanted[0] and (has or 0) == (wanted[1] if wanted[1] < 1 << 63 else 0)


def _tagging(execution: Any) -> Node:
    """Return the part of a batch's plan that gives its rows their reason: reject.tagged()."""
    return next(n for n in analysed_by(execution).walk() if n.observation == REJECTED)
