"""What Spark has counted in an execution: by one call of our own class (``jvm/Counted.java``).

Where the class is not there, from operator to operator (spark_plan.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import spark_plan
from .compile_java import COUNTED, is_loaded
from .java import Java


def metric(execution: Any, name: str, java: Java) -> int:
    """Return the sum of a metric over the operators of a plan that was executed; 0 without any."""
    return metrics(execution, (name,), java)[name]


def metrics(execution: Any, names: Sequence[str], java: Java) -> dict[str, int]:
    """Return the sums of metrics over the operators of a plan that was executed; 0 without any.

    In front of a metric may be the operator that it is of, and a dot.
    """
    if not is_loaded(java):
        return spark_plan.metrics(execution, names)
    sums = str(java[f"{COUNTED}.metrics"](execution, " ".join(names)))
    return dict(zip(names, map(int, sums.split()), strict=True))


def oldest_event_time(execution: Any, java: Java) -> int | None:
    """Return the oldest event time that a watermark has seen, in milliseconds; None without one.

    As Spark sees it, which takes null for 0.
    """
    if not is_loaded(java):
        return spark_plan.oldest_event_time(execution)
    oldest = str(java[f"{COUNTED}.oldestEventTime"](execution))
    return int(oldest) if oldest else None
