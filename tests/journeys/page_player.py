"""A page that its reader plays: commands in terminals, edits of files, and what is seen.

A block `sh` is typed into a terminal, and a block `text` is what that terminal shows. Their titles
name the terminal, and the first one has no title. In a `text`, `...` is the rest of a line, or some
lines. A block `diff` is an edit of the files that the line before it names; `@@` separates places.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.journeys.make_commands import edit

PATIENCE_SECONDS = 300.0
"""Of a command that runs on, until it shows what the page shows."""
_BLOCK = re.compile(
    r'(?P<before>[^\n]*)\n\n```(?P<language>sh|text|diff)(?: title="(?P<title>.*?)")?\n'
    r"(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_VARYING = re.compile(
    r"\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\b"  # a time
    r"|\b[\d.]+ ?s\b"  # seconds
    r"|\b[0-9a-f]{1,8}(?:-[0-9a-f]{1,8}){3}\b"  # an id of the cluster
    r"|\b[0-9a-f]{12}\b"  # a commit, or a configuration's checksum
    r"|(?<=batch )\d+-\d+"  # a query without rows to read begins with an empty batch
)
"""What differs from run to run."""


class NotSeenError(AssertionError):
    """The page shows something else than the terminal."""


@dataclass(frozen=True)
class Step:
    """A block of the page."""

    language: str
    title: str
    """The terminal's; empty for the first one."""
    text: str
    files: tuple[str, ...]
    """Of a diff."""

    @property
    def changes(self) -> Mapping[str, str]:
        """Texts of the files, and what replaces them."""
        places = [place.splitlines() for place in re.split(r"^@@\n", self.text, flags=re.MULTILINE)]
        return {_side(lines, "-"): _side(lines, "+") for lines in places}


def _side(lines: list[str], mark: str) -> str:
    return "".join(f"{line[1:]}\n" for line in lines if line[:1] in ("", " ", mark))


def steps(page: str) -> Iterator[Step]:
    """Yield the blocks of the page that a reader types, edits or sees."""
    for found in _BLOCK.finditer(page):
        files = tuple(re.findall(r"`([\w./-]+\.\w+)`", found["before"]))
        is_edit = found["language"] == "diff"
        yield Step(found["language"], found["title"] or "", found["text"], files if is_edit else ())


def is_failing(shown: str) -> bool:
    """Return whether the page shows that the last command has failed."""
    return re.search(r"^make: \*\*\* ", shown, re.MULTILINE) is not None


def verify(shown: str, printed: str) -> None:
    """Raise NotSeenError unless the lines of ``shown`` were printed, one after the other."""
    lines = [_pattern(line) for line in _masked(shown).splitlines()]
    if re.search("^" + "".join(lines), _masked(printed), re.MULTILINE) is None:
        raise NotSeenError(f"the page shows:\n{shown}\nthe terminal shows:\n{printed}")


def _pattern(line: str) -> str:
    if line == "...":
        return r"(?:.*\n)*?"
    return ".*?".join(map(re.escape, line.split("..."))) + r"\n"


def _masked(text: str) -> str:
    lines = (line.rstrip() for line in text.splitlines())
    return "".join(f"{_VARYING.sub('<varies>', line)}\n" for line in lines)


@dataclass
class Terminals:
    """The reader's terminals: one that waits for each command, and others whose commands run on."""

    folder: Path
    environment: Mapping[str, str]
    seconds: list[tuple[str, float]] = field(default_factory=list)
    """Seconds of each block of the first one."""
    _others: dict[str, tuple[subprocess.Popen[bytes], Path]] = field(default_factory=dict)

    @property
    def _state(self) -> Path:
        """The folder and the variables that the commands before have left."""
        return self.folder / "state.sh"

    @property
    def here(self) -> Path:
        """The folder that the first terminal is in."""
        found = re.search(r'^declare -x PWD="(.*)"$', self._state.read_text(), re.MULTILINE)
        assert found is not None
        return Path(found[1])

    def run(self, script: str, *, fails: bool = False) -> str:
        """Type into the first terminal; return what it shows."""
        if not self._state.exists():
            self._state.write_text(f'declare -x PWD="{self.folder}"\n')
        began = time.monotonic()
        before, after = f'. {self._state}\ncd "$PWD"\nset -e', f"export -p > {self._state}"
        done = subprocess.run(
            ["bash", "-c", f"{before}\n{script}\n{after}"],
            env={**self.environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=2_400,
        )  # fmt: skip
        self.seconds.append((script.splitlines()[-1], time.monotonic() - began))
        if (done.returncode != 0) != fails:
            raise NotSeenError(f"ended with {done.returncode}:\n{script}\n{done.stdout}")
        return done.stdout

    def start(self, title: str, script: str) -> None:
        """Type into another terminal, whose command before has ended, or ends now."""
        if title in self._others:
            self._others[title][0].wait(PATIENCE_SECONDS)
        log = self.folder / f"{title}.log".replace(" ", "-")
        with log.open("wb") as file:
            process = subprocess.Popen(
                ["bash", "-c", script],
                cwd=self.here,
                env={**self.environment},
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                start_new_session=True,
            )
        self._others[title] = process, log

    def await_shown(self, title: str, shown: str) -> None:
        """Wait until the other terminal shows that. Raises NotSeenError if it does not."""
        process, log = self._others[title]
        end = time.monotonic() + PATIENCE_SECONDS
        while True:
            is_over = process.poll() is not None or time.monotonic() > end
            try:
                verify(shown, log.read_text(errors="replace"))
            except NotSeenError:
                if is_over:
                    raise
                time.sleep(0.5)
            else:
                return

    def close(self) -> None:
        """End what still runs."""
        for process, _ in self._others.values():
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
        for process, _ in self._others.values():
            with suppress(subprocess.TimeoutExpired):
                process.wait(30)
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def play(page: str, terminals: Terminals) -> None:
    """Play the page from its first block to its last. Raises NotSeenError where it is wrong."""
    played = [*steps(page)]
    said: dict[str, str] = {}
    for at, step in enumerate(played):
        after = played[at + 1] if at + 1 < len(played) else None
        match step.language, step.title:
            case "diff", _:
                if not step.files:
                    raise NotSeenError(f"the line before this edit names no file:\n{step.text}")
                for name in step.files:
                    edit(terminals.here / name, step.changes)
            case "sh", "":
                fails = after is not None and after.language == "text" and is_failing(after.text)
                said[""] = terminals.run(step.text, fails=fails)
            case "sh", title:
                terminals.start(title, step.text)
            case "text", "":
                verify(step.text, said[""])
            case "text", title:
                terminals.await_shown(title, step.text)
