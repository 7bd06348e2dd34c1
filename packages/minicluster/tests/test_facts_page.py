"""FACTS.md and the tests of its rows name the same facts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from tests.support import project

MINICLUSTER = project.ROOT / "packages/minicluster"
SUITE = [*(MINICLUSTER / "tests/conformance").glob("test_*.py")]
"""The fixed rows, which a cluster is asked as well."""
OTHERS = [MINICLUSTER / "tests/operations/test_differing_facts.py"]
"""The other rows, and the fixed ones of WITH_OPERATIONS: the suite starts no operations."""
WITH_OPERATIONS = {"p11"}


def _named(files: Iterable[Path]) -> set[str]:
    """Return the facts that the docstrings of files name."""
    texts = "".join(file.read_text(encoding="utf-8") for file in files)
    docstrings = re.findall(r'(?:"""|observed,\s+)FACTS\.md ([a-z0-9, ]+)', texts)
    return {fact for listed in docstrings for fact in listed.split(", ")}


def _facts() -> dict[str, str]:
    """Return what the page says of each fact: fixed, different or refused."""
    page = (MINICLUSTER / "FACTS.md").read_text(encoding="utf-8")
    lines = [line.split("|") for line in page.splitlines()]
    rows = {line[1].strip(): line[5].strip() for line in lines if len(line) == 8}
    return {name: state for name, state in rows.items() if re.fullmatch(r"[a-z]\d\d[a-z]?", name)}


def test_the_first_page_counts_the_facts_as_they_are() -> None:
    page = " ".join((MINICLUSTER / "README.md").read_text(encoding="utf-8").split())
    counted = Counter(_facts().values())
    fixed, different, refused = (counted[state] for state in ("fixed", "different", "refused"))
    assert f"lists {counted.total()} others" in page
    assert f"{fixed} have been fixed since, {different} differ with a reason" in page
    assert f", and {refused} fail with an error" in page


def test_each_row_has_a_test_where_the_page_says() -> None:
    facts = _facts()
    fixed = {name for name, state in facts.items() if state == "fixed"}
    assert fixed - WITH_OPERATIONS <= (asked := _named(SUITE))
    assert asked <= facts.keys()
    assert _named(OTHERS) == (facts.keys() - fixed) | WITH_OPERATIONS
