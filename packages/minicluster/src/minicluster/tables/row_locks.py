"""Lock groups: which columns of a row two transactions may write side by side.

A column may name its lock (`lock` in the schema); all others share the primary one. Transactions
conflict only in a lock that both touch, and whoever deletes a row touches all of them. A lock can
be taken without writing (`lock_rows`).

Source: server/node/tablet_node/sorted_dynamic_store.cpp, CheckRowLocks; server test,
integration/tests/dynamic_tables/test_sorted_dynamic_tables.py::test_transaction_locks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ..rows.from_wire import Key
from ..rows.schema import TableSchema

PRIMARY = 0
PRIMARY_NAME = "<primary>"
SHARED_WEAK, SHARED_STRONG, EXCLUSIVE = 1, 2, 3
TYPES = {"shared_weak": SHARED_WEAK, "shared_strong": SHARED_STRONG, "exclusive": EXCLUSIVE}
"""Numbers of ELockType (client/table_client/public.h); the fourth, shared_write, is refused."""

Taken = dict[int, int]
"""Lock -> type, of one row."""


@dataclass
class RowLocks:
    """The times at which the locks of rows were last taken; of rows that have any such time."""

    written: dict[Key, dict[int, int]] = field(default_factory=dict)
    read: dict[Key, dict[int, int]] = field(default_factory=dict)
    """By shared strong locks; a shared weak one leaves nothing behind."""

    def newer(self, key: Key, taken: Taken, timestamp: int) -> int | None:
        """Return when a lock was taken after that time that rules out one of these; or None."""
        times = _against(self.written.get(key, {}), taken)
        strong = {lock: type for lock, type in taken.items() if type == EXCLUSIVE}
        times += _against(self.read.get(key, {}), strong)
        latest = max(times, default=0)
        return latest if latest > timestamp else None

    def take(self, key: Key, taken: Taken, timestamp: int) -> None:
        for lock, type in taken.items():
            if type != SHARED_WEAK:
                times = self.written if type == EXCLUSIVE else self.read
                times.setdefault(key, {})[lock] = timestamp


def _against(times: Mapping[int, int], taken: Taken) -> list[int]:
    """Return the times of the locks that are in the way; the primary one is in that of all."""
    if PRIMARY in taken:
        return list(times.values())
    return [time for lock, time in times.items() if lock == PRIMARY or lock in taken]


def numbers(schema: TableSchema) -> dict[str, int]:
    """Return lock -> number, in the order of the schema."""
    found = {PRIMARY_NAME: PRIMARY}
    for column in schema.columns:
        name = column.extra.get("lock")
        if name is not None:
            found.setdefault(str(name), len(found))
    return found


def from_bits(read: int, masks: int) -> Taken:
    """Return the locks of a row as ModifyRows carries them: a bit for each weak one, and two bits
    for each of any type (client/table_client/row_base.h, TLegacyLockMask)."""
    weak = {lock: SHARED_WEAK for lock in range(read.bit_length()) if read >> lock & 1}
    typed = {lock: masks >> 2 * lock & 3 for lock in range((masks.bit_length() + 1) // 2)}
    return weak | {lock: type for lock, type in typed.items() if type}


def locks_of(schema: TableSchema, columns: Iterable[int]) -> Taken:
    """Return the locks that a write of these columns takes."""
    known = numbers(schema)
    return {
        known[str(schema.columns[index].extra.get("lock", PRIMARY_NAME))]: EXCLUSIVE
        for index in columns
        if index >= schema.key_count
    }
