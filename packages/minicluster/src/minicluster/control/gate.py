"""The one point that every request of both protocols passes.

It keeps the journal and injects faults: a rule makes the calls that it chooses fail, wait, lose
their connection, or kill a process, before or after the request has been applied.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from dataclasses import asdict
from typing import Any, Protocol, TypeVar

from ..core.errors import YtError, generic
from .faults import HOLDING, HangUp, Rule, send_signal
from .held import Committing, Held, WaitingRoom
from .journal import Call, Journal

Result = TypeVar("Result")
RPC_ROLE = "default"
"""The role of an RPC proxy that was given no other (client/api/public.h)."""


class Proxy(Protocol):
    """An RPC proxy as the gate sees it: rules and tests take it down and up by its address."""

    @property
    def is_up(self) -> bool: ...

    async def down(self) -> None: ...

    async def up(self) -> None: ...


class Gate:
    """Every request is applied between `enter` and `leave`, in one step."""

    def __init__(
        self, tick: Callable[[], None], committing: Committing = lambda _: nullcontext()
    ) -> None:
        """Take `committing`, which keeps a transaction alive while its commit is held."""
        self._tick = tick
        self._held = WaitingRoom(tick, committing)
        self.rules: dict[int, Rule] = {}
        self.proxies: dict[str, Proxy] = {}
        self.label: str | None = None
        self.journal = Journal()
        self._changed = asyncio.Condition()

    async def enter(self, call: Call) -> None:
        """Raise the injected `YtError`, `HangUp` or `Held`; otherwise the request may be applied
        now."""
        call.label = call.label or self.label
        self.journal.open(call)
        if self.rules:
            try:
                await self._inject(call, "before")
            except (YtError, HangUp) as failure:
                self.journal.close(call, failure)
                raise
        self._tick()

    async def leave(self, call: Call) -> None:
        """Note that the request was applied, or has failed (then `call.error` says how)."""
        failure: YtError | HangUp | None = call.error
        try:
            if self.rules:
                await self._inject(call, "after")
        except (YtError, HangUp) as injected:
            failure = injected
            raise
        finally:
            self.journal.close(call, failure)

    async def hold(
        self, rule: Rule, call: Call, apply: Callable[[], Awaitable[Result]]
    ) -> asyncio.Task[Result]:
        """Hold the call. Returns the task that applies it when the rule is released."""
        late = self._held.take(rule, call, apply)
        await self._notify()
        return late

    async def add(self, rule: Rule) -> int:
        rule.id = self.journal.number()
        self.rules[rule.id] = rule
        return rule.id

    def rule(self, rule_id: int) -> Rule:
        """Raise YtError when there is no such rule."""
        if rule_id not in self.rules:
            raise generic(f"No such rule {rule_id}")
        return self.rules[rule_id]

    async def remove(self, rule_id: int | None = None) -> None:
        """Remove one rule or all; calls that it delays or holds continue at once."""
        for removed in [rule_id] if rule_id is not None else list(self.rules):
            self.rules.pop(removed, None)
            self._held.let_go(removed)
        await self._notify()

    async def release(self, rule_id: int, timeout: float) -> list[dict[str, Any]]:
        """Apply the calls that the rule holds; return their entries. Raises YtError on timeout.

        The rule stays in force for later calls.
        """
        return await self._held.release(self.rule(rule_id).id, timeout)

    async def wait_hit(self, rule_id: int, hits: int, timeout: float) -> dict[str, Any]:
        """Wait until the rule has `hits` hits or is removed. Raises YtError on timeout."""
        rule = self.rule(rule_id)
        async with self._changed:
            try:
                await asyncio.wait_for(
                    self._changed.wait_for(lambda: rule.hits >= hits or rule_id not in self.rules),
                    timeout,
                )
            except TimeoutError:
                raise YtError(3, f"Rule {rule_id} was hit {rule.hits} times, not {hits}") from None
        return asdict(rule)

    async def _inject(self, call: Call, when: str) -> None:
        # As it was when the call came: a rule does not act on the call that has armed it.
        armed = [rule for rule in self.rules.values() if self._is_armed(rule)]
        for rule in armed:
            if not rule.matches(call, when):
                continue
            rule.seen += 1
            if rule.seen <= rule.skip or (rule.times is not None and rule.hits >= rule.times):
                continue
            rule.hits += 1
            rule.first_hit = rule.first_hit or call.entry["n"]
            call.fault = rule.action
            if rule.action in HOLDING:
                # No await between the hit and `hold`: a test that has seen the hit may release.
                raise Held(rule)
            await self._notify()
            await self._act(rule, call)

    def _is_armed(self, rule: Rule) -> bool:
        arming = self.rules.get(rule.armed_by) if rule.armed_by is not None else rule
        return arming is rule or (arming is not None and arming.hits > 0)

    async def _act(self, rule: Rule, call: Call) -> None:
        match rule.action:
            case "fail":
                raise YtError.from_dict(
                    rule.error or {"code": 1, "message": f"Injected failure of {call.method}"}
                )
            case "delay":
                await self._delay(rule)
            case "hang_up" | "lose_reply":
                raise HangUp
            case "kill":
                send_signal(rule)
                raise HangUp
            case "stop":
                send_signal(rule)
            case "proxy_down":
                await self.set_proxy(rule.proxy or call.proxy, up=False)
                raise HangUp

    async def _delay(self, rule: Rule) -> None:
        """Until the rule is removed, or for its `seconds`."""
        async with self._changed:
            released = self._changed.wait_for(lambda: rule.id not in self.rules)
            try:
                await asyncio.wait_for(released, rule.seconds)
            except TimeoutError:
                return

    def rpc_proxies(self, role: str | None = None) -> list[str]:
        """Return the addresses of the running RPC proxies of a role; all have the default one."""
        if role not in (None, RPC_ROLE):
            return []
        return [address for address, proxy in self.proxies.items() if proxy.is_up]

    async def set_proxy(self, address: str, *, up: bool) -> None:
        proxy = self.proxies.get(address)
        if proxy is None:
            raise generic(f"No such proxy {address}", proxies=sorted(self.proxies))
        await (proxy.up() if up else proxy.down())

    async def _notify(self) -> None:
        async with self._changed:
            self._changed.notify_all()
