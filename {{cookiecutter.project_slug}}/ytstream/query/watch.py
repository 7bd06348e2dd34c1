"""Looks at a running query from outside: whose it is, what it reads from, and whether it moves.

Spark calls a query active while it waits for ever. What ends it here is raised; what a person
should know is said once.
"""

import time
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property

from pyspark.sql.streaming.query import StreamingQuery
from yt.common import YtError, YtResponseError

from ..cluster import cluster_name, facts, first_line
from ..errors import RestartableError
from ..job import Connection
from ..ledger import Head
from ..log import say
from ..positions import Queue, ahead, behind
from ..recovery import snapshot
from ..recovery.epoch import Epoch, verify_epoch
from ..recovery.snapshot import read_head
from .outage import Outage

LOOK_SECONDS = 15.0
#: A query that has rows to read and finishes no batch for so long is called stalled.
STALL_SECONDS = 60.0


@dataclass
class Watch:
    """Remembers what it saw of one query, and what it has said."""

    connection: Connection
    epoch: Epoch
    query: StreamingQuery
    #: Whether `stop` asks this process to end.
    is_stop_asked: bool = False
    _next: float = field(default_factory=lambda: time.monotonic() + LOOK_SECONDS)
    #: The last batch of the ledger, and since when rows wait behind it.
    _number: int = -1
    _since: float | None = None
    _said: frozenset[str] = frozenset()
    _outage: Outage | None = None

    def look(self, now: float) -> None:
        """Look, if the last time was long enough ago.

        Raises SupersededError for a foreign epoch, RestartableError when the next start has to
        judge: a queue was recreated, something else has moved the consumer, no batch ends.
        """
        if now < self._next:
            return
        self._next = now + LOOK_SECONDS
        client, settings = self.connection.client, self.connection.settings
        try:
            # The head first: a batch that commits in between moves the consumer on.
            head = verify_epoch(read_head(settings.ledger, client.select_rows), self.epoch)
            self.is_stop_asked = head.stopped == self.epoch.number
            queues = snapshot.queues(client, settings, self.cluster)
            self._verify(queues, head)
        except (YtError, OSError) as error:
            # An outage is a reason to wait: Spark's own requests end the query when they must.
            if closed := self._closed_queues(error):
                self._say_once(closed)
                return
            self._outage = self._outage or Outage(now)
            self._outage.tell(first_line(error), now)
            return
        if self._outage is not None:
            say("watch: the cluster answers again")
            self._outage = None
        self._say_once(self._stalled(queues, head, now))

    @cached_property
    def cluster(self) -> str:
        """The cluster's name, asked once."""
        return cluster_name(self.connection.client)

    def _closed_queues(self, error: Exception) -> list[str]:
        """Return why an answer is an error: mostly a tablet that is not mounted tells no bounds."""
        lines: list[str] = []
        if not isinstance(error, YtResponseError):
            return lines  # the cluster has not answered
        for path in self.connection.settings.queues:
            with suppress(YtError, OSError):
                found = facts(self.connection.client, path, ["tablet_state"])
                state = "missing" if found is None else str(found["tablet_state"])
                if state not in ("mounted", "frozen"):
                    lines.append(f"queue {path} is {state}: its rows cannot be read")
        return lines

    def _verify(self, queues: tuple[Queue, ...], head: Head) -> None:
        """Compare ids and consumer with the head, which moves first.

        Spark sees nothing to read while the consumer is at the end of a queue, whoever moved it;
        and the cluster may remove rows before the consumer. Without SPYT's transaction it is a
        batch behind.
        """
        for queue in queues:
            if head.ids.get(queue.path) != queue.id:
                raise RestartableError(f"queue {queue.path} was dropped and recreated")
        is_exact = self.connection.guarantee.in_transaction
        moved = [
            queue.path
            for queue in queues
            if ahead(queue, ends := head.ends.get(queue.path, {}))
            or (is_exact and behind(queue, ends))
        ]
        if not moved:
            return
        again = read_head(self.connection.settings.ledger, self.connection.client.select_rows)
        if again == head:
            raise RestartableError(
                f"the consumer is not where the ledger is on {', '.join(moved)}: something else "
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
        settings, seconds = self.connection.settings, now - self._since
        # Until the next trigger, rows have to wait.
        limit = settings.stall_seconds + settings.trigger_seconds
        doing = f"Spark: {self.query.status['message']}"
        if seconds >= limit:
            raise RestartableError(
                f"{waiting} rows wait and no batch has ended for {seconds:.0f} s ({doing})"
            )
        if seconds < STALL_SECONDS + settings.trigger_seconds:
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
