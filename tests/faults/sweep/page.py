"""`python -m tests.faults.sweep.page [FILE]`: docs/proof.md and its picture, from the summary.

The summary is that of the results in FILE. Without FILE it is the one in docs/proof. The words are
in said.txt.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from tests.faults.mutants.table import MUTANTS
from tests.faults.sweep import coverage, page_check, results, stumbles, summary
from tests.faults.sweep.cases import FAULTS, STUMBLES
from tests.faults.sweep.counts import GROUPS, Cell, added
from tests.faults.sweep.picture import picture
from tests.faults.sweep.stumbles import Outcome, Stumbles
from tests.faults.sweep.summary import Summary, Table, totals
from tests.support.project import ROOT
from ytstream.settings.job_settings import SPYT

PAGE, PICTURE = ROOT / "docs" / "proof.md", ROOT / "docs" / "proof" / "table.svg"

_SAID = Path(__file__).with_name("said.txt").read_text(encoding="utf-8")
_PARTS = re.split(r"^<!-- ([A-Z_]+) -->$", _SAID, flags=re.MULTILINE)


def words(name: str) -> str:
    """Return the words of that name. Raises ValueError."""
    return _PARTS[_PARTS.index(name) + 1].strip("\n")


_TESTS = "packages/ytstream/tests/"
"""Most tests of the table of fixes are below."""


def page(found: Summary, stumbled: Stumbles | None = None) -> str:
    """Return the page."""
    parts = [
        words("TOP"),
        words("CLAIM"),
        "## Limits of the claim",
        words("LIMITS"),
        "## Results",
        "" if found.parts else words("FORMER_RULES"),
        _played(found),
        "![Each cell is a variant and a fault](proof/table.svg)",
        _results(found),
        "## Run it yourself",
        words("COMMANDS"),
        _check(),
        "## Provenance",
        _provenance(found),
        _replaced(found.replaced),
        "## How we measured",
        words("METHOD"),
        _faults(),
        "## Which job meets which fault, and where",
        words("COVERAGE"),
        rows(coverage.HEAD, coverage.of_proof()),
        "## Results by variant",
        _table(found),
        "## Time to recover",
        _recovery(found),
        _stumbles(stumbled) if stumbled else "",
        "## Control: SPYT's example",
        _control(found),
        "## Without each fix",
        words("FIXES"),
        _fixes(),
        "## Real kills",
        words("REAL_KILLS"),
        "## Defects found",
        words("DEFECTS"),
        "## What is shown, and what is not",
        words("SHOWN"),
        f"cases: {added(totals(found.table).values()).cases}",
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


def _played(found: Summary) -> str:
    """Return what the figures are of."""
    if not found.left:
        return ""
    return f"**{found.left} of {found.cases} cases, including the control's, have no result yet.**"


_COUNTS, _SHARES = (page_check.CHECKED, 60, 200), (0.01, 0.05, 0.1)


def _check() -> str:
    """Return what a check compares, and how likely it finds false lines."""
    count = page_check.CHECKED
    of_jobs = count - page_check.of_controls(count)
    shown = page_check.percent(page_check.chance(of_jobs, _SHARES[-1]))
    head = ("cases", *(f"{page_check.percent(share)} false" for share in _SHARES))
    body = (
        (each, *(page_check.percent(page_check.chance(each, share)) for share in _SHARES))
        for each in _COUNTS
    )
    only = (
        f"If only lines of the job are false, only its cases count, {of_jobs} of {count}. They "
        f"find {page_check.percent(_SHARES[-1])} with a probability of {shown}."
    )
    return "\n\n".join([words("CHECK"), rows(head, body), only])


def _provenance(found: Summary) -> str:
    commits = ", ".join(f"{name} ({count})" for name, count in found.commits.items())
    facts = {
        "runtime": f"`{found.runtime}`",
        "SHA-256 of the results": f"`{found.sha256}`",
        "commits (cases)": commits,
        "seed": ", ".join(map(str, found.seeds)),
        **found.machine,
    }
    return rows(("what", "value"), facts.items())


def _replaced(names: Sequence[str]) -> str:
    """Return the cases that did not hold at first and were run again."""
    if not names:
        return ""
    head = f"{len(names)} cases did not hold at first and were run again. The results have both:"
    return "\n".join([head, "", *(f"- `{name}`" for name in names)])


def _faults() -> str:
    names = ((fault if fault != "second" else "two kills", text) for fault, text in FAULTS.items())
    return rows(("fault", "what happens"), names)


def _results(found: Summary) -> str:
    total = added(totals(found.table).values())
    exact, allowed = (
        added(
            cell
            for name, cell in totals(found.table).items()
            if name.startswith("at_least_once") == may_repeat
        ).repeated
        for may_repeat in (False, True)
    )
    parts = [
        f"In {total.cases:,} cases, {_ends(total, found)}. "
        f"{exact} rows were duplicated in the exactly-once modes, and {allowed} under "
        f"`at_least_once`, which allows it. {_missed(total, found)}",
        _rewritten(*found.rewritten),
        _kills(*found.kills) if found.kills else "",
        _named(found, is_control=False),
        _not_held(found.not_held),
    ]
    return "\n\n".join(filter(None, parts))


def _ends(total: Cell, found: Summary) -> str:
    """Return how cases ended that did not hold.

    By former rules no job had ended for good, and a case might need whatever it liked.
    """
    lost = f"{total.lost} rows were lost, {total.stalled} cases stalled"
    if not found.parts:
        return f"{lost} and {total.failed} had wrong rows"
    more = "had wrong rows or needed more than their fault explains"
    return f"{lost}, {total.ended} ended and {total.failed} {more}"


def _table(found: Summary, table: Table | None = None) -> str:
    known = totals(found.table if table is None else table)
    ends = ["stalled", *(["ended"] if found.parts else []), "failed", "missed"]
    head = ("variant", "cases", "lost", "duplicated", *ends, "rows in their queues")
    body = (
        (
            name, cell.cases, cell.lost, cell.repeated, *(getattr(cell, end) for end in ends),
            cell.waiting,
        )
        for name, cell in {**known, "all": added(known.values())}.items()
    )  # fmt: skip
    return rows(head, body)


def _missed(total: Cell, found: Summary, whose: str = "") -> str:
    """Return how many cases are not counted, and the share; the summary names all of them."""
    if not total.missed:
        return "In every case the fault happened at its point."
    share = f"{total.missed / (total.cases + total.missed):.2%}"
    named = " All of them are named here." if found.missed else ""
    return (
        f"{total.missed} more cases{whose} ({share}) are not counted: their fault did not happen "
        f"at its point.{named}"
    )


def _named(found: Summary, *, is_control: bool) -> str:
    known = (case for case in found.missed if (results.of(case) != results.PROOF) == is_control)
    return "\n".join(f"- missed: `{case}`" for case in known)


def _kills(played: int, every: int) -> str:
    return (
        f"The cases have {played:,} single kills. Before or after each write there are {every:,}: "
        "the others leave the same rows and the same state as one of these."
    )


def _rewritten(count: int, number: int) -> str:
    if not count:
        return ""
    return (
        "Under `idempotent` the key hides duplicates in the table, but the journal shows them. In "
        f"{count} cases {number} rows were written again. The last value of each is the expected "
        "one."
    )


def _not_held(wrong: Sequence[Sequence[str]]) -> str:
    if not wrong:
        return ""
    lines = [f"- {verdict}: `{case}`: {quoted(said)}" for verdict, case, said in wrong]
    return "\n".join(["Cases that failed:", "", *lines])


def _recovery(found: Summary) -> str:
    body = (
        (group, f"{middle:.1f}", f"{worst:.1f}")
        for group, (middle, worst) in found.recovery.items()
    )
    return "\n\n".join([words("RECOVERY"), rows(("fault", "median, s", "worst, s"), body)])


def _stumbles(found: Stumbles) -> str:
    """Return what came of jobs with state on a cluster that stumbles: a run of its own."""
    every = [one for row in found.cells.values() for one in row.values()]
    played, held = sum(one.cases for one in every), sum(one.held for one in every)
    head = ("variant", *STUMBLES)
    body = (
        (variant, *(_stumbled(row[fault]) for fault in STUMBLES))
        for variant, row in found.cells.items()
    )
    commits = ", ".join(f"{name} ({count})" for name, count in found.commits.items())
    missed = f" {found.missed} more cases missed their point." if found.missed else ""
    return "\n\n".join(
        [
            "## A cluster that stumbles",
            words("STUMBLES"),
            f"Runtime `{found.runtime}`, commits (cases): {commits}, {found.machine['versions']}. "
            f"Of {played} cases at {found.classes} classes of request, {held} held, {found.lost} "
            f"rows were lost, {found.repeated} were duplicated, and {found.failures} failures were "
            f"counted.{missed}",
            rows(head, body),
            _not_held(found.not_held),
        ]
    )


def _stumbled(found: Outcome) -> str:
    held = found.cases if found.held == found.cases else f"{found.held} of {found.cases}"
    return f"{held}: {found.seconds:.1f} s" if found.cases else ""


def _control(found: Summary) -> str:
    rows_of = {name.removeprefix("listing-"): row for name, row in found.control.items()}
    table = _table(found, rows_of) if rows_of else words("NOT_YET")
    total = added(totals(found.control).values())
    missed = _missed(total, found, " of the example") if total.missed else ""
    named = _named(found, is_control=True)
    return "\n\n".join(filter(None, [words("CONTROL"), table, missed, named]))


def _fixes() -> str:
    """Return the patches that take a fix out of the source, and the tests that turn red."""
    body = (
        (mutant.name, ", ".join(f"`{test.removeprefix(_TESTS)}`" for test in mutant.tests))
        for mutant in MUTANTS
    )
    return rows(("without this fix", "test"), body)


def write(found: Summary) -> None:
    """Write the page and its picture."""
    PAGE.write_text(page(found, stumbles.read()), encoding="utf-8")
    PICTURE.write_text(picture(by_pair(found.table), by_pair(found.control)), encoding="utf-8")


def by_pair(table: Mapping[str, Mapping[str, Cell]]) -> dict[str, dict[str, Cell]]:
    """Return the cells of a guarantee, a processing type and a connector, of all queues."""
    pairs: dict[str, dict[str, list[Cell]]] = {}
    for name, row in table.items():
        guarantee, processing, _, *others = name.removeprefix("listing-").split("-")
        about = f"{guarantee} {processing}{', on SPYT' if SPYT in others else ''}"
        cells = pairs.setdefault(about, {group: [] for group in GROUPS})
        for group, cell in row.items():
            cells[group].append(cell)
    return {
        pair: {group: added(found) for group, found in row.items()} for pair, row in pairs.items()
    }


def main(files: Sequence[str]) -> None:
    """Write the summary of a file with results, if one is given, and the page."""
    if files:
        summary.write(summary.of_runtime(results.parts(), Path(files[0])))
    write(summary.read())


if __name__ == "__main__":
    main(sys.argv[1:])
