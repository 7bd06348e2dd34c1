"""The summary of the results, docs/proof/summary.json: page and picture are made of it."""

from __future__ import annotations

import json
import os
import platform
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, field, fields
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tests.faults.sweep import cases, counts, results
from tests.faults.sweep.counts import Cell
from tests.faults.sweep.recording import SEED
from tests.faults.sweep.results import PROOF, Line
from tests.support.project import ROOT
from tests.support.verdict import MISSED, NOT_HELD
from tools import proof_digest

SUMMARY, SAMPLE = ROOT / proof_digest.SUMMARY, ROOT / proof_digest.SAMPLE
_SAMPLED = 200
"""Lines of results in a clone."""
_MOST = 20
"""Cases that did not hold and are named on the page."""
_TABLES = ("table", "control")
Table = Mapping[str, Mapping[str, Cell]]


@dataclass(frozen=True)
class Summary:
    """The figures of the page."""

    runtime: str
    """The digest of the runtime."""
    sha256: str
    """The checksum of the results."""
    commits: Mapping[str, int]
    seeds: Sequence[int]
    machine: Mapping[str, str]
    cases: int
    """Cases that there are, and of them those without a result."""
    left: int
    table: Table
    control: Table
    recovery: Mapping[str, Sequence[float]]
    """Median and worst seconds to recover, by group of faults."""
    rewritten: Sequence[int]
    """Cases and rows that were written again under a key."""
    not_held: Sequence[Sequence[str]] = ()
    """Verdict, case and message."""
    kills: Sequence[int] = ()
    """Single kills that are played, and those before and after every write."""
    missed: Sequence[str] = ()
    """All cases whose fault did not happen at its point, also those of the control."""
    parts: Mapping[str, str] = field(default_factory=dict)
    """The digest of each part that decides a verdict; none of results of former rules."""
    sample: str = ""
    """The checksum of the lines that a clone has."""
    replaced: Sequence[str] = ()
    """Cases that did not hold at first and were played again."""


def summary(
    lines: Sequence[Line],
    parts: Mapping[str, str],
    sha256: str,
    machine: Mapping[str, str],
    sample: str = "",
    replaced: Sequence[str] = (),
) -> Summary:
    """Return the figures of these results, which were played with these parts."""
    every = [case.name for case in cases.of_proof()]
    known = {*every}
    lines = [line for line in lines if line.case in known]
    played = [line for line in lines if line.of == PROOF]
    again = [line for line in played if line.rewritten]
    return Summary(
        runtime=parts.get("runtime", ""),
        sha256=sha256,
        commits=dict(Counter(line.commit for line in played).most_common()),
        seeds=sorted({line.seed for line in played}),
        machine=machine,
        cases=len(every),
        left=len([*results.pending(every, lines)]),
        table=counts.table(played),
        control=counts.control(lines),
        recovery={
            name: [round(one, 1) for one in seconds]
            for name, seconds in counts.recovery(played).items()
        },
        rewritten=[len(again), sum(line.rewritten for line in again)],
        not_held=[
            [line.verdict, line.case, line.said[:90]] for line in played if line.verdict in NOT_HELD
        ][:_MOST],
        kills=[*cases.kills()],
        missed=[line.case for line in lines if line.verdict == MISSED],
        parts=parts,
        sample=sample,
        replaced=[*replaced],
    )


def here() -> dict[str, str]:
    """Return what this machine and its packages are."""
    names = ("pyspark", "ytsaurus-spyt", "ytsaurus-client")
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "versions": ", ".join(f"{name} {version(name)}" for name in names),
        "python": platform.python_version(),
        "machine": f"{os.cpu_count()} cores, {memory:.0f} GiB, {platform.system()}",
    }


def of_runtime(parts: Mapping[str, str], path: Path = results.RESULTS) -> Summary:
    """Return the summary of the results of ``parts``, those of what is checked out."""
    lines = results.of_parts(results.read(path), parts)
    sample = proof_digest.checksum(SAMPLE) if SAMPLE.exists() else ""
    again = results.replaced(results.every(path), parts)
    return summary(lines, parts, proof_digest.checksum(path), here(), sample, again)


def write_sample(
    parts: Mapping[str, str], path: Path = results.RESULTS, sample: Path = SAMPLE
) -> str:
    """Write some of the results of ``parts`` for whoever has a clone alone; return the checksum."""
    lines = results.of_parts(results.read(path), parts)
    sample.unlink(missing_ok=True)
    for line in random.Random(SEED).sample(lines, min(_SAMPLED, len(lines))):
        results.append(line, sample)
    return proof_digest.checksum(sample)


def totals(table: Table) -> dict[str, Cell]:
    """Return the sum of each row of a table."""
    return {name: counts.added(row.values()) for name, row in table.items()}


def write(found: Summary, path: Path = SUMMARY) -> None:
    """Write a summary: one line for each figure, a cell as its counts without zeros at the end."""
    dense = (",", ":")
    lines = [
        f'"{name}": {json.dumps(value, separators=dense)}' for name, value in as_json(found).items()
    ]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def as_json(found: Summary) -> dict[str, Any]:
    """Return what the file has."""
    return {
        name: _packed(value) if name in _TABLES else value for name, value in vars(found).items()
    }


def read(path: Path = SUMMARY) -> Summary:
    """Return the summary that was written."""
    known = json.loads(path.read_text(encoding="utf-8"))
    for name in _TABLES:
        known[name] = {
            row: {
                group: Cell(*(cell if isinstance(cell, list) else [cell]))
                for group, cell in zip(counts.GROUPS, cells, strict=True)
            }
            for row, cells in known[name].items()
        }
    # One that was written before may have figures that the page does not show any more, and not yet
    # all that it shows now.
    names = (one.name for one in fields(Summary))
    return Summary(**{name: known[name] for name in names if name in known})


def _packed(table: Table) -> dict[str, list[int | list[int]]]:
    return {
        name: [_counts(row.get(group, Cell())) for group in counts.GROUPS]
        for name, row in table.items()
    }


def _counts(cell: Cell) -> int | list[int]:
    """Return the counts without zeros at the end; of one count the number alone."""
    found = [*astuple(cell)]
    while len(found) > 1 and not found[-1]:
        found.pop()
    return found if len(found) > 1 else found[0]
