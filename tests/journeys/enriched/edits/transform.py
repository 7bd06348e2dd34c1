"""The page of each edit, and where it is."""

from pyspark.sql import DataFrame

from ytstream import lookup


def transform(events: DataFrame) -> DataFrame:
    """Return the edits with the columns of their page; null for an unknown one."""
    return lookup(events, "titles", on=["wiki", "title"], found="is_known")
