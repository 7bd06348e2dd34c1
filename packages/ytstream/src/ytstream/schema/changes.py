"""What MERGE of transform.py says: how rows of a batch change the rows that a table has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .columns import Column

if TYPE_CHECKING:  # a job can be declared without Spark
    from pyspark.sql import DataFrame

DELETED = "__ytstream_deleted"
"""In what a merge function returns: the boolean column of rows that leave the table."""
IS_STORED = "is_stored"
"""In what a merge function gets: whether the row is the table's."""


@dataclass(frozen=True)
class Newest:
    """The newest row of each key: see newest()."""

    sequence_by: str
    apply_as_deletes: str | None = None


Merge = Newest | Callable[["DataFrame"], "DataFrame"]
"""A value of MERGE: newest(), or a function of the user's own."""


def newest(sequence_by: str, apply_as_deletes: str | None = None) -> Newest:
    """For MERGE of transform.py: the table keeps the newest row of each key.

    The table depends neither on the order in which rows arrive nor on where batches are cut. At an
    equal sequence value a delete wins over an update. Of two updates, the one with the greater
    remaining columns wins, in the order of OUTPUTS: null is the least value, NaN the greatest.

    Args:
        sequence_by: the name of a column of the output. The greatest value is the newest
        apply_as_deletes: the name of a boolean column of the rows. Where it is true, the row of the
            key leaves the table. Updates that are not newer do not bring it back for `deleted_keep`
    """
    return Newest(sequence_by, apply_as_deletes)


def deleted_path(output: str) -> str:
    """Return the path of the table that remembers the deletes of the output at that path."""
    return f"{output}_deleted"


def deleted_columns(columns: Sequence[Column], rule: Newest) -> tuple[Column, ...]:
    """Return the columns of the table that remembers deletes: key and sequence value."""
    return tuple(column for column in columns if column.key or column.name == rule.sequence_by)


def remembers(rule: Any) -> bool:
    """Return whether an output with that entry of MERGE remembers its deletes."""
    return isinstance(rule, Newest) and rule.apply_as_deletes is not None
