"""transform() alone: rows in, rows out, no cluster."""

from __future__ import annotations

from typing import Any

from conftest import Module
from frames import events, plain

from demo.bids import bids
from demo.expected import COLUMNS, REFERENCE, expected


def test_every_row_comes_out_once_with_what_is_known_of_its_auction(
    module: Module, spark: Any
) -> None:
    rows = list(bids(500))
    known = [(auction, row["category"], row["seller"]) for auction, row in REFERENCE.items()]
    # A row without a key matches nothing, not even an auction that is null.
    reference = spark.createDataFrame(
        [*known, (None, "nobody's", 0)], "auction bigint, category string, seller bigint"
    )
    result = module("transform").transform(events(module, spark, rows), reference)
    assert result.columns == [name for name, _, _ in module("tables").OUTPUT]
    assert plain(result.collect(), COLUMNS) == expected(rows)
    assert any(row.category is None for row in result.collect())
