"""The documentation names what exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from local_extensions.versions import PINS
from tests.support.pages import dead_links
from tests.support.project import OPTIONS, PROJECT, ROOT
from tools import site

DOCUMENTS = [
    *(ROOT / name for name in site.TOPS),
    *(
        path
        for folder in ("docs", "tests", "bench", "packages")
        for path in sorted((ROOT / folder).rglob("*.md"))
    ),
]
"""All pages but those that Jinja renders: test_readme.py looks at these in generated projects."""


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(document: Path) -> None:
    assert [*dead_links(document)] == []


def test_a_link_that_leads_nowhere_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    (tmp_path / "other.md").write_text("# A page\n\n## The `word` in it\n")
    page.write_text(
        "## Here\n[a](other.md#the-word-in-it) [b](#here) [c](https://example.com)\n"
        "[d](gone.md) [e](other.md#there) [f](#there)\n```sh\n[not](one)\n```\n"
    )
    assert [*dead_links(page)] == ["gone.md", "other.md#there", "#there"]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_pages_that_are_named_exist(document: Path) -> None:
    """By their path from the root, as prose and tables name them."""
    text = document.read_text(encoding="utf-8")
    for name in re.findall(r"`((?:docs|templates|tests)/[\w/.-]+\.(?:md|py))`", text):
        # docs/operations.md is of a generated project.
        assert (ROOT / name).is_file() or (PROJECT / name).is_file(), name


def test_every_option_and_target_is_in_a_first_page() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    contributing = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    for option, value in OPTIONS.items():
        for name in [option, *(value if isinstance(value, list) else [])]:
            assert f"`{name}`" in readme, name
    named = set(re.findall(r"`make ([a-z-]+)[ `]", contributing))
    offered = re.findall(r"^([a-z-]+):.* ## ", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert named == {*offered} - {"help", "setup"}


@pytest.mark.parametrize("document", sorted((ROOT / "docs").glob("*.md")), ids=lambda p: p.stem)
def test_each_target_that_a_page_names_exists(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    named = set(re.findall(r"(?:`|^)make ([a-z][a-z-]*)\b", text, re.MULTILINE))
    assert named <= _targets()


def _targets() -> set[str]:
    makefiles = [ROOT / "Makefile", ROOT / "{{cookiecutter.project_slug}}/Makefile"]
    makefiles += (ROOT / "templates/make").glob("*.mk")
    texts = (makefile.read_text(encoding="utf-8") for makefile in makefiles)
    return {target for text in texts for target in re.findall(r"^([a-z-]+):", text, re.MULTILINE)}


def test_every_option_is_explained() -> None:
    options = (ROOT / "docs/options.md").read_text(encoding="utf-8")
    explained = {"spark_version", "ci", "license"}  # by their labels at the prompt
    assert {name for name in OPTIONS if f"`{name}`" not in options} == explained


def test_supported_versions_are_those_that_are_pinned() -> None:
    table = (ROOT / "docs/support.md").read_text(encoding="utf-8").partition("\n## What a ")[0]
    for name in ("pyspark", "ytsaurus-spyt", "ytsaurus-client"):
        for pin in (pin for pin in PINS if pin.name == name):
            assert re.search(rf"^\|.* {re.escape(pin.version)}\b.* \|$", table, re.MULTILINE), pin


FORMS = [
    form for form in (ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml") if form.name != "config.yml"
]


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.stem)
def test_an_issue_form_is_one_that_github_shows(form: Path) -> None:
    """It ignores a form with an unknown type, or without a label (GitHub's syntax for forms)."""
    read = yaml.safe_load(form.read_text(encoding="utf-8"))
    assert read.keys() == {"name", "description", "body"}
    ids = [part["id"] for part in read["body"] if part["type"] != "markdown"]
    assert ids
    assert len({*ids}) == len(ids)
    for part in read["body"]:
        assert part["type"] in {"markdown", "textarea", "input", "dropdown", "checkboxes"}
        needed = "value" if part["type"] == "markdown" else "label"
        assert part["attributes"][needed]
        assert part["type"] != "dropdown" or part["attributes"]["options"]


def test_the_support_page_names_the_forms() -> None:
    page = (ROOT / "docs/support.md").read_text(encoding="utf-8")
    for form in FORMS:
        assert f'"{yaml.safe_load(form.read_text(encoding="utf-8"))["name"]}"' in page
