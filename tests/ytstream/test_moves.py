"""The ledger says why a batch does not begin where the last one ended: a skip, or a rewind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.ytstream import mutants
from tests.ytstream.driver import Driver
from tests.ytstream.helpers import DriverOf, refusal
from ytstream import ledger
from ytstream.ledger import Move
from ytstream.recovery import snapshot
from ytstream.status import status

KINDS = ("skip", "rewind")
A, B = "//home/a", "//home/b"
pytestmark = pytest.mark.spark  # it needs Spark's JVM, though no session
for_all = pytest.mark.parametrize(
    ("guarantee", "processing"),
    [("transactional", "window"), ("at_least_once", "window"), ("idempotent", "map")],
)


def test_a_move_names_queue_partition_and_both_rows() -> None:
    row = ledger.move_row(7, Move("skip", {A: {1: (3, 5), 0: (0, 2)}, B: {}}))
    assert row.pop("ended") > 0
    assert row == {
        "kind": "skip",
        "number": 7,
        "epoch": 7,
        "batch": -1,
        "queues": [{"path": A, "moved": {"0": [0, 2], "1": [3, 5]}}, {"path": B, "moved": {}}],
    }


def _rows(driver: Driver, *kinds: str) -> list[dict[str, Any]]:
    """Return the ledger's rows of these kinds: by epoch, and a start's before its batches."""
    listed = ", ".join(f'"{kind}"' for kind in kinds)
    query = f"* from [{driver.settings.ledger}] where kind in ({listed})"
    found = (dict(row) for row in driver.client.select_rows(query))
    return sorted(found, key=lambda row: (row["epoch"], row["kind"] == "batch", row["number"]))


def _moves(driver: Driver) -> list[tuple[str, dict[int, tuple[int, int]]]]:
    """Return the kind of each move, and where it went in the partitions of the first queue."""
    return [(row["kind"], dict(_pairs(row["queues"][0]["moved"]))) for row in _rows(driver, *KINDS)]


def _pairs(texts: dict[str, list[int]]) -> Iterator[tuple[int, tuple[int, int]]]:
    for partition, (first, after) in texts.items():
        yield int(partition), (int(first), int(after))


def _is_told(driver: Driver) -> bool:
    """Return whether the ledger alone leads from row 0 to the head, without a gap."""
    at: dict[tuple[str, int], int] = {}
    for row in _rows(driver, "batch", *KINDS):
        for queue in row["queues"]:
            for partition, (first, after) in _pairs(queue.get("rows", queue.get("moved"))):
                if at.get((queue["path"], partition), 0) != first:
                    return False
                at[queue["path"], partition] = after
    head = snapshot.read(driver.client, driver.settings).head
    assert head is not None
    ends = {(path, p): row for path, rows in head.ends.items() for p, row in rows.items() if row}
    return ends == {place: row for place, row in at.items() if row}


def _skip(driver: Driver, queue: int = 0) -> None:
    """Trim partition 1 of a queue under the stopped job, which then starts behind the gap."""
    driver.send(3)
    found = snapshot.read(driver.client, driver.settings).queues[queue]
    driver.client.trim_rows(found.path, 1, found.upper[1] - 1)
    driver.configure(on_data_loss="skip")
    driver.start(anew=True)
    driver.batch()


@for_all
def test_a_skip_has_a_row_in_the_ledger(
    driver_of: DriverOf, guarantee: str, processing: str
) -> None:
    driver = driver_of(guarantee, processing)
    driver.run(4)
    before = _rows(driver, "batch")
    assert _moves(driver) == []
    _skip(driver)
    assert _moves(driver) == [("skip", {1: (4, 6)})]
    (row,) = _rows(driver, "skip")
    assert (row["epoch"], row["number"]) == (driver.epoch.number,) * 2
    assert before[-1]["ended"] < row["ended"]
    driver.run(2, anew=True)
    assert _moves(driver) == [("skip", {1: (4, 6)})]
    assert _is_told(driver)


@for_all
def test_a_rewind_has_a_row_in_the_ledger(
    driver_of: DriverOf, guarantee: str, processing: str
) -> None:
    driver = driver_of(guarantee, processing)
    queue = driver.settings.queues[0]
    driver.run(4)
    driver.rewind("rows", f"{queue}:1=2")
    driver.run(1, anew=True)
    driver.send(3)
    driver.rewind("latest")
    driver.rewind("latest")
    driver.run(2, anew=True)
    assert _moves(driver) == [
        ("rewind", {1: (4, 2)}),
        ("rewind", {0: (5, 8), 1: (5, 8)}),
        ("rewind", {}),
    ]
    assert _is_told(driver)


def test_a_skip_that_migrate_meets_has_a_row_as_well(driver_of: DriverOf) -> None:
    driver = driver_of("at_least_once")
    driver.run(4)
    driver.redeclare(guarantee="transactional")
    driver.send(3)
    driver.client.trim_rows(driver.settings.queues[0], 0, 6)
    driver.configure(on_data_loss="skip")
    driver.migrate()
    assert _moves(driver) == [("skip", {0: (4, 6)})]
    driver.run(1, anew=True)
    assert _is_told(driver)


def test_a_refused_gap_leaves_no_row(driver_of: DriverOf) -> None:
    driver = driver_of("transactional")
    driver.run(4)
    driver.send(3)
    driver.client.trim_rows(driver.settings.queues[0], 0, 6)
    assert "trimmed before this job read them" in refusal(lambda: driver.start(anew=True))
    assert _moves(driver) == []


@pytest.mark.parametrize("is_cured", [True, False])
def test_only_the_moves_explain_the_gaps(
    driver_of: DriverOf, monkeypatch: pytest.MonkeyPatch, is_cured: bool
) -> None:
    """Of two queues, with a rewind in between; readers of batches do not see the moves."""
    if not is_cured:
        mutants.tell_no_move(monkeypatch)
    driver = driver_of("transactional", "window", 2)
    driver.run(4)
    _skip(driver)
    driver.rewind("rows", f"{driver.settings.queues[1]}:0=3")
    _skip(driver, queue=1)
    assert _is_told(driver) == is_cured
    assert status(driver.connection).count("rows read") == 1
    head = snapshot.read(driver.client, driver.settings).head
    query = ledger.newest_query(driver.settings.ledger, 100)
    assert head is not None
    assert len([*driver.client.select_rows(query)]) == head.number == 3
