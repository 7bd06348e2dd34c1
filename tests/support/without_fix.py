"""The runtime without one of its fixes: what a test of the fix plays a second time.

Each function takes one fix out for the length of a test.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from ytstream import guarantees
from ytstream.cluster.client import Client
from ytstream.connector.tablet_transactions import Tablets, Transaction
from ytstream.guarantees.at_least_once import AtLeastOnce
from ytstream.job import JobContext
from ytstream.ledger import batch_commit, positions
from ytstream.ledger.ledger_rows import BatchRow, Head
from ytstream.ledger.offsets import ByQueue, Queue
from ytstream.ledger.positions import Select, Snapshot
from ytstream.outputs import static_outputs
from ytstream.query import batch, pipeline, stall_watchdog
from ytstream.recovery import checkpoint_repair, epoch, start
from ytstream.recovery.epoch import Epoch
from ytstream.recovery.start import StartPlan
from ytstream.settings.job_settings import Settings
from ytstream.staging import staged_tables
from ytstream.staging.staged_tables import StagedTable
from ytstream_tools.testing.job_stream import Stream


def raise_no_epoch_before_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write the epoch with the start's commit alone, as a start that trusts the lock would."""

    def raised(path: str, tablets: Tablets, mine: Epoch, **_: str) -> Epoch:
        with tablets.transaction() as transaction:
            head = positions.read_head(path, transaction.select) or Head()
        return replace(mine, number=head.epoch + 1)

    def verified(head: Head | None, mine: Epoch) -> Head:
        return replace(head or Head(), epoch=mine.number, owner=mine.owner)

    monkeypatch.setattr(epoch, "raise_epoch", raised)
    monkeypatch.setattr(epoch, "verify_epoch", verified)


def keep_one_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give every start the folder of the first epoch."""

    def shared(settings: Settings, number: int) -> str:
        return f"{settings.checkpoint}/1"

    for module in (checkpoint_repair, pipeline):
        monkeypatch.setattr(module, "path_of", shared)


def repair_no_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    """Copy the logs as a driver has left them."""
    monkeypatch.setattr(checkpoint_repair, "_repair", lambda *_: None)


def verify_no_head(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each batch follow whatever the head says, and wherever it begins."""

    def read(context: JobContext, select: Select, *_: Any) -> Head:
        head = positions.read_head(context.settings.ledger, select)
        assert head is not None
        return head

    monkeypatch.setattr(batch, "verify_head", read)
    verify_no_start(monkeypatch)


def verify_no_consumer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each batch read from wherever the consumer is."""
    whole = batch.verify_head

    def verified(context: JobContext, *given: Any) -> Head:
        return whole(replace(context, guarantee=AtLeastOnce()), *given)

    monkeypatch.setattr(batch, "verify_head", verified)


def verify_no_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each batch begin where SPYT has begun it, in the model: start_unchecked."""
    monkeypatch.setattr(batch, "verify_start", lambda *_: None)


def move_no_consumer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Begin with the consumer wherever it is."""
    monkeypatch.setattr(Transaction, "advance", lambda *_: None)


def write_the_head_apart(monkeypatch: pytest.MonkeyPatch, stream: Stream) -> None:
    """Write the head in a transaction of its own, as soon as the outputs are written."""
    whole = batch_commit.write_head

    def written(transaction: Transaction, path: str, head: Head, done: BatchRow) -> None:
        with stream.tablets.transaction() as own:
            whole(own, path, head, done)

    monkeypatch.setattr(batch_commit, "write_head", written)


def refuse_a_consumer_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take a consumer ahead of the ledger for one that a person has moved, in every guarantee."""
    whole = start._of_the_consumer

    def of_a_transaction(settings: Settings, head: Head, *given: Any) -> Iterator[str]:
        return whole(
            settings, replace(head, marker={**head.marker, "guarantee": "transactional"}), *given
        )

    monkeypatch.setattr(start, "_of_the_consumer", of_a_transaction)


def begin_at_row_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    """Begin a new job with row 0 of each partition, whether it is still there or not."""

    def zero(queue: Queue, settings: Settings) -> tuple[dict[int, int], list[str]]:
        return dict.fromkeys(range(len(queue.upper)), 0), []

    monkeypatch.setattr(start, "_first_rows", zero)
    monkeypatch.setattr(start, "_after_gaps", lambda settings, found, plan: plan)


def tell_no_move(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip rows, or rewind, without a row in the ledger."""
    whole = start.begin

    def begun(
        context: JobContext, tablets: Tablets, mine: Epoch, found: Snapshot, plan: StartPlan
    ) -> None:
        whole(context, tablets, mine, found, replace(plan, move=None))

    monkeypatch.setattr(start, "begin", begun)


def forget_removed_queues(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a start write a head of the queues alone that the configuration names."""
    whole = start._begun

    def named(context: JobContext, found: Snapshot, plan: StartPlan, head: Head) -> Head:
        after = whole(context, found, plan, head)
        paths = {path: after.ids[path] for path in after.queues}
        return replace(after, ids=paths, ends={path: after.ends[path] for path in paths})

    monkeypatch.setattr(start, "_begun", named)


def keep_the_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the copied offset log with the queues that it had."""
    monkeypatch.setattr(checkpoint_repair, "_move", lambda *_: False)


def keep_the_sources_of_the_batch_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Move the last entry of the copied offset log alone."""
    whole = checkpoint_repair._move

    def moved(client: Client, path: str, head: Head, rows: ByQueue) -> bool:
        name, former = f"offsets/{head.batch - 1}", f"{path.rpartition('/')[0]}/{head.folder}"
        is_moved = whole(client, path, head, rows)
        client.remove(f"{path}/{name}")
        client.copy(f"{former}/{name}", f"{path}/{name}")
        return is_moved

    monkeypatch.setattr(checkpoint_repair, "_move", moved)


def keep_later_states(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave versions of the state that a batch has made which did not happen."""
    monkeypatch.setattr(checkpoint_repair, "remove_states", lambda *_: None)


def audit_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Believe that each batch has read the rows that were planned, of queues that are unchanged."""
    monkeypatch.setattr(batch, "audit", lambda *_: None)
    monkeypatch.setattr(batch, "verify_queues", lambda client, name, head, *_: head.layouts)


def remember_the_head(monkeypatch: pytest.MonkeyPatch) -> None:
    """Verify the head in the first batch of an epoch alone, in the model: cached_check."""
    whole, known = batch.verify_head, set[Epoch]()

    def verified(context: JobContext, select: Select, mine: Epoch, *given: Any) -> Head:
        if mine not in known:
            whole(context, select, mine, *given)
            known.add(mine)
        head = positions.read_head(context.settings.ledger, select)
        assert head is not None
        return head

    monkeypatch.setattr(batch, "verify_head", verified)


def begin_in_any_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commit a start whoever has raised the epoch since, in the model: begin_unchecked."""

    def verified(head: Head | None, mine: Epoch) -> Head:
        return replace(head or Head(), epoch=mine.number, owner=mine.owner)

    monkeypatch.setattr(epoch, "verify_epoch", verified)


def plan_behind_the_head(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep a planned batch that ends before the head, in the model: planned_behind."""
    monkeypatch.setattr(checkpoint_repair, "_fits", lambda *_: True)


def publish_before_the_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Publish tables whatever the head says of their batch, in the model: published_early."""
    whole = positions.read_head

    def read(path: str, select: Select) -> Head | None:
        head = whole(path, select)
        return head and replace(head, batch=sys.maxsize)

    monkeypatch.setattr(static_outputs, "read_head", read)


def remove_before_the_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove orphans before the epoch is raised, in the model: removed_early."""
    whole = start.claim

    def claimed(context: JobContext, tablets: Tablets, mine: Epoch) -> Epoch:
        later = replace(mine, number=sys.maxsize)
        static_outputs.StaticTables(later).settle(context.client, context.settings)
        return whole(context, tablets, mine)

    monkeypatch.setattr(start, "claim", claimed)


def remove_of_newer_epochs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the orphans of any epoch at a query's start, in the model: removed_newer."""
    whole = static_outputs.StaticTables.settle

    def settled(self: static_outputs.StaticTables, client: Client, settings: Settings) -> None:
        mine, self.epoch = self.epoch, replace(self.epoch, number=sys.maxsize)
        whole(self, client, settings)
        self.epoch = mine

    monkeypatch.setattr(static_outputs.StaticTables, "settle", settled)


def publish_orphans(monkeypatch: pytest.MonkeyPatch) -> None:
    """Publish at a query's start what no batch names, in the model: nothing_removed."""

    def named(
        client: Client, settings: Settings, tables: Sequence[StagedTable]
    ) -> dict[StagedTable, str]:
        return {table: f"{settings.outputs[table.output]}/{table.name}" for table in tables}

    monkeypatch.setattr(staged_tables, "named", named)


def tell_epochs_by_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take an epoch for one's own by its number alone, in the model: number_alone."""

    def verified(head: Head | None, mine: Epoch) -> Head:
        if head is None or head.epoch != mine.number:
            raise epoch.superseded(head)
        return replace(head, owner=mine.owner)

    for module in (epoch, batch):
        monkeypatch.setattr(module, "verify_epoch", verified)


def plan_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """With state, plan a batch again after its driver's death, in the model: planned_again."""
    monkeypatch.setattr(checkpoint_repair, "_fits", lambda *_: False)


def verify_after_the_state(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write a batch's state before its head is verified, in the model: checked_late."""
    monkeypatch.setattr(batch.Batch, "_is_undone_whole", True)


def watch_no_consumer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let an idle query be, wherever the consumer is, in the model: no_watch."""
    monkeypatch.setattr(stall_watchdog.Watchdog, "_verify", lambda *_: None)


def put_no_consumer_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the consumer of an idle query behind the head, in the model: no_put_back."""
    monkeypatch.setattr(stall_watchdog.Watchdog, "_put_back", lambda *_: None)


def admit_any_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let any guarantee go with any processing, in the model: keyed_replaying and late_total."""
    monkeypatch.setattr(guarantees, "problem", lambda *_: None)
