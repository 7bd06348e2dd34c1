"""Retention: ordered tables lose their old rows, sorted ones old versions and expired rows.

The rule is the server's (server/node/tablet_node/store_trimmer.cpp; documentation, "ordered
tables", automatic deletion of old rows). Nothing is trimmed unless `min_data_versions` is 0. Then
the server trims a tablet's chunks, the oldest first, while each of these holds:

- all rows of the chunk are older than `min_data_ttl` and, unless `max_data_versions` is 0, than
  `max_data_ttl`;
- at least `row_count_to_keep` rows remain after it.

Model: the rows that one commit wrote to a tablet stand for a chunk, flushed at once. A real cluster
flushes a tablet every 15 minutes by default and puts many commits into one chunk, so it keeps rows
longer. Settings take effect without a remount, as all settings do here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from yt import yson

from ..core.clock import Clock, Period
from ..core.errors import generic, not_supported
from ..cypress.kinds import Setter
from ..cypress.model import Node
from ..cypress.store import Store
from .ordered import OrderedData
from .sorted import SortedData
from .table import MOUNTED, Table

DEFAULTS = {
    "min_data_versions": 1,
    "max_data_versions": 1,
    "min_data_ttl": 1_800_000,
    "max_data_ttl": 1_800_000,
    "row_count_to_keep": 0,
}
"""The settings, times in milliseconds (client/table_client/config.cpp, TRetentionConfig)."""

PERIOD = 1.0
"""Seconds between two runs; a tablet node scans its tablets about as often."""


class Retention:
    """Trims ordered tables as time goes by."""

    def __init__(self, clock: Clock, store: Store) -> None:
        self._clock = clock
        self._store = store
        self._period = Period(clock, PERIOD)

    def tick(self) -> None:
        """Run once a period."""
        if self._period.is_over():
            self.run()

    def run(self) -> None:
        """Trim all tables now."""
        now = self._clock.now()
        for node in self._store.nodes.values():
            table = node.payload
            if not isinstance(table, Table) or not table.dynamic:
                continue
            if table.sorted:
                compacted = any(tablet.state == MOUNTED for tablet in table.tablets)
                if compacted and not DEFAULTS.keys().isdisjoint(node.attributes):
                    compact(table.data, _settings(node.attributes), now)
                continue
            if node.attributes.get("min_data_versions") != 0:
                continue
            for tablet in table.tablets:
                if tablet.state == MOUNTED:
                    tablet.data.trim(trimmable(tablet.data, node.attributes, now))


def compact(data: SortedData, settings: Mapping[str, int], now: float) -> None:
    """Drop old versions of rows as a compaction would, and rows whose time is over.

    The rule: documentation, user-guide/dynamic-tables/sorted-dynamic-tables (deleting old data).
    Model: a table that was given none of the settings keeps its rows and drops old versions when
    a row is written again.
    """
    fewest, most = settings["min_data_versions"], settings["max_data_versions"]
    data.expire(_before(now, settings["min_data_ttl"]), max(fewest, most))
    data.expire(_before(now, settings["max_data_ttl"]), fewest)


def require_retained(node: Node, timestamp: int | None, now: float) -> None:
    """Raise YtError for a read of a sorted table at a time whose versions are gone.

    Source: server/node/tablet_node/tablet_manager.cpp, ValidateTabletRetainedTimestamp. Model: the
    table is compacted all the time, so that nothing outlives `min_data_ttl`, unless it is frozen.
    """
    ttl = _settings(node.attributes)["min_data_ttl"]
    for tablet in node.payload.tablets:
        retained = _before(now if tablet.frozen_at is None else tablet.frozen_at, ttl)
        if timestamp is not None and timestamp < retained:
            raise generic(
                f"Timestamp {timestamp:x} is less than tablet {tablet.id} "
                f"retained timestamp {retained:x}"
            )


def _settings(attributes: Mapping[str, Any]) -> dict[str, int]:
    return {name: attributes.get(name, default) for name, default in DEFAULTS.items()}


def _before(now: float, ttl: int) -> int:
    """Return the timestamp of `ttl` milliseconds ago."""
    return max(0, int(now - ttl / 1000)) << 30


def trimmable(data: OrderedData, attributes: Mapping[str, Any], now: float) -> int:
    """Return the first row that has to be kept; `min_data_versions` is known to be 0."""
    settings = _settings(attributes)
    ttl = settings["min_data_ttl"]
    if settings["max_data_versions"] != 0:
        ttl = max(ttl, settings["max_data_ttl"])
    # Compared in whole seconds, which is what a timestamp holds: no row goes too early.
    death = _before(now, ttl)
    end = 0
    for timestamp, after in data.commits:
        if timestamp >= death or data.total - after < settings["row_count_to_keep"]:
            break
        end = after
    return end


def _setter(name: str) -> Setter:
    def set_attribute(node: Node, value: Any) -> None:
        if isinstance(value, str) and name.endswith("_ttl"):
            raise not_supported(f'a text as the duration "{name}"')
        if isinstance(value, bool | yson.YsonBoolean) or not isinstance(value, int) or value < 0:
            raise generic(f'Error parsing "{name}": a whole number from 0 on was expected')
        node.attributes[name] = value

    return set_attribute


SETTABLE: dict[str, Setter] = {name: _setter(name) for name in DEFAULTS}
"""Kept as given, and absent from a table that was given none, as on a real cluster."""
