"""The classifier: where a request is in a driver's life, what it is about, how a rule finds it."""

from __future__ import annotations

from typing import Any

from minicluster.client import Entry
from tests.faults.sweep.points import classified, named, places

ROOT = "//home/proof/job"
LEDGER = f"{ROOT}/ledger"


def _entries(*requests: tuple[str, dict[str, Any]]) -> list[Entry]:
    return [
        Entry(n, 0.0, "http" if method.islower() else "rpc", "p", method, args, None, None, None)
        for n, (method, args) in enumerate(requests, start=1)
    ]


def _commit(transaction: str) -> tuple[tuple[str, dict[str, Any]], ...]:
    """Return a transaction that writes the ledger."""
    return (
        ("StartTransaction", {"type": 1}),
        ("ModifyRows", {"transaction": transaction, "path": LEDGER}),
        ("CommitTransaction", {"transaction": transaction}),
    )


LIFE = _entries(
    ("select_rows", {"query": f"* from [{LEDGER}]"}),
    *_commit("1"),
    ("create", {"path": f"{ROOT}/checkpoint/7", "transaction": "m"}),
    *_commit("2"),
    ("set", {"path": f"{ROOT}/consumer/@ytstream_job"}),
    ("GetNode", {"path": f"{ROOT}/queue-0/@queue_partitions"}),
    ("ModifyRows", {"transaction": "3", "path": f"{ROOT}/output"}),
    ("ModifyRows", {"transaction": "3", "path": f"{ROOT}/output"}),
    ("select_rows", {"query": f"* from [{LEDGER}]"}),  # the watch
    ("MoveNode", {"destination_path": f"{ROOT}/checkpoint/7/commits/0", "source_path": "tmp"}),
    *_commit("3"),
    ("GetNode", {"path": f"{ROOT}/queue-0/@queue_partitions"}),
)
NAMES = places(["first"], start="start", is_listing=False)


def test_commits_of_the_ledger_part_a_life() -> None:
    points = classified(LIFE, ROOT, NAMES)
    assert [point.name for point in points] == [
        "start-raise:select_rows.ledger",
        "start-raise:StartTransaction.tablet",
        "start-raise:ModifyRows.ledger",
        "start-raise:CommitTransaction.ledger",
        "start-begin:create.checkpoint/N",
        "start-begin:StartTransaction.tablet",
        "start-begin:ModifyRows.ledger",
        "start-begin:CommitTransaction.ledger",
        "start-open:set.consumer/@ytstream_job",
        "first:GetNode.queue-0/@queue_partitions",
        "first:ModifyRows.output",
        "first:ModifyRows.output~last",
        "first:MoveNode.checkpoint/N/commits/N",
        "first:StartTransaction.tablet",
        "first:ModifyRows.ledger",
        "first:CommitTransaction.ledger",
    ]


def test_a_point_knows_the_one_after_which_the_state_is_the_same() -> None:
    points = {point.name: point.after for point in classified(LIFE, ROOT, NAMES)}
    assert points["start-raise:StartTransaction.tablet"] == ""  # nothing was written before
    assert points["start-raise:ModifyRows.ledger"] == "start-raise:StartTransaction.tablet"
    assert points["start-begin:create.checkpoint/N"] == "start-raise:CommitTransaction.ledger"
    many = _entries(*[("ModifyRows", {"transaction": "1", "path": f"{ROOT}/output"})] * 3)
    first, middle, last = classified(many, ROOT, NAMES)
    assert (first.which, middle.which, last.which) == ("first", "middle", "last")
    assert (first.after, middle.after, last.after) == ("", first.name, "")  # no kill in the middle


def test_a_rule_finds_a_point_behind_commits_and_equals() -> None:
    points = {point.name: point for point in classified(LIFE, ROOT, NAMES)}
    last = points["first:ModifyRows.output~last"]
    assert (last.commits, last.skip, last.where) == (2, 1, {"path": f"{ROOT}/output"})
    moved = points["first:MoveNode.checkpoint/N/commits/N"]
    assert moved.where == {"destination_path": "*checkpoint/*/commits/*"}
    assert points["first:CommitTransaction.ledger"].in_transaction
    assert not points["first:StartTransaction.tablet"].in_transaction


def test_a_rule_skips_what_its_pattern_finds_before() -> None:
    folder = f"{ROOT}/checkpoint/7/state/0"
    paths = [f"{folder}/1/_metadata", f"{folder}/0/_metadata", f"{folder}/_metadata"]
    entries = _entries(*[("CreateNode", {"path": path}) for path in paths])
    deep, last, flat = classified(entries, ROOT, NAMES)
    assert flat.object == "checkpoint/N/state/N/_metadata"
    assert flat.where == {"path": "*checkpoint/*/state/*/_metadata"}
    assert (deep.skip, last.skip, flat.skip) == (0, 1, 2)


def test_a_commit_is_about_what_it_commits() -> None:
    entries = _entries(
        ("ModifyRows", {"transaction": "1", "path": f"{ROOT}/output"}),
        ("ModifyRows", {"transaction": "1", "path": LEDGER}),
        ("AdvanceConsumer", {"transaction": "1", "consumer": f"{ROOT}/consumer"}),
        ("CommitTransaction", {"transaction": "1"}),
        ("CommitTransaction", {"transaction": "2"}),
    )
    assert named(entries, ROOT) == ["output", "ledger", "consumer", "ledger", "nothing"]


def test_temporary_names_are_one_class() -> None:
    folder = f"{ROOT}/checkpoint/7"
    entries = _entries(
        ("CreateNode", {"path": f"{folder}/offsets/.0.1b9c1ec3-13c1-4a0f-9d59-1234567890ab.tmp"}),
        ("CreateNode", {"path": f"{folder}/state/0/1/12.delta"}),
    )
    assert named(entries, ROOT) == ["checkpoint/N/offsets/tmp", "checkpoint/N/state/N/N/N.delta"]


def test_a_listing_is_parted_where_it_plans() -> None:
    offsets = f"{ROOT}/checkpoint/offsets"
    entries = _entries(
        ("SelectRows", {"query": f"* from [{ROOT}/consumer]"}),
        ("MoveNode", {"destination_path": f"{offsets}/0"}),
        ("ModifyRows", {"transaction": "1", "path": f"{ROOT}/output"}),
        ("MoveNode", {"destination_path": f"{offsets}/1"}),
        ("ModifyRows", {"transaction": "2", "path": f"{ROOT}/output"}),
    )
    names = places(["first", "middle"], start="start", is_listing=True)
    points = classified(entries, ROOT, names, is_listing=True)
    assert [(point.name, point.commits) for point in points] == [
        ("start-open:SelectRows.consumer", 0),
        ("start-open:MoveNode.checkpoint/offsets/N", 0),
        ("first:ModifyRows.output", 1),
        ("first:MoveNode.checkpoint/offsets/N", 1),
        ("middle:ModifyRows.output", 2),
    ]
