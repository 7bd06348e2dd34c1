"""Faults of operations: jobs, nodes and the scheduler go wrong on request."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from ..cluster import Cluster
from ..core.errors import generic
from ..operations.model import ABORTED, COMPLETED, FAILED
from .requests import Answer, body, number


class OperationsControl:
    """The part of the control interface that is about operations. It works without a scheduler."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._scheduler = cluster.scheduler

    def table(self) -> list[tuple[str, str, Answer]]:
        return [
            ("GET", "/operations", self.list),
            ("POST", "/operations/end", self.end),
            ("POST", "/operations/abort_job", self.abort_job),
            ("POST", "/operations/lose_node", self.lose_node),
            ("POST", "/operations/scheduler_away", self.scheduler_away),
            ("POST", "/operations/start_delay", self.start_delay),
            ("POST", "/operations/lose_file", self.lose_file),
        ]

    async def list(self, request: web.Request) -> Any:
        self._cluster.tick()
        return [
            {
                "id": operation.id,
                "alias": operation.alias,
                "title": operation.spec.get("title"),
                "state": operation.state,
                "error": operation.error,
                "jobs": [
                    {
                        "id": job.id,
                        "task": job.task,
                        "state": job.state,
                        "cookie": job.cookie,
                        "attempt": job.task_index,
                        "address": job.address,
                        "abort_reason": job.abort_reason,
                        "error": job.error,
                    }
                    for job in operation.jobs.values()
                ],
            }
            for operation in self._scheduler.operations.values()
        ]

    async def end(self, request: web.Request) -> Any:
        given = await body(request)
        operation = self._scheduler.find(_text(given, "operation"), None)
        message = str(given.get("message") or "Ended by the control interface")
        if operation.is_final:
            raise generic(f"Operation {operation.id} is {operation.state} already")
        match given.get("state"):
            case "completed":
                self._scheduler.complete(operation)
            case "aborted":
                self._scheduler.abort(operation, message)
            case "failed":
                self._scheduler.fail(operation, generic(message))
            case other:
                allowed = [COMPLETED, ABORTED, FAILED]
                raise generic(f'Unknown final state "{other}"', expected=allowed)
        return {}

    async def abort_job(self, request: web.Request) -> Any:
        given = await body(request)
        reason = str(given.get("reason") or "preemption")
        self._scheduler.abort_job(_text(given, "job"), reason)
        return {}

    async def lose_node(self, request: web.Request) -> Any:
        given = await body(request)
        processes = given.get("processes", "stop")
        if processes not in ("stop", "continue"):
            raise generic(f'"processes" is "stop" or "continue", not "{processes}"')
        self._scheduler.lose_node(
            _text(given, "job"),
            stop=processes == "stop",
            declared_after=number(given, "declared_after", 0),
        )
        return {}

    async def scheduler_away(self, request: web.Request) -> Any:
        self._scheduler.go_away(number(await body(request), "seconds"))
        return {}

    async def start_delay(self, request: web.Request) -> Any:
        self._scheduler.start_delay = number(await body(request), "seconds")
        return {}

    async def lose_file(self, request: web.Request) -> Any:
        self._cluster.cypress.remove(_text(await body(request), "path"))
        return {}


def _text(given: dict[str, Any], name: str) -> str:
    value = given.get(name)
    if not isinstance(value, str):
        raise generic(f'"{name}" must be a text, not {value!r}')
    return value
