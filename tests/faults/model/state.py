"""What a state of the model holds: plain values that compare, hash and sort."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

Counts = tuple[int, ...]
"""How often each row was written or counted; 2 stands for "too often". The last one is no row: it
is what a stateful job writes when its windows close, in a batch without rows."""

NOBODY = -1
"""The number of no driver: of a process that is gone, or of the cluster."""


class Head(NamedTuple):
    """The ledger's head row."""

    epoch: int = 0
    owner: int = NOBODY  # the driver that raised the epoch
    folder: int = 0  # 0 before the first start
    batch: int = -1  # the last batch that happened; -1 if none did
    end: int = 0  # the row after the last one that was read


class Folder(NamedTuple):
    """A checkpoint: `offsets/N` with the batch's end, `commits/N`, the versions of the state."""

    offsets: tuple[tuple[int, int], ...] = ()
    commits: tuple[int, ...] = ()
    states: tuple[tuple[int, Counts], ...] = ()


class At(IntEnum):
    """The step that a driver does next."""

    IDLE = 0  # no process
    RAISE = 1
    READ = 2
    FOLDER = 3
    BEGIN = 4
    START = 5
    PLAN = 6
    OPEN = 7
    STATE = 8
    LOG = 9
    COMMIT = 10
    PURGE = 11
    HEAD = 12  # of the mutant head_outside
    OUTPUT = 13  # this one and those below: of the guarantees that replay
    RECORD = 14
    RECORDED = 15


class Driver(NamedTuple):
    """A driver's memory. At FOLDER and BEGIN: what read_positions saw; then: the batch."""

    at: At = At.IDLE
    epoch: int = 0  # the last epoch known to be its own; 0 if none is
    folder: int = 0
    batch: int = 0
    start: int = 0
    end: int = 0  # of the batch, or of the last one; one more than there are rows: windows close
    consumer: int = 0
    conflict: bool = False  # after T was opened, another transaction wrote a row that T writes
    advanced: int = -1  # where the last T of this query has moved it; of our own connector
    checked: bool = False  # of the mutant cached_check: a batch of this query was checked


GONE = Driver()


class Write(NamedTuple):
    """What one tablet transaction writes; sent late, it waits in the state."""

    name: str
    owner: int
    head: Head | None = None
    consumer: int = -1  # -1: not written
    rows: tuple[int, ...] = ()  # of the output
    total: Counts = ()  # of a keyed output: the rows in the value that takes the place of the last


class Table(NamedTuple):
    """A batch's rows in a static output, as long as it is not published."""

    epoch: int
    batch: int
    rows: tuple[int, ...]
    named: bool = False  # by the ledger: the head was at its batch


class State(NamedTuple):
    head: Head
    consumer: int
    out: Counts  # of a static output: what is published; of a keyed one: the rows in its total
    folders: tuple[Folder | None, ...]  # of the epochs from 1 on; None: nobody can read it
    late: tuple[Write, ...]
    drivers: tuple[Driver, ...]
    starts: int
    faults: int  # so many may still happen
    aside: tuple[Table, ...] = ()


class Step(NamedTuple):
    driver: int  # NOBODY: the cluster
    names: tuple[str, ...]
    note: str = ""
    causeless: bool = False  # the newest epoch is refused, and nobody touched what is its own
