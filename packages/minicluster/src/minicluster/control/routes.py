"""The control interface, `/minicluster/*`.

Faults, journal, clock, proxies, saving and loading; those of operations are in `operations.py`.
"""

from __future__ import annotations

import os
from dataclasses import asdict, fields
from typing import Any

from aiohttp import web

from .. import persist
from ..cluster import Cluster
from ..core.errors import YtError, generic
from .faults import Rule
from .gate import Gate
from .operations import OperationsControl
from .recorder import Recorder
from .requests import Answer, as_json, body, number

RULE_FIELDS = {field.name for field in fields(Rule)} - {"id", "seen", "hits", "first_hit"}


def routes(cluster: Cluster, gate: Gate) -> list[web.RouteDef]:
    """Return the routes, all of which take and answer JSON."""
    control = Control(cluster, gate)
    table: list[tuple[str, str, Answer]] = [
        ("GET", "", control.status),
        ("GET", "/faults", control.faults),
        ("POST", "/faults", control.add_fault),
        ("DELETE", "/faults", control.remove_fault),
        ("GET", "/faults/{id}", control.fault),
        ("DELETE", "/faults/{id}", control.remove_fault),
        ("POST", "/faults/{id}/wait", control.wait_fault),
        ("POST", "/faults/{id}/release", control.release_fault),
        ("GET", "/journal", control.journal),
        ("DELETE", "/journal", control.clear_journal),
        ("GET", "/counts", control.counts),
        ("POST", "/label", control.label),
        ("GET", "/clock", control.clock),
        ("POST", "/clock", control.advance),
        ("POST", "/queue_agent", control.queue_agent),
        ("POST", "/limits", control.limits),
        ("GET", "/proxies", control.proxies),
        ("POST", "/proxies", control.set_proxy),
        ("POST", "/save", control.save),
        ("POST", "/load", control.load),
        ("POST", "/leases", control.renew_leases),
        ("POST", "/record", control.record),
        *OperationsControl(cluster).table(),
    ]
    return [
        web.route(method, f"/minicluster{path}", as_json(answer)) for method, path, answer in table
    ]


class Control:
    """Tests and people control a running cluster from outside; none of this passes the gate."""

    def __init__(self, cluster: Cluster, gate: Gate) -> None:
        self._cluster = cluster
        self._gate = gate
        self._recorder = Recorder(lambda path: persist.save(cluster, path))
        gate.journal.listeners.append(self._recorder)

    async def status(self, request: web.Request) -> Any:
        return {
            "pid": os.getpid(),
            "cluster_name": self._cluster.name,
            "nodes": len(self._cluster.cypress.nodes),
            "requests": sum(self._gate.journal.counts.values()),
        }

    async def faults(self, request: web.Request) -> Any:
        return [asdict(rule) for rule in self._gate.rules.values()]

    async def add_fault(self, request: web.Request) -> Any:
        given = await body(request)
        unknown = set(given) - RULE_FIELDS
        if unknown:
            raise generic(f"Unknown fields of a fault rule: {', '.join(sorted(unknown))}")
        try:
            rule = Rule(**given)
        except TypeError as error:
            raise generic(f"Not a fault rule: {error}") from None
        await self._gate.add(rule)
        return asdict(rule)

    async def fault(self, request: web.Request) -> Any:
        return asdict(self._gate.rule(_id(request)))

    async def remove_fault(self, request: web.Request) -> Any:
        await self._gate.remove(_id(request) if "id" in request.match_info else None)
        return {}

    async def wait_fault(self, request: web.Request) -> Any:
        given = await body(request)
        return await self._gate.wait_hit(
            _id(request), int(number(given, "hits", 1)), number(given, "timeout", 60)
        )

    async def release_fault(self, request: web.Request) -> Any:
        given = await body(request)
        return await self._gate.release(_id(request), number(given, "timeout", 60))

    async def journal(self, request: web.Request) -> Any:
        method, since = request.query.get("method"), int(number(request.query, "since", 0))
        return [
            entry
            for entry in self._gate.journal.entries
            if entry["n"] > since and method in (None, entry["method"])
        ]

    async def clear_journal(self, request: web.Request) -> Any:
        self._gate.journal.clear()
        return {}

    async def counts(self, request: web.Request) -> Any:
        return dict(self._gate.journal.counts)

    async def label(self, request: web.Request) -> Any:
        label = (await body(request)).get("label")
        self._gate.label = None if label is None else str(label)
        return {}

    async def clock(self, request: web.Request) -> Any:
        return {"now": self._cluster.clock.now(), "offset": self._cluster.clock.offset}

    async def advance(self, request: web.Request) -> Any:
        seconds = number(await body(request), "advance")
        if seconds < 0:
            raise generic("The clock cannot be turned back")
        self._cluster.pass_time(seconds)
        return await self.clock(request)

    async def queue_agent(self, request: web.Request) -> Any:
        self._cluster.queues.agent.delay = number(await body(request), "delay")
        return {}

    async def limits(self, request: web.Request) -> Any:
        given, limited = await body(request), self._cluster.tablet_transactions
        rows = number(given, "rows_per_tablet", limited.rows_per_tablet)
        versions = number(given, "versions_per_row", limited.versions_per_row)
        if rows < 1 or versions < 1:
            raise generic("A limit must be at least 1")
        limited.rows_per_tablet, limited.versions_per_row = int(rows), int(versions)
        if "mount_cache" in given:
            self._cluster.tables.mount_cache.set_lifetime(number(given, "mount_cache", 0))
        return {}

    async def proxies(self, request: web.Request) -> Any:
        return {address: proxy.is_up for address, proxy in self._gate.proxies.items()}

    async def set_proxy(self, request: web.Request) -> Any:
        given = await body(request)
        await self._gate.set_proxy(str(given.get("address")), up=bool(given.get("up")))
        return await self.proxies(request)

    async def save(self, request: web.Request) -> Any:
        persist.save(self._cluster, _file(await body(request)))
        return {}

    async def record(self, request: web.Request) -> Any:
        given = await body(request)
        folder = given.get("folder")
        if folder is not None and not (isinstance(folder, str) and os.path.isdir(folder)):
            raise generic('"folder" must be a folder that exists, or null')
        self._recorder.record(folder, [str(method) for method in given.get("methods") or ()])
        return {}

    async def load(self, request: web.Request) -> Any:
        persist.load(self._cluster, _file(await body(request)))
        return {}

    async def renew_leases(self, request: web.Request) -> Any:
        self._cluster.renew_leases()
        return {}


def _id(request: web.Request) -> int:
    try:
        return int(request.match_info["id"])
    except ValueError:
        raise generic("A rule's id is a number") from None


def _file(given: dict[str, Any]) -> str:
    path = given.get("path")
    if not isinstance(path, str) or not os.path.isabs(path):
        raise YtError(1, '"path" must be an absolute file name')
    return path
