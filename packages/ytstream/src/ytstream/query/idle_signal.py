"""Writes into the ledger that a start has looked at its queues and found nothing to read.

`submit` waits for the first batch of what it has started. A queue without new rows gives none.
"""

import time
from contextlib import suppress
from dataclasses import dataclass, field

from pyspark.sql.streaming.query import StreamingQuery
from yt.common import YtError

from ..cluster.client import cluster_name
from ..job import JobContext
from ..ledger import ledger_rows, positions
from ..ledger.offsets import waiting
from ..recovery.epoch import Epoch

_PAUSE_SECONDS = 2.0


@dataclass
class IdleSignal:
    """Writes once that no row waits, unless a batch has finished before."""

    context: JobContext
    is_over: bool = False
    _next: float = field(default_factory=time.monotonic)

    def look(self, query: StreamingQuery, epoch: Epoch, now: float) -> None:
        """Write the row if the first trigger is over and no row waits."""
        if self.is_over or now < self._next or not _has_looked(query):
            return
        self._next = now + _PAUSE_SECONDS
        client, settings = self.context.client, self.context.settings
        with suppress(YtError, OSError):  # the next look
            head = positions.read_head(settings.ledger, client.select_rows)
            queues = positions.queues(client, settings, cluster_name(client))
            if head is not None and not waiting(queues, head.ends):
                client.insert_rows(settings.ledger, [ledger_rows.look_row(epoch.number)])
                self.is_over = True


def _has_looked(query: StreamingQuery) -> bool:
    """Return whether a trigger has ended without rows (Spark, MicroBatchExecution's messages)."""
    status = query.status
    is_waiting = str(status["message"]).startswith("Waiting for")
    return is_waiting and not (status["isTriggerActive"] or status["isDataAvailable"])
