"""The documentation names what exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.project import OPTIONS, ROOT

DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(document: Path) -> None:
    targets = re.findall(r"\]\(([^)]+)\)", document.read_text(encoding="utf-8"))
    for target in targets:
        assert target.startswith("https://") or (document.parent / target).is_file(), target


def test_every_option_and_target_is_in_the_readme() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for option, value in OPTIONS.items():
        for name in [option, *(value if isinstance(value, list) else [])]:
            assert f"`{name}`" in readme, name
    targets = set(re.findall(r"`make ([a-z-]+)`", readme))
    assert targets <= set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def test_every_option_is_explained() -> None:
    options = (ROOT / "docs/options.md").read_text(encoding="utf-8")
    explained = {"spark_version", "ci", "license"}  # by their labels at the prompt
    assert {name for name in OPTIONS if f"`{name}`" not in options} == explained
