"""The one point that every request of both protocols passes.

It keeps the journal, and it is where faults are injected: a rule chooses calls by method, argument,
proxy, label and count, and makes them fail, wait, lose their connection, or kill a process, before
or after the request has been applied.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Protocol

from .errors import YtError, generic

ACTIONS = frozenset({"fail", "delay", "hang_up", "lose_reply", "kill", "proxy_down"})
JOURNAL_SIZE = 100_000
"""Entries kept; the counts go on beyond it."""


class HangUp(Exception):  # noqa: N818 - an order, not an error
    """Close this client's connection at once and send nothing."""


class Proxy(Protocol):
    """What an RPC proxy offers, so that it can be taken down and up by its address."""

    @property
    def is_up(self) -> bool: ...

    async def down(self) -> None: ...

    async def up(self) -> None: ...


@dataclass(slots=True)
class Call:
    """One request. `args` is what rules and people may look at: paths, ids, counts; never rows."""

    protocol: str
    proxy: str
    method: str
    args: dict[str, Any] = field(default_factory=dict)
    label: str | None = None
    error: YtError | None = None
    fault: str | None = None
    """The action of the last rule that hit the call."""
    started: float = 0.0
    entry: dict[str, Any] = field(default_factory=dict)
    """Its entry in the journal."""


@dataclass
class Rule:
    """One fault. A `where` value is matched whole, or as a glob when it is a string with `*`."""

    action: str
    method: str | list[str] | None = None
    when: str = "before"
    where: dict[str, Any] = field(default_factory=dict)
    proxy: str | None = None
    label: str | None = None
    skip: int = 0
    times: int | None = 1
    armed_by: int | None = None
    """Id of another rule; calls count only once that one was hit."""
    error: dict[str, Any] | None = None
    seconds: float | None = None
    pid: int | None = None
    pgid: int | None = None
    id: int = 0
    seen: int = 0
    hits: int = 0

    def __post_init__(self) -> None:
        if self.action not in ACTIONS:
            raise generic(f'Unknown action "{self.action}"', expected=sorted(ACTIONS))
        if self.when not in ("before", "after"):
            raise generic(f'"when" is "before" or "after", not "{self.when}"')
        if self.action == "kill" and (self.pid is None) == (self.pgid is None):
            raise generic('"kill" needs either "pid" or "pgid"')
        for victim in (self.pid, self.pgid):
            # 0, 1 and negative numbers mean groups and processes that nobody wants to kill.
            if victim is not None and (not isinstance(victim, int) or victim <= 1):
                raise generic('"pid" and "pgid" must be whole numbers greater than 1')
        if self.action == "lose_reply":
            self.when = "after"
        if self.error is not None and not isinstance(self.error.get("message"), str):
            raise generic('"error" needs a "message"')
        if not isinstance(self.where, dict):
            raise generic('"where" is a map of arguments')

    def matches(self, call: Call, when: str) -> bool:
        methods = [self.method] if isinstance(self.method, str) else self.method
        return (
            self.when == when
            and (methods is None or call.method in methods)
            and (self.proxy is None or self.proxy == call.proxy)
            and (self.label is None or self.label == call.label)
            and all(_fits(call.args.get(name), wanted) for name, wanted in self.where.items())
        )


def _fits(value: Any, wanted: Any) -> bool:
    if isinstance(value, list):
        return any(_fits(item, wanted) for item in value)
    if isinstance(wanted, str) and "*" in wanted:
        return fnmatchcase(str(value), wanted)
    return bool(value == wanted)


class Gate:
    """`enter` and `leave` stand around every request; what happens between them is atomic."""

    def __init__(self, tick: Callable[[], None]) -> None:
        self._tick = tick
        self.rules: dict[int, Rule] = {}
        self.proxies: dict[str, Proxy] = {}
        self.label: str | None = None
        self.journal: deque[dict[str, Any]] = deque(maxlen=JOURNAL_SIZE)
        self.counts: Counter[str] = Counter()
        self.listeners: list[Callable[[Call, float], None]] = []
        self._changed = asyncio.Condition()
        self._sequence = 0

    async def enter(self, call: Call) -> None:
        """Raises the injected `YtError` or `HangUp`; otherwise the request may be applied now."""
        call.label = call.label or self.label
        call.started = time.perf_counter()
        self._sequence += 1
        self.counts[call.method] += 1
        call.entry = {
            "n": self._sequence,
            "time": time.time(),
            "protocol": call.protocol,
            "proxy": call.proxy,
            "method": call.method,
            "args": call.args,
            "label": call.label,
            "error": None,
            "fault": None,
        }
        self.journal.append(call.entry)
        if self.rules:
            try:
                await self._inject(call, "before")
            except (YtError, HangUp) as failure:
                self._record(call, failure)
                raise
        self._tick()

    async def leave(self, call: Call) -> None:
        """Called when the request was applied, or has failed (then `call.error` says how)."""
        failure: YtError | HangUp | None = call.error
        try:
            if self.rules:
                await self._inject(call, "after")
        except (YtError, HangUp) as injected:
            failure = injected
            raise
        finally:
            self._record(call, failure)

    def _record(self, call: Call, failure: YtError | HangUp | None) -> None:
        if isinstance(failure, YtError):
            call.error = failure
            call.entry["error"] = {"code": failure.code, "message": failure.message}
        call.entry["fault"] = call.fault
        for listener in self.listeners:
            listener(call, time.perf_counter() - call.started)

    async def add(self, rule: Rule) -> int:
        self._sequence += 1
        rule.id = self._sequence
        self.rules[rule.id] = rule
        return rule.id

    def rule(self, rule_id: int) -> Rule:
        """Raises: YtError when there is no such rule."""
        if rule_id not in self.rules:
            raise generic(f"No such rule {rule_id}")
        return self.rules[rule_id]

    async def remove(self, rule_id: int | None = None) -> None:
        """Removes one rule or all; calls that it delays go on at once."""
        if rule_id is None:
            self.rules.clear()
        else:
            self.rules.pop(rule_id, None)
        await self._notify()

    async def wait_hit(self, rule_id: int, hits: int, timeout: float) -> dict[str, Any]:
        """Waits until the rule was hit so often (or is gone); a time-out is a YtError."""
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
        for rule in list(self.rules.values()):
            if not self._is_armed(rule) or not rule.matches(call, when):
                continue
            rule.seen += 1
            if rule.seen <= rule.skip or (rule.times is not None and rule.hits >= rule.times):
                continue
            rule.hits += 1
            call.fault = rule.action
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
                await self._hold(rule)
            case "hang_up" | "lose_reply":
                raise HangUp
            case "kill":
                _kill(rule)
                raise HangUp
            case "proxy_down":
                await self.set_proxy(rule.proxy or call.proxy, up=False)
                raise HangUp

    async def _hold(self, rule: Rule) -> None:
        """Until the rule is removed, or for its `seconds`."""
        async with self._changed:
            released = self._changed.wait_for(lambda: rule.id not in self.rules)
            try:
                await asyncio.wait_for(released, rule.seconds)
            except TimeoutError:
                return

    async def set_proxy(self, address: str, *, up: bool) -> None:
        proxy = self.proxies.get(address)
        if proxy is None:
            raise generic(f"No such proxy {address}", proxies=sorted(self.proxies))
        await (proxy.up() if up else proxy.down())

    async def _notify(self) -> None:
        async with self._changed:
            self._changed.notify_all()


def _kill(rule: Rule) -> None:
    try:
        if rule.pgid is not None:
            os.killpg(rule.pgid, signal.SIGKILL)
        elif rule.pid is not None:
            os.kill(rule.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
