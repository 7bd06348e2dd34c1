"""The queue agent: it reports on queues and consumers, and trims queues.

A real one looks round every few seconds, so its attributes lag behind the tables. Here `delay` says
how long a look stays valid; 0, the default, means that every answer is fresh.
"""

from __future__ import annotations

from typing import Any

from ..core.clock import Clock
from ..core.errors import YtError, generic
from ..cypress.model import MISSING, Node
from ..cypress.store import Store
from ..tables.commands import Tables
from ..tables.ordered import OrderedData
from ..tables.table import MOUNTED, require_readable
from ..tables.transactions import TabletTransactions
from .consumers import Consumers
from .reports import REPORTS, Reporter, reports

STAGE = "production"
"""The only stage that has an agent; an object of another stage is left alone."""


class QueueAgent:
    """`cluster.queues.agent`."""

    def __init__(
        self,
        clock: Clock,
        store: Store,
        tables: Tables,
        transactions: TabletTransactions,
        consumers: Consumers,
        reporter: Reporter,
    ) -> None:
        self._clock = clock
        self._store = store
        self._tables = tables
        self._transactions = transactions
        self._consumers = consumers
        self._reporter = reporter
        self.delay = 0.0
        """Seconds between two looks; 0 for none."""
        self._looked = 0.0
        self._trimmed_at: tuple[int, int] | None = None
        """The last commit and the count of changed tablets at the last look at what to trim."""
        self._seen: dict[tuple[str, str], Any] = {}
        """(node id, attribute) -> value at the last look."""

    def tick(self) -> None:
        """Look at queues and consumers, if a look is due."""
        now = self._clock.now()
        if self.delay and now < self._looked + self.delay:
            return
        self._looked = now
        self._seen.clear()
        seen = self._transactions.last_commit, self._tables.tablet_changes
        if self._trimmed_at != seen:
            self._trimmed_at = seen
            self._trim()
        if self.delay:
            for node in self._store.nodes.values():
                for name in REPORTS:
                    if reports(node, name):
                        self._seen[node.id, name] = self._reporter.report(node, name)

    def wake(self) -> None:
        """Request a look even if no row has changed: a setting that governs trimming has."""
        self._trimmed_at = None

    def report(self, node: Node, name: str) -> Any:
        """Return a status attribute as of the last look; MISSING for nodes unknown to the agent."""
        if not reports(node, name):
            return MISSING
        if (stage := _stage(node)) != STAGE:
            raise generic(f'Queue agent stage "{stage}" is not found')
        if not self.delay:
            return self._reporter.report(node, name)
        if (node.id, name) not in self._seen:
            raise generic(f'Object "{node.path}" is not mapped to any queue agent')
        return self._seen[node.id, name]

    def _trim(self) -> None:
        """Trim queues up to the slowest vital consumer (documentation, "queues", trimming)."""
        for path in {registration.queue for registration in self._consumers.registrations()}:
            try:
                node, table = self._tables.ordered(path)
            except YtError:
                continue
            config = node.attributes.get("auto_trim_config") or {}
            if not config.get("enable") or _stage(node) != STAGE:
                continue
            for index, tablet in enumerate(table.tablets):
                if tablet.state != MOUNTED:
                    continue
                offsets = [
                    self._offset(registration.consumer, path, index)
                    for registration in self._consumers.registrations(queue=path)
                    if registration.vital
                    and (registration.partitions is None or index in registration.partitions)
                ]
                if offsets:
                    tablet.data.trim(self._retained(tablet.data, min(offsets), config))

    def _offset(self, consumer: str, queue: str, partition: int) -> int:
        """Return a vital consumer's offset; one that cannot be read stops all trimming."""
        try:
            node, table = self._consumers.consumer(consumer)
            key = self._consumers.key(queue, partition)
            require_readable(table.tablets[table.tablet_of(key)], node.path)
        except YtError:
            return 0
        return self._consumers.offset(table, queue, partition)

    def _retained(self, data: OrderedData, end: int, config: dict[str, Any]) -> int:
        """Return `end` moved back so that what the configuration retains stays."""
        if config.get("retained_rows") is not None:
            end = min(end, data.total - int(config["retained_rows"]))
        if config.get("retained_lifetime_duration") is not None:
            # Compared in whole seconds, which is what a timestamp holds; the documentation asks for
            # multiples of 1000 ms.
            oldest = self._clock.now() - config["retained_lifetime_duration"] / 1000
            old = data.trimmed
            for timestamp, after in data.commits:
                if timestamp >> 30 >= oldest:
                    break
                old = after
            end = min(end, old)
        return end


def _stage(node: Node) -> Any:
    return node.attributes.get("queue_agent_stage", STAGE)
