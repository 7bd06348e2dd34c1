"""docs/gallery.md shows the examples as the templates have them."""

from __future__ import annotations

from tests.support.project import OPTIONS
from tools import gallery


def test_the_page_is_made_of_the_templates() -> None:
    assert gallery.PAGE.read_text(encoding="utf-8") == gallery.page(), (
        "call `python -m tools.gallery`"
    )


def test_it_has_every_processing_type() -> None:
    assert [*gallery.ABOUT] == OPTIONS["processing"]
