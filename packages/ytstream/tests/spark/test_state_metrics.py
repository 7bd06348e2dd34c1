"""State: remarks in the log."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable
from typing import Any

import pytest
from yt.yson import YsonUint64

from tests.support.helpers import StreamOf
from ytstream.log import GrowthThresholds
from ytstream.query.progress import ProgressMonitor
from ytstream.spark import state_metrics
from ytstream_tools.demo.crash_scenario import drained
from ytstream_tools.testing.job_stream import Stream, settle, wait

pytestmark = pytest.mark.spark

PAIRS = [
    ("transactional", "window"),
    pytest.param("at_least_once", "deduplicate", marks=pytest.mark.journey),
    pytest.param("at_least_once", "sessions", marks=pytest.mark.journey),
]
"""Each kind of state and each guarantee that has any, in turn."""
for_each = pytest.mark.parametrize(("guarantee", "processing"), PAIRS)

Said = Callable[[Stream], str]


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture) -> Said:
    """Give a function that runs until drained and returns what the job's log then says."""

    def drain_and_listen(stream: Stream) -> str:
        caplog.clear()
        with caplog.at_level(logging.INFO, "job"), stream.running() as query:
            wait(drained(stream.context), query)
            settle(query)
            size = stream.context.job.large_state_bytes
            ProgressMonitor(query, stream.epoch.number, size, stream.batch.outcomes).report()
        # Not `caplog.text`: pytest hands its handler to PySpark's error logger, which sets a
        # formatter that writes JSON (PySparkLogger.addHandler) once a test has raised an error.
        records = (record for record in caplog.records if record.name == "job")
        return "\n".join(f"{record.levelname} {record.getMessage()}" for record in records)

    return drain_and_listen


def _odd(stream: Stream, rows: list[dict[str, Any]]) -> None:
    """Send rows that are not to have an effect."""
    before = list(stream.sent)
    stream.publish(rows)
    stream.sent = before


@pytest.mark.thorough
@for_each
def test_late_rows_and_rows_from_the_future_are_left_out_and_counted(
    stream_of: StreamOf, said: Said, guarantee: str, processing: str
) -> None:
    stream = stream_of(guarantee, processing, rejects=True)
    stream.send(3_000)
    stream.drain()
    # A row is late by the watermark under which the batch before ran: Spark writes the windows that
    # a batch closes at its end.
    stream.send(100)
    stream.drain()
    tomorrow = YsonUint64((int(time.time()) + 86_400) * 1_000_000)
    early = [{**row, "date_time": tomorrow} for row in stream.sample.make(3, seed=778)]
    _odd(stream, [*stream.sample.make(15, seed=777), *early])
    text = said(stream)
    (line,) = (line for line in text.splitlines() if "rejected 3 (3 from the future)" in line)
    assert line.startswith("WARNING")
    assert re.search(r" batch 3-\d+: read 18 · output \d+ · rejected 3 .* · late \d+ · ", line)
    stream.send(200)
    stream.close()
    outcome = stream.outcomes()["output"]
    assert (outcome.lost, outcome.duplicated) == (0, 0)


@pytest.mark.thorough
@for_each
def test_a_state_that_grows_is_said_with_its_size(
    stream_of: StreamOf, said: Said, guarantee: str, processing: str
) -> None:
    stream = stream_of(guarantee, processing)
    stream.send(200)
    first = said(stream)
    assert "WARNING" not in first
    assert "batch 1-0: read 200 · output " in first
    stream.redeclare(large_state_bytes=1)
    stream.send(200)
    grown = next(line for line in said(stream).splitlines() if "state has grown to" in line)
    assert grown.startswith("WARNING")
    assert "on the executors' disks" in grown  # RocksDB, as a new job has it


@pytest.mark.parametrize(
    ("memory", "files", "wanted"),
    [(0, 2, True), (9, 1, False), (2, 0, True), (9, None, True), (1, None, False)],
    ids=["files", "a full cache", "before the first file", "in memory", "little in memory"],
)
def test_the_memory_of_rocksdb_is_no_state(memory: int, files: int | None, wanted: bool) -> None:
    """It is a cache, which is full after some hours."""
    metrics = {} if files is None else {state_metrics.FILES: files}
    operator = {"numRowsTotal": 5, "memoryUsedBytes": memory, "customMetrics": metrics}
    found = [*state_metrics.remarks({"stateOperators": [operator]}, None, 2, GrowthThresholds())]
    assert bool(found) == wanted
