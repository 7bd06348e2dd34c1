"""A lookup in rows that are all there: a join with them, which every executor gets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .lookups import Lookup

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_PREFIX = "__ytstream_reference_"
"""In front of the names of the reference's columns during the join."""


def joined(rows: DataFrame, reference: DataFrame, lookup: Lookup) -> DataFrame:
    """Return the rows with the columns of ``reference``, which has each key once."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import BinaryType

    wanted = [*lookup.on, *(column.name for column in lookup.columns)]
    side = reference.select(*(F.col(f"`{name}`").alias(f"{_PREFIX}{name}") for name in wanted))
    side = side.withColumn(_PREFIX, F.lit(True))
    kinds = {field.name: field.dataType for field in rows.schema.fields}
    is_same = F.lit(True)
    for key, name in lookup.on.items():
        # Spark takes NaN for equal to NaN; a table has no such key.
        given = rows[f"`{name}`"]
        text = given.cast("string") if isinstance(kinds[name], BinaryType) else given
        is_same = is_same & (text == side[f"{_PREFIX}{key}"])
    made = rows.join(F.broadcast(side), is_same, lookup.how).drop(
        *(f"{_PREFIX}{key}" for key in lookup.on)
    )
    made = made.withColumnsRenamed({f"{_PREFIX}{c.name}": c.name for c in lookup.columns})
    if lookup.found is None:
        return made.drop(_PREFIX)
    return made.withColumn(_PREFIX, F.coalesce(_PREFIX, F.lit(False))).withColumnRenamed(
        _PREFIX, lookup.found
    )
