"""A recording: a variant in a lab, a run of it with the states that it left, and its rows.

The recording has two lives. The first one starts on an empty checkpoint with three micro-batches
waiting; the second one is of another process, with one more. The cluster's state after each request
that may change it is kept: it is what a driver leaves that is killed there.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from minicluster.client import Client, Entry
from tests.faults.sweep import oracle, spyt_control
from tests.faults.sweep.driver import SLOWER, Driver, StalledError, until
from tests.faults.sweep.lab import PARTITION_ROWS, PARTITIONS, Lab
from tests.faults.sweep.points import WRITES, Point, classified, places
from tests.faults.variants import Variant
from tests.support import state_stores
from ytstream.instance.lock import LOCK_SECONDS
from ytstream.job import JobContext
from ytstream_tools.demo import crash_scenario
from ytstream_tools.demo.job_sample import Sample

WAITING, MORE = 3, 1
"""Micro-batches that wait for the first life, and for the second one."""
BATCH_ROWS = PARTITION_ROWS * PARTITIONS
SEED = 31
"""Of the seed of a recording: all rows of a run come from it."""
_BATCHES = ("first", "middle", "last")
_ROWLESS_SECONDS = 3.0 * SLOWER
"""How long a batch without rows may take to follow the last one with rows."""
_LISTING_START_SECONDS = 20.0
_RECORDING_SECONDS = 500.0 * SLOWER
"""A recording that takes long shows nothing but a busy machine."""


@dataclass
class RecordedLife:
    """One life of the recording."""

    base: str
    """The state that it starts with, and the rows that were in the queues then."""
    sent: list[dict[str, Any]]
    folder: Path
    """Where the states after its requests are."""
    points: list[Point] = field(default_factory=list)


@dataclass
class Recording:
    """A variant that is ready to be played."""

    variant: Variant
    lab: Lab
    context: JobContext
    sample: Sample
    folder: Path
    lives: dict[str, RecordedLife] = field(default_factory=dict)
    recoveries: dict[str, RecordedLife] = field(default_factory=dict)
    """Starts after a kill, for second faults: by the first fault."""

    @property
    def control(self) -> Client:
        """The control interface of the cluster."""
        return self.lab.cluster.client

    @property
    def points(self) -> list[Point]:
        """The points of all lives."""
        return [point for life in self.lives.values() for point in life.points]

    def life_of(self, point: Point) -> RecordedLife:
        """Return the life that the point is of."""
        return next(life for life in self.lives.values() if point in life.points)

    def find(self, name: str) -> Point | None:
        """Return the point of that name; None when this recording has none."""
        return next((point for point in self.points if point.name == name), None)

    def rows(self, first: int, count: int) -> list[list[list[dict[str, Any]]]]:
        """Return ``count`` batches of rows for each queue, from the batch number ``first``."""
        return [
            oracle.batches_of(
                self.variant, self.sample.make, self.sample.start_us, SEED + position, count,
                first, BATCH_ROWS,
            )
            for position in range(self.variant.queues)
        ]  # fmt: skip

    def send(self, first: int, count: int) -> list[dict[str, Any]]:
        """Put batches into the queues; return their rows."""
        sent = []
        for queue, batches in zip(
            self.context.settings.queues, self.rows(first, count), strict=True
        ):
            for rows in batches:
                self.put(queue, rows)
                sent += rows
        return sent

    def put(self, queue: str, rows: Sequence[dict[str, Any]], partitions: int = PARTITIONS) -> None:
        """Append rows, dealt out over the partitions; of some kinds a few more than a batch."""
        self.context.client.insert_rows(
            queue, [{**row, "$tablet_index": n % partitions} for n, row in enumerate(rows)]
        )

    def load(self, state: str) -> None:
        """Bring the cluster to a state, whose clock is again as far ahead as it was then."""
        self.control.load(state)
        state_stores.unload(self.lab.spark)

    def load_killed(self, state: str, seconds: float = LOCK_SECONDS + 1) -> None:
        """Bring the cluster to a state so long after the driver was killed that has left it.

        No successor works before the lock of the dead driver is over.
        """
        self.load(state)
        self.control.renew_leases()
        self.control.clock.advance(seconds)

    def driver(self, context: JobContext | None = None) -> Driver:
        """Return a new driver, of the job as it is or as ``context`` has it."""
        if self.variant.is_listing:
            return spyt_control.ListingDriver(self.context, self.lab.spark)
        return Driver(context or self.context, self.lab.spark)

    def drained(self) -> Callable[[], bool]:
        """Return a function that is true once every row is in a batch."""
        if self.variant.is_listing:
            return spyt_control.drained(self.context)
        return crash_scenario.drained(self.context)

    def state_after(self, life: RecordedLife, n: int) -> str:
        """Return the newest state of a recorded life that is not after its request ``n``."""
        before = [at for path in life.folder.iterdir() if (at := int(path.stem)) <= n]
        return str(life.folder / f"{max(before)}.state") if before else life.base


def recorded(variant: Variant, lab: Lab) -> Recording:
    """Provision a variant, run it, and keep what each request has left."""
    context, sample = lab.provisioned(variant)
    folder = lab.folder / variant.name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    recording = Recording(variant, lab, context, sample, folder)
    sent = recording.send(0, WAITING)
    _record(recording, "start", sent, _BATCHES)
    sent = [*sent, *recording.send(WAITING, MORE)]
    _record(recording, "restart", sent, ("again",))
    return recording


def recovery(
    recording: Recording, name: str, state: str, sent: list[dict[str, Any]]
) -> RecordedLife:
    """Return the recorded life that follows a kill which has left ``state``."""
    if name not in recording.recoveries:
        recording.load_killed(state)
        number = len(recording.recoveries)
        found = _recorded(recording, f"recovery-{number}", sent, ("next",), start="restart")
        recording.recoveries[name] = found
    return recording.recoveries[name]


def _record(
    recording: Recording, name: str, sent: list[dict[str, Any]], batches: Sequence[str]
) -> None:
    """Record a life."""
    rowless = "rowless" if name == "start" else "rowless-again"
    names = [*batches, *([rowless] if recording.variant.is_stateful else [])]
    recording.lives[name] = _recorded(recording, name, sent, names, start=name)


def _recorded(
    recording: Recording,
    name: str,
    sent: list[dict[str, Any]],
    batches: Sequence[str],
    *,
    start: str,
) -> RecordedLife:
    """Start a driver, wait until all is read, end it; keep the state after each request."""
    control = recording.control
    base, folder = str(recording.folder / f"{name}.state"), recording.folder / name
    folder.mkdir()
    control.save(base)
    control.journal.clear()
    control.record(str(folder), sorted(WRITES))
    driver = recording.driver()
    # After some kills the listing does not come to a batch, or ends: its start is recorded.
    may_fail = recording.variant.is_listing and name.startswith("recovery")
    seconds = _LISTING_START_SECONDS if may_fail else _RECORDING_SECONDS
    driver.start()
    try:
        with suppress(*[StalledError][: int(may_fail)]):
            until(lambda: has_begun(control.journal()) or driver.is_over, "the start", seconds)
            is_drained = recording.drained()
            until(lambda: driver.is_over or is_drained(), "the recorded run", seconds)
        if recording.variant.is_stateful:  # a batch without rows may follow
            time.sleep(_ROWLESS_SECONDS)
    finally:
        driver.end()
        control.record(None)
    if driver.error is not None and not may_fail:
        raise driver.error
    entries = control.journal()
    is_listing = recording.variant.is_listing
    names = places(batches, start=start, is_listing=is_listing)
    points = classified(entries, recording.variant.root, names, is_listing=is_listing)
    return RecordedLife(base, sent, folder, points)


def has_begun(entries: Sequence[Entry]) -> bool:
    """Return whether a batch is under way: only then its journal tells of one."""
    return any(entry.method == "PullConsumer" for entry in entries)
