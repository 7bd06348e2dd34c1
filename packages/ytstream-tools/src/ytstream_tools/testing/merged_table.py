"""An output with MERGE in the memory of a test: batches change it as they change the table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from ytstream.outputs import merged_rows, string_columns
from ytstream.schema.changes import DELETED, Merge, Newest, remembers
from ytstream.schema.columns import Column

from .type_conversion import with_zone

Rows = dict[tuple[Any, ...], tuple[Any, ...]]
"""What a test's rows of a table are: key -> the row."""


@dataclass
class MergedTable:
    """The rows of one output, and the deletes that are remembered of it."""

    spark: SparkSession
    name: str
    columns: Sequence[Column]
    rule: Merge
    schema: StructType = field(default_factory=StructType)
    """How the rows are, without deletes, once a batch has come."""
    _rows: Rows = field(default_factory=dict)
    _deletes: Rows = field(default_factory=dict)

    @property
    def key(self) -> list[str]:
        """The names of the key columns."""
        return [column.name for column in self.columns if column.key]

    def merge(self, batch: DataFrame) -> None:
        """Change the rows as a batch does."""
        names = [column.name for column in self.columns]
        batch = merged_rows.widened(batch, self.columns)
        self.schema = StructType([batch.schema[name] for name in names])
        done = merged_rows.changes(batch, self.name, self.columns, self.rule, self)
        with done as found:
            written = self._collected(found.written(found.rows))
            deletes = []
            if remembers(self.rule):
                deletes = self._collected(found.remembered(self._by))
        for row in written:
            values = with_zone(self.schema, row[:-1]) if not row[DELETED] else None
            self._put(row, values)
        for row in deletes:
            kept = StructType([self.schema[name] for name in (*self.key, self._by)])
            self._deletes[self._place(row)] = with_zone(kept, row)

    def frame(self) -> DataFrame:
        """Return the rows that the table has."""
        return self._frame(self._rows, self.schema)

    def rows(self, asked: DataFrame, like: StructType, prefix: str) -> DataFrame:
        """Return ``asked`` with the rows of its keys: see ytstream.outputs.merged_rows.Stored."""
        return self._joined(asked, self.frame(), like, prefix)

    def deletes(self, asked: DataFrame, like: StructType, prefix: str) -> DataFrame:
        """Return ``asked`` with the deletes of its keys."""
        kept = StructType([self.schema[name] for name in (*self.key, self._by)])
        return self._joined(asked, self._frame(self._deletes, kept), like, prefix)

    def newest(self, rows: DataFrame, key: Sequence[str], rank: str) -> DataFrame:
        """Return the row of each key that has the greatest value in the column ``rank``."""
        return rows.groupBy(*(f"`{name}`" for name in key)).agg(F.max(rank).alias(rank))

    @property
    def _by(self) -> str:
        return self.rule.sequence_by if isinstance(self.rule, Newest) else ""

    def _joined(
        self, asked: DataFrame, known: DataFrame, like: StructType, prefix: str
    ) -> DataFrame:
        keys = [F.col(f"`{name}`").alias(f"{prefix}key {name}") for name in self.key]
        values = [F.col(f"`{name}`").alias(f"{prefix}{name}") for name in like.fieldNames()]
        named = known.select(*keys, *values, F.lit(True).alias("there"))
        same = reduce(
            lambda one, other: one & other,
            (F.col(f"`{n}`").eqNullSafe(F.col(f"`{prefix}key {n}`")) for n in self.key),
        )
        found = asked.join(named, same, "left")
        is_there = F.coalesce(F.col("there"), F.lit(False)).alias(prefix)
        added = (F.col(f"`{prefix}{name}`") for name in like.fieldNames())
        return found.select(*(F.col(f"`{name}`") for name in asked.columns), *added, is_there)

    def _put(self, row: Any, values: tuple[Any, ...] | None) -> None:
        if values is None:
            self._rows.pop(self._place(row), None)
        else:
            self._rows[self._place(row)] = values

    def _place(self, row: Any) -> tuple[Any, ...]:
        return tuple(str(row[name]) for name in self.key)

    def _collected(self, rows: DataFrame) -> list[Any]:
        return string_columns.crossing(rows).collect()

    def _frame(self, rows: Rows, schema: StructType) -> DataFrame:
        return string_columns.crossed(self.spark.createDataFrame([*rows.values()], schema))
