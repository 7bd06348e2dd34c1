"""YOURS. What must come out, computed from the same rows by plain Python."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]


def expected(rows: Sequence[Row]) -> Iterator[Row]:
    """Yield the rows of "output"."""
    for row in rows:
        if _reason(row) is not None:
            continue
        place, words = row["place"], row["words"]
        yield {
            **row,
            "magnitude_rounded": float(math.floor(row["magnitude"])),
            "is_strong": row["magnitude"] >= 5.0,
            "kinds": [reading["kind"] for reading in row["readings"]],
            "summary": {"name": place, "by": [len(row["id"])]},
            "raw_bytes": row["raw"],
            "next_day": row["day"] + 1,
            "region": None if place is None else place.split(",")[-1].strip(),
            "lengths": None if words is None else [[word, len(word)] for word in words],
        }


def rejected(rows: Sequence[Row]) -> Iterator[tuple[str, Row]]:
    """Yield the reason and the row of each that REJECT keeps out."""
    for row in rows:
        if (reason := _reason(row)) is not None:
            yield reason, row


def _reason(row: Row) -> str | None:
    if abs(row["epicentre"]["lat"]) > 90:
        return "the epicentre is not on Earth"
    return None if row["readings"] else "nobody felt or measured it"
