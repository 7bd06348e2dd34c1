"""Says that REJECT keeps out rows that the sample expects, and why: most often a time ahead."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping

from ytstream.job import REJECTED, Job
from ytstream.schema.columns import type_name
from ytstream.text_table import counted

from .demo_tables import OutputCounts
from .event_times import UNITS, microseconds, text
from .job_sample import EARLIER, Counted, is_rejected


def kept_out(job: Job, outcomes: Mapping[str, OutputCounts]) -> str | None:
    """Return a remark if REJECT keeps out rows that sample/expected.py takes."""
    if REJECTED not in outcomes or not is_rejected(job, REJECTED):
        return None
    rows = outcomes[REJECTED].unexpected
    if not rows:
        return None
    reasons: Counter[str] = Counter()
    for (reason, *_), count in rows.items():
        reasons[reason] += count
    listed = ", ".join(f"{count} {reason!r}" for reason, count in reasons.most_common())
    return (
        f"REJECT in transform.py keeps out {counted(rows.total(), 'row')} that rejected() in "
        f"sample/expected.py does not yield ({listed}): correct one of the two."
        + "".join(_ahead(job, rows))
    )


def _ahead(job: Job, rows: Counted) -> list[str]:
    """Return a sentence for each column of these rejected rows that lies in the future."""
    now, found = time.time_ns() // 1_000, []
    for position, column in enumerate(job.queue_columns, 1):  # behind the reason
        kind = type_name(column.type)
        if kind in UNITS:
            times = (microseconds(row[position], kind) or 0 for row in rows)
            if (newest := max(times)) > now:
                found.append(
                    f" Their {column.name} goes to {text(newest)}, in the future. {EARLIER}."
                )
    return found
