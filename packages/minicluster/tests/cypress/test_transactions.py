"""Master transactions: isolation, nesting, expiry; locks."""

from __future__ import annotations

from typing import Any

import pytest

from minicluster.cluster import Cluster
from minicluster.core import ids
from minicluster.core.errors import YtError
from minicluster.cypress.commands import Cypress
from minicluster.cypress.transactions import Transactions
from packages.minicluster.tests.cypress.test_commands import refused
from packages.minicluster.tests.support.tables_lab import PLAIN
from tests.support import codes


@pytest.fixture
def transactions(cluster: Cluster) -> Transactions:
    return cluster.transactions


def test_changes_are_invisible_until_commit(cypress: Cypress, transactions: Transactions) -> None:
    cypress.set("//tmp/a", {"x": 1, "gone": 2})
    cypress.set("//tmp/a/@attr", "old")
    tx = transactions.start()
    cypress.set("//tmp/a/x", 5, tx=tx)
    cypress.set("//tmp/a/@attr", "new", tx=tx)
    cypress.remove("//tmp/a/gone", tx=tx)
    cypress.create("file", "//tmp/a/deep/f", tx=tx, recursive=True)
    cypress.write_file("//tmp/a/deep/f", b"data", tx=tx)
    assert cypress.get("//tmp/a") == {"x": 1, "gone": 2}
    assert cypress.get("//tmp/a/@attr") == "old"
    assert cypress.get("//tmp/a", tx=tx) == {"x": 5, "deep": {"f": None}}
    assert cypress.get("//tmp/a/@attr", tx=tx) == "new"
    assert cypress.get("//tmp/a/@count", tx=tx) == 2
    transactions.commit(tx)
    assert cypress.get("//tmp/a") == {"x": 5, "deep": {"f": None}}
    assert cypress.get("//tmp/a/@attr") == "new"
    assert cypress.read_file("//tmp/a/deep/f") == b"data"
    assert cypress.get("//tmp/a/@locks") == []


def test_abort_undoes_everything(cypress: Cypress, transactions: Transactions) -> None:
    cypress.set("//tmp/a", {"x": 1})
    before, nodes = cypress.get("//tmp"), set(cypress.nodes)
    tx = transactions.start()
    cypress.move("//tmp/a", "//tmp/b", tx=tx)
    cypress.copy("//tmp/b", "//tmp/c", tx=tx)
    cypress.set("//tmp/b/y", 2, tx=tx)
    made = cypress.create("map_node", "//tmp/new", tx=tx)
    assert not cypress.exists(f"#{made}")
    assert cypress.exists(f"#{made}", tx=tx)
    transactions.abort(tx)
    assert cypress.get("//tmp") == before
    assert set(cypress.nodes) == nodes
    assert cypress.get("//tmp/a/@locks") == []
    with refused(500, "Error resolving path //tmp"):
        cypress.get("//tmp", tx=tx)


def test_removed_subtrees_are_forgotten_at_commit(
    cypress: Cypress, transactions: Transactions
) -> None:
    cypress.set("//tmp/a", {"b": {"c": 1}})
    inner = cypress.get("//tmp/a/b/c/@id")
    tx = transactions.start()
    cypress.remove("//tmp/a", recursive=True, tx=tx)
    assert inner in cypress.nodes
    transactions.commit(tx)
    assert inner not in cypress.nodes


def test_nested(cypress: Cypress, transactions: Transactions) -> None:
    cypress.set("//tmp/x", 1)
    outer = transactions.start()
    cypress.set("//tmp/x", 2, tx=outer)
    inner = transactions.start(parent=outer)
    assert ids.type_of(inner) == ids.NESTED_TRANSACTION
    cypress.set("//tmp/x", 3, tx=inner)
    assert [cypress.get("//tmp/x", tx=tx) for tx in (None, outer, inner)] == [1, 2, 3]
    with refused(402, f"taken by concurrent transaction {inner}"):
        cypress.set("//tmp/x", 4, tx=outer)
    transactions.commit(inner)
    assert [cypress.get("//tmp/x", tx=tx) for tx in (None, outer)] == [1, 3]
    transactions.commit(outer)
    assert cypress.get("//tmp/x") == 3


def test_nested_abort_keeps_what_the_parent_did(
    cypress: Cypress, transactions: Transactions
) -> None:
    outer = transactions.start()
    cypress.set("//tmp/x", 1, tx=outer)
    inner = transactions.start(parent=outer)
    cypress.remove("//tmp/x", tx=inner)
    cypress.set("//tmp/y", 2, tx=inner)
    transactions.abort(inner)
    assert cypress.get("//tmp", tx=outer) == {"x": 1}
    left = transactions.start(parent=outer)
    transactions.commit(outer)
    assert cypress.get("//tmp") == {"x": 1}
    with refused(11000, "No such transaction"):
        transactions.ping(left)


def test_made_and_removed_in_nested_transactions(
    cypress: Cypress, transactions: Transactions
) -> None:
    nodes = set(cypress.nodes)
    outer = transactions.start()
    cypress.set("//tmp/x", {"y": 1}, tx=outer)
    inner = transactions.start(parent=outer)
    cypress.remove("//tmp/x", recursive=True, tx=inner)
    transactions.commit(inner)
    transactions.commit(outer)
    assert cypress.list("//tmp") == []
    assert set(cypress.nodes) == nodes


def test_expiry_by_the_clock(
    cluster: Cluster, cypress: Cypress, transactions: Transactions
) -> None:
    tx = transactions.start(timeout_ms=10_000)
    cypress.set("//tmp/x", 1, tx=tx)
    cluster.clock.advance(9)
    cluster.tick()
    transactions.ping(tx)
    cluster.clock.advance(9)
    cluster.tick()
    assert cypress.exists("//tmp/x", tx=tx)
    cluster.clock.advance(2)
    cluster.tick()
    with refused(11000, "No such transaction"):
        transactions.ping(tx)
    cypress.set("//tmp/x", 2)


def test_ping_of_ancestors(cluster: Cluster, transactions: Transactions) -> None:
    outer = transactions.start(timeout_ms=10_000)
    inner = transactions.start(parent=outer, timeout_ms=10_000)
    cluster.clock.advance(9)
    transactions.ping(inner, ping_ancestors=True)
    cluster.clock.advance(9)
    cluster.tick()
    transactions.get(outer)


def test_prerequisites(transactions: Transactions) -> None:
    first = transactions.start()
    second = transactions.start(prerequisites=[first])
    transactions.abort(first)
    with refused(1000, "Prerequisite check failed"):
        transactions.commit(second)
    with refused(1000, "Prerequisite check failed"):
        transactions.start(prerequisites=[first])


def test_transactions_and_locks_are_objects(cypress: Cypress, transactions: Transactions) -> None:
    tx = transactions.start(attributes={"title": "mine"}, timeout_ms=5000)
    lock = cypress.lock("//tmp", "exclusive", tx=tx)
    assert cypress.get(f"#{tx}/@title") == "mine"
    assert cypress.get(f"//sys/transactions/{tx}/@timeout") == 5000
    assert cypress.list("//sys/transactions") == [tx]
    assert cypress.get(f"#{lock['lock_id']}/@state") == "acquired"
    assert cypress.get("//tmp/@locks")[0]["transaction_id"] == tx
    with refused(1, "cannot be changed"):
        cypress.create("map_node", "//sys/transactions/x")


# Locks


@pytest.mark.parametrize(
    ("held", "wanted", "compatible"),
    [
        ({"mode": "exclusive"}, {"mode": "exclusive"}, False),
        ({"mode": "exclusive"}, {"mode": "shared"}, False),
        ({"mode": "shared"}, {"mode": "exclusive"}, False),
        ({"mode": "shared"}, {"mode": "shared"}, True),
        ({"mode": "snapshot"}, {"mode": "exclusive"}, True),
        ({"mode": "exclusive"}, {"mode": "snapshot"}, True),
        ({"mode": "shared", "child_key": "a"}, {"mode": "shared", "child_key": "a"}, False),
        ({"mode": "shared", "child_key": "a"}, {"mode": "shared", "child_key": "b"}, True),
        ({"mode": "shared", "attribute_key": "a"}, {"mode": "shared", "attribute_key": "a"}, False),
        ({"mode": "shared", "attribute_key": "a"}, {"mode": "shared", "child_key": "a"}, True),
    ],
)
def test_modes(
    cypress: Cypress,
    transactions: Transactions,
    held: dict[str, Any],
    wanted: dict[str, Any],
    compatible: bool,
) -> None:
    first, second = transactions.start(), transactions.start()
    cypress.lock("//tmp", tx=first, **held)
    if compatible:
        cypress.lock("//tmp", tx=second, **wanted)
    else:
        with pytest.raises(YtError) as caught:
            cypress.lock("//tmp", tx=second, **wanted)
        assert caught.value.code == codes.CONCURRENT_TRANSACTION_LOCK_CONFLICT
        assert caught.value.attributes["winner_transaction"]["id"] == first


def test_changes_lock_what_they_touch(cypress: Cypress, transactions: Transactions) -> None:
    cypress.create("map_node", "//tmp/a")
    first, second = transactions.start(), transactions.start()
    cypress.set("//tmp/a/x", 1, tx=first)
    cypress.set("//tmp/a/y", 1, tx=second)
    cypress.set("//tmp/a/@p", 1, tx=first)
    cypress.set("//tmp/a/@q", 1, tx=second)
    with refused(402, 'Cannot take lock for child "x" of node //tmp/a since this child is locked'):
        cypress.create("map_node", "//tmp/a/x", tx=second)
    with refused(402, 'Cannot take lock for attribute "p" of node //tmp/a'):
        cypress.set("//tmp/a/@p", 2)
    with refused(402, "lock is taken by concurrent transaction"):
        cypress.remove("//tmp/a", recursive=True)
    transactions.commit(first)
    transactions.commit(second)
    assert cypress.get("//tmp/a") == {"x": 1, "y": 1}
    assert (cypress.get("//tmp/a/@p"), cypress.get("//tmp/a/@q")) == (1, 1)


def test_a_refused_move_changes_nothing(cypress: Cypress, transactions: Transactions) -> None:
    cypress.set("//tmp/a", 1)
    cypress.create("map_node", "//tmp/d")
    tx = transactions.start()
    cypress.lock("//tmp/d", "exclusive", tx=tx)
    with refused(402, "lock"):
        cypress.move("//tmp/a", "//tmp/d/a")
    assert cypress.get("//tmp") == {"a": 1, "d": {}}


def test_snapshot(cypress: Cypress, transactions: Transactions) -> None:
    cypress.create("file", "//tmp/f", attributes={"x": 1})
    cypress.write_file("//tmp/f", b"old")
    tx = transactions.start()
    found = cypress.lock("//tmp/f", "snapshot", tx=tx)
    cypress.write_file("//tmp/f", b"new")
    cypress.set("//tmp/f/@x", 2)
    assert cypress.read_file("//tmp/f", tx=tx) == b"old"
    assert cypress.get("//tmp/f/@x", tx=tx) == 1
    cypress.remove("//tmp/f")
    assert cypress.read_file(f"#{found['node_id']}", tx=tx) == b"old"
    transactions.abort(tx)
    assert found["node_id"] not in cypress.nodes
    second = transactions.start()
    cypress.create("file", "//tmp/g")
    cypress.lock("//tmp/g", "snapshot", tx=second)
    with refused(400, '"snapshot" lock is already taken by same transaction'):
        cypress.write_file("//tmp/g", b"", tx=second)


def test_waitable(cypress: Cypress, transactions: Transactions) -> None:
    first, second, third = (transactions.start() for _ in range(3))
    cypress.lock("//tmp", tx=first)
    waiting = cypress.lock("//tmp", tx=second, waitable=True)
    last = cypress.lock("//tmp", tx=third, waitable=True)
    assert waiting["revision"] == 0

    def states() -> list[str]:
        return [
            cypress.get(f"#{lock['lock_id']}/@state")
            for lock in (waiting, last)
            if cypress.exists(f"#{lock['lock_id']}")
        ]

    assert states() == ["pending", "pending"]
    transactions.abort(first)
    assert states() == ["acquired", "pending"]
    transactions.commit(second)
    assert states() == ["acquired"]


def test_a_lock_overtakes_those_that_wait(cypress: Cypress, transactions: Transactions) -> None:
    first, second, third = (transactions.start() for _ in range(3))
    cypress.lock("//tmp", "shared", tx=first)
    waiting = cypress.lock("//tmp", "exclusive", tx=second, waitable=True)["lock_id"]
    cypress.lock("//tmp", "shared", tx=third)
    transactions.abort(first)
    assert cypress.get(f"#{waiting}/@state") == "pending"
    transactions.abort(third)
    assert cypress.get(f"#{waiting}/@state") == "acquired"


def test_unlock(cypress: Cypress, transactions: Transactions) -> None:
    cypress.set("//tmp/x", 1)
    first, second = transactions.start(), transactions.start()
    cypress.lock("//tmp/x", tx=first)
    cypress.unlock("//tmp/x", tx=first)
    cypress.lock("//tmp/x", tx=second)
    cypress.set("//tmp/x", 2, tx=second)
    with refused(1, "cannot be unlocked"):
        cypress.unlock("//tmp/x", tx=second)


def test_locks_pass_to_the_parent(cypress: Cypress, transactions: Transactions) -> None:
    outer, stranger = transactions.start(), transactions.start()
    inner = transactions.start(parent=outer)
    cypress.lock("//tmp", tx=inner)
    transactions.commit(inner)
    with refused(402, outer):
        cypress.lock("//tmp", tx=stranger)
    transactions.abort(outer)
    cypress.lock("//tmp", tx=stranger)


@pytest.mark.parametrize(
    "wrong",
    [
        {"mode": "nonsense"},
        {"mode": "exclusive", "child_key": "a"},
        {"mode": "shared", "child_key": "a", "attribute_key": "b"},
    ],
)
def test_wrong_locks(cypress: Cypress, transactions: Transactions, wrong: dict[str, Any]) -> None:
    with pytest.raises(YtError):
        cypress.lock("//tmp", tx=transactions.start(), **wrong)
    with refused(1, "A valid master transaction is required"):
        cypress.lock("//tmp", tx=None)


def test_a_table_is_made_with_its_transaction(
    cluster: Cluster, cypress: Cypress, transactions: Transactions
) -> None:
    tx = transactions.start()
    schema = [{"name": "a", "type": "int64"}]
    cypress.create("table", "//tmp/t", tx=tx, attributes={"schema": schema})
    cluster.tables.write("//tmp/t", [{"a": 1}], tx=tx)
    assert cypress.get("//tmp/t/@row_count", tx=tx) == 1
    transactions.commit(tx)
    assert cypress.get("//tmp/t/@row_count") == 1
    second = transactions.start()
    cluster.tables.write("//tmp/t", [{"a": 1}, {"a": 2}], tx=second)
    assert cypress.get("//tmp/t/@row_count") == 1
    transactions.abort(second)
    assert cypress.get("//tmp/t/@row_count") == 1


def test_a_change_that_fails_leaves_no_lock_and_no_part_of_itself(cluster: Cluster) -> None:
    cypress, tx = cluster.cypress, cluster.transactions.start()
    cypress.create("map_node", "//tmp/a", attributes={"kept": 1})
    wrong = {"mine": 1, "account": "nobody's"}
    for inside in (tx, None):
        with pytest.raises(YtError):
            cypress.multiset_attributes("//tmp/a/@", wrong, tx=inside)
        with pytest.raises(YtError):
            cypress.set("//tmp/a/@", wrong, tx=inside)
        with pytest.raises(YtError):
            cypress.remove("//tmp/a/@kept/deeper", tx=inside)
        assert cypress.get("//tmp/a/@user_attributes", tx=inside) == {"kept": 1}
    assert cypress.get("//tmp/a/@locks") == []
    cypress.create("table", "//tmp/t", attributes={"dynamic": True, "schema": PLAIN})
    with pytest.raises(YtError):
        cypress.multiset_attributes("//tmp/t/@", {"atomicity": "none", "account": "nobody's"})
    assert cypress.get("//tmp/t/@atomicity") == "full"
