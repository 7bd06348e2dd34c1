"""The summary of the stumbles, docs/proof/stumbles.json: jobs with state, an unsteady cluster.

It is of the cases of `make proof STUMBLES=1`, which has a result for each of them in an hour.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path

from tests.faults.sweep import cases, results, summary
from tests.faults.sweep.results import Line
from tests.support.project import ROOT
from tests.support.verdict import HELD, MISSED, NOT_HELD

STUMBLES = ROOT / "docs" / "proof" / "stumbles.json"


@dataclass(frozen=True)
class Outcome:
    """What came of the cases of a variant and a fault."""

    cases: int = 0
    held: int = 0
    seconds: float = 0.0
    """The longest time from the end of the fault to the next commit of a batch."""


@dataclass(frozen=True)
class Stumbles:
    """The figures of the section."""

    runtime: str
    """The digest of the runtime."""
    commits: Mapping[str, int]
    """Of how many cases each was checked out."""
    machine: Mapping[str, str]
    classes: int
    """Classes of request, each of which meets each of its faults."""
    missed: int
    lost: int
    repeated: int
    failures: int
    """Failures that the jobs have counted: `most_failures` of them end one."""
    not_held: Sequence[Sequence[str]]
    """Verdict, case and message."""
    cells: Mapping[str, Mapping[str, Outcome]]
    """By variant and fault."""


def wanted() -> set[str]:
    """Return the names of the cases."""
    return {case.name for case in cases.sampled_stumbles()}


def of_lines(lines: Iterable[Line], runtime: str, machine: Mapping[str, str]) -> Stumbles:
    """Return the figures of these results."""
    names = wanted()
    found = [line for line in lines if line.case in names]
    played = [line for line in found if line.verdict != MISSED]
    classes = {case.name: case.class_ for case in cases.sampled_stumbles()}
    return Stumbles(
        runtime,
        dict(Counter(line.commit for line in played).most_common()),
        machine,
        len({classes[line.case] for line in played}),
        len(found) - len(played),
        sum(line.lost for line in played),
        sum(line.repeated for line in played),
        sum(line.failures for line in played),
        [[line.verdict, line.case, line.said[:90]] for line in played if line.verdict in NOT_HELD],
        {
            variant: {
                fault: _outcome(
                    line for line in played if (line.variant, line.fault) == (variant, fault)
                )
                for fault in cases.STUMBLES
            }
            for variant in sorted({line.variant for line in played})
        },
    )


def _outcome(lines: Iterable[Line]) -> Outcome:
    known = [*lines]
    held = sum(line.verdict == HELD for line in known)
    return Outcome(len(known), held, round(max((line.resumed for line in known), default=0.0), 1))


def of_runtime(parts: Mapping[str, str]) -> Stumbles | None:
    """Return the figures of what is checked out, ``parts``; None while cases have no result."""
    lines = results.of_parts(results.read(), parts)
    if [*results.pending(wanted(), lines)]:
        return None
    return of_lines(lines, parts["runtime"], summary.here())


def write(found: Stumbles, path: Path = STUMBLES) -> None:
    """Write the figures, a line for each variant."""
    known = {**vars(found), "cells": None}
    lines = [f'"{name}": {json.dumps(value)}' for name, value in known.items() if value is not None]
    cells = ",\n".join(
        f' "{variant}": {json.dumps({fault: astuple(one) for fault, one in row.items()})}'
        for variant, row in found.cells.items()
    )
    text = ",\n".join([*lines, f'"cells": {{\n{cells}\n}}'])
    path.write_text(f"{{\n{text}\n}}\n", encoding="utf-8")


def read(path: Path = STUMBLES) -> Stumbles | None:
    """Return the figures that were written; None if there are none yet."""
    if not path.exists():
        return None
    known = json.loads(path.read_text(encoding="utf-8"))
    cells = {
        variant: {fault: Outcome(*counts) for fault, counts in row.items()}
        for variant, row in known.pop("cells").items()
    }
    return Stumbles(**known, cells=cells)
