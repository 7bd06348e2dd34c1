"""How many of the sample's rows each condition of REJECT has met."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ytstream.job import REJECTED, Job
from ytstream.text_table import counted

from ..demo.job_sample import REASON

_UNKNOWN = "`make adopt TAKE=spread`, with the same FROM=, CONFIG=, MASK= and so on as before"


def lines(
    job: Job, outputs: Mapping[str, Sequence[Mapping[str, Any]]], more_by: str | None
) -> Iterator[str]:
    """Yield a line for each reason, and what to do where no row of the sample is rejected.

    ``more_by``: see Sample.
    """
    found = Counter(row[REASON] for row in outputs.get(REJECTED, ()) if REASON in row)
    for reason in job.reject:
        yield f"REJECT {reason!r}: {counted(found[reason], 'row')}"
    if any(not found[reason] for reason in job.reject):
        yield _advice(more_by)


def _advice(more_by: str | None) -> str:
    """Return how a sample gets rows that a condition meets."""
    add = "-> add rows that meet it to sample/"
    if more_by is None:
        return f"{add}, or take rows from all of the queue: {_UNKNOWN}"
    return f"{add}, or take other rows: `{more_by}`" if more_by else add
