"""The whole job on the minicluster: queues, SPYT, checkpoint, output table."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from conftest import Module

from demo import tables
from demo.bids import bids
from demo.expected import COLUMNS, expected
from demo.scenario import drained


def test_every_row_arrives_once_and_right(
    module: Module, client: Any, settings: Any, spark: Any
) -> None:
    module("provision").provision(client, settings)
    sent = []
    for number, queue in enumerate(settings.queues):
        rows = list(bids(3_000, seed=number + 1))
        tables.produce(client, queue, rows, tablets=4)
        sent += rows
    module("recovery").prepare(client, settings)
    rows_out = module("pipeline").result(spark, settings)
    module("guard").verify(rows_out)

    query = module("pipeline").start(rows_out, settings)
    try:
        _wait(drained(client, settings), query)
    finally:
        query.stop()

    found = tables.read(client, settings.output, COLUMNS)
    assert found == expected(sent)


def _wait(is_over: Callable[[], bool], query: Any, seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not is_over():
        assert query.isActive, query.exception()
        assert time.monotonic() < deadline, query.lastProgress
        query.awaitTermination(1)
