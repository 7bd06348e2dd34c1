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

from tests.support.helpers import ConnectionOf
from tests.support.ledger_steps import minutes, read_to, write_ledger
from tests.support.status_steps import send, without_times
from ytstream.cluster.client import Client
from ytstream.connector.tablet_transactions import Tablets
from ytstream.job import Connection
from ytstream.ledger import positions
from ytstream.recovery import positions_at_time, stop_request
from ytstream.recovery.epoch import Epoch
from ytstream.recovery.lock import InstanceLock
from ytstream.recovery.repositioning import rewind
from ytstream_tools.submitting import draining

#: Of the moments at which a command may die, one in so many is tried in `make test`.
STRIDES = [13, pytest.param(1, marks=pytest.mark.journey)]


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


def _dying(connection: Connection, death: Death) -> Connection:
    return replace(connection, client=cast(Client, Mortal(connection.client, death)))


def _stands(connection: Connection) -> list[int]:
    """Return where the ledger is."""
    head = positions.read_head(connection.settings.ledger, connection.client.select_rows)
    assert head is not None
    rows = head.ends[connection.settings.queues[0]]
    return [rows[partition] for partition in range(4)]


def _empty(connection: Connection) -> None:
    """Take all rows out of the ledger."""
    path = connection.settings.ledger
    rows = connection.client.select_rows(f"kind, number from [{path}]")
    connection.client.delete_rows(path, list(rows))


# -- rewind


def _rewind(connection: Connection, tablets: Tablets) -> None:
    """Do as the command line does, inside its lock."""
    rows, _ = positions_at_time.places(connection, minutes(1.5))
    rewind(connection, tablets, "rows", rows)


@pytest.mark.spark
@pytest.mark.parametrize("stride", STRIDES)
def test_a_rewind_to_a_time_happens_whole_or_not_at_all(
    provisioned_of: ConnectionOf, tablets: Tablets, stride: int
) -> None:
    connection = provisioned_of("transactional")
    client, path, queue = (
        connection.client,
        connection.settings.ledger,
        connection.settings.queues[0],
    )
    tablets = replace(tablets, settings=connection.settings)
    without_times(connection)
    send(connection, 4 * 200)
    before, target = [100, 100, 0, 0], [90, 90, 0, 0]
    seen, at = set(), 0
    while True:
        _empty(connection)
        write_ledger(connection, 20)
        death = Death(at)
        mortal = cast(Tablets, MortalTablets(tablets, death))
        try:
            _rewind(_dying(connection, death), mortal)
            is_over = True
        except Killed:
            is_over = False
        stands = _stands(connection)
        assert stands in (before, target)
        seen.add(tuple(stands))
        _rewind(connection, tablets)
        assert _stands(connection) == target
        found = positions.read(client, connection.settings)
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


def _job(connection: Connection, over: threading.Event) -> None:
    """Read five rows of each partition at a time, up to 20; end between two when asked to."""
    lock = InstanceLock(connection.client, connection.settings.consumer)
    lock.acquire(print)
    row = 0
    while not over.wait(0.02):
        found = positions.read_head(connection.settings.ledger, connection.client.select_rows)
        if found is not None and found.stopped == found.epoch:
            stop_request.tell_end(connection, Epoch(found.epoch, found.owner), "stopped")
            break
        if row < 20:
            row += 5
            read_to(connection, row)
    lock.release()


@pytest.mark.parametrize("stride", STRIDES)
def test_a_drain_that_dies_stops_no_job_too_early(
    provisioned_of: ConnectionOf, monkeypatch: pytest.MonkeyPatch, stride: int
) -> None:
    monkeypatch.setattr(draining, "_POLL_SECONDS", 0.02)
    monkeypatch.setattr(stop_request, "_POLL_SECONDS", 0.02)
    connection = provisioned_of("transactional")
    send(connection, 80)
    path, at = connection.settings.ledger, 0
    while True:
        _empty(connection)
        read_to(connection, 0)
        over = threading.Event()
        job = threading.Thread(target=_job, args=(connection, over))
        job.start()
        lock = InstanceLock(connection.client, connection.settings.consumer)
        while not list(lock.holders()):
            time.sleep(0.02)
        try:
            draining.drain(_dying(connection, Death(at)), print)
            is_over = True
        except Killed:
            is_over = False
            head = positions.read_head(path, connection.client.select_rows)
            assert head is not None
            if head.stopped != head.epoch:  # the job has not heard of it, and a second one goes on
                assert draining.drain(connection, print) == "the job has ended: stopped"
        job.join()
        over.set()
        assert _stands(connection) == [20] * 4
        (ended,) = connection.client.select_rows(f'state from [{path}] where kind = "end"')
        assert ended["state"]["how"] == "stopped"
        if is_over:
            break
        at += stride
    assert at > 20
