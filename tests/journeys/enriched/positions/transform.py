"""The aircraft of each position that the register has."""

from pyspark.sql import DataFrame

from ytstream import lookup


def transform(events: DataFrame) -> DataFrame:
    """Return the positions as they are."""
    return events


def outputs(rows: DataFrame) -> dict[str, DataFrame]:
    """Return the positions of aircraft that are in the register."""
    columns = ["operator", "built"]
    return {"output": lookup(rows, "register", on="icao24", columns=columns, how="inner")}
