"""What `make real` writes: the report for people, the answers that the next run compares with."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

ISSUE_CHARACTERS = 60_000
"""GitHub takes 65,536 characters in an issue, and the address of the run is added."""

PAGE, ANSWERS = "REPORT.md", "answers.json"


class Outcome(StrEnum):
    """What came of a step."""

    DONE = "done"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True)
class StepResult:
    """A step that is over."""

    outcome: Outcome
    lines: tuple[str, ...] = ()
    """Shown below the table: RESULT lines, or the end of what a step said that failed."""
    summary: str = ""
    """In a word: counts, or why it was skipped."""
    differing: Mapping[str, tuple[str, str]] | None = None
    """Conformance alone: a case -> the server's answer and the minicluster's."""


class Change(NamedTuple):
    """A case whose answer is not that of the run before."""

    case: str
    what: str
    answer: str

    @property
    def line(self) -> str:
        """The change without the answer."""
        return f"`{self.case}` {self.what}"


@dataclass(frozen=True)
class Report:
    """A run on a server."""

    version: str
    image: str
    """With its digest; "" for a server that was named."""
    day: str
    steps: Mapping[str, tuple[float, StepResult]] = field(default_factory=dict)
    """Name of a step -> seconds it took, and what came of it."""

    @property
    def failed(self) -> list[str]:
        """The names of the steps that failed."""
        return [name for name, (_, one) in self.steps.items() if one.outcome is Outcome.FAILED]

    @property
    def differing(self) -> Mapping[str, tuple[str, str]] | None:
        """The cases with another answer; None if the suite was not asked."""
        found = (one.differing for _, one in self.steps.values())
        return next((one for one in found if one is not None), None)

    def changes(self, before: Mapping[str, str]) -> list[Change]:
        """Return what has changed since the answers of the run ``before``."""
        if self.differing is None:
            return []
        now = {case: server for case, (server, _) in self.differing.items()}
        return [
            *(Change(case, "differs now", now[case]) for case in now if case not in before),
            *(Change(case, "agrees now", "") for case in before if case not in now),
            *(
                Change(case, "answers otherwise", f"{before[case]}\n  now:\n{now[case]}")
                for case in now
                if before.get(case, now[case]) != now[case]
            ),
        ]

    def page(self, changes: Sequence[Change]) -> str:
        """Return the page."""
        return "\n".join(self._lines(changes)) + "\n"

    def answers(self) -> str:
        """Return what the next run compares with."""
        given: dict[str, Any] = {
            "version": self.version,
            "image": self.image,
            "differing": {case: one for case, (one, _) in (self.differing or {}).items()},
        }
        return json.dumps(given, indent=2, sort_keys=True, ensure_ascii=False) + "\n"

    def _lines(self, changes: Sequence[Change]) -> Iterator[str]:
        yield "# A run on a real server"
        yield ""
        yield "`make real` writes this page. [How to run it](../real.md)."
        yield ""
        image = f" in `{self.image}`" if self.image else ""
        yield f"YTsaurus {self.version}{image}, on {self.day}."
        yield ""
        yield "| step | outcome | seconds | |"
        yield "|---|---|---|---|"
        for name, (seconds, one) in self.steps.items():
            yield f"| {name} | {one.outcome} | {seconds:.0f} | {one.summary} |"
        if self.differing:
            yield from self._differences()
        if self.differing is not None:
            yield from ("", "## Changed since the run before", "")
            yield from (f"- {one.line}" for one in changes) if changes else ("Nothing.",)
        for name, (_, one) in self.steps.items():
            if one.lines:
                yield from ("", f"## {name}", "", "```", *one.lines, "```")

    def _differences(self) -> Iterator[str]:
        yield from ("", "## Answers that differ", "")
        yield "Each is how the server's answer differs from what the case expects."
        for case, (server, minicluster) in (self.differing or {}).items():
            yield from ("", f"### {case}", "", "The server:", "", _block(server), "")
            if minicluster:
                yield from ("The minicluster:", "", _block(minicluster))
            else:
                yield "The minicluster answers as the case expects."


def former(folder: Path) -> Mapping[str, str]:
    """Return the answers of the run before; none if there was none."""
    file = folder / ANSWERS
    if not file.is_file():
        return {}
    found: dict[str, str] = json.loads(file.read_text(encoding="utf-8"))["differing"]
    return found


def issue(failed: Sequence[str], changes: Sequence[Change]) -> str:
    """Return the text of an issue; "" if there is nothing to tell."""
    parts = [*(f"The step `{name}` failed." for name in failed)]
    parts += [f"{one.line}\n\n{_block(one.answer)}" for one in changes]
    text = "\n\n".join(parts)
    if len(text) <= ISSUE_CHARACTERS:
        return text
    whole = text[:ISSUE_CHARACTERS].rpartition("\n\n")[0]
    return f"{whole}\n\n{len(changes)} answers have changed in all: the report has the others."


def _block(text: str) -> str:
    """Return the text as a block of code, which its own backticks do not end."""
    return "\n".join(f"    {line}" for line in text.splitlines() or [""])
