"""Checks a file of results for a reader of the page: its figures, and some of its cases again."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from tests.faults.sweep import results, summary
from tests.faults.sweep.results import Line
from tests.faults.sweep.summary import Summary
from tools import proof_digest


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
    yield from (
        f"{name}: the page says {told[name]}, the lines {counted[name]}"
        for name in told
        if told[name] != counted[name]
    )


def drawn(lines: Iterable[Line], count: int, seed: int) -> list[Line]:
    """Return ``count`` lines of cases of a job, as the reader's own seed draws them."""
    known = [line for line in lines if line.of == results.PROOF]
    return random.Random(seed).sample(known, min(count, len(known)))


def differences(before: Iterable[Line], again: Iterable[Line]) -> Iterator[str]:
    """Yield where cases that were played again differ from their lines."""
    played = {line.case: line for line in again}
    for line in before:
        other = played.get(line.case)
        if other is None:
            yield f"{line.case}: not played"
            continue
        told, found = _compared(line), _compared(other)
        yield from (
            f"{line.case}: {name} was {told[name]}, and is {found[name]} {other.said}".rstrip()
            for name in told
            if told[name] != found[name]
        )


def _compared(line: Line) -> dict[str, object]:
    """Return what of a case must be the same each time.

    How many rows are there twice under at_least_once depends on when a task is killed. The verdict
    says whether they are more than promised.
    """
    exact = {} if line.case.startswith("at_least_once") else {"rows repeated": line.repeated}
    return {
        "the verdict": line.verdict,
        "rows lost": line.lost,
        **exact,
        "drivers": line.starts,
        "failures": line.failures,
    }
