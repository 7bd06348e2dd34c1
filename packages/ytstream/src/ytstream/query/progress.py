"""Reports each finished micro-batch of a query once."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql.streaming.query import StreamingQuery

from ..connector.pyspark_internals import progress_since
from ..connector.transform_plan import observed_name
from ..job import REJECTED
from ..ledger.ledger_rows import batch_name
from ..ledger.offsets import Queue
from ..log import GrowthThresholds, say, warn
from ..spark.state_metrics import keys_of, remarks
from .batch_outcome import BatchOutcomes

_WITHOUT_TIME = (
    "rows without an event time are in no window, and their repeats are not recognized: a rule of "
    'REJECT in transform.py, such as "date_time IS NULL", keeps them in `rejected`'
)
"""What to do about rows without an event time."""


@dataclass
class ProgressMonitor:
    """Remembers which batches of one query were reported."""

    query: StreamingQuery
    epoch: int
    large_state_bytes: int
    outcomes: BatchOutcomes = field(default_factory=dict)
    """What the batches have handed over: those that Spark reports are taken out."""
    queues: Callable[[], Sequence[Queue]] = tuple
    """Gives the queues as they were seen last."""
    most: int = 0
    """The most rows that a batch reads of a partition."""
    said: GrowthThresholds = field(default_factory=GrowthThresholds)
    """What was said already, of former queries of the process too."""
    warnings: Callable[[int], Iterable[str]] = lambda _: ()
    """The size of the state -> what to warn of."""
    _reported: int = -1
    _time: str = ""
    """When the last trigger began of which Spark has told."""

    def report(self) -> bool:
        """Say a line per batch that ended since the last call; return if any ended.

        A batch that neither read nor wrote is not said.
        """
        before = self._reported
        for facts in progress_since(self.query, self._time):
            self._time = facts["timestamp"]
            # An idle query reports every ten seconds, under the number of the batch to come
            # (Spark, ProgressReporter); "addBatch" shows that the batch ran.
            if facts["batchId"] <= self._reported or "addBatch" not in facts["durationMs"]:
                continue
            self._reported = facts["batchId"]
            name = f"batch {batch_name(self.epoch, self._reported)}"
            outcome = self.outcomes.pop(self._reported, None)
            report = outcome.report if outcome is not None else None
            if report is not None and not report.is_empty:
                seconds = facts["durationMs"].get("triggerExecution", 0) / 1000
                line = report.line(self.queues(), self.most, seconds)
                is_odd = report.done.late or report.done.without_time  # perhaps in no output
                (warn if is_odd else say)(line)
                total = report.head.totals.without_time
                if report.done.without_time and self.said.is_new("without time", total, 1):
                    warn(f"{name}: {_WITHOUT_TIME}")
            for line in _observed(facts):
                say(f"{name}: {line}")
            rows = report.head.state_rows if report is not None else None
            warnings = self.warnings(keys_of(facts, rows) or 0)
            for line in (*remarks(facts, rows, self.large_state_bytes, self.said), *warnings):
                warn(f"{name}: {line}")
        return self._reported != before


def _observed(facts: Mapping[str, Any]) -> Iterator[str]:
    """Yield what transform() itself has observed."""
    for name, counts in facts.get("observedMetrics", {}).items():
        if name != REJECTED and not name.startswith(observed_name("")):  # the audit's own
            yield from (f"{name}: {count} {what}" for what, count in counts.items() if count)
