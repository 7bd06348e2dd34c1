"""Master transactions on Cypress, and the locks they take."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from yt.wrapper.errors import YtCypressTransactionLockConflict, YtNoSuchTransaction, YtResponseError

from packages.minicluster.tests.conformance.conftest import eventually, within
from tests.support import codes

Start = Callable[..., str]


def lock(client: Any, identifier: str, path: str, **options: Any) -> Any:
    with within(client, identifier):
        return client.lock(path, **options)


def test_changes_are_seen_outside_after_the_commit(client: Any, other: Any, root: str) -> None:
    """Source: documentation, user-guide/storage/transactions (versioning)"""
    with client.Transaction():
        client.set(f"{root}/a", 1)
        assert client.get(f"{root}/a") == 1
        assert not other.exists(f"{root}/a")
    assert other.get(f"{root}/a") == 1


def test_an_abort_undoes_everything(client: Any, root: str, transaction: Start) -> None:
    """Source: documentation, user-guide/storage/transactions (atomicity)"""
    client.set(f"{root}/kept", 1)
    tx = transaction()
    with within(client, tx):
        client.set(f"{root}/kept", 2)
        client.set(f"{root}/kept/@mine", 2)
        client.create("map_node", f"{root}/new/deep", recursive=True)
    client.abort_transaction(tx)
    assert client.get(root) == {"kept": 1}
    assert not client.exists(f"{root}/kept/@mine")


def test_a_removal_is_a_change_like_others(client: Any, other: Any, root: str) -> None:
    """Source: documentation, user-guide/storage/transactions (versioning)"""
    client.create("map_node", f"{root}/a/b", recursive=True)
    with client.Transaction():
        client.remove(f"{root}/a", recursive=True)
        assert not client.exists(f"{root}/a")
        assert other.exists(f"{root}/a/b")
    assert not other.exists(f"{root}/a")


def test_a_nested_commit_is_seen_by_the_parent_alone(client: Any, other: Any, root: str) -> None:
    """Source: documentation, user-guide/storage/transactions (versioning)"""
    with client.Transaction():
        with client.Transaction():
            client.set(f"{root}/a", 1)
        assert client.get(f"{root}/a") == 1
        assert not other.exists(f"{root}/a")
    assert other.get(f"{root}/a") == 1


def test_aborting_the_parent_aborts_the_nested(client: Any, root: str, transaction: Start) -> None:
    """Source: documentation, user-guide/storage/transactions (completing a transaction)"""
    outer = transaction()
    with within(client, outer):
        inner = transaction()
    client.abort_transaction(outer)
    with pytest.raises(YtNoSuchTransaction):
        client.ping_transaction(inner)


def test_a_finished_transaction_is_gone(client: Any, root: str, transaction: Start) -> None:
    """Source: client, yt/wrapper/errors.py (YtNoSuchTransaction, code 11000)"""
    tx = transaction()
    client.ping_transaction(tx)
    client.commit_transaction(tx)
    for request in (client.ping_transaction, client.commit_transaction):
        with pytest.raises(YtNoSuchTransaction) as caught:
            request(tx)
        assert caught.value.contains_code(codes.NO_SUCH_TRANSACTION)
    with pytest.raises(YtNoSuchTransaction), within(client, tx):
        client.set(f"{root}/a", 1)


def test_a_transaction_is_an_object(client: Any, transaction: Start) -> None:
    """Source: documentation, user-guide/storage/transactions (transaction attributes)"""
    outer = transaction(attributes={"title": "of the suite"})
    with within(client, outer):
        inner = transaction()
    assert client.get(f"#{outer}/@type") == "transaction"
    assert client.get(f"#{outer}/@title") == "of the suite"
    assert client.get(f"#{outer}/@timeout") == 60_000
    assert client.get(f"#{outer}/@nested_transaction_ids") == [inner]
    assert client.get(f"#{inner}/@parent_id") == outer


def test_a_transaction_that_is_not_pinged_expires(client: Any, root: str) -> None:
    """Source: documentation, user-guide/storage/transactions (extending a transaction lifetime)"""
    tx = client.start_transaction(timeout=1000)
    with within(client, tx):
        client.set(f"{root}/a", 1)
    eventually(lambda: client.exists(f"#{tx}"), False)
    assert client.list(root) == []


@pytest.mark.parametrize(
    ("held", "wanted", "compatible"),
    [
        ({"mode": "exclusive"}, {"mode": "exclusive"}, False),
        ({"mode": "exclusive"}, {"mode": "shared"}, False),
        ({"mode": "exclusive"}, {"mode": "snapshot"}, True),
        ({"mode": "shared"}, {"mode": "exclusive"}, False),
        ({"mode": "shared"}, {"mode": "shared"}, True),
        ({"mode": "snapshot"}, {"mode": "exclusive"}, True),
        ({"mode": "shared", "child_key": "a"}, {"mode": "shared", "child_key": "a"}, False),
        ({"mode": "shared", "child_key": "a"}, {"mode": "shared", "child_key": "b"}, True),
        ({"mode": "shared", "child_key": "a"}, {"mode": "shared"}, True),
        ({"mode": "shared", "attribute_key": "a"}, {"mode": "shared", "attribute_key": "a"}, False),
        ({"mode": "shared", "attribute_key": "a"}, {"mode": "shared", "attribute_key": "b"}, True),
    ],
)
def test_which_locks_go_together(
    client: Any,
    root: str,
    transaction: Start,
    held: dict[str, str],
    wanted: dict[str, str],
    compatible: bool,
) -> None:
    """Source: documentation, user-guide/storage/transactions (lock compatibility)"""
    first, second = transaction(), transaction()
    lock(client, first, root, **held)
    if compatible:
        lock(client, second, root, **wanted)
        return
    with pytest.raises(YtCypressTransactionLockConflict) as caught:
        lock(client, second, root, **wanted)
    assert caught.value.contains_code(codes.CONCURRENT_TRANSACTION_LOCK_CONFLICT)


def test_a_lock_outside_a_transaction_is_refused(client: Any, root: str) -> None:
    """Source: server test, integration/cypress/test_cypress_locks.py (test_invalid_cases)"""
    with pytest.raises(YtResponseError, match="A valid master transaction is required"):
        client.lock(root)


def test_a_snapshot_lock_freezes_what_its_transaction_sees(
    client: Any, other: Any, root: str, transaction: Start
) -> None:
    """Source: server test, integration/cypress/test_cypress_locks.py (test_snapshot_lock)"""
    client.set(f"{root}/a", 1)
    tx = transaction()
    lock(client, tx, f"{root}/a", mode="snapshot")
    other.set(f"{root}/a", 2)
    with within(client, tx):
        assert client.get(f"{root}/a") == 1
        with pytest.raises(YtResponseError, match='"snapshot" lock is already taken by same'):
            client.set(f"{root}/a", 3)
    assert other.get(f"{root}/a") == 2


def test_different_children_are_changed_side_by_side(
    client: Any, root: str, transaction: Start
) -> None:
    """Source: documentation, user-guide/storage/transactions (implicit locks)"""
    first, second = transaction(), transaction()
    with within(client, first):
        client.set(f"{root}/a", 1)
    with within(client, second):
        client.set(f"{root}/b", 2)
        with pytest.raises(YtCypressTransactionLockConflict):
            client.set(f"{root}/a", 3)
    client.commit_transaction(first)
    client.commit_transaction(second)
    assert client.get(root) == {"a": 1, "b": 2}


def test_different_attributes_are_changed_side_by_side(
    client: Any, root: str, transaction: Start
) -> None:
    """Source: documentation, user-guide/storage/transactions (implicit locks)"""
    first, second = transaction(), transaction()
    with within(client, first):
        client.set(f"{root}/@a", 1)
    with within(client, second):
        client.set(f"{root}/@b", 2)
        with pytest.raises(YtCypressTransactionLockConflict):
            client.set(f"{root}/@a", 3)
    client.commit_transaction(first)
    client.commit_transaction(second)
    assert [client.get(f"{root}/@{name}") for name in "ab"] == [1, 2]


def test_requests_outside_are_held_back_too(
    client: Any, other: Any, root: str, transaction: Start
) -> None:
    """Source: documentation, user-guide/storage/transactions (locking modes)"""
    client.set(f"{root}/a", 1)
    lock(client, transaction(), f"{root}/a")
    with pytest.raises(YtCypressTransactionLockConflict):
        other.set(f"{root}/a", 2)
    assert other.get(f"{root}/a") == 1


def test_a_waiting_lock_is_granted_when_its_turn_comes(
    client: Any, root: str, transaction: Start
) -> None:
    """Source: documentation, user-guide/storage/transactions (lock queue)"""
    first, second = transaction(), transaction()
    lock(client, first, root)
    waiting = lock(client, second, root, waitable=True)["lock_id"]
    assert client.get(f"#{waiting}/@state") == "pending"
    client.commit_transaction(first)
    eventually(lambda: client.get(f"#{waiting}/@state"), "acquired")


def test_waiting_locks_hold_nothing_back(client: Any, root: str, transaction: Start) -> None:
    """Source: server test, server/master/cypress_server/cypress_manager.cpp (DoCheckLock looks at
    acquired locks only)"""
    first, second, third = transaction(), transaction(), transaction()
    lock(client, first, root, mode="shared")
    waiting = lock(client, second, root, waitable=True)["lock_id"]
    passed = lock(client, third, root, mode="shared", waitable=True)["lock_id"]
    assert client.get(f"#{passed}/@state") == "acquired"
    client.abort_transaction(first)
    assert client.get(f"#{waiting}/@state") == "pending"
    client.abort_transaction(third)
    eventually(lambda: client.get(f"#{waiting}/@state"), "acquired")


def test_a_holder_does_not_wait_for_the_queue(client: Any, root: str, transaction: Start) -> None:
    """Source: server test, server/master/cypress_server/cypress_manager.cpp (DoCheckLock)"""
    first, second = transaction(), transaction()
    lock(client, first, root, mode="shared")
    waiting = lock(client, second, root, waitable=True)["lock_id"]
    lock(client, first, root, mode="shared", child_key="a")
    lock(client, first, root)
    with within(client, first):
        client.set(f"{root}/a", 1)
    assert client.get(f"#{waiting}/@state") == "pending"


def test_what_goes_together_is_granted_past_what_has_to_wait(
    client: Any, root: str, transaction: Start
) -> None:
    """Source: server test, server/master/cypress_server/cypress_manager.cpp (CheckPendingLocks)"""
    first, second, third, fourth = (transaction() for _ in range(4))
    lock(client, first, root)
    shared = lock(client, second, root, mode="shared", waitable=True)["lock_id"]
    exclusive = lock(client, third, root, waitable=True)["lock_id"]
    more = lock(client, fourth, root, mode="shared", waitable=True)["lock_id"]
    client.commit_transaction(first)
    eventually(lambda: client.get(f"#{shared}/@state"), "acquired")
    eventually(lambda: client.get(f"#{more}/@state"), "acquired")
    assert client.get(f"#{exclusive}/@state") == "pending"


def test_a_nested_lock_passes_to_the_parent(client: Any, root: str, transaction: Start) -> None:
    """Source: server test, integration/cypress/test_cypress_locks.py
    (test_acquired_lock_promotion)"""
    outer = transaction()
    with within(client, outer):
        inner = transaction()
    lock(client, inner, root)
    client.commit_transaction(inner)
    (held,) = client.get(f"{root}/@locks")
    assert (held["transaction_id"], held["mode"], held["state"]) == (outer, "exclusive", "acquired")


@pytest.mark.parametrize("mode", ["exclusive", "shared", "snapshot"])
def test_an_unlocked_node_is_free(client: Any, root: str, transaction: Start, mode: str) -> None:
    """Source: documentation, user-guide/storage/transactions (lock operations)"""
    tx = transaction()
    held = lock(client, tx, root, mode=mode)["lock_id"]
    with within(client, tx):
        client.unlock(root)
    assert not client.exists(f"#{held}")
    lock(client, transaction(), root)


def test_a_changed_node_is_not_unlocked(client: Any, root: str, transaction: Start) -> None:
    """Source: server test, integration/cypress/test_cypress_locks.py (test_unlock_modified)"""
    tx = transaction()
    lock(client, tx, root)
    with within(client, tx):
        client.set(f"{root}/a", 1)
        with pytest.raises(YtResponseError, match="cannot be unlocked"):
            client.unlock(root)


def test_a_lock_is_an_object(client: Any, root: str, transaction: Start) -> None:
    """Source: documentation, user-guide/storage/transactions (lock attributes)"""
    tx = transaction()
    held = lock(client, tx, root, mode="shared", child_key="a")["lock_id"]
    wanted = {"transaction_id": tx, "mode": "shared", "child_key": "a", "state": "acquired"}
    assert {name: client.get(f"#{held}/@{name}") for name in wanted} == wanted


def test_a_prerequisite_that_is_over_stops_a_transaction(
    client: Any, root: str, transaction: Start
) -> None:
    """Source: documentation, user-guide/locking/cypress-as-locking-service"""
    guard = transaction()
    tx = transaction(prerequisite_transaction_ids=[guard])
    with within(client, tx):
        client.set(f"{root}/a", 1)
    client.abort_transaction(guard)
    with pytest.raises(YtResponseError):
        client.commit_transaction(tx)
    assert client.list(root) == []
