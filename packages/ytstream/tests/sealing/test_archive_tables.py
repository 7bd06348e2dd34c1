"""Tables of archives, made of pieces that the ledger names; simulated batches, without Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from yt.common import YtError

from minicluster.testing import Running
from tests.support.archives import COLUMNS, DAY, HOUR, NOW, Driver, declared
from tests.support.helpers import ContextOf, refusal
from tests.support.server_errors import UNAVAILABLE
from tests.support.status_steps import without_times
from ytstream import Column, Every, Hourly, days, minutes
from ytstream.errors import JobError
from ytstream.ledger import archive_rows
from ytstream.ledger.archive_rows import SEALED as DONE
from ytstream.ledger.ledger_rows import BatchRow
from ytstream.provisioning import job_objects
from ytstream.schema.periods import group_of, named
from ytstream.sealing import completeness
from ytstream.sealing.archive_rewrites import REWRITTEN
from ytstream.sealing.archive_tables import SEALED

DAYLONG = 24 * HOUR


class StoppedError(Exception):
    """The driver has died."""


@pytest.fixture
def driver(provisioned_of: ContextOf, monkeypatch: pytest.MonkeyPatch) -> Driver:
    archive = Hourly("date_time", lateness=minutes(10), keep=days(36_500))
    context = declared(provisioned_of("transactional"), archive, COLUMNS)
    job_objects.provision(context)
    driver = Driver(context)
    monkeypatch.setattr(completeness, "bound", lambda *_: driver.complete)
    return driver


def test_a_table_appears_once_it_is_complete(driver: Driver) -> None:
    driver.batch(10, 20)
    driver.batch(30, HOUR + 5)
    driver.batch(HOUR + 6)
    assert driver.seal(HOUR + 599) == []
    assert driver.announced() == "00:00:00Z"
    assert driver.seal(HOUR + 600) == ["00:00:00Z"]
    assert driver.announced() == "01:00:00Z"
    assert driver.rows() == [10, 20, 30]
    (table,) = driver.tables_of_the_ledger()
    assert (table.rows, table.step, table.pieces) == (3, DONE, ())
    (name,) = driver.client.list(driver.settings.output)
    path = f"{driver.settings.output}/{name}"
    mark = driver.client.get(f"{path}/@{SEALED}")
    assert (mark["rows"], len(mark["pieces"]), mark["ledger"]) == (3, 2, driver.settings.ledger)
    assert str(driver.client.get(f"{path}/@expiration_time")).startswith("21")
    assert driver.client.get(f"{path}/@optimize_for") == "scan"
    assert driver.seal(2 * HOUR + 600) == ["00:00:00Z", "01:00:00Z"]
    assert sorted(driver.rows()) == sorted(driver.sent)
    assert driver.staged() == []


@pytest.mark.parametrize("processing", ["map", "deduplicate"])
def test_rows_without_times_are_found_by_check(provisioned_of: ContextOf, processing: str) -> None:
    """A watermark says when a column is complete, and nothing of the times of rows."""
    context = provisioned_of("transactional", processing)
    without_times(context)
    by_arrival = declared(context, Hourly(), COLUMNS)
    assert "has no column $timestamp" in refusal(lambda: job_objects.provision(by_arrival))
    by_column = declared(context, Hourly("date_time"), COLUMNS)
    if processing == "deduplicate":
        job_objects.require(by_column)
    else:
        assert "has no column $timestamp" in refusal(lambda: job_objects.require(by_column))


def test_late_rows_are_a_table_of_their_own(driver: Driver) -> None:
    driver.batch(10, HOUR + 5)
    driver.seal(HOUR + 600)
    driver.batch(20, HOUR + 6)
    driver.batch(30)
    assert driver.seal(HOUR + 700) == ["00:00:00Z"]
    assert driver.seal(2 * HOUR + 600) == ["00:00:00Z", "00:00:00Z-2", "01:00:00Z"]
    assert driver.rows() == [10, 20, 30, HOUR + 5, HOUR + 6]
    assert driver.announced() == "02:00:00Z"
    assert driver.staged() == []


@pytest.mark.thorough
@pytest.mark.parametrize("how", [{"merge": True}, {"sort_by": ["n"]}])
def test_a_sealed_table_is_rewritten_and_stays_the_same_node(
    driver: Driver, cluster: Running, how: Mapping[str, Any]
) -> None:
    archive = replace(driver.context.job.archives["output"], **how)
    job = replace(driver.context.job, static={"output": archive})
    driver.batch(20, HOUR + 1)
    driver.batch(10)
    assert driver.seal(HOUR + 600) == ["00:00:00Z"]  # by a job that does not rewrite it
    (name,) = driver.client.list(driver.settings.output)
    path = f"{driver.settings.output}/{name}"
    kept = ["id", SEALED, "expiration_time", "row_count"]
    before = driver.client.get(f"{path}/@", attributes=kept)
    assert driver.client.get(f"{path}/@chunk_count") == 2
    driver.context = replace(driver.context, job=job)
    driver.start()
    fault = cluster.client.faults.add(method="start_operation", action="fail", error=UNAVAILABLE)
    driver.seal(HOUR + 600)
    assert driver.client.get(f"{path}/@chunk_count") == 2
    cluster.client.faults.remove(fault)
    for _ in range(3):
        driver.seal(HOUR + 600)
    assert driver.client.get(f"{path}/@chunk_count") == 1
    assert driver.client.get(f"{path}/@", attributes=kept) == before
    assert driver.rows() == ([10, 20] if "sort_by" in how else [20, 10])
    assert driver.client.exists(f"{path}/@{REWRITTEN}")
    driver.start()
    assert not driver.tables.rewrites.waiting
    driver.seal(2 * HOUR + 600)
    assert len(driver.tables.rewrites.waiting) == 1  # the table that was sealed just now


def test_an_operation_that_fails_leaves_its_table(
    driver: Driver, cluster: Running, caplog: pytest.LogCaptureFixture
) -> None:
    archive = replace(driver.context.job.archives["output"], merge=True)
    job = replace(driver.context.job, static={"output": archive})
    driver.context = replace(driver.context, job=job)
    driver.start()
    driver.batch(10)
    cluster.client.operations.set_start_delay(600)
    try:
        driver.seal(HOUR + 600)
        driver.seal(HOUR + 600)
        (started,) = (one for one in cluster.client.operations.list() if one.state != "completed")
        cluster.client.operations.end(started.id, "failed", "no quota is left")
        driver.seal(HOUR + 600)
    finally:
        cluster.client.operations.set_start_delay(0)
    assert "stays as it is until the next start: no quota is left" in caplog.text
    assert not driver.tables.rewrites.waiting
    assert driver.rows() == [10]
    driver.start()
    assert len(driver.tables.rewrites.waiting) == 1


@pytest.mark.thorough
def test_thirty_periods_are_sealed_in_order_after_a_long_stop(
    driver: Driver, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "job")
    for hour in range(30):
        driver.batch(hour * HOUR + 1)
    driver.start()
    driver.batch(30 * HOUR + 1)
    driver.start()
    driver.seal(30 * HOUR + 600)
    assert driver.announced() == ""  # twenty at a time: signals are heard between
    driver.seal(30 * HOUR + 600)
    assert driver.announced() == "06:00:00Z"
    sealed = [line for line in caplog.messages if line.startswith("sealed ")]
    assert len(sealed) == 30
    assert sealed == sorted(sealed)
    assert driver.rows() == driver.sent[:-1]


def test_a_period_without_rows_has_no_table(driver: Driver) -> None:
    assert driver.seal(5 * HOUR + 600) == []
    assert driver.announced() == "05:00:00Z"
    driver.start()
    driver.batch(HOUR + 1)  # it was announced as complete: the row is late
    assert driver.seal(6 * HOUR + 600) == ["01:00:00Z"]


def test_a_batch_under_way_may_add_to_the_period_that_closes(driver: Driver) -> None:
    driver.batch(10)
    state = driver.tables.begin(1)
    assert state["output"].closed == 0
    assert driver.seal(HOUR + 600) == []  # the piece of that batch is not there yet
    piece = driver._piece(state["output"], DAY, [20])
    driver.batch_number, driver.number = 1, 2
    done = BatchRow({}, {"output": 1}, NOW, NOW, pieces=[piece])
    rows = archive_rows.piece_rows(done, 2, driver.epoch, 1)
    driver.client.insert_rows(driver.settings.ledger, rows)
    driver._head()
    assert driver.seal(HOUR + 600) == ["00:00:00Z"]
    assert driver.rows() == [10, 20]


def test_a_start_removes_what_no_row_names(driver: Driver) -> None:
    driver.batch(10)
    driver.batch(20, happens=False)
    assert len(driver.staged()) == 2
    driver.start()
    assert len(driver.staged()) == 1
    driver.batch(HOUR + 1, happens=False)
    driver.start()
    assert len(driver.staged()) == 1
    assert driver.seal(HOUR + 600) == ["00:00:00Z"]
    assert driver.rows() == [10]


def test_pieces_that_a_lost_ledger_named_stay_and_are_named(
    driver: Driver, caplog: pytest.LogCaptureFixture
) -> None:
    """The rows of the open periods, and of a table whose list was fixed, are nowhere else."""
    driver.batch(10)
    driver.batch(20, HOUR + 1)
    kept = driver.staged()
    for _ in range(2):
        keys = driver.client.select_rows(f"kind, number from [{driver.settings.ledger}]")
        driver.client.delete_rows(driver.settings.ledger, [*keys])
        driver.number = 1  # as `rewind` leaves it
        driver.start()
        assert driver.staged() == kept
        assert f"{driver.settings.staging}/output/{kept[0].partition('/')[0]}: " in caplog.text
        assert "1 piece of 2026-" in caplog.text
        caplog.clear()
    driver.batch(30)
    driver.batch(40, happens=False)
    driver.start()  # it can judge its own
    assert {*kept} < {*driver.staged()}
    assert len(driver.staged()) == len(kept) + 1
    assert driver.seal(HOUR + 600) == ["00:00:00Z"]
    assert driver.rows() == [30]
    assert driver.staged() == kept


def test_what_a_lost_ledger_named_can_be_added_by_hand(driver: Driver) -> None:
    """As docs/archives.md says: by a merge, under a suffix that the job does not reach."""
    driver.batch(10)
    driver.batch(20)
    (first, second) = (f"{driver.settings.staging}/output/{path}" for path in driver.staged())
    keys = driver.client.select_rows(f"kind, number from [{driver.settings.ledger}]")
    driver.client.delete_rows(driver.settings.ledger, [*keys])
    driver.number = 1
    driver.start()
    driver.batch(30)  # into the same folder
    table = f"{driver.settings.output}/{named(DAY, 900)}"
    driver.client.run_merge([first, second], table, mode="ordered")
    for piece in (first, second):
        driver.client.remove(piece)
    driver.start()
    assert driver.seal(HOUR + 600) == ["00:00:00Z", "00:00:00Z-900"]
    driver.batch(40)
    assert driver.seal(2 * HOUR + 600) == ["00:00:00Z", "00:00:00Z-2", "00:00:00Z-900"]
    assert sorted(driver.rows()) == sorted(driver.sent)


def test_a_start_leaves_tables_of_micro_batches_that_wait(driver: Driver) -> None:
    """The output had `STATIC = ("output",)` before: what staging.py cannot judge is a person's."""
    table = f"{driver.settings.staging}/output/00000001-0000000004"
    driver.client.create("table", table, recursive=True)
    driver.start()
    assert driver.client.exists(table)


def test_another_length_of_periods_closes_the_open_one(driver: Driver) -> None:
    driver.batch(10, HOUR + 5)
    driver.seal(HOUR + 600)
    archive = Every(minutes(15), "date_time")
    job = replace(driver.context.job, static={"output": archive})
    driver.context = replace(driver.context, job=job)
    driver.start()
    driver.batch(HOUR + 10, HOUR + 1_000)
    assert driver.seal(HOUR + 700) == ["00:00:00Z", "01:00:00Z"]
    names = ["00:00:00Z", "01:00:00Z", "01:00:00Z-2", "01:15:00Z"]
    assert driver.seal(2 * HOUR) == names
    assert sorted(driver.rows()) == sorted(driver.sent)


def test_other_columns_close_the_open_period(driver: Driver) -> None:
    driver.batch(10)
    outputs = {**driver.context.job.outputs, "output": [*COLUMNS, Column("more", "int64")]}
    driver.context = replace(driver.context, job=replace(driver.context.job, outputs=outputs))
    driver.start()
    driver.batch(20)
    assert driver.seal(600) == ["00:00:00Z"]
    assert driver.announced() == "00:00:00Z"
    assert driver.seal(HOUR + 600) == ["00:00:00Z", "00:00:00Z-2"]
    assert driver.rows() == [10, 20]


def test_a_foreign_table_of_the_name_waits_and_the_job_goes_on(
    driver: Driver, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "job")
    driver.batch(10, HOUR + 1)
    group = group_of(DAY, HOUR, 0)
    foreign = f"{driver.settings.output}/{archive_rows.TableRow('output', group, 1, '', 0, 0).name}"
    driver.client.create("table", foreign)
    driver.seal(2 * HOUR + 600)
    driver.batch(2 * HOUR + 1)
    driver.seal(2 * HOUR + 700)
    said = [line for line in caplog.messages if "exists already" in line]
    assert len(said) == 1
    assert driver.announced() == ""
    driver.client.remove(foreign)
    assert driver.seal(2 * HOUR + 800) == ["00:00:00Z", "01:00:00Z"]
    assert driver.rows() == [10, HOUR + 1]


def test_a_locked_folder_waits(driver: Driver, caplog: pytest.LogCaptureFixture) -> None:
    driver.batch(10)
    held = driver.client.start_transaction(timeout=60_000, attributes={})
    with driver.client.Transaction(transaction_id=held):
        driver.client.lock(driver.settings.output, mode="exclusive")
    assert driver.seal(HOUR + 600) == []
    assert "no table can be sealed now" in caplog.text
    driver.client.abort_transaction(held)
    assert driver.seal(HOUR + 700) == ["00:00:00Z"]


def test_a_person_closes_a_period(driver: Driver) -> None:
    driver.batch(10)
    row = archive_rows.request_row("output", DAY + HOUR)
    driver.client.insert_rows(driver.settings.ledger, [row])
    assert driver.seal(0) == ["00:00:00Z"]
    driver.batch(20)
    assert driver.seal(2 * HOUR + 600) == ["00:00:00Z", "00:00:00Z-2"]


def test_an_older_driver_makes_no_table(driver: Driver, cluster: Running) -> None:
    """Its lock is gone: its transaction cannot commit, whatever it has found before."""
    driver.batch(10)
    held = driver.client.start_transaction(timeout=60_000, attributes={})
    driver.tables.lock = lambda: str(held)
    create = driver.tables.context.client.create

    def late(*given: Any, **named: Any) -> Any:
        driver.client.abort_transaction(held)
        return create(*given, **named)

    driver.tables.context.client.create = late  # type: ignore[method-assign]
    assert driver.seal(HOUR + 600) == []
    driver.start()
    assert driver.seal(HOUR + 700) == ["00:00:00Z"]
    assert driver.rows() == [10]


STEPS = ("create", "lock", "list", "concatenate", "get", "remove", "start_transaction")
"""Requests of a table."""


@pytest.mark.slow
@pytest.mark.parametrize("action", ["lose_reply", "fail"])
@pytest.mark.parametrize("method", ["commit_transaction", *STEPS])
def test_a_table_is_made_once_whatever_is_lost(
    driver: Driver, cluster: Running, method: str, action: str
) -> None:
    """Also by the next start: it repeats the list, and never looks for pieces."""
    driver.batch(10)
    driver.batch(20, HOUR + 1)
    error = UNAVAILABLE if action == "fail" else None
    fault = cluster.client.faults.add(method=method, action=action, error=error)
    driver.seal(HOUR + 600)
    driver.start()
    driver.batch(HOUR + 2)
    driver.seal(HOUR + 600)
    cluster.client.faults.remove(fault)
    assert driver.seal(HOUR + 700) == ["00:00:00Z"]
    assert driver.rows() == [10, 20]
    assert [(t.rows, t.step) for t in driver.tables_of_the_ledger()] == [(2, DONE)]
    assert all("-3600-" in path for path in driver.staged())
    assert driver.seal(2 * HOUR + 600) == ["00:00:00Z", "01:00:00Z"]
    assert sorted(driver.rows()) == sorted(driver.sent)
    assert driver.staged() == []
    assert driver.tables.staged("output") == []


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.parametrize("died_at", range(12))
def test_a_driver_that_dies_between_two_steps(driver: Driver, died_at: int) -> None:
    """At each request that changes something, before and after it."""
    driver.batch(10, HOUR + 1)
    driver.seal(HOUR + 600)
    driver.batch(20, HOUR + 2)  # a late row
    left = [died_at]

    def dying(call: Any) -> Any:
        def made(*given: Any, **named: Any) -> Any:
            left[0] -= 1
            if left[0] == -1:
                raise StoppedError
            return call(*given, **named)

        return made

    client = driver.tables.context.client
    for name in ("create", "lock", "list", "set", "start_transaction"):
        setattr(client, name, dying(getattr(client, name)))
    driver.tables.commit = dying(driver.commit)
    try:
        driver.seal(2 * HOUR + 600)
    except StoppedError:
        driver.start()
        driver.seal(2 * HOUR + 600)
    assert driver.names() == ["00:00:00Z", "00:00:00Z-2", "01:00:00Z"]
    assert driver.rows() == [10, 20, HOUR + 1, HOUR + 2]
    counts = {table.name: table.rows for table in driver.tables_of_the_ledger()}
    for name, rows in counts.items():
        assert driver.client.get(f"{driver.settings.output}/{name}/@row_count") == rows
    assert driver.staged() == []
    assert driver.announced() == "02:00:00Z"


def test_pieces_that_were_removed_by_hand_are_named(
    driver: Driver, caplog: pytest.LogCaptureFixture
) -> None:
    driver.batch(10)
    driver.batch(20)
    (first, _) = sorted(driver.staged())
    driver.client.remove(f"{driver.settings.staging}/output/{first}")
    assert driver.seal(HOUR + 600) == []
    assert "is gone" in caplog.text
    with pytest.raises((JobError, YtError)):
        driver.tables._seal("output")


@pytest.mark.parametrize(
    "count",
    [pytest.param(32, marks=pytest.mark.thorough), pytest.param(365, marks=pytest.mark.journey)],
)
def test_of_hourly_tables_those_of_thirty_days_stay(
    provisioned_of: ContextOf, cluster: Running, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    """The cluster's clock moves along, and removes what has expired: 720 tables are left."""
    archive = Hourly("date_time", lateness=minutes(0), keep=days(30))
    context = declared(provisioned_of("transactional"), archive, COLUMNS)
    job_objects.provision(context)
    clock = cluster.client.clock
    driver = Driver(context, int(clock.now() // DAYLONG + 1) * DAYLONG)
    monkeypatch.setattr(completeness, "bound", lambda *_: driver.complete)
    for day in range(1, count + 1):
        # To midnight, however long the days before have taken: an hour more would expire a table.
        clock.advance(driver.day + day * DAYLONG - clock.now())
        hours = range((day - 1) * 24, day * 24)
        driver.batch(*(hour * HOUR for hour in hours), copied=True)
        for _ in range(2):  # twenty tables at a time
            driver.seal(day * DAYLONG)
        assert driver.staged() == []
    kept = [named(driver.day + hour * HOUR) for hour in range((count - 30) * 24, count * 24)]
    assert sorted(map(str, driver.client.list(driver.settings.output))) == kept
    assert len(kept) == 720
    assert {table.step for table in driver.tables_of_the_ledger()} == {DONE}
    assert len(driver.tables_of_the_ledger()) == count * 24
