"""The pictures of docs/ in a browser, with DejaVu Sans: the widest font that a Linux falls back to.

`apt-get install chromium fonts-dejavu-core` installs what the tests need.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import browser
from tests.support.project import ROOT

_OVERLAPPING = {"demo.svg"}
"""A terminal's bar is drawn in two parts that touch."""
PICTURES = sorted(path for path in (ROOT / "docs").rglob("*.svg") if path.name not in _OVERLAPPING)


@pytest.mark.journey
@pytest.mark.parametrize("picture", PICTURES, ids=lambda path: path.stem)
def test_no_text_is_cut_or_lies_on_another_one(picture: Path) -> None:
    assert browser.crowded(picture) == []
