"""Hits of two detectors by numpy, whose NaN and infinities follow IEEE 754 as Spark's do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

QUEUES = ("//home/cavern/east", "//home/cavern/west")
COUNT = 30_000
ODD = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 5e-324, 1.7976931348623157e308])


def frame() -> pd.DataFrame:
    """Return hits, a third of whose values are strange, and some missing."""
    source = np.random.default_rng(24)

    def values(usual: Any) -> Any:
        return np.where(source.random(COUNT) < 0.3, source.choice(ODD, COUNT), usual)

    samples = np.stack([values(source.normal(0, 1, COUNT)) for _ in range(4)], axis=1)
    charge = values(np.round(source.normal(0, 9, COUNT) * 8) / 8)
    with np.errstate(over="ignore"):  # four bytes hold neither end of the doubles
        charge = charge.astype("float32").astype("float64")
    made = pd.DataFrame(
        {
            "run": 7,
            "hit": np.arange(COUNT, dtype="uint64") + np.uint64(2**63),
            "latched": 1_717_200_000_000_000 + np.cumsum(source.integers(1, 900, COUNT)),
            "energy": pd.Series(values(source.exponential(90, COUNT))).astype(object),
            "charge": pd.Series(charge).astype(object),
            "samples": [*map(list, samples.tolist())],
            "chi2": values(source.exponential(1, COUNT)),
            "slope": source.normal(0, 1, COUNT),
            "queue": source.integers(0, len(QUEUES), COUNT),
        }
    )
    made.loc[made.index % 17 == 0, "energy"] = None
    made.loc[made.index % 19 == 0, "charge"] = None
    pairs = zip(made.pop("chi2"), made.pop("slope"), strict=True)
    made["fit"] = [
        None if n % 8 == 0 else {"chi2": chi2, "slope": None if n % 5 == 0 else slope}
        for n, (chi2, slope) in enumerate(pairs)
    ]
    return made


def outputs(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return the hits in other units, the strong ones, and the reasons of those kept out."""
    energy, charge = rows["energy"].astype(float), rows["charge"].astype(float)
    chi2 = rows["fit"].map(lambda fit: None if fit is None else fit["chi2"])
    reason = pd.Series(pd.NA, index=rows.index, dtype="object")
    reason[chi2.astype(float) == np.inf] = "the fit diverged"
    reason[energy.isna() & charge.isna()] = "neither energy nor charge"
    with np.errstate(all="ignore"):
        first = np.array([found[0] for found in rows["samples"]])
        femto = (charge.astype("float32") * np.float32(1.6)).astype(float)
        made = rows[["run", "hit", "latched", "samples"]].assign(
            energy_gev=_where(rows["energy"], energy / 1_000),
            net=_where(rows["energy"], energy - first),
            charge_fc=_where(rows["charge"], femto),
            chi2=chi2.astype(object).where(rows["fit"].notna(), None),
            slope=rows["fit"].map(lambda fit: None if fit is None else fit["slope"]).astype(object),
        )
    made["slope"] = made["slope"].where(made["slope"].notna(), None)
    good = made[reason.isna()]
    strong = good[np.isinf(energy[reason.isna()])]
    return {
        "output": good,
        "saturated": strong[["run", "hit", "energy_gev"]],
        "rejected": rows.assign(reason=reason)[reason.notna()],
    }


def _where(given: pd.Series, computed: pd.Series) -> pd.Series:
    """Return what was computed, and null, not NaN, where nothing was given."""
    is_there = given.map(lambda value: value is not None)
    return computed.astype(object).where(is_there, None)
