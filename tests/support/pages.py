"""Links and headings of Markdown pages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

_FENCED = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)


def headings(page: Path) -> list[str]:
    """Return the headings of a page, without their marks."""
    text = _FENCED.sub("", page.read_text(encoding="utf-8"))
    return re.findall(r"^#+ (.*)$", text, re.MULTILINE)


def dead_links(page: Path) -> Iterator[str]:
    """Yield the links of a page whose file, or whose heading in it, is not there."""
    text = _FENCED.sub("", page.read_text(encoding="utf-8"))
    for target in re.findall(r"\]\(([^)]+)\)", text):
        name, _, anchor = target.partition("#")
        file = page.parent / name if name else page
        if not target.startswith("https://") and not (
            file.is_file() and (not anchor or anchor in map(_anchor, headings(file)))
        ):
            yield target


def _anchor(heading: str) -> str:
    """Return a heading's name in a link, as GitHub and GitLab make it."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")
