"""One instance at a time: the lock against the minicluster; no Spark."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

from minicluster.testing import Running
from tests.support.helpers import (
    ContextOf,
    refusal_code,
)
from ytstream.errors.error_codes import ErrorCode
from ytstream.instance import lock as locking
from ytstream.instance import process_identity
from ytstream.instance.lock import InstanceLock, alone
from ytstream.job import JobContext


@pytest.fixture
def context(provisioned_of: ContextOf) -> JobContext:
    """Connect a job whose objects all exist."""
    return provisioned_of("at_least_once")


def test_a_second_instance_is_refused_while_the_first_one_lives(
    context: JobContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locking, "PING_SECONDS", 0.05)
    consumer = context.settings.consumer
    second = InstanceLock(context.client, consumer)
    with alone(context):
        assert len(list(second.holders())) == 1
        assert refusal_code(lambda: second.acquire(print)) == ErrorCode.ANOTHER_INSTANCE
    assert list(second.holders()) == []
    second.acquire(print)
    second.release()


def test_the_lock_of_a_dead_instance_expires(context: JobContext, cluster: Running) -> None:
    client: Any = context.client
    consumer = context.settings.consumer
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


def test_the_lock_of_a_process_that_died_here_is_taken_at_once(
    context: JobContext, dead: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    consumer = context.settings.consumer
    with monkeypatch.context() as patched:
        patched.setattr(locking, "this_one", lambda: dead)
        InstanceLock(context.client, consumer).acquire(print)
    said: list[str] = []
    lock = InstanceLock(context.client, consumer)
    monkeypatch.setattr(locking, "WAIT_SECONDS", -1.0)  # it fails where it would wait
    lock.acquire(said.append)
    assert len(list(lock.holders())) == 1
    lock.release()
    assert [line for line in said if "which has died" in line] == said


@pytest.fixture
def dead() -> str:
    """Name a process of this machine that was killed."""
    words = "import time; from ytstream.instance.process_identity import this_one"
    with subprocess.Popen(
        [sys.executable, "-c", f"{words}; print(this_one(), flush=True); time.sleep(60)"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        name = process.stdout.readline().strip()
        assert not process_identity.is_dead(name)
        process.kill()
    return name


def test_a_process_is_dead_only_where_that_is_known(dead: str) -> None:
    """Another machine, a number that is given again, a name of an older version."""
    boot, namespace, pid, began = dead.split()
    assert process_identity.is_dead(dead)
    assert not process_identity.is_dead(f"another-boot {namespace} {pid} {began}")
    assert not process_identity.is_dead(f"{boot} pid:[1] {pid} {began}")
    assert not process_identity.is_dead(process_identity.this_one())
    assert process_identity.is_dead(f"{boot} {namespace} {os.getpid()} {began}1")
    assert not process_identity.is_dead("")
    assert not process_identity.is_dead(f"{boot} {namespace} x {began}")


def test_a_ping_that_ends_after_the_release_does_not_take_the_lock_again(
    context: JobContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command ends while its thread waits for the cluster; nothing would ping that lock."""
    client: Any = context.client
    lock = InstanceLock(client, context.settings.consumer)
    lock.acquire(print)
    ping = client.ping_transaction

    def late(transaction: str) -> None:
        lock.release()
        ping(transaction)

    monkeypatch.setattr(client, "ping_transaction", late)
    lock.keep()
    assert list(lock.holders()) == []
