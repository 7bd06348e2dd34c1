"""The ledger says why a batch does not begin where the last one ended: a skip, or a rewind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

import pytest

from tests.faults.sequences.world import QUEUES, Op, World
from tests.faults.sequences.world import Form as Kind
from tests.support import without_fix
from ytstream.cluster.client import Client
from ytstream.errors.error_codes import ErrorCode
from ytstream.ledger import ledger_rows, positions
from ytstream.ledger.ledger_rows import Move
from ytstream.recovery import migration, repositioning
from ytstream_tools.status.status_text import status

A, B = QUEUES
MOVES = ("skip", "rewind")
Moved = Mapping[int, tuple[int, int]]
"""Partition -> the row that came next, and the one that comes next now."""
for_all = pytest.mark.parametrize(
    "kind",
    [
        Kind("transactional", "aggregate", most_rows=50),
        Kind("at_least_once", most_rows=50),
        Kind("idempotent", most_rows=50),
    ],
    ids=lambda kind: kind.name,
)


def test_a_move_names_queue_partition_and_both_rows() -> None:
    row = ledger_rows.move_row(7, Move("skip", {A: {1: (3, 5), 0: (0, 2)}, B: {}}))
    assert row.pop("ended") > 0
    assert row == {
        "kind": "skip",
        "number": 7,
        "epoch": 7,
        "batch": -1,
        "queues": [{"path": A, "moved": {"0": [0, 2], "1": [3, 5]}}, {"path": B, "moved": {}}],
    }


def _begun(kind: Kind) -> World:
    """Return a job that has read four rows of the first partitions, and one of the second."""
    world = World(kind)
    _read(world)
    return world


def _read(world: World) -> None:
    """Send four rows to the first partitions and one to the second, and read all that waits."""
    world.play(Op("send", 3))
    world.play(Op("batch"))


def _trim(world: World, queue: str, partition: int, row: int) -> None:
    world.client.trim_rows(queue, partition, row)
    world.oracle.trimmed(queue, partition, row)


def _rewind(world: World, to: str, *rows: str) -> None:
    world._end()
    driver = world._new()
    tablets: Any = driver.tablets
    world.oracle.rewinds(to, [*rows])
    repositioning.rewind(driver.context, tablets, to, rows)
    world.oracle.look(world.settings, world.guarantee)
    assert not world.oracle.rewound(world.connected(world.client))
    world._end()


def _migrate(world: World, guarantee: str) -> None:
    world._end()
    world.guarantee = guarantee
    world._provision()
    driver = world._new()
    tablets: Any = driver.tablets
    migration.migrate(driver.context, tablets)
    world._look()
    world._end()


def _rows(world: World, *kinds: str) -> list[dict[str, Any]]:
    """Return the ledger's rows of these kinds: by epoch, and a start's before its batches."""
    listed = ", ".join(f'"{kind}"' for kind in kinds)
    query = f"* from [{world.settings.ledger}] where kind in ({listed})"
    found = (dict(row) for row in world.client.select_rows(query))
    return sorted(found, key=lambda row: (row["epoch"], row["kind"] == "batch", row["number"]))


def _moves(world: World) -> list[tuple[str, dict[str, Moved]]]:
    """Return the kind of each move, and where it went; queues that stayed are left out."""
    return [
        (row["kind"], {q["path"]: dict(_pairs(q["moved"])) for q in row["queues"] if q["moved"]})
        for row in _rows(world, *MOVES)
    ]


def _pairs(texts: Mapping[str, list[int]]) -> Iterator[tuple[int, tuple[int, int]]]:
    for partition, (first, after) in texts.items():
        yield int(partition), (int(first), int(after))


def _is_told(world: World) -> bool:
    """Return whether only the ledger leads from row 0 to the head, without a gap."""
    at: dict[tuple[str, int], int] = {}
    for row in _rows(world, "batch", *MOVES):
        for queue in row["queues"]:
            for partition, (first, after) in _pairs(queue.get("rows", queue.get("moved"))):
                if at.get((queue["path"], partition), 0) != first:
                    return False
                at[queue["path"], partition] = after
    head = positions.read(cast(Client, world.client), world.settings).head
    assert head is not None
    ends = {(path, p): row for path, rows in head.ends.items() for p, row in rows.items() if row}
    return ends == {place: row for place, row in at.items() if row}


@for_all
def test_a_skip_has_a_row_in_the_ledger(kind: Kind) -> None:
    world = _begun(kind)
    assert _moves(world) == []
    world.play(Op("data_loss", 1))
    world.play(Op("send", 3))
    _trim(world, A, 0, 6)
    world.play(Op("batch"))
    assert _moves(world) == [("skip", {A: {0: (4, 6)}})]
    (row,), (first, second) = _rows(world, "skip"), _rows(world, "batch")
    assert row["epoch"] == row["number"] == second["epoch"] > first["epoch"]
    assert first["ended"] <= row["ended"] <= second["ended"]
    world.play(Op("restart", 1))
    _read(world)
    assert len(_moves(world)) == 1
    assert _is_told(world)


@for_all
def test_a_rewind_has_a_row_in_the_ledger(kind: Kind) -> None:
    world = _begun(kind)
    _rewind(world, "rows", f"{A}:0=2")
    _read(world)
    world.play(Op("send", 3))
    _rewind(world, "latest")
    _rewind(world, "latest")
    _read(world)
    assert _moves(world) == [
        ("rewind", {A: {0: (4, 2)}}),
        ("rewind", {A: {0: (8, 12), 1: (2, 3)}, B: {0: (8, 12), 1: (2, 3)}}),
        ("rewind", {}),
    ]
    assert _is_told(world)


def test_a_skip_that_migrate_meets_has_a_row_as_well() -> None:
    world = _begun(Kind("at_least_once", most_rows=50))
    world.play(Op("data_loss", 1))
    world.play(Op("send", 3))
    _trim(world, B, 0, 5)
    _migrate(world, "transactional")
    assert _moves(world) == [("skip", {B: {0: (4, 5)}})]
    _read(world)
    assert len(_moves(world)) == 1
    assert _is_told(world)


def test_migrate_alone_moves_nothing_and_a_refused_gap_leaves_no_row() -> None:
    world = _begun(Kind("at_least_once", most_rows=50))
    _migrate(world, "transactional")
    world.play(Op("send", 3))
    _trim(world, A, 0, 6)
    world.play(Op("restart", 1))
    assert world._refused is ErrorCode.ROWS_TRIMMED
    assert _moves(world) == []


@pytest.mark.parametrize("is_fixed", [True, False])
def test_only_the_moves_explain_the_gaps(monkeypatch: pytest.MonkeyPatch, is_fixed: bool) -> None:
    """With a rewind between two skips; readers of batches do not see the moves."""
    if not is_fixed:
        without_fix.tell_no_move(monkeypatch)
    world = _begun(Kind("transactional", most_rows=50))
    world.play(Op("data_loss", 1))
    world.play(Op("send", 3))
    _trim(world, A, 0, 6)
    world.play(Op("batch"))
    _rewind(world, "rows", f"{B}:0=3")
    world.play(Op("send", 3))
    _trim(world, B, 1, 3)
    world.play(Op("batch"))
    assert _is_told(world) == is_fixed
    assert bool(_moves(world)) == is_fixed
    head = positions.read(cast(Client, world.client), world.settings).head
    assert head is not None
    assert head.number == len([*world.client.select_rows(_newest(world))]) == 3
    assert "the last 3 batches: " in status(world.connected(world.client))


def _newest(world: World) -> str:
    return ledger_rows.newest_query(world.settings.ledger, 100)
