"""Tells the operation's page how the job is doing: the last batch and the lag, once a minute."""

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime

from yt.common import YtError

from ..cluster import operation
from ..job import JobContext
from ..ledger.offsets import Queue, waiting
from ..ledger.positions import read_head
from ..text_table import counted

_SECONDS = 60.0
"""Each change of an operation's parameters is work for the scheduler."""


@dataclass
class OperationNote:
    """Writes into the description of the operation that this process is a job of; else nothing."""

    context: JobContext
    queues: Callable[[], Sequence[Queue]]
    """Gives the queues as they were seen last."""
    operation: str | None = field(default_factory=operation.own)
    _next: float = -math.inf
    _said: int = -1

    def tick(self, now: float) -> None:
        """Write it, if it is due and a batch has ended since; an outage is not an error."""
        if self.operation is None or now < self._next:
            return
        self._next = now + _SECONDS
        client, settings = self.context.client, self.context.settings
        with suppress(YtError, OSError):
            head = read_head(settings.ledger, client.select_rows)
            if head is None or head.number == self._said:
                return
            at = f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"
            said = {
                "Last batch": f"{head.epoch}-{head.batch}, seen {at}",
                "Lag": counted(waiting(self.queues(), head.ends), "row"),
            }
            client.update_operation_parameters(
                self.operation, {"annotations": {"description": said}}
            )
            self._said = head.number
