"""What follows from the list of Spark versions does follow."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.project import ROOT
from tools import sparks


def _copied(folder: Path) -> Path:
    for name in {name for name, _, _ in sparks.PLACES}:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text((ROOT / name).read_text(encoding="utf-8"), encoding="utf-8")
    return folder


def test_the_files_have_what_follows_from_the_list(tmp_path: Path) -> None:
    assert sparks.written(_copied(tmp_path)) == [], "call `make locks`"


def test_a_place_that_has_gone_is_an_error(tmp_path: Path) -> None:
    folder = _copied(tmp_path)
    (folder / "docs/faq.md").write_text("another page\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"docs/faq\.md has .* 0 times"):
        sparks.written(folder)
