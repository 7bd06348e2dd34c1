"""Columns of a sorted dynamic table by its key: an operator of our own (``jvm/Lookup.java``).

It is planned with the query, and looks up anew in each micro-batch: as of the batch's moment
(``jvm/Moments.java``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..schema.columns import Column
from .compile_java import LOOKUP, MOMENTS
from .java import Java, jvm_of
from .spark_plan import analysed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

_FROM_JSON = "org.apache.spark.sql.types.DataType.fromJson"


@dataclass(frozen=True)
class KeysLookedUp:
    """What the tasks of a micro-batch have looked up in one reference."""

    name: str
    table: str
    """The id of the table, and the cluster's time that it was read at."""
    timestamp: int
    rows: int
    """Rows that have a key, keys that were asked for, and rows whose key the table does not have.
    """
    keys: int
    missing: int
    milliseconds: int
    """How long tasks have waited for replies."""
    hits: int
    """Rows that executors had in their caches."""


def looked_up(
    rows: DataFrame,
    name: str,
    path: str,
    on: Mapping[str, str],
    key: Sequence[Column],
    added: Sequence[Column],
    found: str,
    cache_bytes: int,
    before: Mapping[str, Any],
    timestamp: int = 0,
) -> DataFrame:
    """Return the rows with the columns ``added`` of a table, and whether the row was ``found``.

    As of a time of the cluster, with ``#`` and the table's id as its path; 0: of the micro-batch.
    ``on`` has the column of the rows for each of the ``key`` columns. The session must be able to
    use the classes: see compile_java.unavailable(). Each executor keeps ``cache_bytes`` of rows of
    tables that nobody writes to. ``before`` has the attributes ``id`` and ``schema`` of the table:
    a batch fails if the path leads to one with other columns when it begins.
    """
    java, spark = Java(jvm_of(rows.sparkSession)), rows.sparkSession
    session = rows._jdf.sparkSession()  # in outputs() it is the query's own
    java[f"{LOOKUP}.install"](session.experimental())
    # Python's join of a frame with itself renames columns only where a projection makes them.
    prefix = f"__ytstream_{name}_"
    node = java[f"{LOOKUP}.node"](
        analysed(rows).jvm, [on[column.name] for column in key], name, path, timestamp,
        java.schema(tuple(key)), java.schema(tuple(added)), prefix, cache_bytes,
        java.node({"id": before["id"], "schema": _used(before["schema"], (*key, *added))}),
    )  # fmt: skip
    frame = java[f"{rows._jdf.getClass().getName()}.ofRows"](session, node)
    names = {f"{prefix}{column.name}": column.name for column in added}
    return type(rows)(frame, spark).withColumnsRenamed({**names, prefix: found})


def _used(schema: Any, columns: Sequence[Column]) -> list[Any]:
    """Return the columns of a table's key, and those of the lookup."""
    names = {column.name for column in columns}
    return [one for one in schema if "sort_order" in one or one["name"] in names]


def stored(
    rows: DataFrame,
    name: str,
    path: str,
    key: Sequence[Column],
    like: StructType,
    prefix: str,
) -> DataFrame:
    """Return the rows with what an output of the job has for their keys, as of the micro-batch.

    The columns are those of ``like``, in its types, their names behind ``prefix``. The bare prefix
    says whether the row is there. The names of the key are those of the rows, and null is a key.
    """
    java, session = Java(jvm_of(rows.sparkSession)), rows._jdf.sparkSession()
    java[f"{LOOKUP}.install"](session.experimental())
    node = java[f"{LOOKUP}.stored"](
        analysed(rows).jvm, [column.name for column in key], name, path, java.schema(tuple(key)),
        java[_FROM_JSON](like.json()), prefix,
    )  # fmt: skip
    frame = java[f"{rows._jdf.getClass().getName()}.ofRows"](session, node)
    return type(rows)(frame, rows.sparkSession)


def newest(rows: DataFrame, key: Sequence[str], rank: str) -> DataFrame:
    """Return one row of each key: the one with the greatest value in the column ``rank``.

    As max() of a struct does, without its two sorted aggregations (``jvm/NewestExec.java``).
    """
    java, session = Java(jvm_of(rows.sparkSession)), rows._jdf.sparkSession()
    java[f"{LOOKUP}.install"](session.experimental())
    node = java[f"{LOOKUP}.newest"](analysed(rows).jvm, [*key], rank)
    frame = java[f"{rows._jdf.getClass().getName()}.ofRows"](session, node)
    return type(rows)(frame, rows.sparkSession)


def looked_up_in(java: Java, run: str, number: int) -> Iterator[KeysLookedUp]:
    """Yield what the batch ``number`` of a query's run has looked up, by reference."""
    for line in str(java[f"{MOMENTS}.of"](run, number)).splitlines():
        name, table, *figures = line.split("\t")
        yield KeysLookedUp(name, table, *map(int, figures))
