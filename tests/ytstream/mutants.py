"""The runtime without one of its cures: what a test of the cure plays a second time.

Each function takes one cure out for the length of a test.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.ytstream import driver
from ytstream.cluster import Client
from ytstream.config import Settings
from ytstream.guarantees.at_least_once import AtLeastOnce
from ytstream.job import Connection
from ytstream.ledger import BatchRow, Head
from ytstream.positions import ByQueue, Queue
from ytstream.query import batch, pipeline
from ytstream.recovery import before_start, epoch, folder, snapshot
from ytstream.recovery.before_start import Plan
from ytstream.recovery.epoch import Epoch
from ytstream.recovery.snapshot import Select, Snapshot
from ytstream.tablets import Tablets, Transaction
from ytstream.testing.stream import Stream


def raise_no_epoch_before_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write the epoch with the start's commit alone, as a start that trusts the lock would."""

    def raised(path: str, tablets: Tablets, mine: Epoch) -> Epoch:
        with tablets.transaction() as transaction:
            head = snapshot.read_head(path, transaction.select) or Head()
        return replace(mine, number=head.epoch + 1)

    def verified(head: Head | None, mine: Epoch) -> Head:
        return replace(head or Head(), epoch=mine.number, owner=mine.owner)

    monkeypatch.setattr(epoch, "raise_epoch", raised)
    monkeypatch.setattr(epoch, "verify_epoch", verified)


def keep_one_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give every start the folder of the first epoch."""

    def shared(settings: Settings, number: int) -> str:
        return f"{settings.checkpoint}/1"

    for module in (folder, pipeline):
        monkeypatch.setattr(module, "path_of", shared)


def repair_no_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    """Copy the logs as a driver has left them."""
    monkeypatch.setattr(folder, "_repair", lambda *_: None)


def verify_no_head(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each batch follow whatever the head says, and wherever it begins."""

    def read(connection: Connection, select: Select, *_: Any) -> Head:
        head = snapshot.read_head(connection.settings.ledger, select)
        assert head is not None
        return head

    monkeypatch.setattr(batch, "verify_head", read)
    verify_no_start(monkeypatch)


def verify_no_consumer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each batch read from wherever the consumer is."""
    whole = batch.verify_head

    def verified(connection: Connection, *given: Any) -> Head:
        return whole(replace(connection, guarantee=AtLeastOnce()), *given)

    monkeypatch.setattr(batch, "verify_head", verified)


def verify_no_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each batch begin where SPYT has begun it, in the model: start_unchecked."""
    for module in (batch, driver):
        monkeypatch.setattr(module, "verify_start", lambda *_: None)


def move_no_consumer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Begin with the consumer wherever it is."""
    monkeypatch.setattr(Transaction, "advance", lambda *_: None)


def write_the_head_apart(monkeypatch: pytest.MonkeyPatch, stream: Stream) -> None:
    """Write the head in a transaction of its own, as soon as the outputs are written."""
    whole = batch.write_head

    def written(transaction: Transaction, path: str, head: Head, done: BatchRow) -> None:
        with stream.tablets.transaction() as own:
            whole(own, path, head, done)

    monkeypatch.setattr(batch, "write_head", written)


def begin_at_row_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    """Begin a new job with row 0 of each partition, whether it is still there or not."""

    def zero(queue: Queue, settings: Settings) -> tuple[dict[int, int], list[str]]:
        return dict.fromkeys(range(len(queue.upper)), 0), []

    monkeypatch.setattr(before_start, "_first_rows", zero)
    monkeypatch.setattr(before_start, "_after_gaps", lambda settings, found, plan: plan)


def forget_removed_queues(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a start write a head of the queues alone that the configuration names."""
    whole = before_start._begun

    def named(connection: Connection, found: Snapshot, plan: Plan, head: Head) -> Head:
        after = whole(connection, found, plan, head)
        paths = {path: after.ids[path] for path in after.queues}
        return replace(after, ids=paths, ends={path: after.ends[path] for path in paths})

    monkeypatch.setattr(before_start, "_begun", named)


def keep_the_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the copied offset log with the queues that it had."""
    monkeypatch.setattr(folder, "_move", lambda *_: False)


def keep_the_sources_of_the_batch_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Move the last entry of the copied offset log alone."""
    whole = folder._move

    def moved(client: Client, path: str, head: Head, rows: ByQueue) -> bool:
        name, former = f"offsets/{head.batch - 1}", f"{path.rpartition('/')[0]}/{head.folder}"
        is_moved = whole(client, path, head, rows)
        client.remove(f"{path}/{name}")
        client.copy(f"{former}/{name}", f"{path}/{name}")
        return is_moved

    monkeypatch.setattr(folder, "_move", moved)


def keep_later_states(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave versions of the state that a batch has made which did not happen."""
    monkeypatch.setattr(folder, "_remove_states", lambda *_: None)


def audit_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Believe that each batch has read the rows that were planned."""
    monkeypatch.setattr(batch, "audit", lambda *_: None)
