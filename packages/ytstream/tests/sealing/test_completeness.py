"""`complete-until` and the attribute of the outputs are never ahead of the rows; without Spark."""

from __future__ import annotations

import math
import re
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from minicluster import testing as minicluster
from tests.support.helpers import (
    SILENT,
    ContextOf,
    DriverOf,
    recreate,
    refusal,
    refusal_code,
)
from tests.support.project import ROOT
from tests.support.server_errors import UNAVAILABLE
from tests.support.simulated_driver import BID, offsets_text, write
from tests.support.status_steps import invoke, without_times
from ytstream import Hourly
from ytstream.cluster.client import connect
from ytstream.errors.error_codes import ErrorCode
from ytstream.job import JobContext
from ytstream.ledger import positions
from ytstream.ledger.offsets import Queue
from ytstream.query.stop_signal import StopSignal
from ytstream.query.supervisor import QueryRunner
from ytstream.sealing import completeness
from ytstream.sealing.completeness import (
    COMPLETE_UNTIL,
    MARGIN,
    WATERMARK,
    CompletenessMark,
    CompletenessWriter,
    read,
)

Later = Callable[[float], object]
"""Lets the cluster's time pass: old rows cost a test no time."""


@pytest.fixture
def later(cluster: minicluster.Running) -> Later:
    """Move the cluster's clock."""
    return cluster.client.clock.advance


def _now(context: JobContext) -> datetime:
    return datetime.fromtimestamp(int(context.client.generate_timestamp()) >> 30, UTC)


def _verified(context: JobContext) -> datetime:
    """Return what is said, after a look that every older row is in a batch of the ledger."""
    said, queue = read(context).time, context.settings.queues[0]
    head = positions.read_head(context.settings.ledger, context.client.select_rows)
    assert head is not None
    rows = context.client.select_rows(
        f"[$tablet_index] as p, [$row_index] as row, [$timestamp] as time from [{queue}]"
    )
    waiting = [row for row in rows if row["row"] >= head.ends.get(queue, {}).get(row["p"], 0)]
    times = [datetime.fromtimestamp(row["time"] >> 30, UTC) for row in waiting]
    assert all(time >= said for time in times)
    return said


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.parametrize("guarantee", ["transactional", "at_least_once"])
def test_of_a_job_that_lags_it_waits_with_the_rows(
    driver_of: DriverOf, later: Later, guarantee: str
) -> None:
    driver = driver_of(guarantee)
    context = driver.context
    driver.start()
    sent = _now(context)
    driver.send(10)
    later(300)
    driver.send(10)
    assert sent - MARGIN <= _verified(context) <= sent + timedelta(seconds=5) - MARGIN
    driver.batch()  # it catches up
    assert _verified(context) >= sent + timedelta(seconds=300) - MARGIN
    later(3_600)  # nothing is published: what is complete goes on with the clock
    assert _verified(context) >= sent + timedelta(seconds=3_900) - MARGIN


@pytest.mark.thorough
@pytest.mark.parametrize(("guarantee", "step"), [("transactional", "commits"),
                                                 ("at_least_once", "offsets")])  # fmt: skip
def test_a_batch_that_was_killed_is_not_complete(
    driver_of: DriverOf, later: Later, guarantee: str, step: str
) -> None:
    driver = driver_of(guarantee)
    driver.start()
    sent = _now(driver.context)
    driver.send(10)
    later(300)
    driver.batch(step)
    assert _verified(driver.context) <= sent + timedelta(seconds=5) - MARGIN
    driver.start(new_process=True)
    driver.batch()
    assert _verified(driver.context) >= sent + timedelta(seconds=300) - MARGIN


def test_a_producer_that_commits_late_has_rows_of_then(driver_of: DriverOf, later: Later) -> None:
    driver = driver_of("transactional")
    context = driver.context
    driver.start()
    client: Any = connect(context.settings)
    with client.Transaction(type="tablet", timeout=3_600_000):
        client.insert_rows(context.settings.queues[0], [{**BID, "$tablet_index": 1}])
        later(600)
        driver.send(1)
        driver.batch()
        before = _verified(context)
    later(600)
    assert before <= _verified(context) < _now(context) - timedelta(seconds=500)
    driver.batch()
    assert _verified(context) > before


def test_rows_that_a_tablet_does_not_show_yet_are_within_the_margin(
    driver_of: DriverOf, later: Later, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A transaction has its timestamp before its rows are in the tablet."""
    driver = driver_of("transactional")
    driver.run(5)
    before, seen = _now(driver.context), positions.queue
    queue = seen(driver.client, driver.settings.queues[0], {})
    driver.send(1)  # the cluster says of them nothing
    later(MARGIN.total_seconds() - 2)

    def unaware(_client: object, _path: str, _offsets: object) -> Queue:
        return queue

    monkeypatch.setattr(positions, "queue", unaware)
    assert read(driver.context).time <= before


def test_rows_out_of_order_are_within_the_margin(
    driver_of: DriverOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = driver_of("transactional")
    driver.start()
    sent = _now(driver.context)
    driver.send(1)

    def younger(*_: object) -> dict[int, int]:
        late = int(sent.timestamp() + MARGIN.total_seconds() - 1) << 30
        return dict.fromkeys(range(2), late)

    monkeypatch.setattr(completeness, "timestamps", younger)
    assert read(driver.context).time <= sent


def test_where_nothing_can_be_said_it_says_why(provisioned_of: ContextOf) -> None:
    context = provisioned_of("transactional")
    assert refusal_code(lambda: read(context)) == ErrorCode.NEVER_RUN


def test_the_command_prints_it_and_nothing_else(
    driver_of: DriverOf, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    driver = driver_of("transactional")
    assert invoke(driver.context, tmp_path, command="complete-until") == 1
    said = capsys.readouterr()
    assert (said.out, said.err.count("has never run")) == ("", 1)
    driver.run(5)
    assert invoke(driver.context, tmp_path, command="complete-until") == 0
    assert re.fullmatch(
        rf"{COMPLETE_UNTIL}=\d{{4}}-\d\d-\d\dT[\d:]{{8}}Z\n", capsys.readouterr().out
    )


def test_a_queue_without_times_can_be_complete_only_when_it_is_empty(driver_of: DriverOf) -> None:
    driver = driver_of("transactional")
    without_times(driver.context)
    driver.run(5)
    assert _verified_by_count(driver.context)
    driver.send(1)
    assert refusal_code(lambda: read(driver.context)) == ErrorCode.NO_TIMESTAMP


def _verified_by_count(context: JobContext) -> bool:
    return read(context).time <= _now(context) - MARGIN


def test_trimmed_rows_are_named(driver_of: DriverOf) -> None:
    driver = driver_of("transactional")
    driver.run(5)
    driver.send(5)
    client: Any = driver.client
    client.trim_rows(driver.settings.queues[0], 1, 8)
    said = refusal(lambda: read(driver.context))
    assert "partition 1: rows 5 to 7 were trimmed before the job has read them" in said


def test_a_queue_that_was_recreated_is_named(driver_of: DriverOf) -> None:
    driver = driver_of("transactional")
    driver.run(5)
    recreate(driver.settings.queues[0], driver.client)
    assert refusal_code(lambda: read(driver.context)) == ErrorCode.QUEUE_RECREATED


def test_a_job_with_state_has_a_watermark_under_a_name_of_its_own(driver_of: DriverOf) -> None:
    """Of the batch that has happened: what its own watermark closed is in the output."""
    driver = driver_of("transactional", "window")
    driver.run(5)
    assert refusal_code(lambda: read(driver.context)) == ErrorCode.NO_WATERMARK
    text = offsets_text([{0: 5}]).replace(
        '"batchWatermarkMs": 0', '"batchWatermarkMs": 1700000000999'
    )
    write(driver.client, f"{driver.folder}/offsets/0", text)
    found = read(driver.context)
    assert (found.name, found.text) == (WATERMARK, "2023-11-14T22:13:20Z")
    assert completeness.bound(driver.context, Hourly("date_time")) == found.time.timestamp()
    driver.send(1)  # a watermark says nothing of the times at which rows were written
    by_arrival = completeness.bound(driver.context, Hourly())
    assert abs(_now(driver.context).timestamp() - by_arrival) < 2 * MARGIN.total_seconds()


def _attribute(context: JobContext, name: str = COMPLETE_UNTIL) -> Any:
    return context.client.get_attribute(context.settings.output, name, None)


def test_the_job_writes_it_once_a_minute(driver_of: DriverOf, later: Later) -> None:
    driver = driver_of("transactional")
    driver.run(5)
    teller = CompletenessWriter(0.0)
    teller.tell(driver.context, 100.0)
    first = _attribute(driver.context)
    assert "" < first <= read(driver.context).text
    later(300)
    teller.tell(driver.context, 159.0)
    assert _attribute(driver.context) == first
    teller.tell(driver.context, 161.0)
    assert _attribute(driver.context) > first


def test_the_sensor_of_the_page_waits_for_the_jobs_attribute(driver_of: DriverOf) -> None:
    page = (ROOT / "docs/complete.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    names: dict[str, Any] = {}
    exec(code, names)
    is_complete = names["is_complete"]
    driver = driver_of("transactional")
    driver.run(5)
    table, until = driver.settings.output, read(driver.context).time
    assert not is_complete(driver.client, table, until)
    CompletenessWriter(0.0).tell(driver.context, 100.0)
    assert is_complete(driver.client, table, until)
    assert not is_complete(driver.client, table, until + timedelta(minutes=1))


def test_a_running_job_writes_it_while_it_looks_at_its_query(
    driver_of: DriverOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(completeness, "PERIOD_SECONDS", 0.0)
    driver, stop = driver_of("transactional"), StopSignal()
    driver.run(5)
    stop.set()
    status = {"message": "", "isTriggerActive": False, "isDataAvailable": False}
    query: Any = SimpleNamespace(
        isActive=True,
        status=status,
        lastProgress=None,
        _jsq=SILENT,
        stop=lambda: None,
    )
    static_tables = SimpleNamespace(publish=lambda *_: None)
    batch: Any = SimpleNamespace(
        static_tables=static_tables,
        archives=None,
        closing=threading.Event(),
        outcomes={},
    )
    nothing: Any = None
    QueryRunner(driver.context, nothing, driver.tablets, stop)._follow(query, batch)
    assert _attribute(driver.context)


def _told(
    monkeypatch: pytest.MonkeyPatch, teller: CompletenessWriter, now: float, *seconds: int
) -> list[str]:
    """Let the teller look once for each time that is found; return what it has written."""
    written: list[str] = []
    client = SimpleNamespace(set=lambda _path, text: written.append(text[-4:]))
    context: Any = SimpleNamespace(client=client)
    for number, second in enumerate(seconds):
        time_ = datetime(2026, 11, 24, 3, 0, second, tzinfo=UTC)
        found = CompletenessMark(COMPLETE_UNTIL, time_, {"output": "//home/output"})
        monkeypatch.setattr(completeness, "read", lambda _, found=found: found)
        teller.tell(context, now + 1_000 * number)
    return written


def test_a_process_that_starts_has_time_first(monkeypatch: pytest.MonkeyPatch) -> None:
    soon = time.monotonic() + 1
    assert _told(monkeypatch, CompletenessWriter(), soon, 10) == []
    assert _told(monkeypatch, CompletenessWriter(), soon + completeness.PERIOD_SECONDS, 10) == [
        ":10Z"
    ]


def test_what_was_said_is_not_withdrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row within the margin may make the next value an older one."""
    assert _told(monkeypatch, CompletenessWriter(0.0), 1.0, 20, 10, 20, 30) == [":20Z", ":30Z"]


@pytest.mark.thorough
def test_no_refusal_of_the_cluster_reaches_the_job(
    driver_of: DriverOf, cluster: minicluster.Running
) -> None:
    driver = driver_of("transactional")
    driver.run(5)
    cluster.client.faults.add(method="set", times=None, action="fail", error=UNAVAILABLE)
    teller = CompletenessWriter(0.0)
    teller.tell(driver.context, 100.0)
    cluster.client.faults.clear()
    assert _attribute(driver.context) is None
    teller.tell(driver.context, 200.0)
    assert _attribute(driver.context)
    recreate(driver.settings.queues[0], driver.client)
    teller.tell(driver.context, math.inf)


def test_a_static_output_is_complete_when_its_tables_are_published(driver_of: DriverOf) -> None:
    driver = driver_of("transactional")
    job = replace(driver.context.job, static=("output",))
    driver.run(5)
    context = replace(driver.context, job=job)
    aside = f"{driver.settings.staging}/output"
    driver.client.create("table", f"{aside}/{driver.epoch.number:08}-{1:010}", recursive=True)
    assert [*read(context).outputs] == ["output"]  # of a batch that has not happened
    driver.client.create("table", f"{aside}/{driver.epoch.number:08}-{0:010}", recursive=True)
    assert [*read(context).outputs] == []
    CompletenessWriter(0.0).tell(context, 100.0)
    assert _attribute(context) is None
    driver.client.remove(f"{aside}/{driver.epoch.number:08}-{0:010}")
    CompletenessWriter(0.0).tell(context, 100.0)
    assert _attribute(context)
