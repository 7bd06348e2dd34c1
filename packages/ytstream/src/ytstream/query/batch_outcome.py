"""What the supervisor learns of a micro-batch: one value, which Spark's thread hands over once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .batch_log import BatchReport


@dataclass(frozen=True)
class BatchOutcome:
    """How the function of one micro-batch has ended: with a report, or with a failure."""

    name: str
    """As people read it: epoch and number."""
    report: BatchReport | None = None
    """What it has written. It has happened when Spark reports it: SPYT commits after the function.
    """
    failure: Exception | None = None
    """What ended it: Spark's own report of it is a Java trace around a Python trace."""


BatchOutcomes = dict[int, BatchOutcome]
"""Number of a batch -> its outcome, until the log has a line of it."""


def failed_of(outcomes: Mapping[int, BatchOutcome]) -> BatchOutcome | None:
    """Return the outcome of the batch that has failed, if one has: it ends the query."""
    return next((one for one in [*outcomes.values()] if one.failure is not None), None)


def last_report(outcomes: Mapping[int, BatchOutcome]) -> BatchReport | None:
    """Return the report of the newest batch that Spark has not finished; None without one."""
    reports = [one.report for one in [*outcomes.values()] if one.report is not None]
    return reports[-1] if reports else None
