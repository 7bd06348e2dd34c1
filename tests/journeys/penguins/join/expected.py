"""YOURS. What must come out, computed from the same rows by plain Python."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .rows import REFERENCE

Row = Mapping[str, Any]

_KNOWN = {row["species"]: row for row in REFERENCE}
_UNKNOWN: Row = {"latin": None, "first_described": None, "usual_mass": None}


def expected(rows: Sequence[Row]) -> Iterator[Row]:
    """Yield each penguin with what is known of its species."""
    for row in rows:
        if row["species"] is None:
            continue
        known = _KNOWN.get(row["species"], _UNKNOWN)
        culmen, mass, usual = row["culmen"], row["body_mass"], known["usual_mass"]
        yield {
            **row,
            "latin": known["latin"],
            "first_described": known["first_described"],
            "culmen_ratio": culmen and culmen["length"] / culmen["depth"],
            # The usual mass is a power of two, so a float of four bytes holds the quotient.
            "mass_of_usual": mass / usual if mass is not None and usual is not None else None,
        }


def rejected(rows: Sequence[Row]) -> Iterator[tuple[str, Row]]:
    """Yield the reason and the row of each that REJECT keeps out."""
    return (("the species is unknown", row) for row in rows if row["species"] is None)
