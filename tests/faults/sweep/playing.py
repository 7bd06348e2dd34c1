"""A case while it is played: its drivers, and the rows that went in."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any
from zlib import crc32

from tests.faults.sweep import cases, oracle
from tests.faults.sweep.cases import Case
from tests.faults.sweep.driver import (
    LOOK_SECONDS,
    PATIENCE,
    Driver,
    EndedError,
    StalledError,
    end_queries,
    is_final,
)
from tests.faults.sweep.lab import PARTITIONS, made_of
from tests.faults.sweep.recording import SEED, Recording
from tests.faults.variants import Variant
from ytstream.errors import code_of
from ytstream.errors.error_codes import ErrorCode
from ytstream.instance.lock import LOCK_SECONDS
from ytstream.job import JobContext

_FOLLOWING, FOLLOWING_BATCH = 20, 90
"""Rows that follow once the fault is over: they show that the job goes on. Of a batch of its own.
"""
ARRIVAL_SECONDS, _ARRIVING, _BURST, _ARRIVING_SEED = 5.0, 6, 90, 100
"""A production queue gets rows all the time: so many come so often while a driver is waited for,
but for the last third of the patience: who keeps up with them has read all of them then."""
EVERYWHERE, ONE_PLACE, BURSTS, NOWHERE = "everywhere", "one place", "bursts", "nowhere"
ARRIVALS = (EVERYWHERE, ONE_PLACE, BURSTS, NOWHERE)
"""Where rows arrive: in all partitions of all queues, in the first queue only or, if there is one
queue, in its first partition only, many in every third turn, or not."""
_ARRIVING_SECONDS = 120.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 15.0
"""Between two attempts of a driver, as YTsaurus starts them."""
_END_SECONDS = 30.0
TRANSACTION_SECONDS = 310
"""The longest life of a transaction: SPYT's."""
_TURNS = (LOCK_SECONDS + 1, TRANSACTION_SECONDS + 1)
"""How long after a driver was killed the next one works: its longer transactions live, or none."""


def arrivals_of(case: Case) -> str:
    """Return how rows arrive in a case: cases take turns, and each is the same in every run.

    A case of the control gets the rows of the case that it is compared with.
    """
    name = replace(case, variant=case.variant._replace(is_listing=False)).name
    return ARRIVALS[crc32(name.encode()) % len(ARRIVALS)]


def seed_of(queue: int, arrival: int) -> int:
    """Return the seed of the rows that arrive in a queue."""
    return (SEED + queue) * 1_000 + _ARRIVING_SEED + arrival


def following(
    variant: Variant, sent: Sequence[oracle.Row], batch: Sequence[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return what follows the rows ``sent`` in a queue: the end of a batch."""
    return [*oracle.published_again(variant, sent), *batch[-_FOLLOWING:]]


class MissedError(Exception):
    """The fault did not happen at its point. What the drivers have done is judged all the same."""


@dataclass
class Play:
    """A case while it is played."""

    recording: Recording
    case: Case
    sent: list[dict[str, Any]] = field(default_factory=list)
    drivers: list[Driver] = field(default_factory=list)
    arrivals: int = 0
    arrived: int = 0
    """Rows that have arrived."""
    before: int | None = None
    """Rows of the first output before the case. None: it has not begun."""
    missed: str = ""
    """Why the fault did not happen at its point."""
    may_cut_batch: bool = False
    """Whether the fault may cut off a batch some of whose rows are written."""
    corrected: JobContext | None = None
    """The job with what a person has corrected in it after the fault."""
    since: float = field(default_factory=time.monotonic)
    """When the fault happened."""
    over: float | None = None
    """When it was over, by the clock of the journal; None: at once."""

    def begin(self, state: str, *, killed: bool = False) -> None:
        """Bring the cluster to the state with which the case begins: of a driver that was
        ``killed``.

        The transactions of a dead driver end with their timeout. Cases take turns: a successor
        finds them alive, or gone.
        """
        if killed:
            seconds = _TURNS[crc32(self.case.name.encode()) // len(ARRIVALS) % len(_TURNS)]
            self.recording.load_killed(state, seconds)
        else:
            self.recording.load(state)
        self.recording.control.journal.clear()
        context = self.recording.context
        self.before = int(context.client.get(f"{context.settings.output}/@row_count"))

    # -- drivers

    def start(self) -> Driver:
        """Start a driver, as a process of its own."""
        driver = self.recording.driver(self.corrected)
        self.drivers.append(driver)
        driver.start()
        return driver

    def drain(self, patience: float = PATIENCE) -> None:
        """Wait until every row is in a batch, while new ones arrive.

        Another driver is started where production starts one: see is_final(). After half of the
        patience, the control's is started again as an operator would.

        Raises EndedError, or StalledError.
        """
        is_drained, begun = self.recording.drained(), time.monotonic()
        arrival, pause, is_restarted = ARRIVAL_SECONDS, _FIRST_PAUSE, False
        while not is_drained():
            waited = time.monotonic() - begun
            if waited > patience:
                raise StalledError(f"rows stay in the queue for {patience:.0f} s")
            if arrival < waited < _ARRIVING_SECONDS:
                arrival += ARRIVAL_SECONDS
                self.arrive()
            self.verify_goes_on()
            if self.drivers[-1].is_over:
                time.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
                self.start()
            elif self._has_operator and waited > PATIENCE / 2 and not is_restarted:
                is_restarted = True
                self._end_driver()
                self.start()
            time.sleep(LOOK_SECONDS)

    @property
    def _has_operator(self) -> bool:
        return self.recording.variant.is_listing

    def verify_goes_on(self) -> None:
        """Raise EndedError when the newest driver has ended for good, and must not."""
        error, allowed = self.drivers[-1].error, cases.MAY_END.get(self.case.fault)
        if error is not None and is_final(error) and (not allowed or code_of(error) != allowed):
            raise EndedError(str(error))

    def start_after(self, code: ErrorCode) -> None:
        """Start another driver once a person has done what the end of the last one asks for.

        Raises EndedError if that had another reason.
        """
        error = self.drivers[-1].error
        if error is None or code_of(error) != code:
            raise EndedError(f"not {code}: {error}")
        self.start()

    def _end_driver(self) -> None:
        self.drivers[-1].ask_to_end()
        end_queries(self.recording.lab.spark)
        with suppress(StalledError):  # its thread hangs: the process would be killed
            self.drivers[-1].end(_END_SECONDS)

    def arrive(self) -> None:
        """Send a few rows, a little newer than all others: none is late."""
        variant, how = self.recording.variant, arrivals_of(self.case)
        self.arrivals += 1
        count = _ARRIVING
        if how == NOWHERE or (how == BURSTS and self.arrivals % 3 != 1):
            return
        if how == BURSTS:
            count = _BURST
        made, sent = made_of(variant), [*self.sent]
        queues = self.recording.context.settings.queues
        partitions = 1 if how == ONE_PLACE and variant.queues == 1 else PARTITIONS
        for position, queue in enumerate(queues[:1] if how == ONE_PLACE else queues):
            seed = seed_of(position, self.arrivals)
            rows = oracle.arriving(variant, made, seed, count, sent)
            self._send(queue, rows, partitions)
        self.arrived += len(self.sent) - len(sent)

    def follow(self) -> None:
        """Send what follows, and what brings out the rows that wait for the watermark."""
        recording, queues = self.recording, self.recording.context.settings.queues
        for queue, batches in zip(queues, recording.rows(FOLLOWING_BATCH, 1), strict=True):
            self._send(queue, following(recording.variant, self.sent, batches[0]))
        self.drain()
        for row in recording.sample.closing(recording.context.job, self.sent):
            self._send(queues[0], [row])
            self.drain()

    def _send(self, queue: str, rows: list[dict[str, Any]], partitions: int = PARTITIONS) -> None:
        self.recording.put(queue, rows, partitions)
        self.sent += rows
