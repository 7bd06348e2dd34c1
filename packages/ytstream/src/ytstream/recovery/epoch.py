"""The epoch: which process may write. Raised before every start, checked in every batch.

Each batch writes the head row of the ledger in its transaction. So a transaction that was opened
before the epoch was raised cannot commit afterwards ("Row lock conflict due to concurrent write"),
and one that is opened later finds a foreign epoch in the head. Neither depends on a clock.
"""

from __future__ import annotations

import os
import socket
import time
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ..errors import ConflictError, JobError, RestartableError, SupersededError
from ..errors.error_codes import ErrorCode
from ..ledger import ledger_rows
from ..ledger.ledger_rows import Head
from ..ledger.positions import LOST_HEAD, read_head

if TYPE_CHECKING:
    from ..connector.tablet_transactions import Tablets, Transaction

_ATTEMPTS = 5
"""A conflict means that an older batch commits or has just committed; its next one will not."""
_PAUSE_SECONDS = 0.2


def this_process() -> str:
    """Name this process for people; the last word makes the name unique."""
    operation = os.environ.get("YT_OPERATION_ID")
    where = f"process {os.getpid()} on {socket.gethostname()}"
    return f"{where}{f', operation {operation}' if operation else ''}, {uuid.uuid4().hex[:8]}"


@dataclass(frozen=True)
class Epoch:
    """The epoch that a process has raised last; 0: none yet."""

    number: int = 0
    owner: str = field(default_factory=this_process)


def raise_epoch(
    path: str,
    tablets: Tablets,
    mine: Epoch,
    *,
    repair: bool = False,
    least: Head | None = None,
    connector: str = "",
) -> Epoch:
    """Write the next epoch into the ledger at ``path``, and return it.

    With ``connector`` a row for `status` says which one the process runs on.

    A process raises it freely once, while it holds the lock; later only from its own epoch. With
    ``repair`` a damaged head is replaced by a new one that no start has used. One that is lost, or
    of an older copy, had at least the epoch and the number of ``least``. Raises SupersededError
    when another process has raised it since, JobError when the head is gone, RestartableError when
    the cluster refuses.
    """
    for attempt in range(_ATTEMPTS):
        try:
            with tablets.transaction() as transaction:
                found = read_head(path, transaction.select, repair=repair)
                # Told by the owner: the reply to an earlier raise of our own may have been lost.
                if mine.number and (found is None or found.owner != mine.owner):
                    raise superseded(found)
                head = _beyond(found or Head(), least or Head())
                if head.folder is None:
                    head = _after_rows(path, transaction, head)
                raised = replace(head, epoch=head.epoch + 1, owner=mine.owner)
                rows = [ledger_rows.head_row(raised)]
                if connector:
                    rows.append(ledger_rows.connector_row(raised.epoch, connector))
                transaction.modify(path, ledger_rows.COLUMNS, rows)
            return replace(mine, number=raised.epoch)
        except ConflictError as error:
            last = error
            if attempt + 1 < _ATTEMPTS:
                time.sleep(_PAUSE_SECONDS * 2**attempt)
    raise RestartableError(
        f"the ledger {path} does not stop changing: {last}", code=ErrorCode.LEDGER_BUSY
    )


def _beyond(head: Head, least: Head) -> Head:
    epoch, number = max(head.epoch, least.epoch), max(head.number, least.number)
    return replace(head, epoch=epoch, number=number)


def _after_rows(path: str, transaction: Transaction, head: Head) -> Head:
    """Return a new head, with numbers behind those of batch rows that a lost one has left."""
    for row in transaction.select(ledger_rows.last_query(path)):
        epoch = max(head.epoch, int(row["epoch"]))
        head = replace(head, epoch=epoch, number=max(head.number, int(row["number"])))
    return head


def verify_epoch(head: Head | None, mine: Epoch) -> Head:
    """Return the head. Raises SupersededError for another epoch, JobError without a head."""
    if head is None or (head.epoch, head.owner) != (mine.number, mine.owner):
        raise superseded(head)
    return head


def superseded(head: Head | None) -> JobError:
    """Return the error of a process whose epoch is over, or whose head row is gone."""
    if head is None:
        return JobError(
            "the ledger has lost its head row while the job ran: something has deleted the row, or "
            "recreated the table; no other instance has written it",
            LOST_HEAD,
            code=ErrorCode.HEAD_LOST,
        )
    return SupersededError(
        f"another instance of this job has started: epoch {head.epoch} of {head.owner}",
        "this one ends; let one instance run",
        head.owner,
    )


def committed(
    path: str,
    tablets: Tablets,
    mine: Epoch,
    rows: Iterable[Mapping[str, Any]],
    deleted: Iterable[Mapping[str, Any]] = (),
) -> None:
    """Write rows of the ledger at ``path`` and delete keys, in a transaction of their own.

    Raises SupersededError when another process has raised the epoch.
    """
    with tablets.transaction() as transaction:
        verify_epoch(read_head(path, transaction.select), mine)
        transaction.modify(path, ledger_rows.COLUMNS, rows, deleted)
