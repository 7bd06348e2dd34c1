"""How near the sums of tables (`aggregate="sum"`) are to the ends of their 64 bits."""

from collections.abc import Sequence
from dataclasses import dataclass

from ytstream.job import Job
from ytstream.ledger.ledger_rows import Head
from ytstream.schema.columns import spelled
from ytstream.schema.sums import Bounds, sums_of
from ytstream.settings.job_settings import Settings


@dataclass(frozen=True)
class SumStatus:
    """One column of an output, by the bounds that the ledger has."""

    output: str
    column: str
    type: str
    least: int
    """No total is less, and none is more."""
    greatest: int
    share: float
    """The part of the type that the largest total may have used up. Up to a half it is a bound.
    Above, it is a total that a batch has seen."""

    @property
    def text(self) -> str:
        """The line that tells of it."""
        return (
            f"{self.output}.{self.column}: a total has used up {100 * self.share:.0f}% of "
            f"{self.type}, and a batch that would go beyond ends the job"
        )


def sums(job: Job, settings: Settings, head: Head | None) -> Sequence[SumStatus]:
    """Return all columns that have an end, also those that no batch has added to."""
    found = []
    for output in job.totals:
        types = {column.name: spelled(column.type) for column in job.output_columns[output]}
        known = head.sums.get(settings.outputs[output], {}) if head is not None else {}
        for name, ends in sums_of(job.output_columns[output]).items():
            bounds = known.get(name, Bounds())
            share = bounds.share(ends)
            found.append(SumStatus(output, name, types[name], *bounds, share=share))
    return found
