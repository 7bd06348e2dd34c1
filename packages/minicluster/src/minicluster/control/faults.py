"""Fault rules: which calls they choose, and the orders that they give.

A rule chooses calls by method, argument, proxy, label and count.
"""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from ..core.errors import generic
from .journal import Call

HOLDING = frozenset({"hold", "apply_late"})
"""Actions that accept a request and apply it when the rule is released."""
SIGNALS = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP}
"""Actions that send a signal to a process or to a process group."""
ACTIONS = HOLDING | SIGNALS.keys() | {"fail", "delay", "hang_up", "lose_reply", "proxy_down"}


class HangUp(Exception):  # noqa: N818 - an order, not an error
    """Close this client's connection at once and send nothing."""


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
    first_hit: int = 0
    """The number of the first request that it hit, in the journal; 0 until then."""

    def __post_init__(self) -> None:
        if self.action not in ACTIONS:
            raise generic(f'Unknown action "{self.action}"', expected=sorted(ACTIONS))
        if self.when not in ("before", "after"):
            raise generic(f'"when" is "before" or "after", not "{self.when}"')
        if self.action in SIGNALS and (self.pid is None) == (self.pgid is None):
            raise generic(f'"{self.action}" needs either "pid" or "pgid"')
        for victim in (self.pid, self.pgid):
            # 0, 1 and negative numbers mean init, the own group, or all processes.
            if victim is not None and (not isinstance(victim, int) or victim <= 1):
                raise generic('"pid" and "pgid" must be whole numbers greater than 1')
        if self.action in HOLDING and self.when == "after":
            raise generic(f'"{self.action}" acts before the request is applied')
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


def send_signal(rule: Rule) -> None:
    """Signal the rule's process or process group, if it is still there."""
    try:
        if rule.pgid is not None:
            os.killpg(rule.pgid, SIGNALS[rule.action])
        elif rule.pid is not None:
            os.kill(rule.pid, SIGNALS[rule.action])
    except ProcessLookupError:
        pass
