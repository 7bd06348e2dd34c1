"""Held requests: accepted by the cluster, applied when a test releases them.

A held request is a task of its own. It outlives its connection and its proxy, like a request that
a real proxy has already passed on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from typing import Any, TypeVar

from ..core.errors import TIMEOUT, YtError
from .faults import Rule
from .journal import Call

Result = TypeVar("Result")
Committing = Callable[[str], AbstractContextManager[None]]
"""Given a transaction's id: keeps it alive while its commit is held."""

COMMITS = frozenset({"CommitTransaction", "commit_transaction", "commit_tx"})


class Held(Exception):  # noqa: N818 - an order, not an error
    """Accept this request, and apply it when `rule` is released."""

    def __init__(self, rule: Rule) -> None:
        super().__init__()
        self.rule = rule


@dataclass(frozen=True, eq=False)
class _Waiting:
    call: Call
    go: asyncio.Event
    task: asyncio.Task[Any]


class WaitingRoom:
    """The held requests by rule, in the order in which they came."""

    def __init__(self, tick: Callable[[], None], committing: Committing) -> None:
        self._tick = tick
        self._committing = committing
        self._waiting: dict[int, list[_Waiting]] = {}

    def take(
        self, rule: Rule, call: Call, apply: Callable[[], Awaitable[Result]]
    ) -> asyncio.Task[Result]:
        """Hold a request until its rule is released; the task applies it then."""
        go = asyncio.Event()
        lease = ExitStack()
        if call.method in COMMITS:
            lease.enter_context(self._committing(str(call.args.get("transaction"))))
        call.entry |= {"held": True, "fault": call.fault}

        async def wait_and_apply() -> Result:
            try:
                with lease:
                    await go.wait()
                    # Time has passed: other transactions expire before this request is applied.
                    self._tick()
                return await apply()
            finally:
                call.entry["held"] = False

        task = asyncio.create_task(wait_and_apply())
        # The client may be gone; the journal keeps the error.
        task.add_done_callback(lambda done: done.cancelled() or done.exception())
        self._waiting.setdefault(rule.id, []).append(_Waiting(call, go, task))
        return task

    def let_go(self, rule_id: int) -> list[_Waiting]:
        """Start the held requests of a rule, in their order, and do not wait for them."""
        released = self._waiting.pop(rule_id, [])
        for waiting in released:
            waiting.go.set()
        return released

    async def release(self, rule_id: int, timeout: float) -> list[dict[str, Any]]:
        """Start the held requests of a rule and wait for them. Returns their journal entries.

        Raises: YtError when one is not finished within `timeout` seconds.
        """
        released = self.let_go(rule_id)
        if released:
            _, late = await asyncio.wait([waiting.task for waiting in released], timeout=timeout)
            if late:
                raise YtError(TIMEOUT, f"{len(late)} requests of rule {rule_id} are not finished")
        return [waiting.call.entry for waiting in released]
