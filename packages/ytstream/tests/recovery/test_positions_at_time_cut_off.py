"""`drain` and `rewind to-time` that die at each of their requests, and are called again.

A process that is killed sends nothing more: each request is the last one once, and once it has been
applied and its answer is lost. A transaction that is open then is aborted by the cluster.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, cast

import pytest

from tests.support.helpers import ContextOf
from tests.support.ledger_steps import minutes, read_to, write_ledger
from tests.support.status_steps import send, without_times
from ytstream.cluster.client import Client
from ytstream.connector.tablet_transactions import Tablets
from ytstream.instance import stop_request
from ytstream.instance.lock import InstanceLock
from ytstream.job import JobContext
from ytstream.ledger import positions
from ytstream.recovery import positions_at_time
from ytstream.recovery.epoch import Epoch
from ytstream.recovery.repositioning import rewind
from ytstream_tools.submitting import draining

STRIDES = [13, pytest.param(1, marks=pytest.mark.journey)]
"""Of the moments at which a command may die, one in so many is tried in `make test`."""


class Killed(BaseException):
    """The process is dead."""


@dataclass
class Death:
    """Comes at the moment ``at``; ``passed`` counts the moments."""

    at: int
    passed: int = 0

    def moment(self) -> None:
        """Die, if it is time or was already."""
        self.passed += 1
        if self.passed > self.at:
            raise Killed

    def until(self, called: Any) -> Any:
        """Return a call before which and behind which one may die."""

        def calling(*args: Any, **options: Any) -> Any:
            self.moment()
            found = called(*args, **options)
            # Rows come with the request, not when they are looked at.
            found = iter(list(found)) if isinstance(found, Iterator) else found
            self.moment()
            return found

        return calling


class Mortal:
    """What an object does, until the process dies."""

    def __init__(self, of: Any, death: Death) -> None:
        self._of, self._death = of, death

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._of, name)
        return self._death.until(found) if callable(found) else found

    def Transaction(self, *args: Any, **options: Any) -> Any:  # noqa: N802 - the client's name
        """Return the client's own; it is over with the process."""
        return self._of.Transaction(*args, **options)


class MortalTablets(Mortal):
    """Tablets whose process may die in a transaction, before its commit and behind it."""

    @contextmanager
    def transaction(self) -> Iterator[Any]:
        self._death.moment()
        with self._of.transaction() as started:
            yield Mortal(started, self._death)
            self._death.moment()
        self._death.moment()


def _dying(context: JobContext, death: Death) -> JobContext:
    return replace(context, client=cast(Client, Mortal(context.client, death)))


def _stands(context: JobContext) -> list[int]:
    """Return where the ledger is."""
    head = positions.read_head(context.settings.ledger, context.client.select_rows)
    assert head is not None
    rows = head.ends[context.settings.queues[0]]
    return [rows[partition] for partition in range(4)]


def _empty(context: JobContext) -> None:
    """Take all rows out of the ledger."""
    path = context.settings.ledger
    rows = context.client.select_rows(f"kind, number from [{path}]")
    context.client.delete_rows(path, list(rows))


# -- rewind


def _rewind(context: JobContext, tablets: Tablets) -> None:
    """Do as the command line does, inside its lock."""
    rows, _ = positions_at_time.places(context, minutes(1.5))
    rewind(context, tablets, "rows", rows)


@pytest.mark.spark
@pytest.mark.parametrize("stride", STRIDES)
def test_a_rewind_to_a_time_happens_whole_or_not_at_all(
    provisioned_of: ContextOf, tablets: Tablets, stride: int
) -> None:
    context = provisioned_of("transactional")
    client, path, queue = (
        context.client,
        context.settings.ledger,
        context.settings.queues[0],
    )
    tablets = replace(tablets, settings=context.settings)
    without_times(context)
    send(context, 4 * 200)
    before, target = [100, 100, 0, 0], [90, 90, 0, 0]
    seen, at = set(), 0
    while True:
        _empty(context)
        write_ledger(context, 20)
        death = Death(at)
        mortal = cast(Tablets, MortalTablets(tablets, death))
        try:
            _rewind(_dying(context, death), mortal)
            is_over = True
        except Killed:
            is_over = False
        stands = _stands(context)
        assert stands in (before, target)
        seen.add(tuple(stands))
        _rewind(context, tablets)
        assert _stands(context) == target
        found = positions.read(client, context.settings)
        assert [found.queues[0].consumed.get(partition, 0) for partition in range(4)] == target
        rows = list(client.select_rows(f'queues from [{path}] where kind = "rewind"'))
        moves = [
            one for row in rows for queue in row["queues"] or () for one in queue["moved"].items()
        ]
        assert sorted(moves) == [("0", [100, 90]), ("1", [100, 90])]
        (batches,) = client.select_rows(
            f'sum(1) as rows from [{path}] where kind = "batch" group by 1'
        )
        assert batches["rows"] == 20
        if is_over:
            break
        at += stride
    assert len(seen) == 2
    assert at > 20
    assert queue in found.queues[0].path


# -- drain


def _job(context: JobContext, over: threading.Event) -> None:
    """Read five rows of each partition at a time, up to 20; end between two when asked to."""
    lock = InstanceLock(context.client, context.settings.consumer)
    lock.acquire(print)
    row = 0
    while not over.wait(0.02):
        found = positions.read_head(context.settings.ledger, context.client.select_rows)
        if found is not None and found.stopped == found.epoch:
            stop_request.tell_end(context, Epoch(found.epoch, found.owner), "stopped")
            break
        if row < 20:
            row += 5
            read_to(context, row)
    lock.release()


@pytest.mark.thorough
@pytest.mark.parametrize("stride", STRIDES)
def test_a_drain_that_dies_stops_no_job_too_early(
    provisioned_of: ContextOf, monkeypatch: pytest.MonkeyPatch, stride: int
) -> None:
    monkeypatch.setattr(draining, "_POLL_SECONDS", 0.02)
    monkeypatch.setattr(stop_request, "_POLL_SECONDS", 0.02)
    context = provisioned_of("transactional")
    send(context, 80)
    path, at = context.settings.ledger, 0
    while True:
        _empty(context)
        read_to(context, 0)
        over = threading.Event()
        job = threading.Thread(target=_job, args=(context, over))
        job.start()
        lock = InstanceLock(context.client, context.settings.consumer)
        while not list(lock.holders()):
            time.sleep(0.02)
        try:
            draining.drain(_dying(context, Death(at)), print)
            is_over = True
        except Killed:
            is_over = False
            head = positions.read_head(path, context.client.select_rows)
            assert head is not None
            if head.stopped != head.epoch:  # the job has not heard of it, and a second one goes on
                assert draining.drain(context, print) == "the job has ended: stopped"
        job.join()
        over.set()
        assert _stands(context) == [20] * 4
        (ended,) = context.client.select_rows(f'state from [{path}] where kind = "end"')
        assert ended["state"]["how"] == "stopped"
        if is_over:
            break
        at += stride
    assert at > 20
