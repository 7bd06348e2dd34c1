"""The list of deliberate refusals is complete, and holds nothing else."""

from __future__ import annotations

import re
from collections import Counter

from minicluster.query import aggregates, conversions, functions, lexer
from tests.support import project

SOURCES = project.MINICLUSTER
LIST = project.ROOT / "packages/minicluster/tests/conformance/README.md"
REFUSAL = re.compile(r"(?:raise|return) not_supported\(")


def listed() -> list[tuple[str, str]]:
    """Return (module, refused thing) of each line of the list."""
    return re.findall(r"^\| `([a-z_/]+\.py)` \| (.*) \|$", LIST.read_text(), re.MULTILINE)


def test_every_refusal_is_listed() -> None:
    found = {
        str(path.relative_to(SOURCES)): len(REFUSAL.findall(path.read_text()))
        for path in SOURCES.rglob("*.py")
        if path.name != "errors.py"
    }
    assert Counter(module for module, _ in listed()) == Counter(found)


def test_refused_words_and_known_functions_are_listed_by_name() -> None:
    text = " ".join(what for module, what in listed() if "query" in module)
    names = {word for quoted in re.findall(r"`([^`]+)`", text) for word in quoted.lower().split()}
    assert names - {"index", "cast", "join", "totals"} == (
        lexer.REFUSED | functions.NAMES | aggregates.NAMES | set(conversions.TYPES)
    )
