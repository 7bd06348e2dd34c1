"""YOURS. Hits in gigaelectronvolts and femtocoulombs, without those that say nothing."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

REJECT = {
    "neither energy nor charge": (
        "(energy IS NULL OR isnan(energy)) AND (charge IS NULL OR isnan(charge))"
    ),
    "the fit diverged": "fit.chi2 = double('Infinity')",
}
"""In Spark NaN equals NaN, and is larger than any other number."""


def transform(events: DataFrame) -> DataFrame:
    """One hit in, one out."""
    return events.select(
        "queue_id",
        "tablet_index",
        "row_index",
        "run",
        "hit",
        "latched",
        (F.col("energy") / 1_000).alias("energy_gev"),
        # Infinity less infinity is no number.
        (F.col("energy") - F.col("samples")[0]).alias("net"),
        (F.col("charge") * F.lit(1.6).cast("float")).alias("charge_fc"),
        "samples",
        "fit.chi2",
        "fit.slope",
    )


def outputs(rows: DataFrame) -> dict[str, DataFrame]:
    """Return all hits, and beside them those that were too strong for the electronics."""
    strong = rows.filter(F.abs("energy_gev") == float("inf"))
    position = ("queue_id", "tablet_index", "row_index")
    return {"output": rows, "saturated": strong.select(*position, "run", "hit", "energy_gev")}
