"""YOURS. The expected output, computed from the same rows by plain Python."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .rows import REFERENCE

Row = Mapping[str, Any]

_KNOWN = {row["auction"]: row for row in REFERENCE}
_UNKNOWN: Row = {"category": None, "seller": None}


def expected(rows: Sequence[Row]) -> Iterator[Row]:
    """Yield the output rows of ``rows``: each bid with what is known of its auction."""
    for row in rows:
        known = _KNOWN.get(row["auction"], _UNKNOWN)
        yield {**row, "category": known["category"], "seller": known["seller"]}
