"""A scene: a variant on a lane, a run of it that was recorded, and the rows that went in.

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
from tests.faults.sweep import listing, oracle
from tests.faults.sweep.lane import PARTITION_ROWS, PARTITIONS, Lane
from tests.faults.sweep.life import SLOWER, Life, StalledError, unload_states, until
from tests.faults.sweep.points import WRITES, Point, classified, places
from tests.faults.sweep.variants import Variant
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
class Recorded:
    """One life of the recording."""

    base: str
    """The state that it starts with, and the rows that were in the queues then."""
    sent: list[dict[str, Any]]
    folder: Path
    """Where the states after its requests are."""
    points: list[Point] = field(default_factory=list)


@dataclass
class Scene:
    """A variant that is ready to be played."""

    variant: Variant
    lane: Lane
    context: JobContext
    sample: Sample
    folder: Path
    lives: dict[str, Recorded] = field(default_factory=dict)
    recoveries: dict[str, Recorded] = field(default_factory=dict)
    """Starts after a kill, for second faults: by the first fault."""

    @property
    def control(self) -> Client:
        """The control interface of the cluster."""
        return self.lane.cluster.client

    @property
    def points(self) -> list[Point]:
        """The points of all lives."""
        return [point for life in self.lives.values() for point in life.points]

    def life_of(self, point: Point) -> Recorded:
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

    def put(self, queue: str, rows: Sequence[dict[str, Any]]) -> None:
        """Append rows, dealt out over the partitions; of some kinds a few more than a batch."""
        self.context.client.insert_rows(
            queue, [{**row, "$tablet_index": n % PARTITIONS} for n, row in enumerate(rows)]
        )

    def load(self, state: str) -> None:
        """Bring the cluster to a state; its clock goes on."""
        before = self.control.clock.now()
        self.control.load(state)
        self.control.clock.advance(max(0.0, before - self.control.clock.now()))
        unload_states(self.lane.spark)

    def life(self) -> Life:
        """Return a new driver."""
        if self.variant.is_listing:
            return listing.ListingLife(self.context, self.lane.spark)
        return Life(self.context, self.lane.spark)

    def drained(self) -> Callable[[], bool]:
        """Return a function that is true once every row is in a batch."""
        if self.variant.is_listing:
            return listing.drained(self.context)
        return crash_scenario.drained(self.context)

    def state_after(self, life: Recorded, n: int) -> str:
        """Return the newest state of a recorded life that is not after its request ``n``."""
        before = [at for path in life.folder.iterdir() if (at := int(path.stem)) <= n]
        return str(life.folder / f"{max(before)}.state") if before else life.base


def recorded(variant: Variant, lane: Lane) -> Scene:
    """Provision a variant, run it, and keep what each request has left."""
    context, sample = lane.provisioned(variant)
    folder = lane.folder / variant.name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    scene = Scene(variant, lane, context, sample, folder)
    sent = scene.send(0, WAITING)
    _record(scene, "start", sent, _BATCHES)
    sent = [*sent, *scene.send(WAITING, MORE)]
    _record(scene, "restart", sent, ("again",))
    return scene


def recovery(scene: Scene, name: str, state: str, sent: list[dict[str, Any]]) -> Recorded:
    """Return the recorded life that follows a kill which has left ``state``."""
    if name not in scene.recoveries:
        scene.load(state)
        number = len(scene.recoveries)
        found = _recorded(scene, f"recovery-{number}", sent, ("next",), start="restart")
        scene.recoveries[name] = found
    return scene.recoveries[name]


def _record(scene: Scene, name: str, sent: list[dict[str, Any]], batches: Sequence[str]) -> None:
    """Record a life of the scene."""
    rowless = "rowless" if name == "start" else "rowless-again"
    names = [*batches, *([rowless] if scene.variant.is_stateful else [])]
    scene.lives[name] = _recorded(scene, name, sent, names, start=name)


def _recorded(
    scene: Scene, name: str, sent: list[dict[str, Any]], batches: Sequence[str], *, start: str
) -> Recorded:
    """Start a driver, wait until all is read, end it; keep the state after each request."""
    control = scene.control
    base, folder = str(scene.folder / f"{name}.state"), scene.folder / name
    folder.mkdir()
    control.save(base)
    control.journal.clear()
    control.record(str(folder), sorted(WRITES))
    life = scene.life()
    # After some kills the listing does not come to a batch, or ends: its start is recorded.
    may_fail = scene.variant.is_listing and name.startswith("recovery")
    seconds = _LISTING_START_SECONDS if may_fail else _RECORDING_SECONDS
    life.start()
    try:
        with suppress(*[StalledError][: int(may_fail)]):
            until(lambda: has_begun(control.journal()) or life.is_over, "the start", seconds)
            is_drained = scene.drained()
            until(lambda: life.is_over or is_drained(), "the recorded run", seconds)
        if scene.variant.is_stateful:  # a batch without rows may follow
            time.sleep(_ROWLESS_SECONDS)
    finally:
        life.end()
        control.record(None)
    if life.error is not None and not may_fail:
        raise life.error
    entries = control.journal()
    is_listing = scene.variant.is_listing
    names = places(batches, start=start, is_listing=is_listing)
    points = classified(entries, scene.variant.root, names, is_listing=is_listing)
    return Recorded(base, sent, folder, points)


def has_begun(entries: Sequence[Entry]) -> bool:
    """Return whether a batch is under way: only then the scene may look, and is in the journal."""
    return any(entry.method == "PullConsumer" for entry in entries)
