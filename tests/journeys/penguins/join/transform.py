"""YOURS. A measured penguin learns what is known of its species."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

REJECT = {"the species is unknown": "species IS NULL"}
"""Measured, but not described."""


def transform(events: DataFrame, reference: DataFrame) -> DataFrame:
    """One penguin in, one out; nothing is known of some species."""
    return events.join(F.broadcast(reference), "species", "left").select(
        "individual",
        "species",
        "latin",
        "first_described",
        "island",
        "date_egg",
        (F.col("culmen.length") / F.col("culmen.depth")).alias("culmen_ratio"),
        (F.col("body_mass") / F.col("usual_mass")).cast("float").alias("mass_of_usual"),
        "comments",
    )
