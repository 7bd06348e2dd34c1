"""Queue producers: sessions that let a publisher retry without writing a row twice.

A session remembers the sequence number of its last row and an epoch, which grows each time the
session is created again: a publisher that still writes with an older one is refused. Rows and
the session's progress are committed together (documentation, "queues", producer API).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.errors import YtError, generic
from ..cypress.commands import Cypress
from ..rows import wire
from ..rows.from_wire import DELETE, WRITE
from ..rows.from_yson import encode
from ..rows.schema import sorted_schema
from ..tables.commands import Tables
from ..tables.table import Table, require_readable
from ..tables.transactions import TabletTransactions, Transaction

# client/queue_client/public.h
INVALID_EPOCH = 3101
ZOMBIE_EPOCH = 3102
INVALID_SEQUENCE_NUMBERS = 3103

SEQUENCE_NUMBER = "$sequence_number"

PRODUCER_SCHEMA = sorted_schema(
    ("queue_cluster", "string", True),
    ("queue_path", "string", True),
    ("session_id", "string", True),
    ("sequence_number", "int64", True),
    ("epoch", "int64", True),
    ("user_meta", "any", False),
    ("system_meta", "any", False),
    keys=3,
)


class Producers:
    """`cluster.producers`."""

    def __init__(
        self,
        cluster_name: str,
        cypress: Cypress,
        tables: Tables,
        transactions: TabletTransactions,
    ) -> None:
        self._cluster_name = cluster_name
        self._cypress = cypress
        self._tables = tables
        self._transactions = transactions

    def create_session(
        self, producer: str, queue: str, session_id: str, user_meta: Any = None
    ) -> dict[str, Any]:
        """Return {sequence_number, epoch, user_meta} of a new session, or of one taken over.

        The sequence number is that of the last row written, -1 if there is none.
        """
        queue_path = self._tables.ordered(queue)[0].path
        session = self._find(producer, queue_path, session_id)
        if session is None:
            session = {"sequence_number": -1, "epoch": -1, "user_meta": None}
        session["epoch"] += 1
        if user_meta is not None:
            session["user_meta"] = user_meta
        self._store(producer, queue_path, session_id, session, None)
        return {
            "sequence_number": session["sequence_number"],
            "epoch": session["epoch"],
            "user_meta": session["user_meta"],
        }

    def remove_session(self, producer: str, queue: str, session_id: str) -> None:
        """Forget a session, if there is one."""
        node, table = self._producer(producer)
        key = self._key(self._cypress.canonical(queue), session_id)
        names, written = encode(table.schema, [key])
        self._tables.modify(node, [(DELETE, written[0])], names)

    def push(
        self,
        producer: str,
        queue: str,
        session_id: str,
        epoch: int,
        pushed: Sequence[bytes],
        names: Sequence[str],
        *,
        sequence_number: int | None = None,
        user_meta: Any = None,
        tx: Transaction | None = None,
    ) -> dict[str, int]:
        """Write the rows that the session has not written yet.

        Each row has a `$sequence_number`, or the first one has `sequence_number` and so on.
        Returns {last_sequence_number, skipped_row_count}. Raises YtError INVALID_EPOCH for an epoch
        from the future, ZOMBIE_EPOCH for an outdated one, INVALID_SEQUENCE_NUMBERS.
        """
        queue_path = self._tables.ordered(queue)[0].path
        numbers, stripped = _sequence(pushed, names, sequence_number)
        with self._transactions.within(tx) as transaction:
            session = self._find(producer, queue_path, session_id, transaction.start_timestamp)
            if session is None:
                raise generic(f'Unknown session "{session_id}" of producer {producer}')
            if epoch != session["epoch"]:
                raise _epoch_error(epoch, session["epoch"])
            done = session["sequence_number"]
            fresh = [row for number, row in zip(numbers, stripped, strict=True) if number > done]
            if fresh:
                self._tables.modify(
                    queue_path, [(WRITE, row) for row in fresh], names, tx=transaction
                )
            session["sequence_number"] = max([done, *numbers])
            if user_meta is not None:
                session["user_meta"] = user_meta
            self._store(producer, queue_path, session_id, session, transaction)
        return {
            "last_sequence_number": session["sequence_number"],
            "skipped_row_count": len(numbers) - len(fresh),
        }

    def _producer(self, path: str) -> tuple[str, Table]:
        node, table = self._tables.sorted(path)
        for column in PRODUCER_SCHEMA.columns:
            if table.schema.find(column.name) is None:
                raise generic(f'Table {node.path} is not a queue producer: no "{column.name}"')
        return node.path, table

    def _key(self, queue_path: str, session_id: str) -> dict[str, Any]:
        return {
            "queue_cluster": self._cluster_name,
            "queue_path": queue_path,
            "session_id": session_id,
        }

    def _find(
        self, producer: str, queue_path: str, session_id: str, timestamp: int | None = None
    ) -> dict[str, Any] | None:
        path, table = self._producer(producer)
        parts: list[Any] = []
        for value in self._key(queue_path, session_id).values():
            parts += [wire.STRING, value.encode()]
        key = tuple(parts)
        require_readable(table.tablets[table.tablet_of(key)], path)
        row = table.data.get(key, timestamp)
        if row is None:
            return None
        return wire.to_dict(row, [column.name for column in table.schema.columns])

    def _store(
        self,
        producer: str,
        queue_path: str,
        session_id: str,
        session: dict[str, Any],
        tx: Transaction | None,
    ) -> None:
        path, table = self._producer(producer)
        names, written = encode(table.schema, [{**session, **self._key(queue_path, session_id)}])
        self._tables.modify(path, [(WRITE, written[0])], names, tx=tx)


def _epoch_error(given: int, current: int) -> YtError:
    if given < current:
        return YtError(ZOMBIE_EPOCH, f"Received zombie epoch ({given} < {current})")
    return YtError(INVALID_EPOCH, f"Received invalid epoch ({given} > {current})")


def _wrong_numbers(message: str) -> YtError:
    # client/queue_client/helpers.cpp
    return YtError(INVALID_SEQUENCE_NUMBERS, message)


def _sequence(
    pushed: Sequence[bytes], names: Sequence[str], first: int | None
) -> tuple[list[int], list[bytes]]:
    """Return the sequence numbers of the rows, and the rows without them. Raises YtError."""
    column = names.index(SEQUENCE_NUMBER) if SEQUENCE_NUMBER in names else -1
    numbers: list[int] = []
    stripped: list[bytes] = []
    following = first
    for row in pushed:
        number = next(
            (value for id_, _, value in wire.values(row) if id_ == column and value is not None),
            None,
        )
        if number is not None and first is not None:
            raise _wrong_numbers(
                "Only one of explicit $sequence_number or initial sequence number can be set"
            )
        if number is None:
            if following is None:
                raise _wrong_numbers("Sequence number is not set for a row")
            number, following = following, following + 1
        if not isinstance(number, int) or number < 0:
            raise _wrong_numbers(f"Sequence number {number!r} cannot be negative")
        if numbers and number <= numbers[-1]:
            raise _wrong_numbers(
                f"Sequence numbers are not strongly monotonic: {number} <= {numbers[-1]}"
            )
        numbers.append(number)
        if column >= 0:
            pieces = wire.chunks(row)
            pieces.pop(column, None)
            row = wire.from_chunks(list(pieces.values()))
        stripped.append(row)
    return numbers, stripped
