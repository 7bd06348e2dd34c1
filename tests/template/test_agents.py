"""AGENTS.md of a generated project: what it says of files, commands and settings is so."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from tests.support.pages import headings
from tests.template.test_makefile import OFFERED

ROW = re.compile(r"^\| (`.*`) \| .* \| the (user|template)'s \|$", re.MULTILINE)


def text_of(project: Path) -> str:
    return (project / "AGENTS.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_it_names_the_files_that_are_there_and_whose_they_are(project: Path) -> None:
    whose = {
        path: owner
        for paths, owner in ROW.findall(text_of(project))
        for path in re.findall("`(.*?)`", paths)
    }
    assert all((project / path).exists() for path in whose)
    settings = tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8"))
    of_user = {
        str(path.relative_to(project))
        for pattern in settings["tool"]["cruft"]["skip"]
        for path in project.glob(pattern)
    }
    assert {path for path, owner in whose.items() if owner == "user"} == of_user


def test_the_commands_and_sections_that_it_names_exist(project: Path) -> None:
    text = text_of(project)
    named = {
        word
        for words in re.findall(r"(?:`|^)make((?: [a-z-]+)+)", text, re.MULTILINE)
        for word in words.split()
    }
    assert {"submit", "rewind", "approve", "demo"} <= named <= {*OFFERED["project"]}
    sections = re.findall(r'section "([^"]+)"', text)
    found = headings(project / "docs/operations.md")
    assert sections
    for section in sections:
        assert any(heading.startswith(section) for heading in found), section


def test_it_speaks_of_this_jobs_processing_and_guarantee(project: Path) -> None:
    job = next(project.glob("src/*/job.py")).read_text(encoding="utf-8")
    text = text_of(project)
    has_watermark = "withWatermark(" in next(project.glob("src/*/transform.py")).read_text("utf-8")
    assert ("Keep `withWatermark`" in text) == has_watermark
    assert ("Return the key columns unchanged" in text) == ('guarantee="idempotent"' in job)
    assert ("mark a key in `OUTPUTS`" in text) == ('guarantee="at_least_once"' in job)
