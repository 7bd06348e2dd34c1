"""Totals in tables: `migrate` gives them to a job that had state, `rewind` begins with empty ones.

No Spark: the driver's batches add their contributions as the connector does.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, cast

import pytest

from tests.support.helpers import DriverOf, refusal
from tests.support.simulated_driver import Driver
from ytstream import Column
from ytstream.commands import provision
from ytstream.ledger.ledger_rows import Head, head_row
from ytstream.ledger.positions import read_head
from ytstream.outputs import sum_bounds
from ytstream.provisioning import job_objects
from ytstream.recovery import added_totals, emptied_totals, repositioning
from ytstream.schema.sums import Bounds, quarter_of, sums_of

IN_STATE = [Column("auction", "int64", key=True), Column("bids", "int64", required=True)]
IN_TABLE = [IN_STATE[0], replace(IN_STATE[1], aggregate="sum")]


class KilledError(Exception):
    """The process has died here."""


class Fragile:
    """A client that dies before its n-th change of a table or of Cypress."""

    CHANGES = ("create", "move", "remove", "set", "alter_table", "mount_table", "unmount_table")

    def __init__(self, client: Any, lives: int) -> None:
        self._client, self._lives = client, lives

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._client, name)
        if name not in self.CHANGES:
            return found

        def counted(*args: Any, **options: Any) -> Any:
            if self._lives == 0:
                raise KilledError(name)
            self._lives -= 1
            return found(*args, **options)

        return counted


@pytest.fixture
def driver(driver_of: DriverOf) -> Driver:
    """A job with totals in its table."""
    made = driver_of("transactional", "aggregate")
    made.client.remove(made.settings.output)
    made.redeclare(outputs={"output": IN_TABLE})
    job_objects.provision(made.context)
    return made


def played(driver: Driver) -> None:
    """Run a batch of one row of each partition, and add their contributions."""
    driver.send(1)
    driver.batch()
    row = {"auction": 1, "bids": len(driver.settings.queues) * 2}
    client = cast(Any, driver.client)
    client.insert_rows(driver.settings.output, [row], aggregate=True, update=True)


def bids(driver: Driver, path: str = "") -> list[int]:
    rows = driver.client.select_rows(f"bids from [{path or driver.settings.output}]")
    return [row["bids"] for row in rows]


def killed_at_each_step(driver: Driver, command: Callable[[], object]) -> Iterator[int]:
    """Run a command that dies before each of its changes in turn, until it is done."""
    client = driver.client
    for lives in (*range(3), *range(100)):  # what an attempt has done shortens the next one
        driver.context = replace(driver.context, client=cast(Any, Fragile(client, lives)))
        is_done = True
        try:
            command()
        except KilledError:
            is_done = False
        finally:
            driver.context = replace(driver.context, client=client)
        if is_done:
            return
        yield lives


def test_a_rewind_back_is_refused(driver: Driver) -> None:
    driver.start()
    played(driver)
    assert "rows that are read again would be added again" in refusal(
        lambda: driver.rewind("earliest")
    )
    driver.send(1)
    driver.rewind("latest")
    assert bids(driver) == [2]


def test_a_rewind_begins_with_empty_totals(driver: Driver) -> None:
    driver.start()
    played(driver)
    head = read_head(driver.settings.ledger, driver.client.select_rows)
    assert head is not None
    sums = {driver.settings.output: {"bids": Bounds(0, 2)}}
    driver.client.insert_rows(driver.settings.ledger, [head_row(replace(head, sums=sums))])
    said = driver.rewind("earliest", empty=True)
    (line,) = (line for line in said if "begins empty" in line)
    former = line.split()[-2].removesuffix(",")
    assert bids(driver) == []
    driver.client.mount_table(former, sync=True)
    assert bids(driver, former) == [2]
    head = read_head(driver.settings.ledger, driver.client.select_rows)
    assert head is not None
    assert head.state_since == head.ends
    assert not head.sums
    driver.start(new_process=True)


def test_bounds_of_totals_come_from_the_table_and_stay_in_the_head(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table with many rows is not asked, nor is one that does not answer."""
    path, context = driver.settings.output, driver.context
    ends = sums_of(context.job.output_columns["output"])
    guessed = {path: {"bids": quarter_of(ends["bids"])}}
    assert sum_bounds.before(context, {}, is_first=False) == {path: {"bids": Bounds()}}
    for key, more in ((1, 2**62), (1, 2**62 - 1), (2, -5)):
        client = cast(Any, driver.client)
        client.insert_rows(path, [{"auction": key, "bids": more}], aggregate=True, update=True)
    found = {path: {"bids": Bounds(-5, 2**63 - 1)}}
    assert sum_bounds.before(context, {}, is_first=False) == found
    large = {path: {"bids": Bounds(0, 2**63 - 1)}}
    assert sum_bounds.before(context, large, is_first=False) == large
    assert sum_bounds.before(context, large, is_first=True) == found
    monkeypatch.setattr(sum_bounds, "_FEW_ROWS", 1)
    assert sum_bounds.before(context, {}, is_first=True) == guessed
    monkeypatch.undo()
    driver.client.unmount_table(path, sync=True)
    assert sum_bounds.before(context, {}, is_first=True) == guessed
    assert sum_bounds.before(context, large, is_first=True) == large
    most = {path: {"bids": Bounds(-(2**63), 2**63 - 1), "sizes": Bounds(0, 2**64 - 1)}}
    driver.client.insert_rows(driver.settings.ledger, [head_row(replace(Head(), sums=most))])
    head = read_head(driver.settings.ledger, driver.client.select_rows)
    assert head is not None
    assert head.sums == most


@pytest.mark.thorough
def test_a_rewind_that_was_cut_off_is_repeated(driver: Driver) -> None:
    """Whatever the step: no start comes in between, and none of the totals are counted twice."""
    driver.start()
    played(driver)
    (queue,) = driver.settings.queues
    steps = 0
    for _ in killed_at_each_step(driver, lambda: driver.rewind("earliest", empty=True)):
        steps += 1
        emptied_totals.resume(driver.context)
        job_objects.require(driver.context)
        head = read_head(driver.settings.ledger, driver.client.select_rows)
        assert head is not None
        if emptied_totals.INTENT in head.marker:
            assert "was cut off" in refusal(lambda: driver.start(new_process=True))
            assert "was cut off" in refusal(lambda: driver.rewind("latest"))
    assert steps > 4
    assert bids(driver) == []
    head = read_head(driver.settings.ledger, driver.client.select_rows)
    assert head is not None
    assert head.ends[queue] == {0: 0, 1: 0}
    driver.start(new_process=True)
    folder = driver.settings.output.rpartition("/")[0]
    names = [str(name) for name in driver.client.list(folder)]
    assert [name for name in names if name.startswith("output_")] == ["output_before_2"]


def test_tables_of_others_under_names_of_a_rewind_stay_and_totals_are_emptied(
    driver: Driver,
) -> None:
    """A ledger that is made again counts its epochs from 1, and a person may copy a table."""
    driver.start()
    played(driver)
    path = driver.settings.output
    others = [f"{path}_before_2", f"{path}_empty"]
    for other in others:
        driver.client.create("table", other, attributes={"of": "somebody"})
    rehearsed = repositioning.rehearse_rewind(driver.context, "earliest", (), empty=True)
    said = driver.rewind("earliest", empty=True)
    (line,) = (line for line in said if "begins empty" in line)
    assert line in rehearsed
    assert f"{path}_before_2_2" in line
    assert bids(driver) == []
    driver.client.mount_table(f"{path}_before_2_2", sync=True)
    assert bids(driver, f"{path}_before_2_2") == [2]
    assert [driver.client.get(f"{other}/@of") for other in others] == ["somebody"] * 2
    assert not driver.client.exists(f"{path}_empty_2")


def cut_off(driver: Driver) -> None:
    """Kill a rewind that has moved the table away and brought no empty one yet."""
    driver.start()
    played(driver)
    client = driver.client
    driver.context = replace(driver.context, client=cast(Any, Fragile(client, 3)))
    with pytest.raises(KilledError):
        driver.rewind("earliest", empty=True)
    driver.context = replace(driver.context, client=client)
    assert not client.exists(driver.settings.output)


def test_provision_brings_the_table_of_a_rewind_that_was_cut_off(driver: Driver) -> None:
    cut_off(driver)
    fresh = f"{driver.settings.output}_empty"
    driver.client.set(f"{fresh}/@of", "the rewind")
    assert provision.COMMAND.run is not None
    provision.COMMAND.run(driver.context, argparse.Namespace(dry_run=False))
    assert driver.client.get(f"{driver.settings.output}/@of") == "the rewind"
    assert not driver.client.exists(fresh)


def test_a_table_that_came_to_the_path_in_between_must_be_empty(driver: Driver) -> None:
    """Somebody may make one while a rewind that was cut off has left no table there."""
    cut_off(driver)
    path, client = driver.settings.output, driver.client
    job_objects.provision(driver.context)
    cast(Any, client).insert_rows(path, [{"auction": 1, "bids": 5}], aggregate=True, update=True)
    assert "and has rows" in refusal(lambda: driver.rewind("earliest", empty=True))
    client.delete_rows(path, [{"auction": 1}])
    driver.rewind("earliest", empty=True)
    assert bids(driver) == []
    assert not client.exists(f"{path}_empty")
    driver.start(new_process=True)


def test_totals_that_are_not_there_are_not_emptied(driver_of: DriverOf) -> None:
    plain = driver_of("transactional", "map")
    assert "no output has aggregate=" in refusal(lambda: plain.rewind("earliest", empty=True))


def test_a_state_becomes_totals_of_the_table(driver_of: DriverOf) -> None:
    """`migrate` is killed before each of its changes: neither job starts until it is done."""
    driver = driver_of("transactional", "aggregate")
    driver.client.remove(driver.settings.output)
    driver.redeclare(outputs={"output": IN_STATE})
    job_objects.provision(driver.context)
    driver.start()
    driver.send(3)
    driver.batch()
    driver.client.insert_rows(driver.settings.output, [{"auction": 1, "bids": 6}])
    before = driver.context
    driver.redeclare(outputs={"output": IN_TABLE})
    after = driver.context.job
    steps = 0
    for _ in killed_at_each_step(driver, driver.migrate):
        steps += 1
        job_objects.require(driver.context, migrating=True)
        assert "run `migrate`" in refusal(lambda: driver.start(new_process=True))
        if added_totals.lacking(driver.context):
            assert "run `migrate`" in refusal(lambda: job_objects.require(driver.context))
            continue
        driver.context = replace(driver.context, job=before.job)
        said = refusal(lambda: job_objects.require(driver.context))
        assert "the table cannot lose or change it" in said
        driver.context = replace(driver.context, job=after)
    assert steps >= 5
    assert "nothing to do" in driver.migrate()[0]
    head = read_head(driver.settings.ledger, driver.client.select_rows)
    assert head is not None
    assert head.sums == {driver.settings.output: {"bids": Bounds(0, 6)}}
    job_objects.require(driver.context)
    driver.start(new_process=True)
    played(driver)
    assert bids(driver) == [8]
    driver.context = replace(driver.context, job=before.job)
    assert "restore aggregate= in tables.py" in refusal(driver.migrate)


def test_a_job_with_other_totals_asks_for_migrate(driver_of: DriverOf) -> None:
    driver = driver_of("transactional", "aggregate")
    driver.client.remove(driver.settings.output)
    driver.redeclare(outputs={"output": IN_STATE})
    job_objects.provision(driver.context)
    driver.start()
    driver.redeclare(outputs={"output": IN_TABLE})
    text = refusal(lambda: driver.start(new_process=True))
    assert "aggregate= of tables.py is new, or gone, for output" in text
