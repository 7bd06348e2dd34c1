"""What follows from the list of Spark versions does follow."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from local_extensions.versions import SPARK_VERSIONS
from tests.support.project import ROOT
from tools import sparks


def _copied(folder: Path) -> Path:
    for name in {name for name, _, _ in sparks.PLACES}:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text((ROOT / name).read_text(encoding="utf-8"), encoding="utf-8")
    return folder


def test_the_files_have_what_follows_from_the_list(tmp_path: Path) -> None:
    assert sparks.written(_copied(tmp_path)) == [], "call `make locks`"


ADDED = {
    "SPARKS = (\n": '    Spark("9.9", "2.13", 940, 1090, "The newest"),\n',
    "PINS = (\n": '    Pin("pyspark", "9.9.1", "job", "it is there", "9.9"),\n',
}
"""Lines that are put before those of the newest version."""


def test_a_version_that_is_added_is_in_each_place_and_in_the_makefile(tmp_path: Path) -> None:
    folder = _copied(tmp_path)
    for name in ("local_extensions", "tools", "templates/make"):
        shutil.copytree(ROOT / name, folder / name)
    shutil.copy(ROOT / "Makefile", folder)
    listed = folder / "local_extensions/versions.py"
    text = listed.read_text(encoding="utf-8")
    for place, line in ADDED.items():
        assert text.count(place) == 1
        text = text.replace(place, place + line)
    listed.write_text(text, encoding="utf-8")

    made = [sys.executable, "-m", "tools.sparks"]
    done = subprocess.run(made, cwd=folder, capture_output=True, text=True, check=True)

    places = {name for name, _, _ in sparks.PLACES}
    assert {*done.stdout.split()} == places
    packages = [folder / name for name in places if name.endswith("pyproject.toml")]
    assert all(",<9.10" in file.read_text(encoding="utf-8") for file in packages)
    choices = json.loads((folder / "cookiecutter.json").read_text(encoding="utf-8"))
    assert choices["spark_version"] == ["9.9", *SPARK_VERSIONS]
    asked = ["make", "-s", "--eval", "shown: ; @echo $(SPARKS) $(DEFAULT)", "shown"]
    done = subprocess.run(asked, cwd=folder, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["9.9", *SPARK_VERSIONS, "9.9"]


def test_no_other_page_lists_the_versions() -> None:
    listed = ".{1,8}".join(map(re.escape, SPARK_VERSIONS))
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("packages/*/*.md")]
    found = {str(page.relative_to(ROOT)) for page in pages if re.search(listed, page.read_text())}
    assert found - {"CHANGELOG.md"} <= {name for name, _, _ in sparks.PLACES}


def test_a_place_that_has_gone_is_an_error(tmp_path: Path) -> None:
    folder = _copied(tmp_path)
    (folder / "docs/faq.md").write_text("another page\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"docs/faq\.md has .* 0 times"):
        sparks.written(folder)
