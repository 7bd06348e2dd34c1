"""Locks of master transactions on Cypress nodes: modes, conflicts, queues.

The rules and the wording are those of YT's master (`cypress_manager.cpp`, `CheckLock`).
"""

from __future__ import annotations

from ..core import ids
from ..core.errors import (
    DESCENDANT_TRANSACTION_LOCK_CONFLICT,
    SAME_TRANSACTION_LOCK_CONFLICT,
    YtError,
    lock_conflict,
)
from .model import ACQUIRED, PENDING, SNAPSHOT, Lock, Node, Request, Transaction


def check(node: Node, transaction: Transaction | None, request: Request) -> None:
    """Raise YtError when `transaction` (None: outside any) cannot have the lock now.

    The code is SAME_, DESCENDANT_ or CONCURRENT_TRANSACTION_LOCK_CONFLICT.
    """
    for held in node.locks:
        if held.state != ACQUIRED:
            continue
        if transaction is not None:
            _check_related(node, transaction, request, held)
            if transaction.descends_from(held.transaction):
                continue
        if request.collides(held.request):
            raise _conflict(node, request, held)


def _check_related(node: Node, transaction: Transaction, request: Request, held: Lock) -> None:
    """Raise YtError if a snapshot lock meets another lock of the same or a nested transaction."""
    snapshot, held_snapshot = request.mode == SNAPSHOT, held.request.mode == SNAPSHOT
    if snapshot == held_snapshot:
        return
    taken = f'Cannot take "{request.mode}" lock for node {node.path} since '
    taken += f'"{held.request.mode}" lock is already taken by'
    if held.transaction is transaction:
        raise lock_conflict(
            f"{taken} same transaction {transaction.id}", SAME_TRANSACTION_LOCK_CONFLICT
        )
    if held_snapshot and transaction.descends_from(held.transaction):
        raise lock_conflict(
            f"{taken} parent transaction {held.transaction.id}", SAME_TRANSACTION_LOCK_CONFLICT
        )
    if snapshot and held.transaction.descends_from(transaction):
        raise lock_conflict(
            f"{taken} a descendant transaction", DESCENDANT_TRANSACTION_LOCK_CONFLICT
        )


def _conflict(node: Node, request: Request, held: Lock) -> YtError:
    by = f"by concurrent transaction {held.transaction.id}"
    if request.child_key is not None:
        what = f'child "{request.child_key}" of node {node.path} since this child is locked'
        message = f"Cannot take lock for {what} {by}"
    elif request.attribute_key is not None:
        name = request.attribute_key
        what = f'attribute "{name}" of node {node.path} since this attribute is locked'
        message = f"Cannot take lock for {what} {by}"
    else:
        message = (
            f'Cannot take "{request.mode}" lock for node {node.path} since '
            f'"{held.request.mode}" lock is taken {by}'
        )
    error = lock_conflict(message)
    error.attributes["winner_transaction"] = held.transaction.describe()
    return error


def take(
    node: Node,
    transaction: Transaction,
    request: Request,
    now: float,
    *,
    implicit: bool = False,
    waitable: bool = False,
) -> Lock:
    """Take or queue a lock; do not repeat an implicit one that the transaction already has.

    Locks that wait hold nothing back: only acquired ones are looked at.
    """
    try:
        check(node, transaction, request)
    except YtError as error:
        if not waitable or error.code == SAME_TRANSACTION_LOCK_CONFLICT:
            raise
        state = PENDING
    else:
        state = ACQUIRED
    acquired = now if state == ACQUIRED else None
    if implicit:
        for held in node.locks:
            mine = held.state == ACQUIRED and held.transaction is transaction
            if mine and held.request.covers(request):
                return held
    lock = Lock(ids.new(ids.LOCK), node, transaction, request, implicit, state, now, acquired)
    node.locks.append(lock)
    transaction.locks[lock.id] = lock
    return lock


def release(lock: Lock) -> None:
    lock.node.locks.remove(lock)
    lock.transaction.locks.pop(lock.id, None)


def serve_queue(node: Node, now: float) -> list[Lock]:
    """Grant the pending locks that go with the acquired ones, in the order of their requests."""
    granted = []
    for lock in list(node.locks):
        if lock.state != PENDING:
            continue
        try:
            check(node, lock.transaction, lock.request)
        except YtError:
            continue
        lock.state, lock.acquired = ACQUIRED, now
        granted.append(lock)
    return granted
