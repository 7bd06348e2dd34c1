"""YOURS. What must come out, computed from the same rows by plain Python."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from ctypes import c_float
from typing import Any

Row = Mapping[str, Any]


def expected(rows: Sequence[Row]) -> Iterator[Row]:
    """Yield each hit that says something."""
    for row in (row for row in rows if _reason(row) is None):
        energy, charge, fit = row["energy"], row["charge"], row["fit"] or {}
        yield {
            "run": row["run"],
            "hit": row["hit"],
            "latched": row["latched"],
            "energy_gev": energy if energy is None else energy / 1_000,
            "net": energy if energy is None else energy - row["samples"][0],
            "charge_fc": charge
            if charge is None
            else c_float(c_float(charge).value * c_float(1.6).value).value,
            "samples": row["samples"],
            "chi2": fit.get("chi2"),
            "slope": fit.get("slope"),
        }


def saturated(rows: Sequence[Row]) -> Iterator[Row]:
    """Yield the hits that were too strong for the electronics."""
    for row in expected(rows):
        if row["energy_gev"] is not None and math.isinf(row["energy_gev"]):
            yield {name: row[name] for name in ("run", "hit", "energy_gev")}


def rejected(rows: Sequence[Row]) -> Iterator[tuple[str, Row]]:
    """Yield the reason and the row of each that REJECT keeps out."""
    for row in rows:
        if (reason := _reason(row)) is not None:
            yield reason, row


def _reason(row: Row) -> str | None:
    if all(value is None or math.isnan(value) for value in (row["energy"], row["charge"])):
        return "neither energy nor charge"
    return "the fit diverged" if row["fit"] and row["fit"]["chi2"] == math.inf else None
