"""The table and the JSON of `fleet`."""

import json
from collections.abc import Sequence
from dataclasses import asdict

from ytstream.text_table import counted, duration, table

from ..status.live_view import cut
from .reading import FleetJob, JobState

VERSION = 1
"""Raised when a field goes or changes its meaning; a new field leaves it."""
_OTHERS = 4
"""Lines of a view below the table, and that of the cursor."""
_CALM = (JobState.RUNNING, JobState.STOPPED, JobState.NEVER)


def text(found: Sequence[FleetJob]) -> str:
    """Return the table for people, and how many jobs need somebody."""
    return f"{_table(found)}\n\n{_summary(found)}"


def view(found: Sequence[FleetJob], note: str, size: tuple[int, int]) -> list[str]:
    """Return the lines of one view; of more jobs than fit, those that need somebody first."""
    width, height = size
    lines, most = _table(found).splitlines(), max(3, height - _OTHERS)
    hidden = len(lines) - most
    if hidden > 0:
        lines = [*lines[: most - 1], f"... and {counted(hidden + 1, 'job')}"]
    return cut([*lines, "", _summary(found), note or "Ctrl-C ends this view"], width)


def _table(found: Sequence[FleetJob]) -> str:
    header = (
        "job", "state", "lag", "last batch", "restarts", "alerts", "archives", "owner",
        "guarantee", "ytstream", "commit", "repository", "ledger",
    )  # fmt: skip
    rows = [
        (
            job.job or "not known",
            f"{job.state} ({job.why})" if job.why else str(job.state),
            "" if job.lag is None else job.lag,
            "" if job.seconds is None else f"{duration(job.seconds)} ago",
            "" if job.restarts is None else job.restarts,
            ", ".join(job.alerts),
            ", ".join(f"{name} until {end}" if end else name for name, end in job.archives.items()),
            job.owner,
            job.guarantee,
            job.runtime or "not known",
            job.commit,
            job.repository,
            job.ledger,
        )
        for job in found
    ]
    return table(header, rows)


def _summary(found: Sequence[FleetJob]) -> str:
    urgent = sum(bool(job.alerts) or job.state not in _CALM for job in found)
    needs = "needs" if urgent == 1 else "need"
    return f"{counted(len(found), 'job')}, {urgent} {needs} somebody"


def document(found: Sequence[FleetJob]) -> str:
    """Return the same as JSON."""
    jobs = [asdict(job) for job in found]
    return json.dumps({"version": VERSION, "jobs": jobs}, ensure_ascii=False, indent=2)
