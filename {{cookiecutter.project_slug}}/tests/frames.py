"""Bids as a DataFrame that looks like what the queue gives, and rows back as plain tuples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from conftest import Module
from pyspark.sql import DataFrame

#: Stands in for the columns that the guarantee adds, where it adds any.
POSITION = {"queue_id": "//queue", "tablet_index": 0, "row_index": 7}
_TYPES = {
    **dict.fromkeys(("utf8", "string", "json"), "string"),
    **{name: name for name in ("float", "double", "boolean", "date", "timestamp")},
    "bool": "boolean",
    "int8": "tinyint",
    "int16": "smallint",
    "int32": "int",
    "int64": "bigint",
}


def events(module: Module, spark: Any, rows: Iterable[Mapping[str, Any]]) -> DataFrame:
    """``rows`` with the columns of tables.QUEUE, after those of the guarantee."""
    keys = list(module("guarantee").KEY_COLUMNS)
    described = [(key, "utf8" if key == "queue_id" else "int64") for key in keys]
    described += [(name, type_) for name, type_, _ in module("tables").QUEUE]
    schema = ", ".join(f"{name} {_TYPES[type_]}" for name, type_ in described)
    values = [
        tuple(_to_spark({**POSITION, **row}[name], type_) for name, type_ in described)
        for row in rows
    ]
    frame: DataFrame = spark.createDataFrame(values, schema)
    return frame


def plain(rows: Iterable[Mapping[str, Any]], columns: Sequence[str]) -> Counter[tuple[Any, ...]]:
    """How often each combination of ``columns`` is there; times in microseconds."""
    return Counter(tuple(_from_spark(row[column]) for column in columns) for row in rows)


def _to_spark(value: Any, type_: str) -> Any:
    is_time = type_ == "timestamp" and value is not None
    return datetime.fromtimestamp(int(value) / 1e6, UTC) if is_time else value


def _from_spark(value: Any) -> Any:
    if isinstance(value, datetime):
        return round(value.astimezone(UTC).timestamp() * 1e6)
    return value
