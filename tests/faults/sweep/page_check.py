"""Checks a file of results for a reader of the page: its figures, and some of its cases again."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from tests.faults import protocol
from tests.faults.sweep import cases, results, summary
from tests.faults.sweep.results import Line
from tests.faults.sweep.summary import Summary
from tests.support.verdict import ENDED, HELD, MISSED, STALLED
from tools import proof_digest

CHECKED = 20
"""Cases of a file that are played again."""
_CONTROL = 4
"""One of so many cases is the control's."""
_SHARE, _CERTAIN = 0.1, 0.99
_ORDERED = (
    "CommitTransaction.output", "ModifyRows.ledger", "AdvanceConsumer.consumer",
    "CommitTransaction.ledger",
)  # fmt: skip
"""Commits of rows, and what follows them in a batch."""


def of_file(path: Path, page: Summary, parts: Mapping[str, str]) -> Iterator[str]:
    """Yield what the file and the page do not agree in; ``parts`` are those checked out."""
    checksum = proof_digest.checksum(path)
    if checksum not in (page.sha256, page.sample):
        yield f"the file has the checksum {checksum}, and the page {page.sha256}"
    others = [part for part, digest in page.parts.items() if parts.get(part) != digest]
    if others or not page.parts:
        named = ", ".join(others) or "former rules"
        yield f"the page is of another {named}: check out the commit that it names"
    if checksum != page.sample:
        yield from figures(results.every(path), page)


def figures(lines: Sequence[Line], page: Summary) -> Iterator[str]:
    """Yield the figures of the page that all lines of a file do not give."""
    newest = [*{(line.of, line.case): line for line in lines}.values()]
    own = results.of_parts(newest, page.parts)
    again = results.replaced(lines, page.parts)
    found = summary.summary(own, page.parts, page.sha256, page.machine, page.sample, again)
    told, counted = summary.as_json(page), summary.as_json(found)
    for name in told:
        yield from _figure(name, told[name], counted[name])


def _figure(name: str, told: object, counted: object) -> Iterator[str]:
    """Yield how a figure differs, of a table by its rows."""
    if isinstance(told, Mapping) and isinstance(counted, Mapping):
        for row in dict.fromkeys((*told, *counted)):
            yield from _figure(f"{name}: {row}", told.get(row, "none"), counted.get(row, "none"))
    elif told != counted:
        yield f"{name}: the page says {told}, the lines {counted}"


def drawn(lines: Iterable[Line], count: int, seed: int) -> list[Line]:
    """Return ``count`` lines, as the reader's own seed draws them: one of four is the control's."""
    source, known = random.Random(seed), [*lines]
    jobs = [line for line in known if line.of == results.PROOF]
    control = [line for line in known if line.of != results.PROOF]
    of_control = min(len(control), max(of_controls(count), count - len(jobs)))
    of_jobs = min(len(jobs), count - of_control)
    return [*source.sample(jobs, of_jobs), *source.sample(control, of_control)]


def of_controls(count: int) -> int:
    """Return how many of so many cases are the control's."""
    return count // _CONTROL


def chance(count: int, share: float) -> float:
    """Return how likely so many cases show that this share of the lines is false."""
    return float(1 - (1 - share) ** count)


def percent(share: float) -> str:
    """Return a share in percent; what is not certain is not 100%."""
    return "> 99%" if _CERTAIN < share < 1 else f"{share:.0%}"


def said(lines: int, played: Sequence[Line], *, is_sample: bool) -> Iterator[str]:
    """Yield what was checked and what was not."""
    jobs = sum(line.of == results.PROOF for line in played)
    again = f"{jobs} of its cases of the job and {len(played) - jobs} of the control were run again"
    if is_sample:
        yield f"Checked: the checksum of this sample, {lines} lines. {again}."
        yield "Not checked: the page's figures. They come from all results, the release's file."
    else:
        yield f"Checked: the page's figures, from {lines} lines. {again}."
    yield "Not compared: times, and the rows that at_least_once or the control has written twice."
    share, shown = percent(_SHARE), percent(chance(len(played), _SHARE))
    yield (
        f"If {share} of the lines were false, {len(played)} cases would show at least one with a "
        f"probability of {shown}."
    )


def differences(before: Iterable[Line], again: Iterable[Line]) -> Iterator[str]:
    """Yield where cases that were played again differ from their lines.

    A case that missed its point was counted nowhere: now it may hold.
    """
    played = {line.case: line for line in again}
    for line in before:
        other = played.get(line.case)
        if other is None:
            yield f"{line.case}: not played"
            continue
        if line.verdict == MISSED and other.verdict == HELD:
            continue
        told, found = _compared(line), _compared(other)
        yield from (
            f"{line.case}: {name} was {told[name]}, and is {found[name]} {other.said}".rstrip()
            for name in told
            if name in found and told[name] != found[name]
        )


def _compared(line: Line) -> dict[str, object]:
    """Return what of a case must be the same each time.

    Of the control, that is how it ended: what it has written twice, and how often it was started,
    depend on when a task is killed and when its operator starts it again.
    """
    found: dict[str, object] = {"the verdict": line.verdict, "rows lost": line.lost}
    if line.verdict in (STALLED, ENDED):  # how many have arrived by then depends on the machine
        found["rows in the queue"] = _some(line.waiting)
    if line.of != results.PROOF or line.verdict != HELD:
        return found
    return {**found, **_of_job(line)}


def _of_job(line: Line) -> dict[str, object]:
    """Return what must be the same of a job that held.

    How many rows are there twice under at_least_once depends on when a task is killed. The verdict
    says whether they are more than promised.
    """
    guarantee, may = line.case.partition("-")[0], protocol.explained(line.fault)
    # A job may end after its output was altered: that is when a batch finds it out.
    is_certain = line.fault not in cases.MAY_END
    return {
        **({} if guarantee == "at_least_once" else {"rows repeated": line.repeated}),
        **({"rows written again": _some(line.rewritten)} if _is_ordered(line) else {}),
        "drivers": line.starts if is_certain else _within(line.starts, may.drivers),
        "failures": _within(line.failures, may.failures),
    }


def _is_ordered(line: Line) -> bool:
    """Whether the order of the steps decides if a kill leaves rows that are written again.

    protocol.ORDER writes the outputs before the head. What comes before the first commit of rows,
    and what comes after it, is known. In between, tasks send their rows side by side.
    """
    request = line.case.split(":")[2].partition("~")[0]
    is_single = line.fault in cases.KILLS
    return line.case.startswith("idempotent") and is_single and request in _ORDERED


def _some(count: int) -> str:
    return "some" if count else "none"


def _within(count: int, most: int) -> object:
    """Return the number, or that it is within what a fault explains: it may not happen."""
    return f"at most {most}" if most and count <= most else count
