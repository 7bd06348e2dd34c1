"""`python -m tests.faults.sweep.page`: docs/proof.md and its picture, from the results alone."""

from __future__ import annotations

import json
import os
import platform
from collections import Counter
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tests.faults.sweep import cases, counts, results
from tests.faults.sweep.cases import FAULTS
from tests.faults.sweep.counts import GROUPS, Cell, cell_of
from tests.faults.sweep.picture import picture
from tests.faults.sweep.results import CONTROL, FIX, PROOF, RED, Line, pending
from tests.faults.sweep.said import words
from tests.support.project import ROOT

PAGE, PICTURE = ROOT / "docs" / "proof.md", ROOT / "docs" / "proof" / "table.svg"
PROVENANCE = ROOT / "docs" / "proof" / "provenance.json"
DEFECTS, SOAK = ROOT / "docs" / "proof" / "defects.json", ROOT / "docs" / "proof" / "soak.json"
TWIN, EXECUTORS = "twin", "executors"
#: What happens to executors, by its name in results.
EXECUTOR_FAULTS = {
    "a-write-fails-once": "a write fails once (executors are threads)",
    "executors-killed": "all executors are killed while they write",
    "worker-killed": "a worker is killed with its executor, while it writes",
    "shuffle-gone": "the rows that a task prepared for other tasks are gone",
}
_KEPT = {"all": "settings and fence", "fence": "only the fence"}


def page(lines: Sequence[Line], facts: dict[str, Any]) -> str:
    """Return the page; ``facts`` has the provenance, the defects and the soak's figures."""
    proof = [line for line in lines if line.of == PROOF]
    parts = [
        words("TOP"),
        "## What we claim",
        words("CLAIM"),
        "## Provenance",
        _provenance(proof, facts.get("provenance", {})),
        "## How we measured",
        words("METHOD"),
        _faults(),
        "## Results",
        _left(lines),
        _table(proof),
        "## Time to recover",
        _recovery(proof),
        "## Control: SPYT's example",
        _control(lines),
        "## Without each fix",
        _fixes(lines),
        "## Real kills",
        _twins(lines),
        _executors(lines),
        "## Soak test",
        _soak(facts.get("soak", {})),
        "## Defects found",
        _defects(facts.get("defects", [])),
        "## Limits of the claim",
        words("LIMITS"),
        "## Commands",
        words("COMMANDS"),
        f"cases: {cell_of(proof).cases}",
    ]
    return "\n\n".join(part.strip("\n") for part in parts if part) + "\n"


def rows(head: Sequence[str], body: Iterable[Sequence[object]]) -> str:
    """Return a table in Markdown."""
    lines = [head, ["---"] * len(head), *body]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def quoted(said: str) -> str:
    """Return the first line of what a case says as code: it may hold links, bars and backticks."""
    first = said.partition("\n")[0].translate(str.maketrans("|`", "/'"))[:90]
    return f"`{first}`" if first else ""


def _provenance(proof: Sequence[Line], facts: dict[str, Any]) -> str:
    commits = Counter(line.commit for line in proof)
    seeds = sorted({line.seed for line in proof})
    found = {
        "commit": ", ".join(f"{name} ({count})" for name, count in commits.most_common()),
        "seed": ", ".join(map(str, seeds)),
        **facts,
    }
    return rows(("what", "value"), found.items())


def _faults() -> str:
    names = ((fault if fault != "second" else "two kills", text) for fault, text in FAULTS.items())
    return rows(("fault", "what happens"), names)


def _left(lines: Sequence[Line]) -> str:
    """Return how many cases have no result; nothing once all have one."""
    every = [case.name for case in cases.distinct(cases.all_cases())]
    if not (left := [*pending(every, lines)]):
        return ""
    return (
        f"**{len(left)} of {len(every)} cases, including the control's, have no result yet.** "
        "`make proof` runs them."
    )


def _table(proof: Sequence[Line]) -> str:
    known = counts.table(proof)
    total = cell_of(proof)
    parts = [
        "![Each cell is a variant and a fault](proof/table.svg)",
        "Each cell: cases · rows lost · rows duplicated · stalled.",
        rows(
            ("variant", *GROUPS, "all"),
            (
                (
                    variant,
                    *(cells[group].text for group in GROUPS),
                    cell_of(line for line in proof if line.variant == variant).text,
                )
                for variant, cells in known.items()
            ),
        ),
        f"In {total.cases} cases, {total.lost} rows were lost and {total.stalled} cases stalled. "
        f"{_repeated(proof)}. {_missed(total)}",
        _rewritten(proof),
        _not_held(proof),
    ]
    return "\n\n".join(filter(None, parts))


def _repeated(proof: Sequence[Line]) -> str:
    allowed = [line for line in proof if line.case.startswith("at_least_once")]
    exact = [line for line in proof if line not in allowed]
    return (
        f"{cell_of(exact).repeated} rows were duplicated in the exactly-once modes, and "
        f"{cell_of(allowed).repeated} under `at_least_once`, which allows it"
    )


def _missed(total: Cell) -> str:
    return (
        f"{total.missed} more cases are not counted: their fault did not happen at its point."
        if total.missed
        else "In every case the fault happened at its point."
    )


def _rewritten(proof: Sequence[Line]) -> str:
    again = [line for line in proof if line.rewritten]
    if not again:
        return ""
    return (
        "Under `idempotent` the key hides duplicates in the table, but the journal shows them. In "
        f"{len(again)} cases {sum(line.rewritten for line in again)} rows were written again, "
        "each with the same values."
    )


def _not_held(proof: Sequence[Line]) -> str:
    wrong = [line for line in proof if line.verdict in ("failed", "stalled")]
    if not wrong:
        return ""
    lines = [f"- {line.verdict}: `{line.command}`: {quoted(line.said)}" for line in wrong]
    return "\n".join(["Cases that failed:", "", *lines])


def _recovery(proof: Sequence[Line]) -> str:
    known = counts.recovery(proof)
    body = ((group, f"{middle:.1f}", f"{worst:.1f}") for group, (middle, worst) in known.items())
    return "\n\n".join([words("RECOVERY"), rows(("fault", "median, s", "worst, s"), body)])


def _control(lines: Sequence[Line]) -> str:
    found = counts.control(lines)
    if not found:
        return words("NOT_YET")
    groups = [group for group in GROUPS if any(row[group].cases for row in found.values())]
    body = []
    for mode, row in found.items():
        own = [line for line in lines if line.of == f"{CONTROL}{mode}"]
        wrong = sum(line.verdict in ("failed", "stalled") for line in own)
        body.append((mode, *(row[group].text for group in groups), cell_of(own).text, wrong))
    table = rows(("mode of the example", *groups, "all", "stalled or failed"), body)
    return "\n\n".join([words("CONTROL"), table])


def _fixes(lines: Sequence[Line]) -> str:
    known = [line for line in lines if line.of.startswith(FIX)]
    if not known:
        return words("NOT_YET")
    played = (
        (line.of.removeprefix(FIX), f"`{line.case}`", line.verdict, line.lost, line.repeated,
         quoted(line.said))
        for line in known if line.verdict != RED
    )  # fmt: skip
    tested = (
        (line.of.removeprefix(FIX), line.said, f"`{line.case.partition('::')[2]}`")
        for line in known
        if line.verdict == RED
    )
    head = ("without this fix", "case", "verdict", "lost", "duplicated", "message")
    tests = ("without this fix", "what breaks", "test of `packages/ytstream` that asserts it")
    return "\n\n".join(
        [words("FIXES"), rows(head, played), words("FIXES_BY_TEST"), rows(tests, tested)]
    )


def _twins(lines: Sequence[Line]) -> str:
    twins = [line for line in lines if line.of == TWIN]
    if not twins:
        return words("NOT_YET")
    proof = {line.case: line for line in lines if line.of == PROOF}
    both = [
        (line.verdict, proof[line.case].verdict)
        for line in twins
        if line.case in proof and "missed" not in (line.verdict, proof[line.case].verdict)
    ]
    agree = sum(one == other for one, other in both)
    body = (
        (variant, cell_of(line for line in twins if line.variant == variant).text)
        for variant in counts.table(twins)
    )
    count = cell_of(twins)
    told = (
        f"We ran {count.cases} cases again, with real processes and a real `kill -9` at the same "
        f"request. Of {len(both)} with a simulated twin, {agree} have the same verdict. "
        f"{_missed(count)}"
    )
    return "\n\n".join([told, rows(("variant", "cases · lost · duplicated · stalled"), body)])


def _executors(lines: Sequence[Line]) -> str:
    known = [line for line in lines if line.of == EXECUTORS]
    if not known:
        return ""
    body = (
        (
            EXECUTOR_FAULTS[line.fault.rpartition("-")[0]],
            _KEPT[line.fault.rpartition("-")[2]],
            line.lost,
            line.repeated,
            quoted(line.said),
        )
        for line in known
    )
    head = ("what happens", "active fixes", "lost", "duplicated", "what failed the batch")
    return "\n\n".join([words("EXECUTORS"), rows(head, body)])


def _soak(found: dict[str, Any]) -> str:
    if not found:
        return words("NOT_YET")
    return "\n\n".join([found["told"], rows(found["head"], found["body"]), words("SOAK")])


def _defects(found: Sequence[dict[str, str]]) -> str:
    if not found:
        return words("NO_DEFECTS")
    body = ((one["case"], one["what"], one["commit"]) for one in found)
    return rows(("case", "what was wrong", "fixed by"), body)


def provenance() -> dict[str, str]:
    """Return what this machine and its packages are."""
    names = ("pyspark", "ytsaurus-spyt", "ytsaurus-client")
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "versions": ", ".join(f"{name} {version(name)}" for name in names),
        "python": platform.python_version(),
        "machine": f"{os.cpu_count()} cores, {memory:.0f} GiB, {platform.system()}",
    }


def write() -> None:
    """Write page and picture from the files in docs/proof."""
    lines = results.read()
    facts = {
        "provenance": _json(PROVENANCE, {}),
        "defects": _json(DEFECTS, []),
        "soak": _json(SOAK, {}),
    }
    PAGE.write_text(page(lines, facts), encoding="utf-8")
    proof = [line for line in lines if line.of == PROOF]
    drawn = picture(counts.table(proof), counts.control(lines))
    PICTURE.write_text(drawn, encoding="utf-8")


def _json(path: Path, default: Any) -> Any:
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else default


if __name__ == "__main__":
    write()
