"""Every finished micro-batch has a line, whatever an idle query says in between."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count
from logging import INFO, WARNING
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyspark.sql.streaming.query import StreamingQuery

from ytstream.job import REJECTED
from ytstream.ledger.ledger_rows import BatchRow, Head, Totals, added
from ytstream.ledger.offsets import Queue
from ytstream.log import GrowthThresholds
from ytstream.query.batch_log import BatchReport
from ytstream.query.batch_outcome import BatchOutcome, BatchOutcomes
from ytstream.query.progress import ProgressMonitor

A, B = "//home/a", "//home/b"
_TRIGGERS = count()
"""The second of each trigger."""


def _progress(
    batch: int,
    state: Sequence[Mapping[str, Any]] = (),
    observed: Mapping[str, Any] | None = None,
    **durations: int,
) -> Any:
    time = f"2026-11-25T00:00:{next(_TRIGGERS):06.3f}Z"
    facts = {
        "batchId": batch,
        "timestamp": time,
        "durationMs": durations,
        "observedMetrics": observed or {},
        "stateOperators": [*state],
    }
    return SimpleNamespace(timestamp=lambda: time, json=lambda: json.dumps(facts))


def _operator(name: str, rows: int) -> dict[str, Any]:
    return {"operatorName": name, "numRowsTotal": rows, "memoryUsedBytes": rows}


def _report(
    batch: int,
    ranges: Mapping[str, Mapping[int, tuple[int, int]]],
    written: Mapping[str, int],
    rejected: Mapping[str, int] | None = None,
    late: int = 0,
    without_time: int = 0,
) -> BatchReport:
    """Return what batch ``batch`` of epoch 3 has left, which stands at row 90 of partition B:1."""
    now = datetime.now(UTC)
    ends: dict[str, dict[int, int]] = {A: {}, B: {1: 90}}
    for path, rows in ranges.items():
        ends[path] |= {partition: end for partition, (_, end) in rows.items()}
    done = BatchRow(ranges, written, now, now, late=late, without_time=without_time)
    head = Head(3, folder=3, batch=batch, ends=ends, totals=added(Totals(), done))
    return BatchReport(head, done, rejected or {})


def _outcomes(reports: dict[int, BatchReport]) -> BatchOutcomes:
    return {number: BatchOutcome(one.name, one) for number, one in reports.items()}


def _query(*progress: Any) -> tuple[StreamingQuery, list[Any]]:
    listed = [*progress]
    query = SimpleNamespace(_jsq=SimpleNamespace(recentProgress=lambda: listed))
    return cast(StreamingQuery, query), listed


def test_an_idle_spell_hides_no_batch(caplog: pytest.LogCaptureFixture) -> None:
    query, progress = _query(_progress(0, addBatch=1, triggerExecution=1_000))
    reports = {
        0: _report(0, {A: {0: (0, 5)}}, {"output": 4}),
        1: _report(1, {A: {0: (5, 6)}}, {"output": 1}),
    }
    outcomes = _outcomes(reports)
    monitor = ProgressMonitor(query, 3, 1, outcomes)
    with caplog.at_level("INFO", "job"):
        assert monitor.report()
        # Spark's idle progress has the number of the batch to come.
        progress.append(_progress(1, latestOffset=1, triggerExecution=2))
        assert not monitor.report()
        progress.append(_progress(1, addBatch=1, triggerExecution=500))
        assert monitor.report()
        assert not monitor.report()
    assert caplog.messages == [
        "batch 3-0: read 5 · output 4 · 1.00 s",
        "batch 3-1: read 1 · output 1 · 0.50 s",
    ]
    assert outcomes == {}


def test_a_batch_that_has_only_written_has_a_line_and_one_that_did_nothing_has_none(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Windows close in batches without input."""
    query, _ = _query(*(_progress(n, addBatch=1, triggerExecution=20) for n in range(2)))
    reports = {
        0: _report(0, {}, {"output": 0, REJECTED: 0}),
        1: _report(1, {}, {"output": 42, REJECTED: 0}),
    }
    with caplog.at_level("INFO", "job"):
        assert ProgressMonitor(query, 3, 1, _outcomes(reports)).report()
    assert caplog.messages == ["batch 3-1: read 0 · output 42 · rejected 0 · 0.02 s"]


def test_rows_that_are_in_no_output_are_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    query, _ = _query(*(_progress(n, addBatch=1, triggerExecution=20) for n in range(3)))
    left_out = {"from the future": 1_200, "odd": 0, "no time": 3}
    reports = {
        0: _report(0, {A: {0: (0, 2_000)}}, {"output": 797, REJECTED: 1_203}, left_out),
        1: _report(1, {A: {0: (0, 9)}}, {"output": 4, REJECTED: 0}, {"odd": 0}, late=5),
        2: _report(2, {A: {0: (0, 9)}}, {"output": 9, REJECTED: 0}, {"odd": 0}),
    }
    with caplog.at_level("INFO", "job"):
        ProgressMonitor(query, 3, 1, _outcomes(reports)).report()
    assert caplog.record_tuples == [
        (
            "job",
            INFO,
            "batch 3-0: read 2,000 · output 797 · rejected 1,203 (1,200 from the future, "
            "3 no time) · 0.02 s",
        ),
        ("job", WARNING, "batch 3-1: read 9 · output 4 · rejected 0 · late 5 · 0.02 s"),
        ("job", INFO, "batch 3-2: read 9 · output 9 · rejected 0 · 0.02 s"),
    ]


def test_what_a_table_adds_up_is_no_number_of_its_rows() -> None:
    counts = {"output": 985, REJECTED: 15}
    report = replace(_report(0, {A: {0: (0, 1_000)}}, counts), totals=("output",))
    assert "read 1,000 · output 985 contributions · rejected 15 · " in report.line((), 1, 1.0)


def test_rows_without_an_event_time_are_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    """With what to do about them, until their number has doubled."""
    query, _ = _query(*(_progress(n, addBatch=1, triggerExecution=20) for n in range(3)))
    counts = {0: 3, 1: 0, 2: 4}
    rows = {A: {0: (0, 9)}}
    reports = {
        n: _report(n, rows, {"output": 5}, without_time=count) for n, count in counts.items()
    }
    with caplog.at_level("WARNING", "job"):
        ProgressMonitor(query, 3, 1, _outcomes(reports)).report()
    first, remedy, last = caplog.messages
    assert "without event time 3" in first
    assert '"date_time IS NULL", keeps them in `rejected`' in remedy
    assert "without event time 4" in last


def test_what_transform_observes_has_lines_of_its_own(caplog: pytest.LogCaptureFixture) -> None:
    observed = {"mine": {"large": 2, "small": 0}, REJECTED: {"odd": 3}, "ytstream://q": {"rows": 5}}
    query, _ = _query(_progress(4, observed=observed, addBatch=1))
    with caplog.at_level("INFO", "job"):
        ProgressMonitor(query, 3, 1).report()
    assert caplog.messages == ["batch 3-4: mine: 2 large"]


def test_what_was_told_is_not_asked_again() -> None:
    """Spark keeps a hundred reports, some with the positions of rejected rows."""
    query, progress = _query(*(_progress(n, addBatch=1) for n in range(50)))
    monitor = ProgressMonitor(query, 3, 1)
    assert monitor.report()
    for told in progress:
        told.json = lambda: pytest.fail("asked again")
    progress.append(_progress(50, latestOffset=1))
    assert not monitor.report()
    progress.append(_progress(50, addBatch=1))
    assert monitor.report()


def test_a_clock_that_is_set_back_hides_no_batch() -> None:
    earlier, later = _progress(2, addBatch=1), _progress(1, addBatch=1)
    query, progress = _query(later)
    monitor = ProgressMonitor(query, 3, 1)
    assert monitor.report()
    progress.append(earlier)
    assert monitor.report()


@pytest.mark.parametrize(
    ("upper", "ranges", "lag"),
    [
        # The last look has seen rows beyond the batch.
        ({A: (50, 20), B: (0, 100)}, {A: {0: (0, 30), 1: (0, 20)}}, 30),
        # The batch is beyond the look, and has taken all that there was.
        ({A: (10, 20), B: (0, 90)}, {A: {0: (0, 29), 1: (0, 20)}}, 0),
        # It has read as much as it may: nothing has shown whether there is more.
        ({A: (10, 20), B: (0, 100)}, {A: {0: (0, 30), 1: (0, 20)}}, None),
        ({A: (30, 20), B: (0, 100)}, {A: {0: (0, 30), 1: (0, 20)}}, None),
        # A partition that has come since the look.
        ({A: (50,), B: (0, 90)}, {A: {0: (0, 30), 1: (0, 30)}}, None),
        # The lag of a partition of which the batch has read nothing.
        ({A: (0, 0), B: (7, 91)}, {A: {}}, 8),
        ({}, {A: {0: (0, 3)}}, None),
    ],
)
def test_the_lag_is_what_the_last_look_shows(
    upper: Mapping[str, tuple[int, ...]],
    ranges: Mapping[str, Mapping[int, tuple[int, int]]],
    lag: int | None,
) -> None:
    queues = [Queue(path, "1-2-3-4", (0,) * len(rows), rows, {}) for path, rows in upper.items()]
    report = _report(0, ranges, {"output": 1})
    assert report.lag(queues, most=30) == lag
    assert ("lag" in report.line(queues, 30, 0.1)) == (lag is not None)


def test_a_large_state_is_said_once_for_each_doubling(caplog: pytest.LogCaptureFixture) -> None:
    """Also by the monitor of the next query; a state of ids holds no rows to come."""
    said, keys = GrowthThresholds(), list[int]()

    def noted(rows: int) -> Iterable[str]:
        keys.append(rows)
        return ()

    def reported(*sizes: int) -> None:
        query, _ = _query(
            *(
                _progress(
                    number, [_operator("stateStoreSave", size), _operator("dedupe", 5)], addBatch=1
                )
                for number, size in enumerate(sizes)
            )
        )
        ProgressMonitor(query, 3, 100, said=said, warnings=noted).report()

    with caplog.at_level("INFO", "job"):
        reported(50, 94, 96, 150)
        reported(150, 300, 100)
    assert keys == [50, 94, 96, 150, 150, 300, 100]
    grown = [line.partition("grown to ")[2].partition(" rows")[0] for line in caplog.messages]
    assert grown == ["101", "305"]
    assert {record.levelname for record in caplog.records} == {"WARNING"}


@pytest.mark.parametrize(("names", "keys"), [(["stateStoreSave"], 7), (["dedupe"], 0)])
def test_the_keys_of_a_state_are_those_of_the_ledger_where_spark_counts_none(
    names: Sequence[str], keys: int
) -> None:
    query, _ = _query(_progress(0, [_operator(name, 0) for name in names], addBatch=1))
    report = _report(0, {A: {0: (0, 5)}}, {"output": 4})
    report = replace(report, head=replace(report.head, state_rows=7))
    found = list[int]()

    def noted(rows: int) -> Iterable[str]:
        found.append(rows)
        return ()

    ProgressMonitor(query, 3, 100, _outcomes({0: report}), warnings=noted).report()
    assert found == [keys]
