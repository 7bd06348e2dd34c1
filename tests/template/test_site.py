"""The first page, and the documentation as a site."""

from __future__ import annotations

import re
import subprocess
from html import unescape
from pathlib import Path
from xml.etree import ElementTree

import pytest

from local_extensions.answers import SETTINGS
from tests.support import browser
from tests.support.project import ROOT
from tests.template.test_makefile import OFFERED
from tools import picture, site

README = (ROOT / "README.md").read_text(encoding="utf-8")
DRAWINGS = sorted((ROOT / "docs/pictures").glob("*.svg"))
GENERATOR = ROOT / ".venv-tools/bin/zensical"


def test_the_first_page_shows_what_to_paste_before_all_else() -> None:
    screen = README[: README.index("\n## ")]
    assert re.findall(r"^(git clone|make demo|make test)", screen, re.M) == [
        "git clone",
        "make demo",
        "make test",
    ]
    assert "def transform(" in screen
    assert "demo.svg" in screen
    before = README[: README.index("## Choose")]
    for words in ("## What it costs", "nothing on a real cluster"):
        assert words in before


@pytest.mark.parametrize("word", ["YTsaurus", "SPYT", "cookiecutter", "minicluster", "queues"])
def test_a_term_is_linked_or_explained_where_it_first_stands(word: str) -> None:
    """In the sentence in which it is first used; the first screen aside."""
    text = README[README.index("\n## ") :]
    first = re.search(rf"[^.]*\b{word}\b[^.]*\.", text)
    assert first
    assert re.search(rf"\[{word}\]\(|\*{word}\* are|`{word}`,\s+a\s", first[0]), first[0]


def test_the_picture_is_of_a_run_in_which_the_guarantee_held() -> None:
    svg = unescape(picture.PICTURE.read_text(encoding="utf-8")).replace("\xa0", " ")
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", svg)
    shown = "".join(texts)
    assert "kill -9 after Spark wrote" in shown
    assert re.search(r"rows_in=\d+ .*lost=0\s+duplicated=0\s+kills=1\s+restarts=1", shown)
    assert "@font-face" not in svg
    assert not re.search(r"/(root|work|tmp|home)/[a-z]+/[a-z]+\.log", shown)


def test_a_picture_has_all_that_was_printed_from_the_first_row_on() -> None:
    printed = "set-up\n\x1b[?25lproduced 3 rows\nkill <\x1b[31mred\x1b[0m>\nRESULT lost=0\n"
    svg = unescape(picture.drawn(printed)).replace("\xa0", " ")
    assert "set-up" not in svg
    for text in ("produced 3 rows", "kill <", "red", "RESULT lost=0"):
        assert f">{text}<" in svg


@pytest.mark.parametrize("drawing", DRAWINGS, ids=lambda path: path.stem)
def test_a_drawing_scales_has_a_dark_form_and_loads_nothing(drawing: Path) -> None:
    svg = ElementTree.parse(drawing).getroot()
    assert svg.get("viewBox")
    assert svg.get("height") is None  # a browser keeps the ratio of the view box
    text = drawing.read_text(encoding="utf-8")
    assert "@media (prefers-color-scheme: dark)" in text
    assert not re.search(r"(href|src)=|url\((?!#)|@import", text)
    drawn = {classes for one in svg.iter() for classes in one.get("class", "").split()}
    styled = {*re.findall(r"\.(\w+)", text.partition("</style>")[0])}
    assert drawn <= styled


def test_every_page_is_in_the_navigation_once() -> None:
    listed = [page for page in site.navigation() if not page.startswith("example/")]
    assert sorted(listed) == sorted(site.pages())
    examples = {page.removeprefix("example/") for page in site.navigation()} - {*listed}
    assert examples <= {*site.EXAMPLE}


@pytest.mark.thorough
@pytest.mark.slow
def test_the_site_builds_and_loads_nothing_of_another_server(tmp_path: Path) -> None:
    assert GENERATOR.is_file(), "call `make installed-tools`"
    site.stage(tmp_path)

    def build() -> int:
        words = [str(GENERATOR), "build", "--strict", "--clean"]
        done = subprocess.run(words, cwd=tmp_path, check=False)
        return done.returncode

    assert build() == 0
    built = [*(tmp_path / "site").rglob("*.html")]
    assert len(built) > len(site.navigation())
    for page in built:
        loaded = re.findall(
            r"<(?:script|img|link rel=\"stylesheet\")[^>]* (?:src|href)=\"(https?:[^\"]*)\"",
            page.read_text(encoding="utf-8"),
        )
        assert loaded == [], page
    start = tmp_path / "content/docs/start.md"
    text = start.read_text()
    for broken in ("[gone](nowhere.md)", "[gone](concepts.md#nowhere)"):
        start.write_text(f"{text}\n{broken}\n")
        assert build() != 0, broken


@pytest.mark.journey
def test_no_page_scrolls_sideways_on_a_laptop_or_a_phone(tmp_path: Path) -> None:
    """Needs a browser: tests/support/browser.py says how to install it."""
    site.stage(tmp_path)
    words = [str(GENERATOR), "build", "--strict", "--clean"]
    subprocess.run(words, cwd=tmp_path, check=True)
    built = tmp_path / "site"
    (built / "wide.html").write_text("<!doctype html><p style='width: 2000px'>wide")
    pages = sorted(page.relative_to(built).as_posix() for page in built.rglob("*.html"))
    assert [line.partition(":")[0] for line in browser.sideways(built, pages, [1440, 390])] == [
        "wide.html at 1440 px",
        "wide.html at 390 px",
    ]


def test_the_reference_has_every_command() -> None:
    page = (ROOT / "docs/commands.md").read_text(encoding="utf-8")
    first = "".join(re.findall(r"^\| (`.*?) \|", page, re.MULTILINE))
    assert set(re.findall(r"`make ([a-z-]+)`", first)) == {*OFFERED["project"]}


def test_the_platform_page_has_every_setting_of_an_organisation() -> None:
    page = (ROOT / "docs/platform.md").read_text(encoding="utf-8")
    table = page.partition("Put them")[0]
    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == [*SETTINGS]
    assert all(f"\n  {name}: " in page for name in SETTINGS)


def test_each_cell_about_an_alternative_has_its_source() -> None:
    """A link, or the words that say that there is none."""
    page = (ROOT / "docs/alternatives.md").read_text(encoding="utf-8")
    matrix, _, sections = page.partition("\n## What it guarantees\n")[2].partition("\n## This ")
    rows = [line.strip("| ").split(" | ") for line in matrix.splitlines() if line.startswith("| ")]
    tools = [name for name, *_ in rows if name not in ("tool", "this template")]
    assert {tools.count(name) for name in tools} == {2}
    for name, *cells in rows:
        for cell in cells if name in tools else ():
            assert "](" in cell or "][" in cell or "not checked" in cell, (name, cell)
    for name in tools:
        assert f"](#{name.lower().replace(', ', '-and-').replace(' ', '-')})" in page, name
    for line in re.findall(r"^\|(?!---| to know).*\|$", sections, re.MULTILINE):
        assert "][" in line, line
