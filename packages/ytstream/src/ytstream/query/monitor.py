"""Reports each finished micro-batch of a query once."""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql.streaming.query import StreamingQuery

from ..log import Said, say
from ..plan import observed_name
from ..table import counted
from .state_store import keys_of, remarks


@dataclass
class Monitor:
    """Remembers which batches of one query were reported."""

    query: StreamingQuery
    large_state_bytes: int
    #: What was said already, of former queries of the process too.
    said: Said = field(default_factory=Said)
    #: The size of the state -> what to warn of.
    warnings: Callable[[int], Iterable[str]] = lambda _: ()
    _reported: int = -1

    def report(self) -> bool:
        """Say a line per batch that ended since the last call and had rows; return if any ended."""
        before = self._reported
        for progress in self.query.recentProgress:
            # A dict in Spark 4, an object with .json in Spark 3.5.
            text = getattr(progress, "json", None) or json.dumps(progress)
            facts: dict[str, Any] = json.loads(text)
            # An idle query reports every ten seconds, under the number of the batch to come
            # (Spark, ProgressReporter); "addBatch" shows that the batch ran.
            if facts["batchId"] <= self._reported or "addBatch" not in facts["durationMs"]:
                continue
            self._reported = facts["batchId"]
            lines = list(remarks(facts, self.large_state_bytes, self.said))
            lines += self.warnings(keys_of(facts) or 0)
            for name, counts in facts.get("observedMetrics", {}).items():
                if not name.startswith(observed_name("")):  # the audit's own
                    lines += [f"{name}: {count} {what}" for what, count in counts.items() if count]
            if rows := facts["numInputRows"]:
                seconds = facts["durationMs"].get("triggerExecution", 0) / 1000
                lines.insert(0, f"{counted(rows, 'row')} in {seconds:.2f} s")
            for line in lines:
                say(f"batch {facts['batchId']}: {line}")
        return self._reported != before
