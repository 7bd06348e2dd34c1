"""Counts: results by variant and group of faults, for the page and its picture."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from statistics import median

from tests.faults.sweep import cases
from tests.faults.sweep.jobs import JOBS, LISTINGS
from tests.faults.sweep.results import CONTROL, Line
from tests.support.verdict import VERDICTS

GROUPS: Mapping[str, Sequence[str]] = {
    "killed before": (cases.KILLED_BEFORE,),
    "killed after": (cases.KILLED_AFTER,),
    "overtaken": (cases.OVERTAKEN,),
    "two kills": ("second",),
    "refused": (cases.REFUSED, cases.TOKEN),
    "dropped": (cases.DROPPED,),
    "lost reply": (cases.LOST_REPLY,),
    "applied late": cases.LATE,
    "paused": (cases.PAUSED,),
    "transaction gone": (cases.GONE,),
    "clock off": (cases.CLOCK,),
    "cluster away": (*cases.OF_CLUSTER, cases.AWAY_LONG, cases.FULL_LONG),
    "output remounted": cases.OF_TABLE,
}
"""Columns of the table: a short name, and the faults that it counts."""


@dataclass(frozen=True)
class Cell:
    """The cases of one variant and one group, and what came of them."""

    cases: int = 0
    lost: int = 0
    repeated: int = 0
    stalled: int = 0
    missed: int = 0
    failed: int = 0
    waiting: int = 0
    """Rows that are still in the queue of a case that stalled or ended."""
    ended: int = 0
    """Cases in which the job ended, and nobody starts it again."""


def cell_of(lines: Iterable[Line]) -> Cell:
    """Return the counts of these results; a case that was missed is no case."""
    known = [*lines]
    played = [line for line in known if line.verdict != "missed"]
    return Cell(
        len(played),
        sum(line.lost for line in played),
        sum(line.repeated for line in played),
        sum(line.verdict == "stalled" for line in played),
        len(known) - len(played),
        sum(line.verdict == "failed" for line in played),
        sum(line.waiting for line in played),
        sum(line.verdict == "ended" for line in played),
    )


def added(cells: Iterable[Cell]) -> Cell:
    """Return the sum of cells."""
    return Cell(*map(sum, zip(*map(astuple, [Cell(), *cells]), strict=True)))


def table(lines: Sequence[Line]) -> dict[str, dict[str, Cell]]:
    """Return the cells by variant and group, in the order of the variants."""
    rows: dict[str, dict[str, Cell]] = {}
    places = {variant.name: place for place, variant in enumerate((*JOBS, *LISTINGS))}
    for variant in sorted({line.variant for line in lines}, key=places.__getitem__):
        own = [line for line in lines if line.variant == variant]
        rows[variant] = {
            group: cell_of(line for line in own if line.fault in faults)
            for group, faults in GROUPS.items()
        }
    return rows


def control(lines: Sequence[Line]) -> dict[str, dict[str, Cell]]:
    """Return the cells of SPYT's example."""
    return table([line for line in lines if line.of.startswith(CONTROL)])


TALLIED = ("cases", *VERDICTS, "lost", "repeated", "waiting", "worst, s", "failures")
"""What tally() shows of each group."""


def tally(lines: Sequence[Line], by: str = "fault") -> list[tuple[str, ...]]:
    """Return by fault, or by variant, how often each verdict was given, and what it took.

    ``worst`` is the longest time from the end of a fault to the next commit of a batch.
    """
    known = [*cases.FAULTS] if by == "fault" else [variant.name for variant in (*JOBS, *LISTINGS)]
    groups = sorted({getattr(line, by) for line in lines}, key=known.index)
    found = {group: [line for line in lines if getattr(line, by) == group] for group in groups}
    return [(group, *_tallied(own)) for group, own in {**found, "all": lines}.items()]


def _tallied(lines: Sequence[Line]) -> tuple[str, ...]:
    verdicts = Counter(line.verdict for line in lines)
    figures = (
        len(lines),
        *(verdicts[verdict] for verdict in VERDICTS),
        sum(line.lost for line in lines),
        sum(line.repeated for line in lines),
        sum(line.waiting for line in lines),
        max((line.resumed for line in lines), default=0.0),
        sum(line.failures for line in lines),
    )
    return tuple(map(str, figures))


def slowest(lines: Sequence[Line], count: int = 3) -> list[str]:
    """Return the cases that took longest from the end of their fault to the next commit."""
    last = sorted(lines, key=lambda line: -line.resumed)[:count]
    return [f"{line.resumed:6.1f} s  {line.case}" for line in last]


def recovery(lines: Sequence[Line]) -> dict[str, tuple[float, float]]:
    """Return the median and the worst seconds to recover, by group."""
    found = {}
    for group, faults in GROUPS.items():
        seconds = [line.recovered for line in lines if line.fault in faults and line.recovered]
        if seconds:
            found[group] = median(seconds), max(seconds)
    return found
