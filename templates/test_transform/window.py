"""transform() alone: rows in, rows out, no cluster.

Without a stream there is no watermark: every window comes out.
"""

from __future__ import annotations

import time
from typing import Any

import pytest
from conftest import Module
from frames import events, plain
from pyspark.sql import functions as F

from demo.bids import bids
from demo.expected import COLUMNS, closing, expected


def test_every_bid_is_counted_in_its_window(module: Module, spark: Any) -> None:
    rows = list(bids(2_000))
    result = module("transform").transform(events(module, spark, rows))
    assert result.columns == [name for name, _, _ in module("tables").OUTPUT]
    assert plain(result.collect(), COLUMNS) == expected([*rows, *closing(rows)])


def test_rows_without_a_time_and_from_the_future_are_in_no_window(
    module: Module, spark: Any
) -> None:
    rows = list(bids(200))
    future = round(time.time() * 1e6) + 3_600_000_000
    odd = [{**rows[0], "date_time": None}, {**rows[1], "date_time": future}]
    result = module("transform").transform(events(module, spark, [*rows, *odd]))
    assert plain(result.collect(), COLUMNS) == expected([*rows, *closing(rows)])


def test_a_time_that_is_no_timestamp_is_refused_in_one_line(module: Module, spark: Any) -> None:
    wrong = events(module, spark, bids(1)).withColumn("date_time", F.unix_micros("date_time"))
    with (
        pytest.raises(module("errors").JobError, match="date_time"),
        module("failures").explained_spark(),
    ):
        module("transform").transform(wrong)
