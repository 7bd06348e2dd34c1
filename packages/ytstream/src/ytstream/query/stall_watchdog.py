"""Watches a running query from outside: whose it is, what it reads from, and whether it moves.

Spark calls a query active while it waits for ever. What ends it here is raised; what a person
should know is said once. The alert YtstreamStalled (ytstream_tools/status/alert_rules.py) judges by
the metrics, from outside of the job.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from yt.common import YtError

from ..cluster.client import cluster_name, first_line
from ..cluster.mounting import closed
from ..errors import OutageError, RestartableError, StalledError
from ..errors.error_codes import ErrorCode
from ..job import JobContext
from ..ledger import positions
from ..ledger.ledger_rows import Head
from ..ledger.offsets import Queue, ahead, behind, waiting
from ..ledger.positions import read_head
from ..log import say, warn
from ..recovery.epoch import Epoch, verify_epoch
from .outage_log import OutageLog
from .stop_signal import StopSignal

LOOK_SECONDS = 15.0
STALL_SECONDS = 60.0
"""A query that has rows to read and finishes no batch and no task for so long is called stalled."""
ROWLESS = "No new data but cleaning up state"
"""Spark's message of a query that runs a batch without rows, to close what the watermark has passed
(MicroBatchExecution.executeOneBatch)."""
_MOVED = (3100, 1700)
"""Errors of a move that another one has overtaken: the consumer is not where it was, or another
transaction writes its row (YTsaurus, ConsumerOffsetConflict and TransactionLockConflict)."""
_MISSING = 500
"""The code of a path that does not exist (YTsaurus, ResolveError)."""


@dataclass
class Watchdog:
    """What was last seen of one query, and what was logged about it."""

    context: JobContext
    epoch: Epoch
    query: StreamingQuery
    tasks: Callable[[], object]
    """Returns another value whenever a task of a batch has finished (finished_tasks)."""
    queues: tuple[Queue, ...] = ()
    """The queues at the last look, or at the query's start."""
    is_idle: bool = False
    """Whether no row waited and no batch ran at the last look."""
    stop: StopSignal = field(default_factory=StopSignal)
    """Hears whether `stop` asks this process to end."""
    _next: float = field(default_factory=lambda: time.monotonic() + LOOK_SECONDS)
    _done: object = None
    """The last batch of the ledger and the tasks after it, and since when nothing was added."""
    _since: float | None = None
    _said: frozenset[str] = frozenset()
    _outage: OutageLog | None = None

    def look(self, now: float) -> None:
        """Look, if the last time was long enough ago.

        A cluster that is away, or a table that is not mounted, is said once a minute. Raises
        SupersededError for a foreign epoch, RestartableError when the next start has to judge: a
        queue was recreated, an object is gone, something else has moved the consumer, or no batch
        ends.
        """
        if now < self._next:
            return
        self._next = now + LOOK_SECONDS
        client, settings = self.context.client, self.context.settings
        try:
            # The head first: a batch that commits in between moves the consumer on.
            head = verify_epoch(read_head(settings.ledger, client.select_rows), self.epoch)
            self.stop.hear(head, self.epoch)
            self.queues = positions.queues(client, settings, self.cluster, head)
            self._verify(self.queues, head)
        except (YtError, OSError) as error:
            if isinstance(error, YtError) and error.contains_code(_MISSING):
                raise RestartableError(first_line(error)) from error
            # An outage is a reason to wait: Spark's own requests end the query when they must.
            why = closed(client, settings) or [first_line(error)]
            self._outage = self._outage or OutageLog(now)
            self._outage.tell(OutageError("; ".join(why)), now)
            return
        if self._outage is not None:
            say("watch: the cluster answers again")
            self._outage = None
        self._say_once(self._stalled(self.queues, head, now))

    @cached_property
    def cluster(self) -> str:
        """The cluster's name, asked once."""
        return cluster_name(self.context.client)

    def _verify(self, queues: tuple[Queue, ...], head: Head) -> None:
        """Compare ids and consumer with the head, which moves first.

        Spark sees nothing to read while the consumer is at the end of a queue, whoever moved it;
        and the cluster may remove rows before the consumer. Without SPYT's transaction an older
        driver may move it back at any time, and the query does not notice: it is put where the
        ledger is again.
        """
        for queue in queues:
            if head.ids.get(queue.path) != queue.id:
                raise RestartableError(
                    f"queue {queue.path} was dropped and recreated", code=ErrorCode.QUEUE_RECREATED
                )
            if positions.is_moved(head, queue):
                raise RestartableError(
                    f"queue {queue.path} was resharded", code=ErrorCode.QUEUE_RESHARDED
                )
        is_exact = self.context.guarantee.in_transaction
        if not is_exact:
            self._put_back(queues, head)
        moved = [
            queue.path
            for queue in queues
            if ahead(queue, ends := head.ends.get(queue.path, {}))
            or (is_exact and behind(queue, ends))
        ]
        if not moved:
            return
        again = read_head(self.context.settings.ledger, self.context.client.select_rows)
        if again == head:
            raise RestartableError(
                f"the consumer is not where the ledger is on {', '.join(moved)}: something else "
                "moved it",
                code=ErrorCode.CONSUMER_MOVED,
            )

    def _put_back(self, queues: tuple[Queue, ...], head: Head) -> None:
        """Move a consumer that is behind the head there, unless anything moves it meanwhile."""
        client, consumer = self.context.client, self.context.settings.consumer
        for queue in queues:
            ends = head.ends.get(queue.path, {})
            for partition in behind(queue, ends):
                was, end = queue.consumed.get(partition, 0), ends[partition]
                try:
                    client.advance_queue_consumer(consumer, queue.path, partition, was, end)
                except YtError as error:
                    if not any(map(error.contains_code, _MOVED)):
                        raise
                    continue  # the next look compares them again
                say(
                    f"watch: the consumer was at row {was} of {queue.path}, partition "
                    f"{partition}: moved to row {end}, where the ledger is"
                )

    def _stalled(self, queues: tuple[Queue, ...], head: Head, now: float) -> list[str]:
        rows, message = waiting(queues, head.ends), self.query.status["message"]
        self.is_idle = not rows and message != ROWLESS
        done = None if self.is_idle else (head.number, self.tasks())
        if done is None or done != self._done:
            self._done, self._since = done, None if done is None else now
            return []
        self._since = self._since if self._since is not None else now
        settings, seconds = self.context.settings, now - self._since
        # Until the next trigger, rows have to wait.
        limit = settings.stall_seconds + settings.trigger_seconds
        doing = f"Spark: {message}"
        what = "rows wait" if rows else "a batch without rows is under way"
        if seconds >= limit:
            raise StalledError(
                f"{f'{rows} ' if rows else ''}{what}, and no batch and no task has ended for "
                f"{seconds:.0f} s ({doing}); `stall_seconds` must be longer than any task takes"
            )
        if seconds < STALL_SECONDS + settings.trigger_seconds:
            return []
        return [
            f"STALLED: {what}, no batch and no task ends ({doing}); the query ends after "
            f"{limit:.0f} s"
        ]

    def _say_once(self, lines: list[str]) -> None:
        for line in lines:
            if line not in self._said:
                warn(f"watch: {line}")
        if self._said and not lines:
            say("watch: all is well again")
        self._said = frozenset(lines)


def finished_tasks(spark: SparkSession) -> tuple[tuple[int, int], ...]:
    """Return the stages that run, each with the number of its tasks that have finished.

    A batch longer than a stall shows here that it moves. Failed tasks do not count.
    """
    tracker = spark.sparkContext.statusTracker()
    found = ((number, tracker.getStageInfo(number)) for number in tracker.getActiveStageIds())
    return tuple(
        sorted((number, stage.numCompletedTasks) for number, stage in found if stage is not None)
    )
