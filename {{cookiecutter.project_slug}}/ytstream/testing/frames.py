"""Sample rows as the DataFrame that transform() receives, and rows back in YTsaurus' values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession

from ..columns import Column, type_name
from ..demo.sample import Counted, counted
from ..job import Connection

#: The columns that a source adds to the queue's own, and their type.
_ADDED = {"queue_id": "string", "tablet_index": "bigint", "row_index": "bigint"}
_TYPES = {
    **dict.fromkeys(("utf8", "string", "json"), "string"),
    **{name: name for name in ("float", "double", "date", "timestamp")},
    "bool": "boolean",
    "int8": "tinyint",
    **dict.fromkeys(("int16", "uint8"), "smallint"),
    **dict.fromkeys(("int32", "uint16"), "int"),
    **dict.fromkeys(("int64", "uint32", "interval"), "bigint"),
}


def events_frame(
    spark: SparkSession, connection: Connection, rows: Iterable[Mapping[str, Any]]
) -> DataFrame:
    """Return ``rows`` with the columns of QUEUE, behind those that the source adds."""
    several = len(connection.settings.queues) > 1
    added = [*(["queue_id"] if several else []), *connection.guarantee.position]
    place = {"queue_id": connection.settings.queues[0], "tablet_index": 0}
    placed = ({**row, **place, "row_index": number} for number, row in enumerate(rows))
    return _frame(spark, added, connection.job.queue_columns, placed)


def reference_frame(
    spark: SparkSession, connection: Connection, rows: Iterable[Mapping[str, Any]]
) -> DataFrame:
    """Return ``rows`` with the columns of REFERENCE."""
    return _frame(spark, [], connection.job.reference_columns, rows)


def counted_rows(rows: Iterable[Row], columns: Sequence[str]) -> Counted:
    """Return how often each combination of ``columns`` is there; times in microseconds."""
    plain = ({name: _from_spark(row[name]) for name in columns} for row in rows)
    return counted(plain, columns)


def _frame(
    spark: SparkSession,
    added: Sequence[str],
    columns: Sequence[Column],
    rows: Iterable[Mapping[str, Any]],
) -> DataFrame:
    kinds = {column.name: type_name(column.type) for column in columns}
    types = {name: _ADDED[name] for name in added}
    types |= {name: _TYPES[kind] for name, kind in kinds.items()}
    schema = ", ".join(f"`{name}` {type_}" for name, type_ in types.items())
    values = [tuple(_to_spark(row[name], kinds.get(name)) for name in types) for row in rows]
    return spark.createDataFrame(values, schema)


def _to_spark(value: Any, kind: str | None) -> Any:
    is_time = kind == "timestamp" and value is not None
    return datetime.fromtimestamp(int(value) / 1e6, UTC) if is_time else value


def _from_spark(value: Any) -> Any:
    if isinstance(value, datetime):
        return round(value.astimezone(UTC).timestamp() * 1e6)
    return value
