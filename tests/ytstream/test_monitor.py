"""Every finished micro-batch is reported, whatever an idle query says in between."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyspark.sql.streaming.query import StreamingQuery

from ytstream.query.monitor import Monitor


def _progress(batch: int, rows: int, **durations: int) -> Any:
    facts = {"batchId": batch, "numInputRows": rows, "durationMs": durations, "stateOperators": []}
    return SimpleNamespace(json=json.dumps(facts))


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
