"""The ledger says why a batch does not begin where the last one ended: a skip, or a rewind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

import pytest

from tests.faults.sequences.job_site import QUEUES, Op, Site
from tests.faults.sequences.job_site import Form as Kind
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


def _begun(kind: Kind) -> Site:
    """Return a job that has read four rows of the first partitions, and one of the second."""
    site = Site(kind)
    _read(site)
    return site


def _read(site: Site) -> None:
    """Send four rows to the first partitions and one to the second, and read all that waits."""
    site.play(Op("send", 3))
    site.play(Op("batch"))


def _trim(site: Site, queue: str, partition: int, row: int) -> None:
    site.client.trim_rows(queue, partition, row)
    site.oracle.trimmed(queue, partition, row)


def _rewind(site: Site, to: str, *rows: str) -> None:
    site._end()
    driver = site._new()
    tablets: Any = driver.tablets
    site.oracle.rewinds(to, [*rows])
    repositioning.rewind(driver.context, tablets, to, rows)
    site.oracle.look(site.settings, site.guarantee)
    assert not site.oracle.rewound(site.connected(site.client))
    site._end()


def _migrate(site: Site, guarantee: str) -> None:
    site._end()
    site.guarantee = guarantee
    site._provision()
    driver = site._new()
    tablets: Any = driver.tablets
    migration.migrate(driver.context, tablets)
    site._look()
    site._end()


def _rows(site: Site, *kinds: str) -> list[dict[str, Any]]:
    """Return the ledger's rows of these kinds: by epoch, and a start's before its batches."""
    listed = ", ".join(f'"{kind}"' for kind in kinds)
    query = f"* from [{site.settings.ledger}] where kind in ({listed})"
    found = (dict(row) for row in site.client.select_rows(query))
    return sorted(found, key=lambda row: (row["epoch"], row["kind"] == "batch", row["number"]))


def _moves(site: Site) -> list[tuple[str, dict[str, Moved]]]:
    """Return the kind of each move, and where it went; queues that stayed are left out."""
    return [
        (row["kind"], {q["path"]: dict(_pairs(q["moved"])) for q in row["queues"] if q["moved"]})
        for row in _rows(site, *MOVES)
    ]


def _pairs(texts: Mapping[str, list[int]]) -> Iterator[tuple[int, tuple[int, int]]]:
    for partition, (first, after) in texts.items():
        yield int(partition), (int(first), int(after))


def _is_told(site: Site) -> bool:
    """Return whether only the ledger leads from row 0 to the head, without a gap."""
    at: dict[tuple[str, int], int] = {}
    for row in _rows(site, "batch", *MOVES):
        for queue in row["queues"]:
            for partition, (first, after) in _pairs(queue.get("rows", queue.get("moved"))):
                if at.get((queue["path"], partition), 0) != first:
                    return False
                at[queue["path"], partition] = after
    head = positions.read(cast(Client, site.client), site.settings).head
    assert head is not None
    ends = {(path, p): row for path, rows in head.ends.items() for p, row in rows.items() if row}
    return ends == {place: row for place, row in at.items() if row}


@for_all
def test_a_skip_has_a_row_in_the_ledger(kind: Kind) -> None:
    site = _begun(kind)
    assert _moves(site) == []
    site.play(Op("data_loss", 1))
    site.play(Op("send", 3))
    _trim(site, A, 0, 6)
    site.play(Op("batch"))
    assert _moves(site) == [("skip", {A: {0: (4, 6)}})]
    (row,), (first, second) = _rows(site, "skip"), _rows(site, "batch")
    assert row["epoch"] == row["number"] == second["epoch"] > first["epoch"]
    assert first["ended"] <= row["ended"] <= second["ended"]
    site.play(Op("restart", 1))
    _read(site)
    assert len(_moves(site)) == 1
    assert _is_told(site)


@for_all
def test_a_rewind_has_a_row_in_the_ledger(kind: Kind) -> None:
    site = _begun(kind)
    _rewind(site, "rows", f"{A}:0=2")
    _read(site)
    site.play(Op("send", 3))
    _rewind(site, "latest")
    _rewind(site, "latest")
    _read(site)
    assert _moves(site) == [
        ("rewind", {A: {0: (4, 2)}}),
        ("rewind", {A: {0: (8, 12), 1: (2, 3)}, B: {0: (8, 12), 1: (2, 3)}}),
        ("rewind", {}),
    ]
    assert _is_told(site)


def test_a_skip_that_migrate_meets_has_a_row_as_well() -> None:
    site = _begun(Kind("at_least_once", most_rows=50))
    site.play(Op("data_loss", 1))
    site.play(Op("send", 3))
    _trim(site, B, 0, 5)
    _migrate(site, "transactional")
    assert _moves(site) == [("skip", {B: {0: (4, 5)}})]
    _read(site)
    assert len(_moves(site)) == 1
    assert _is_told(site)


def test_migrate_alone_moves_nothing_and_a_refused_gap_leaves_no_row() -> None:
    site = _begun(Kind("at_least_once", most_rows=50))
    _migrate(site, "transactional")
    site.play(Op("send", 3))
    _trim(site, A, 0, 6)
    site.play(Op("restart", 1))
    assert site._refused is ErrorCode.ROWS_TRIMMED
    assert _moves(site) == []


@pytest.mark.parametrize("is_fixed", [True, False])
def test_only_the_moves_explain_the_gaps(monkeypatch: pytest.MonkeyPatch, is_fixed: bool) -> None:
    """With a rewind between two skips; readers of batches do not see the moves."""
    if not is_fixed:
        without_fix.tell_no_move(monkeypatch)
    site = _begun(Kind("transactional", most_rows=50))
    site.play(Op("data_loss", 1))
    site.play(Op("send", 3))
    _trim(site, A, 0, 6)
    site.play(Op("batch"))
    _rewind(site, "rows", f"{B}:0=3")
    site.play(Op("send", 3))
    _trim(site, B, 1, 3)
    site.play(Op("batch"))
    assert _is_told(site) == is_fixed
    assert bool(_moves(site)) == is_fixed
    head = positions.read(cast(Client, site.client), site.settings).head
    assert head is not None
    assert head.number == len([*site.client.select_rows(_newest(site))]) == 3
    assert "the last 3 batches: " in status(site.connected(site.client))


def _newest(site: Site) -> str:
    return ledger_rows.newest_query(site.settings.ledger, 100)
