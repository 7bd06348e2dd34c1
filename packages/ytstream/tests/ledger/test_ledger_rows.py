"""The ledger's rows as values; what the tables make of them is in test_epoch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from tests.support.helpers import refusal
from ytstream.connector.tablet_transactions import Transaction
from ytstream.ledger.batch_commit import write_head
from ytstream.ledger.ledger_rows import (
    BatchRow,
    Head,
    StoreFigures,
    Totals,
    batch_row,
    head_of,
    head_query,
    head_row,
    ranges_of,
    rejected_of,
    stop_row,
    time_of,
)

LEDGER = "//home/job/ledger"
A, B = "//home/a", "//home/b-2.0~x=y+z/Q_"

HEADS = {
    "new": Head(),
    "raised": Head(1, "process 7 on host, 1a2b"),
    "begun": Head(2, "процесс 7 на «узле»", 2, -1, 0, {A: {0: 0}}, {A: "1-2-3-4"}, {"job": "x"}),
    "two queues": Head(
        *(9, "x" * 5_000, 8, 41, 2**40),
        {A: {0: 2**62, 11: 0, 2: 5}, B: {}},
        {A: "1-2-3-4", B: "5-6-7-8"},
        {"job": 'имя "и" \\ \n', "outputs": {"output": B}},
    ),
    "a queue removed": Head(
        *(3, "x", 3, 1, 2, {B: {0: 7}, A: {0: 5}}, {B: "5-6-7-8", A: "1-2-3-4"}, {"job": "x"}),
        removed=frozenset({A}),
        state_rows=41,
        state_since={B: {0: 2}, A: {0: 0}},
        totals=Totals(7, {"output": 5, "rejected": 2}, {"имя": 2}, 1, 2.5),
        store=StoreFigures(2**40, 0, 12),
    ),
}


def _read(head: Head) -> dict[str, Any]:
    """Return the row as the query gives it."""
    columns = head_query(LEDGER).partition(" from ")[0].split(", ")
    return {name: head_row(head)[name] for name in columns}


@pytest.mark.parametrize("head", HEADS.values(), ids=HEADS)
def test_a_head_comes_back_as_it_was_written(head: Head) -> None:
    assert head_of(LEDGER, iter([_read(head)])) == head
    assert head_row(head)["kind"] == "head"


def test_a_head_that_an_older_runtime_wrote_has_no_removed_queue() -> None:
    row = _read(HEADS["two queues"])
    found = head_of(LEDGER, iter([row]))
    assert found is not None
    assert (found.queues, found.state_rows, found.state_since) == ((A, B), None, {})
    assert HEADS["a queue removed"].queues == (B,)


def test_a_request_to_stop_is_read_with_the_head() -> None:
    rows = [stop_row(7), _read(HEADS["begun"])]
    assert head_of(LEDGER, iter(rows)) == replace(HEADS["begun"], stopped=7)
    assert head_of(LEDGER, iter(rows[:1])) is None


def test_there_is_no_head_before_the_first_start() -> None:
    assert head_of(LEDGER, iter([])) is None


@pytest.mark.parametrize(
    "damage",
    [
        {"state": None},
        {"state": "text"},
        {"state": {"owner": "x", "folder": None, "number": 0}},
        {"state": {"owner": "x", "folder": "here", "number": 0, "marker": {}}},
        {"state": {"owner": "x", "folder": 1, "number": 0, "marker": "none"}},
        {"queues": None},
        {"queues": 5},
        {"queues": [A]},
        {"queues": [{"path": A, "ends": {"0": 1}}]},
        {"queues": [{"path": A, "id": "1", "ends": {"first": 1}}]},
        {"queues": [{"path": A, "id": "1", "ends": [1]}]},
        {"queues": [{"path": A, "id": "1", "ends": {"0": None}}]},
    ],
    ids=str,
)
def test_a_damaged_head_is_refused_in_one_line_and_can_be_mended(damage: dict[str, Any]) -> None:
    row = {**_read(HEADS["two queues"]), **damage}
    text = refusal(lambda: head_of(LEDGER, iter([row])))
    assert text.startswith(f"the head row of the ledger {LEDGER} is malformed: ")
    assert "`rewind`" in text
    assert head_of(LEDGER, iter([row]), repair=True) == Head(9)


def test_mending_changes_nothing_that_is_whole() -> None:
    head = HEADS["two queues"]
    assert head_of(LEDGER, iter([_read(head)]), repair=True) == head


def test_a_batch_row_says_what_was_read_and_written() -> None:
    started = datetime(2024, 1, 1, tzinfo=UTC)
    done = BatchRow({A: {0: (5, 8), 1: (0, 1)}, B: {}}, {"output": 3}, started, started)
    row = batch_row(HEADS["two queues"], done)
    assert {name: row[name] for name in ("kind", "number", "epoch", "batch")} == {
        "kind": "batch",
        "number": 2**40,
        "epoch": 9,
        "batch": 41,
    }
    assert row["rows_read"] == done.read == 4
    assert row["rows_written"] == {"output": 3}
    assert row["queues"] == [
        {"path": A, "rows": {"0": [5, 8], "1": [0, 1]}},
        {"path": B, "rows": {}},
    ]
    assert row["started"] == row["ended"] == 1_704_067_200 * 1_000_000


def test_the_head_says_when_it_was_written() -> None:
    written = datetime.fromtimestamp(head_row(Head())["ended"] / 1_000_000, UTC)
    assert abs(written - datetime.now(UTC)) < timedelta(hours=1)


@dataclass
class _Transaction:
    """Keeps what a batch would commit."""

    timestamp = 1 << 60
    rows: list[Mapping[str, Any]] = field(default_factory=list)

    def modify(self, path: str, columns: object, rows: Iterable[Any], deleted: object) -> None:
        self.rows = [*rows]


def test_each_batch_adds_to_the_totals_of_the_head() -> None:
    """Its rows are removed one day; a counter made of them would go back."""
    started = datetime(2024, 1, 1, tzinfo=UTC)
    ended = started + timedelta(seconds=2.5)
    head, transaction = HEADS["two queues"], _Transaction()
    for number in (1, 2):
        done = BatchRow(
            {A: {0: (0, 10)}}, {"output": 9, "rejected": number}, started, ended, {}, 3,
            {"old": number, "never": 0},
        )  # fmt: skip
        write_head(cast(Transaction, transaction), LEDGER, head, done)
        found = head_of(LEDGER, iter(transaction.rows[:1]))
        assert found is not None
        head = found
    assert head.timestamp == 1 << 60
    assert head.totals == Totals(20, {"output": 18, "rejected": 3}, {"old": 3, "never": 0}, 6, 5.0)
    row = transaction.rows[1]
    assert rejected_of(row) == {"old": 2, "never": 0}
    assert ranges_of(row) == {A: {0: (0, 10)}}
    assert time_of(row["ended"]) == ended
    assert rejected_of({"state": None}) == {}
