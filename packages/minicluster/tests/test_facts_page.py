"""FACTS.md and the tests of its fixed rows name the same facts."""

from __future__ import annotations

import re

from tests.support import project

PAGE = project.ROOT / "packages/minicluster/FACTS.md"
TESTS = project.ROOT / "packages/minicluster/tests/conformance/test_facts.py"


def test_each_fixed_row_has_a_test_and_each_test_has_a_row() -> None:
    lines = [line.split("|") for line in PAGE.read_text(encoding="utf-8").splitlines()]
    rows = {line[1].strip(): line[5].strip() for line in lines if len(line) == 8}
    sources = re.findall(r"FACTS\.md ([a-z0-9, ]+)", TESTS.read_text(encoding="utf-8"))
    tested = {name for source in sources for name in source.split(", ")}
    assert tested <= rows.keys()
    assert {name for name, state in rows.items() if state == "fixed"} <= tested
