"""What the page says in words, from said.txt; its figures come from the results."""

from __future__ import annotations

import re
from pathlib import Path

_TEXT = Path(__file__).with_suffix(".txt").read_text(encoding="utf-8")
_PARTS = re.split(r"^<!-- ([A-Z_]+) -->$", _TEXT, flags=re.MULTILINE)


def words(name: str) -> str:
    """Return the part of that name. Raises ValueError."""
    return _PARTS[_PARTS.index(name) + 1].strip("\n")
