"""A session of the `yt` command line as a page, and the same session run again.

The page is Markdown; its `console` blocks hold commands after `$ ` and what they printed. `replay`
runs them in their order, and `replayed` returns the page with what they print now: a page that
still holds comes back unchanged. To write the page again:

    python -m packages.minicluster.tests.support.transcript

Of the shell there is a pipe from `echo` or `printf`, a line that ends with a backslash, and
`name=$(yt ...)`, whose value later commands take as `$name`.
"""

from __future__ import annotations

import re
import shlex
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from minicluster import testing
from packages.minicluster.tests.support.yt_process import Shell, running_shell

PAGE = Path(__file__).with_name("transcript.md")
BLOCK = re.compile(r"(?<=^```console\n)(.*?)(?=^```$)", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^\$ ((?:[^\n]*\\\n)*[^\n]*)\n(?:(?!\$ )[^\n]*\n)*", re.MULTILINE)
MASKS = (
    (re.compile(r"\b[0-9a-f]{1,8}(?:-[0-9a-f]{1,8}){3}\b"), "<id>"),
    (re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z"), "<time>"),
    (re.compile(r"\b\d{18,19}(?=u?\b)"), "<timestamp>"),
    (re.compile(r"(?<='revision': )\d+"), "<revision>"),
)
SET = re.compile(r"(\w+)=\$\((.*)\)", re.DOTALL)


@dataclass(frozen=True)
class Said:
    """A command of the page, and what it says now."""

    command: str
    output: str
    refused: bool


def replay(page: str, shell: Shell) -> Iterator[Said]:
    """Yield each command of the page as it is run."""
    variables: dict[str, str] = {}
    for block in BLOCK.findall(page):
        for found in COMMAND.finditer(block):
            yield _run(found[1], shell, variables)


def replayed(page: str, said: list[Said]) -> str:
    """Return the page with these outputs instead of its own."""
    shown = iter(said)

    def block(found: re.Match[str]) -> str:
        count = len(COMMAND.findall(found[0]))
        return "".join(f"$ {one.command}\n{one.output}" for one in islice(shown, count))

    return BLOCK.sub(block, page)


def _run(command: str, shell: Shell, variables: dict[str, str]) -> Said:
    line = command.replace("\\\n", " ")
    for name, value in variables.items():
        line = re.sub(rf"\${name}\b", value, line)
    assigned = SET.fullmatch(line)
    done = _piped(assigned[2] if assigned else line, shell)
    if assigned:
        variables[assigned[1]] = done.output.strip()
        return Said(command, "", done.refused)
    return Said(command, _masked(done.output), done.refused)


def _piped(line: str, shell: Shell) -> Said:
    """Run `yt ...`, or `echo text | yt ...`."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|")
    lexer.whitespace_split = True
    lexer.commenters = ""
    words = list(lexer)
    given = ""
    if "|" in words:
        place = words.index("|")
        given = _text(*words[:place])
        words = words[place + 1 :]
    assert words[0] == "yt", line
    done = shell.run(*words[1:], given=given)
    if done.returncode:
        message, _, _ = done.stderr.decode().partition("\n\n")
        return Said(line, message, refused=True)
    return Said(line, done.stdout.decode(), refused=False)


def _text(program: str, text: str) -> str:
    if program == "echo":
        return text + "\n"
    assert program == "printf", program
    return text.replace("\\n", "\n").replace("\\t", "\t")


def _masked(output: str) -> str:
    for pattern, mask in MASKS:
        output = pattern.sub(mask, output)
    lines = [line.rstrip() for line in output.strip().splitlines()]
    return "".join(f"{line}\n" for line in lines)


def main() -> int:
    """Write the page again."""
    with (
        testing.start() as cluster,
        tempfile.TemporaryDirectory() as folder,
        running_shell(cluster.http, Path(folder)) as shell,
    ):
        page = PAGE.read_text()
        PAGE.write_text(replayed(page, list(replay(page, shell))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
