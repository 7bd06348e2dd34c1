"""What the table of an output with MERGE has, as of the micro-batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from ..connector import key_lookup
from ..schema.changes import deleted_path
from ..schema.columns import Column

_NAMED = "MERGE "
"""In front of the names under which lookups are counted: no reference is called so."""


@dataclass(frozen=True)
class TableRows:
    """Rows of the cluster: looked up by key at the start of the batch's transaction.

    Somebody else who writes such a key meanwhile makes the commit fail, if the batch writes it too.
    """

    name: str
    path: str
    key: tuple[Column, ...]

    def rows(self, asked: DataFrame, like: StructType, prefix: str) -> DataFrame:
        """Return ``asked`` with the columns of the output's rows: see merged_rows.Stored."""
        return self._looked_up(asked, self.name, self.path, like, prefix)

    def deletes(self, asked: DataFrame, like: StructType, prefix: str) -> DataFrame:
        """Return ``asked`` with the sequence value of the delete of each key."""
        path = deleted_path(self.path)
        return self._looked_up(asked, deleted_path(self.name), path, like, prefix)

    def newest(self, rows: DataFrame, key: Sequence[str], rank: str) -> DataFrame:
        """Return the row of each key that has the greatest value in the column ``rank``."""
        return key_lookup.newest(rows, key, rank)

    def _looked_up(
        self, asked: DataFrame, name: str, path: str, like: StructType, prefix: str
    ) -> DataFrame:
        return key_lookup.stored(asked, f"{_NAMED}{name}", path, self.key, like, prefix)


def stored_rows(name: str, path: str, columns: Sequence[Column]) -> TableRows:
    """Return what an output with MERGE has."""
    return TableRows(name, path, tuple(column for column in columns if column.key))
