"""Looks at a running query from outside: whose it is, what it reads from, and whether it moves.

Spark calls a query active while it waits for ever. What ends it here is raised; what a person
should know is said once.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.sql.streaming.query import StreamingQuery
from yt.common import YtError

from ..cluster import facts, first_line
from ..errors import RestartableError
from ..job import Connection
from ..ledger import Head
from ..log import say
from ..positions import Queue
from ..recovery import snapshot
from ..recovery.epoch import Epoch, verify_epoch

LOOK_SECONDS = 15.0
#: A query that has rows to read and finishes no batch for so long is called stalled.
STALL_SECONDS = 60.0


@dataclass
class Watch:
    """Remembers what it saw of one query, and what it has said."""

    connection: Connection
    epoch: Epoch
    query: StreamingQuery
    _next: float = field(default_factory=lambda: time.monotonic() + LOOK_SECONDS)
    #: The last batch of the ledger, and since when rows wait behind it.
    _number: int = -1
    _since: float | None = None
    _said: frozenset[str] = frozenset()

    def look(self, now: float) -> None:
        """Look, if the last time was long enough ago.

        Raises SupersededError for a foreign epoch, RestartableError when the next start has to
        judge: a queue was recreated, something else has moved the consumer, no batch ends.
        """
        if now < self._next:
            return
        self._next = now + LOOK_SECONDS
        try:
            if closed := self._closed_queues():  # a tablet that is not mounted tells no bounds
                self._say_once(closed)
                return
            found = snapshot.read(self.connection.client, self.connection.settings)
            head = verify_epoch(found.head, self.epoch)
            for queue in found.queues:
                if head.ids.get(queue.path) != queue.id:
                    raise RestartableError(f"queue {queue.path} was dropped and recreated")
            self._verify_consumer(found, head)
        except (YtError, OSError) as error:
            # An outage is a reason to wait: Spark's own requests end the query when they must.
            self._say_once([f"the cluster does not answer: {first_line(error)}"])
            return
        self._say_once(self._stalled(found.queues, head, now))

    def _closed_queues(self) -> list[str]:
        client, lines = self.connection.client, []
        for path in self.connection.settings.queues:
            found = facts(client, path, ["tablet_state"])
            state = "missing" if found is None else str(found["tablet_state"])
            if state not in ("mounted", "frozen"):
                lines.append(f"queue {path} is {state}: its rows cannot be read")
        return lines

    def _verify_consumer(self, found: snapshot.Snapshot, head: Head) -> None:
        """Compare the consumer with the head; only one transaction moves both.

        Spark sees nothing to read when SPYT's consumer is at the end of a queue.
        """
        if not self.connection.guarantee.in_transaction:
            return
        wrong = [
            queue.path
            for queue in found.queues
            if _at(queue.consumed) != _at(head.ends.get(queue.path, {}))
        ]
        if not wrong:
            return
        # A batch may have committed between the two readings.
        again = snapshot.read(self.connection.client, self.connection.settings)
        if again.begun is not None and again.begun.number == head.number:
            raise RestartableError(
                f"the consumer is not where the ledger is on {', '.join(wrong)}: something else "
                "moved it"
            )

    def _stalled(self, queues: tuple[Queue, ...], head: Head, now: float) -> list[str]:
        waiting = sum(
            max(0, upper - head.ends.get(queue.path, {}).get(partition, 0))
            for queue in queues
            for partition, upper in enumerate(queue.upper)
        )
        if not waiting or head.number != self._number:
            self._number, self._since = head.number, now if waiting else None
            return []
        self._since = self._since if self._since is not None else now
        seconds, limit = now - self._since, self.connection.settings.stall_seconds
        doing = f"Spark: {self.query.status['message']}"
        if seconds >= limit:
            raise RestartableError(
                f"{waiting} rows wait and no batch has ended for {seconds:.0f} s ({doing})"
            )
        if seconds < STALL_SECONDS:
            return []
        return [
            f"STALLED: rows wait and no batch ends ({doing}); the query ends after {limit:.0f} s"
        ]

    def _say_once(self, lines: list[str]) -> None:
        for line in lines:
            if line not in self._said:
                say(f"watch: {line}")
        if self._said and not lines:
            say("watch: all is well again")
        self._said = frozenset(lines)


def _at(rows: Mapping[int, int]) -> dict[int, int]:
    return {partition: row for partition, row in rows.items() if row}
