"""transform() alone: rows in, rows out, no cluster."""

from __future__ import annotations

from typing import Any

from conftest import Module
from frames import events, plain

from demo.bids import bids
from demo.expected import COLUMNS, expected


def test_every_row_comes_out_once_and_converted(module: Module, spark: Any) -> None:
    rows = list(bids(500))
    result = module("transform").transform(events(module, spark, rows))
    output = [name for name, _, _ in module("tables").OUTPUT]
    assert result.columns == [*module("guarantee").KEY_COLUMNS, *output]
    assert plain(result.collect(), COLUMNS) == expected(rows)
