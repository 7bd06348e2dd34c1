"""Every finished micro-batch is reported, whatever an idle query says in between."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyspark.sql.streaming.query import StreamingQuery

from ytstream.log import Said
from ytstream.query.monitor import Monitor


def _progress(
    batch: int, rows: int, state: Sequence[Mapping[str, Any]] = (), **durations: int
) -> Any:
    facts = {"batchId": batch, "numInputRows": rows, "durationMs": durations}
    return SimpleNamespace(json=json.dumps({**facts, "stateOperators": [*state]}))


def _operator(name: str, rows: int) -> dict[str, Any]:
    return {"operatorName": name, "numRowsTotal": rows, "memoryUsedBytes": rows}


def test_an_idle_spell_hides_no_batch(caplog: pytest.LogCaptureFixture) -> None:
    query = SimpleNamespace(recentProgress=[_progress(0, 5, addBatch=1, triggerExecution=1_000)])
    monitor = Monitor(cast(StreamingQuery, query), large_state_bytes=1)
    with caplog.at_level("INFO", "job"):
        monitor.report()
        # Spark's idle progress has the number of the batch to come.
        query.recentProgress.append(_progress(1, 0, latestOffset=1, triggerExecution=2))
        monitor.report()
        query.recentProgress.append(_progress(1, 1, addBatch=1, triggerExecution=500))
        monitor.report()
        monitor.report()
    assert caplog.messages == ["batch 0: 5 rows in 1.00 s", "batch 1: 1 row in 0.50 s"]


def test_a_large_state_is_said_once_for_each_doubling(caplog: pytest.LogCaptureFixture) -> None:
    """Also by the monitor of the next query; a state of ids holds no rows to come."""
    said, keys = Said(), list[int]()

    def noted(rows: int) -> Iterable[str]:
        keys.append(rows)
        return ()

    def reported(*sizes: int) -> None:
        query = SimpleNamespace(
            recentProgress=[
                _progress(
                    number,
                    0,
                    [_operator("stateStoreSave", size), _operator("dedupe", 5)],
                    addBatch=1,
                )
                for number, size in enumerate(sizes)
            ]
        )
        monitor = Monitor(cast(StreamingQuery, query), 100, said, warnings=noted)
        monitor.report()

    with caplog.at_level("INFO", "job"):
        reported(50, 94, 96, 150)
        reported(150, 300, 100)
    assert keys == [50, 94, 96, 150, 150, 300, 100]
    grown = [line.partition("grown to ")[2].partition(" rows")[0] for line in caplog.messages]
    assert grown == ["101", "305"]
