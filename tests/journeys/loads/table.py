"""The loads: what is done to a job, what `why` must say of it, and what its advice changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.support import server_errors
from tests.support.under_load.code import SLEEPS
from tests.support.under_load.producer import ALL, STEP_US


@dataclass(frozen=True)
class Load:
    """A load that a job runs under, until somebody follows what `why` says."""

    cause: str
    """What is named first."""
    figure: str
    """The figure that is compared, of those of `Minute`."""
    better: float
    """After the advice it is at most this part of the one before or, above 1, at least."""
    says: str = ""
    """A pattern that the advice must have."""
    chosen: Mapping[str, object] = field(default_factory=dict)
    """The configuration."""
    code: str = ""
    """What is at the end of transform.py."""
    slow: Sequence[Mapping[str, Any]] = ()
    """Rules of the cluster."""
    is_slow_proxy: bool = False
    rows: int = 400
    """Those that come each second, and those that came before."""
    before: int = 8
    batches: int = 4
    """How many of those rows' batches end before the load begins."""
    tablets: Sequence[int] = ALL
    step_us: int = STEP_US
    follow: str = ""
    """What is done: the name of a setting, or of a step of the test."""


DELAY = {"action": "delay", "seconds": 1.0}
WRITES = ({**DELAY, "method": ["ModifyRows", "CommitTransaction"]},)
FULL = tuple(
    {"action": "fail", "method": method, "error": error}
    for method, error in server_errors.FULL.items()
    if method != "insert_rows"  # the producer has an account of its own
)

TOO_MANY = "too many rows"
"""Nothing helps: the test goes on with what does if the function is what is slow."""
_SLEEPS = SLEEPS.format(seconds=0.02)
PACED: Mapping[str, Load] = {
    "one hot tablet": Load(
        "tablet", "reading", 1.5, r"let the producer spread its rows",
        {"max_rows_per_partition": 200}, _SLEEPS, rows=120, tablets=(1,), step_us=0,
        follow="spread",
    ),
    TOO_MANY: Load(
        "transform", "reading", 1.4, r"no setting helps", {"max_rows_per_partition": 100}, _SLEEPS,
        rows=500, follow="nothing",
    ),
    "a slow cluster": Load(
        "writes", "waited", 0.5, r"tablet cells of the outputs' bundle", {}, slow=WRITES, rows=700,
        follow="administrators",
    ),
    "a slow proxy": Load(
        "requests", "verify", 0.5, r"how busy the RPC proxies", {}, is_slow_proxy=True, rows=800,
        follow="administrators",
    ),
    "a cut limit": Load(
        "cut", "reading", 2.0, r"set max_rows_per_partition = (\d+)",
        {"max_rows_per_partition": 25}, follow="max_rows_per_partition",
    ),
    "a long trigger": Load(
        "trigger", "oldest", 0.7, r"set trigger_seconds = (\d+)", {"trigger_seconds": 30},
        rows=50, batches=1, follow="trigger_seconds",
    ),
    "small batches": Load(
        "cut", "reading", 2.0, r"set max_rows_per_partition = (\d+)",
        {"max_rows_per_partition": 100, "trigger_seconds": 5, "connector": "spyt"},
        batches=2, follow="max_rows_per_partition",
    ),
}  # fmt: skip
"""Loads under which batches end, and rows wait."""
