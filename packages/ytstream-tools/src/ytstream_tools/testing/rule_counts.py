"""How many of the sample's rows each condition of REJECT has met."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ytstream.job import REJECTED, Job
from ytstream.text_table import counted

from ..demo.job_sample import REASON

_MORE = (
    "-> add rows that meet it to sample/, or take rows from all of the queue: "
    "`make adopt TAKE=spread`"
)
"""How a sample gets rows that a condition meets."""


def lines(job: Job, outputs: Mapping[str, Sequence[Mapping[str, Any]]]) -> Iterator[str]:
    """Yield a line for each reason, and what to do where no row of the sample is rejected."""
    found = Counter(row[REASON] for row in outputs.get(REJECTED, ()) if REASON in row)
    for reason in job.reject:
        yield f"REJECT {reason!r}: {counted(found[reason], 'row')}"
    if any(not found[reason] for reason in job.reject):
        yield _MORE
