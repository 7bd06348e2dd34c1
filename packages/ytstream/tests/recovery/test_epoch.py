"""The epoch on the cluster: who may write, whatever came between."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import pytest

from minicluster.testing import Running
from packages.ytstream.tests.ledger.test_ledger_rows import HEADS
from tests.support import without_fix
from tests.support.helpers import (
    DriverOf,
    fails_with,
    refusal_code,
)
from tests.support.simulated_driver import Driver
from tests.support.verdict import EXACT
from ytstream import RestartableError
from ytstream.connector.tablet_transactions import Tablets, Transaction
from ytstream.errors import ConflictError, SupersededError
from ytstream.errors.error_codes import ErrorCode
from ytstream.ledger import ledger_rows, positions
from ytstream.ledger.ledger_rows import Head
from ytstream.ledger.positions import read_head
from ytstream.recovery import epoch as epochs
from ytstream.recovery.epoch import Epoch, raise_epoch, this_process, verify_epoch

needs_jvm = pytest.mark.spark


# -- without a cluster ---------------------------------------------------------------------------


def test_a_process_has_a_name_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("YT_OPERATION_ID", "1-2-3-4")
    assert "operation 1-2-3-4" in this_process()
    assert this_process() != this_process()


@pytest.mark.parametrize(
    ("head", "said"),
    [
        (Head(4, "process 2"), "epoch 4 of process 2"),
        (Head(3, "process 2"), "epoch 3 of process 2"),
        (Head(4, "process 1"), "epoch 4 of process 1"),
    ],
)
def test_a_foreign_epoch_ends_the_process(head: Head, said: str) -> None:
    with pytest.raises(SupersededError, match=f"another instance .* has started: {said}"):
        verify_epoch(head, Epoch(3, "process 1"))


def test_a_head_that_was_deleted_is_not_taken_for_another_instance() -> None:
    with fails_with(ErrorCode.HEAD_LOST) as caught:
        verify_epoch(None, Epoch(3, "process 1"))
    assert not isinstance(caught.value, SupersededError)
    assert "no other instance has written it" in str(caught.value)
    assert "`rewind rows`" in caught.value.remedy


def test_by_its_number_alone_another_processs_epoch_is_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    without_fix.tell_epochs_by_number(monkeypatch)
    assert epochs.verify_epoch(Head(3, "process 2"), Epoch(3, "process 1")).owner == "process 1"


def test_its_own_epoch_is_the_heads() -> None:
    head = Head(3, "process 1", batch=7)
    assert verify_epoch(head, Epoch(3, "process 1")) is head


# -- on the cluster ------------------------------------------------------------------------------


@pytest.fixture
def driver(driver_of: DriverOf) -> Driver:
    """Provision a job whose ledger is empty."""
    return driver_of("transactional")


def _raise(driver: Driver, mine: Epoch) -> Epoch:
    return raise_epoch(driver.settings.ledger, driver.tablets, mine)


def _head(driver: Driver) -> Head | None:
    return positions.read(driver.client, driver.settings).head


def _write(transaction: Transaction, driver: Driver, head: Head) -> None:
    transaction.modify(driver.settings.ledger, ledger_rows.COLUMNS, [ledger_rows.head_row(head)])


@needs_jvm
@pytest.mark.parametrize("head", HEADS.values(), ids=HEADS)
def test_a_head_comes_back_over_both_protocols(driver: Driver, head: Head) -> None:
    with driver.tablets.transaction() as transaction:
        _write(transaction, driver, head)
    assert _head(driver) == head
    with driver.tablets.transaction() as transaction:
        assert read_head(driver.settings.ledger, transaction.select) == head


@needs_jvm
@pytest.mark.parametrize("damage", [{"queues": 5}, {"state": {"owner": "x"}}], ids=str)
def test_a_damaged_head_is_refused_over_both_protocols(
    driver: Driver, damage: dict[str, Any]
) -> None:
    row = {**ledger_rows.head_row(HEADS["two queues"]), **damage}
    driver.client.insert_rows(driver.settings.ledger, [row])
    assert refusal_code(lambda: _head(driver)) == ErrorCode.LEDGER_DAMAGED
    assert refusal_code(lambda: _raise(driver, Epoch())) == ErrorCode.LEDGER_DAMAGED
    raised = raise_epoch(driver.settings.ledger, driver.tablets, Epoch(), repair=True)
    assert _head(driver) == Head(10, raised.owner)


@needs_jvm
def test_raising_changes_epoch_and_owner_alone(driver: Driver) -> None:
    first = _raise(driver, Epoch())
    assert (first.number, _head(driver)) == (1, Head(1, first.owner))
    head = replace(HEADS["two queues"], epoch=1, owner=first.owner)
    with driver.tablets.transaction() as transaction:
        _write(transaction, driver, head)
    assert _raise(driver, first) == replace(first, number=2)
    assert _head(driver) == replace(head, epoch=2)


@pytest.mark.thorough
@needs_jvm
def test_a_head_that_was_lost_is_followed_by_later_numbers(driver: Driver) -> None:
    for _ in range(2):
        driver.run(3)
    client: Any = driver.client
    client.delete_rows(driver.settings.ledger, [{"kind": "head", "number": 0}])
    raised = _raise(driver, Epoch())
    assert _head(driver) == Head(3, raised.owner, number=2)


@needs_jvm
def test_a_process_whose_epoch_is_over_does_not_raise_it_again(driver: Driver) -> None:
    first = _raise(driver, Epoch())
    second = _raise(driver, Epoch())
    with pytest.raises(SupersededError, match=f"epoch 2 of {second.owner}"):
        _raise(driver, first)
    assert _head(driver) == Head(2, second.owner)


@needs_jvm
def test_a_process_whose_ledger_is_gone_does_not_begin_another(driver: Driver) -> None:
    with fails_with(ErrorCode.HEAD_LOST):
        _raise(driver, Epoch(1))
    assert _head(driver) is None


@needs_jvm
@pytest.mark.parametrize("is_first", [True, False])
def test_a_raise_whose_reply_was_lost_is_known_by_its_owner(
    driver: Driver, cluster: Running, is_first: bool
) -> None:
    mine = Epoch() if is_first else _raise(driver, Epoch())
    cluster.client.faults.add(method="CommitTransaction", action="lose_reply")
    with pytest.raises(RestartableError):
        _raise(driver, mine)
    assert _head(driver) == Head(mine.number + 1, mine.owner)
    assert _raise(driver, mine).number == mine.number + 2


@dataclass
class _Overtaken(Tablets):
    """Lets somebody else write the head right before a transaction commits."""

    overtake: Callable[[], None] = print
    times: int = 1

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        with super().transaction() as transaction:
            yield transaction
            if self.times:
                self.times -= 1
                self.overtake()


@needs_jvm
@pytest.mark.parametrize(("times", "number"), [(1, 2), (4, 2), (5, None)])
def test_an_older_batch_that_commits_meanwhile_is_waited_for(
    driver: Driver, times: int, number: int | None
) -> None:
    first = _raise(driver, Epoch())

    def commit_a_batch() -> None:
        head = _head(driver)
        assert head is not None
        with driver.tablets.transaction() as transaction:
            _write(transaction, driver, replace(head, batch=head.batch + 1))

    tablets = _Overtaken(driver.tablets.jvm, driver.settings, overtake=commit_a_batch, times=times)
    if number is None:
        with fails_with(ErrorCode.LEDGER_BUSY):
            raise_epoch(driver.settings.ledger, tablets, Epoch())
        assert _head(driver) == Head(1, first.owner, batch=4)
    else:
        mine = raise_epoch(driver.settings.ledger, tablets, Epoch())
        assert _head(driver) == Head(number, mine.owner, batch=times - 1)


@needs_jvm
@pytest.mark.parametrize("writes_first", [True, False], ids=["written before", "written after"])
def test_a_transaction_opened_before_a_raise_cannot_commit_after_it(
    driver: Driver, writes_first: bool
) -> None:
    first = _raise(driver, Epoch())
    second = Epoch()

    def commit_late() -> None:
        with driver.tablets.transaction() as older:
            head = verify_epoch(read_head(driver.settings.ledger, older.select), first)
            if writes_first:
                _write(older, driver, replace(head, batch=0))
            _raise(driver, second)
            if not writes_first:
                _write(older, driver, replace(head, batch=0))

    with pytest.raises(ConflictError):
        commit_late()
    assert _head(driver) == Head(2, second.owner)


@needs_jvm
def test_a_batch_of_an_older_epoch_is_refused(driver: Driver) -> None:
    driver.run(3)
    older = replace(driver, epoch=driver.epoch)
    driver.send(3)
    driver.start(new_process=True)
    with pytest.raises(SupersededError):
        older.batch()
    driver.batch()
    assert driver.outcome() == EXACT


@needs_jvm
def test_a_transaction_that_raises_leaves_nothing(driver: Driver) -> None:
    def write_and_raise() -> None:
        with driver.tablets.transaction() as transaction:
            _write(transaction, driver, Head(1, "x"))
            raise KeyError

    with pytest.raises(KeyError):
        write_and_raise()
    assert _head(driver) is None


@pytest.mark.thorough
@needs_jvm
def test_the_consumer_moves_from_where_it_is_alone(driver: Driver) -> None:
    settings = driver.settings
    driver.start()
    for old, new in ((0, 2), (2, 3)):
        with driver.tablets.transaction() as transaction:
            transaction.advance(settings.consumer, settings.queues[0], 0, old, new)
    with pytest.raises(RestartableError), driver.tablets.transaction() as transaction:
        transaction.advance(settings.consumer, settings.queues[0], 0, 2, 9)
    (queue,) = positions.read(driver.client, settings).queues
    assert queue.consumed == {0: 3}
