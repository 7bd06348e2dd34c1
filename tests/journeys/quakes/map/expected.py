"""YOURS. What must come out, computed from the same rows by plain Python."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]


def expected(rows: Sequence[Row]) -> Iterator[Row]:
    """Yield the output rows of ``rows``."""
    for row in rows:
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
