"""transform() alone: rows in, rows out, no cluster."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from typing import Any

from conftest import Module

from demo.bids import bids
from demo.expected import COLUMNS, expected

#: Stands in for the columns that the guarantee adds, where it adds any.
POSITION = {"queue_id": "//queue", "tablet_index": 0, "row_index": 7}


def test_every_row_comes_out_once_and_converted(module: Module, spark: Any) -> None:
    rows = list(bids(500))
    keys = list(module("guarantee").KEY_COLUMNS)
    columns = [name for name, _, _ in module("tables").QUEUE]
    events = spark.createDataFrame(
        [
            (*(POSITION[key] for key in keys), *(_spark_value(row[name]) for name in columns))
            for row in rows
        ],
        _schema(module, keys),
    )

    result = module("transform").transform(events)

    assert result.columns == [*keys, *(name for name, _, _ in module("tables").OUTPUT)]
    found = Counter(
        tuple(_plain_value(row[column]) for column in COLUMNS) for row in result.collect()
    )
    assert found == expected(rows)


def _schema(module: Module, keys: list[str]) -> str:
    types = {"utf8": "string", "int64": "bigint", "timestamp": "timestamp"}
    described = [(name, types[kind]) for name, kind, _ in module("tables").QUEUE]
    key_types = [(key, "string" if key == "queue_id" else "bigint") for key in keys]
    return ", ".join(f"{name} {kind}" for name, kind in [*key_types, *described])


def _spark_value(value: Any) -> Any:
    if type(value).__name__ == "YsonUint64":
        return datetime.fromtimestamp(int(value) / 1e6, UTC)
    return value


def _plain_value(value: Any) -> Any:
    if isinstance(value, datetime):
        return round(value.astimezone(UTC).timestamp() * 1e6)
    return value
