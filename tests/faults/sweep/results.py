"""Results: one JSON line a case. A later line replaces another, and none counts of other parts."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.support.examples import template_of
from tests.support.project import ROOT
from tests.support.verdict import NOT_HELD
from tools import proof_digest
from ytstream.job import PROCESSINGS

BUILD = ROOT / proof_digest.BUILD
RESULTS = BUILD / proof_digest.RESULTS
PROOF, CONTROL = "proof", "documented "
"""What results are of: the job, or the listing of SPYT's documentation in a mode."""


def of(case: str) -> str:
    """Return what a case is of, by its name."""
    listing = case.partition(":")[0]
    return (
        f"{CONTROL}{listing.removeprefix('listing-')}" if listing.startswith("listing-") else PROOF
    )


def fault_of(case: str) -> str:
    """Return the fault of a case, a key in cases.FAULTS, by its name."""
    return "second" if "+" in case else case.rpartition(":")[2]


@dataclass(frozen=True)
class Line:
    """What is kept of a case."""

    case: str
    verdict: str
    lost: int
    repeated: int
    seconds: float
    seed: int
    commit: str
    of: str = PROOF
    """"proof", or the name of a mode of SPYT's documentation."""
    starts: int = 0
    recovered: float = 0.0
    """Seconds from the fault until every row was in a batch."""
    rewritten: int = 0
    said: str = ""
    waiting: int = 0
    """Rows of a case that stalled or ended, and are still in the queue."""
    failures: int = 0
    """Failures that its drivers have counted."""
    resumed: float = 0.0
    """Seconds from the end of the fault until the next batch was committed."""
    arrived: int = 0
    """Rows that arrived while drivers were waited for. How is playing.arrivals_of()."""
    digest: str = ""
    """Of the parts that it was played with: see digest_of()."""

    @property
    def variant(self) -> str:
        """The variant that the case is of."""
        return self.case.partition(":")[0]

    @property
    def place(self) -> str:
        """The place of its point."""
        return self.case.split(":")[1]

    @property
    def fault(self) -> str:
        """Its key in cases.FAULTS."""
        return fault_of(self.case)

    @property
    def command(self) -> str:
        """The command that plays it again."""
        return f"make proof ONLY='{self.case}'   # seed {self.seed}, commit {self.commit}"


def parts() -> dict[str, str]:
    """Return the digest of each part that is checked out."""
    names = (name for known in PROCESSINGS for name in proof_digest.parts_of(known))
    return proof_digest.digests(dict.fromkeys(names))


def digest_of(case: str, parts: Mapping[str, str]) -> str:
    """Return the digest of the parts that a case uses, by its name."""
    _, processing, *_ = case.removeprefix("listing-").split("-")
    used = proof_digest.parts_of(template_of(processing))
    return proof_digest.together({name: parts.get(name, "") for name in used})


def of_parts(lines: Iterable[Line], parts: Mapping[str, str]) -> list[Line]:
    """Return the lines of cases that were played with these parts."""
    return [line for line in lines if line.digest == digest_of(line.case, parts)]


def read(path: Path = RESULTS) -> list[Line]:
    """Return the newest line of each case, in the order of the file.

    Raises ValueError or TypeError for a line that is not a result.
    """
    return [*{(line.of, line.case): line for line in every(path)}.values()]


def every(path: Path = RESULTS) -> list[Line]:
    """Return all lines: a case that was played again has several.

    Raises ValueError or TypeError for a line that is not a result.
    """
    if not path.exists():
        return []
    return [Line(**json.loads(text)) for text in path.read_text(encoding="utf-8").splitlines()]


def replaced(lines: Sequence[Line], parts: Mapping[str, str]) -> list[str]:
    """Return the cases that did not hold, by an older line of what is checked out."""
    own = of_parts(lines, parts)
    newest = {line.case: line for line in own}
    red = (line for line in own if line.verdict in NOT_HELD and line is not newest[line.case])
    return [*dict.fromkeys(line.case for line in red)]


def append(line: Line, path: Path = RESULTS) -> None:
    """Add one line; a run that is cut off has lost none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(f"{json.dumps(asdict(line), ensure_ascii=False)}\n")


def pending(names: Iterable[str], lines: Iterable[Line]) -> Iterator[str]:
    """Yield the names that no line has."""
    done = {line.case for line in lines if line.of.startswith((PROOF, CONTROL))}
    return (name for name in names if name not in done)


def commit() -> str:
    """Return the commit of the repository; with + when files differ from it."""
    head = _git("rev-parse", "--short=10", "HEAD")
    return (
        f"{head}+"
        if _git("status", "--porcelain", "--", "packages", "templates", "tests")
        else head
    )


def _git(*words: str) -> str:
    done = subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True)
    return done.stdout.strip()
