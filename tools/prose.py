"""`python -m tools.prose [FILE ...]`: words that pages should not use, and crowded sentences.

words.toml has the words. Code, in blocks and in a line, is not read. Without files: the pages that
people read, the questions of cookiecutter.json, the files of a generated repository with their
comments, and the texts in Python that a user's terminal may show.

proselint and harper know no words of one's own; of what they found on these pages nothing was a
mistake.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from tools.example import ROOT

WORDS = Path(__file__).with_name("words.toml")
PAGES = (
    "*.md",
    "docs/**/*.md",
    "packages/*/*.md",
    "templates/**/*.md",
    "{{cookiecutter.project_slug}}/**/*.md",
    "cookiecutter.json",
)
GENERATED_IN = ("templates", "{{cookiecutter.project_slug}}")
GENERATED = tuple(
    f"{folder}/**/{name}"
    for folder in GENERATED_IN
    for name in ("*.py", "*.toml", "*.mk", "Makefile")
)
"""Files of a user's repository: comments and docstrings are there to be read."""
MESSAGES = ("ytstream", "ytstream-tools", "ytstream-doctor")
"""Python whose texts are messages. Those of the minicluster are a server's."""
_REFUSED = "refused"
"""Versions that `submit` did not take are "refused" in its history."""
KEPT = ("CHANGELOG.md",)
"""History: what was once written stays."""
_CODE = re.compile(r"^ *```.*?^ *```|``.+?``|`[^`\n]*`|\{%.*?%\}|\]\([^)\n]*\)", re.M | re.S)
"""Code in Markdown, Jinja's statements and addresses of links; a text inside {{ }} is prose."""
_PARAGRAPH = re.compile(
    r"(?:^(?! *[-|#\d]|\s*$).+\n?|^ *(?:- |\d+\. ).+\n?)(?:^(?! *[-|#]|\s*$).+\n?)*", re.M
)


class Finding(NamedTuple):
    """Something to write in another way."""

    file: str
    line: int
    found: str
    better: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.found!r}: {self.better}"


def rules(path: Path = WORDS) -> Mapping[re.Pattern[str], str]:
    """Return what to look for, and what to write instead."""
    listed = tomllib.loads(path.read_text(encoding="utf-8"))["instead"]
    return {
        re.compile(rf"(?<![\w/-])(?:{words})(?![\w-])", re.IGNORECASE): better
        for words, better in listed.items()
    }


def findings(file: str, text: str, wanted: Mapping[re.Pattern[str], str]) -> Iterator[Finding]:
    """Yield what is wrong with the prose of a page."""
    yield from words(file, text, wanted)
    for paragraph in _PARAGRAPH.finditer(prose := _without_code(text)):
        if paragraph[0].count(";") > 1:
            at = paragraph.start() + paragraph[0].index(";")
            yield Finding(file, _line(prose, at), ";", "one semicolon in a paragraph is enough")


def words(file: str, text: str, wanted: Mapping[re.Pattern[str], str]) -> Iterator[Finding]:
    """Yield the words of a text, with phrases that cross a line."""
    flat = _without_code(text).replace("\n", " ")  # the same positions
    for pattern, better in wanted.items():
        for found in pattern.finditer(flat):
            yield Finding(file, _line(text, found.start()), found[0], better)


def _without_code(text: str) -> str:
    """Return a text of the same length and lines."""
    return _CODE.sub(lambda code: re.sub(r"[^\n]", "`", code[0]), text)


def messages(file: str, text: str, wanted: Mapping[re.Pattern[str], str]) -> Iterator[Finding]:
    """Yield the words in the texts of a module; its documentation is not shown."""
    tree = ast.parse(text)
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or id(node) in docs:
            continue
        said = node.value if isinstance(node.value, str) and " " in node.value else ""
        for pattern, better in wanted.items():
            for found in pattern.finditer(_CODE.sub("", said)):
                if not found[0].endswith(_REFUSED):
                    yield Finding(file, node.lineno, found[0], better)


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


def pages() -> list[Path]:
    """Return the pages that people read, and the modules with messages."""
    found = {path for pattern in (*PAGES, *GENERATED) for path in ROOT.glob(pattern)}
    found |= {
        path for name in MESSAGES for path in (ROOT / "packages" / name / "src").rglob("*.py")
    }
    return sorted(path for path in found if path.name not in KEPT)


def _reader(path: Path) -> Callable[[str, str, Mapping[re.Pattern[str], str]], Iterator[Finding]]:
    """Return what reads a file: a user reads the code of a generated repository, too."""
    if path.suffix in (".md", ".json"):
        return findings
    return words if {*path.parts} & {*GENERATED_IN} else messages


def main(names: list[str]) -> int:
    """Print what is found; return 1 if there is any."""
    wanted = rules()
    found = [
        finding
        for path in (map(Path, names) if names else pages())
        for finding in _reader(path)(
            str(path.relative_to(ROOT) if path.is_relative_to(ROOT) else path),
            path.read_text(encoding="utf-8"),
            wanted,
        )
    ]
    for finding in sorted(found):
        print(finding)
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
