"""One instance at a time: the lock against the minicluster; no Spark."""

from __future__ import annotations

from typing import Any

import pytest

from minicluster.testing import Running
from packages.ytstream.tests.helpers import ConnectionOf, refusal
from ytstream.job import Connection
from ytstream.recovery import lock as locking
from ytstream.recovery.lock import InstanceLock, alone


@pytest.fixture
def connection(provisioned_of: ConnectionOf) -> Connection:
    """Connect a job whose objects all exist."""
    return provisioned_of("at_least_once")


def test_a_second_instance_is_refused_while_the_first_one_lives(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locking, "PING_SECONDS", 0.05)
    consumer = connection.settings.consumer
    second = InstanceLock(connection.client, consumer)
    with alone(connection):
        assert len(list(second.holders())) == 1
        assert "another instance" in refusal(lambda: second.acquire(print))
    assert list(second.holders()) == []
    second.acquire(print)
    second.release()


def test_the_lock_of_a_dead_instance_expires(connection: Connection, cluster: Running) -> None:
    client: Any = connection.client
    consumer = connection.settings.consumer
    transaction = client.start_transaction(timeout=5_000)
    folder, _, name = consumer.rpartition("/")
    with client.Transaction(transaction_id=transaction):
        client.lock(folder, mode="shared", child_key=f"{name}.lock")
    said: list[str] = []

    def time_passes(line: str) -> None:
        said.append(line)
        # Past the time-out of the dead one, not past that of the one that waits.
        cluster.client.clock.advance(6)

    lock = InstanceLock(client, consumer)
    lock.acquire(time_passes)
    lock.release()
    assert "holds the lock" in said[0]


def test_a_ping_that_ends_after_the_release_does_not_take_the_lock_again(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command ends while its thread waits for the cluster; nothing would ping that lock."""
    client: Any = connection.client
    lock = InstanceLock(client, connection.settings.consumer)
    lock.acquire(print)
    ping = client.ping_transaction

    def late(transaction: str) -> None:
        lock.release()
        ping(transaction)

    monkeypatch.setattr(client, "ping_transaction", late)
    lock.keep()
    assert list(lock.holders()) == []
