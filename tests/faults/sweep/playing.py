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
from tests.faults.sweep.lab import made_of
from tests.faults.sweep.recording import SEED, Recording
from tests.faults.variants import Variant
from ytstream.errors import code_of
from ytstream.errors.error_codes import ErrorCode

_FOLLOWING, FOLLOWING_BATCH = 20, 90
"""Rows that follow once the fault is over: they show that the job goes on. Of a batch of its own.
"""
ARRIVAL_SECONDS, _ARRIVING, _BURST, _ARRIVING_SEED = 5.0, 6, 90, 100
"""A production queue gets rows all the time: so many come so often while a driver is waited for,
but for the last third of the patience: who keeps up with them has read all of them then."""
EVERYWHERE, ONE_QUEUE, BURSTS, NOWHERE = "everywhere", "one queue", "bursts", "nowhere"
ARRIVALS = (EVERYWHERE, ONE_QUEUE, BURSTS, NOWHERE)
"""Where rows arrive: in each queue, in the first one alone, many in every third turn, or not."""
_ARRIVING_SECONDS = 120.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 15.0
"""Between two attempts of a driver, as YTsaurus starts them."""
_END_SECONDS = 30.0


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
    """The fault did not happen at its point."""


@dataclass
class Play:
    """A case while it is played."""

    recording: Recording
    case: Case
    sent: list[dict[str, Any]] = field(default_factory=list)
    drivers: list[Driver] = field(default_factory=list)
    arrivals: int = 0
    since: float = field(default_factory=time.monotonic)
    """When the fault happened."""
    over: float | None = None
    """When it was over, by the clock of the journal; None: at once."""

    # -- drivers

    def start(self) -> Driver:
        """Start a driver, as a process of its own."""
        driver = self.recording.driver()
        self.drivers.append(driver)
        driver.start()
        return driver

    def drain(self) -> None:
        """Wait until every row is in a batch, while new ones arrive.

        Another driver is started where production starts one: see is_final(). After half of the
        patience, the control's is started again as an operator would.

        Raises EndedError, or StalledError.
        """
        is_drained, begun = self.recording.drained(), time.monotonic()
        arrival, pause, is_restarted = ARRIVAL_SECONDS, _FIRST_PAUSE, False
        while not is_drained():
            waited = time.monotonic() - begun
            if waited > PATIENCE:
                raise StalledError(f"rows stay in the queue for {PATIENCE:.0f} s")
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
        for position, queue in enumerate(queues[:1] if how == ONE_QUEUE else queues):
            seed = seed_of(position, self.arrivals)
            self._send(queue, oracle.arriving(variant, made, seed, count, sent))

    def follow(self) -> None:
        """Send what follows, and what brings out the rows that wait for the watermark."""
        recording, queues = self.recording, self.recording.context.settings.queues
        for queue, batches in zip(queues, recording.rows(FOLLOWING_BATCH, 1), strict=True):
            self._send(queue, following(recording.variant, self.sent, batches[0]))
        self.drain()
        for row in recording.sample.closing(recording.context.job, self.sent):
            self._send(queues[0], [row])
            self.drain()

    def _send(self, queue: str, rows: list[dict[str, Any]]) -> None:
        self.recording.put(queue, rows)
        self.sent += rows

    def output_rows(self) -> int:
        """Return how many rows the first output has."""
        context = self.recording.context
        return int(context.client.get(f"{context.settings.output}/@row_count"))
