"""A fault at a request that is known by the requests before it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from minicluster.client import Fault, Faults


@dataclass(frozen=True)
class Request:
    """A request to the cluster, of those that match the one after ``skip`` others."""

    method: str | Sequence[str]
    where: Mapping[str, Any] = field(default_factory=dict)
    when: Literal["before", "after"] = "before"
    skip: int = 0


def add_fault(faults: Faults, steps: Sequence[Request], **order: Any) -> Fault:
    """Order what happens at the last request; each one counts once the one before it was seen."""
    rule: Fault | None = None
    for step in steps[:-1]:
        rule = _add(faults, step, rule, {"action": "delay", "seconds": 0})
    return _add(faults, steps[-1], rule, order)


def _add(faults: Faults, step: Request, after: Fault | None, order: Mapping[str, Any]) -> Fault:
    method = step.method if isinstance(step.method, str) else [*step.method]
    matched = {"method": method, "where": dict(step.where), "when": step.when, "skip": step.skip}
    return faults.add(armed_by=after, **{**matched, **order})
