"""A case while it is played: its drivers, and the rows that went in."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from tests.faults.sweep.cases import Case
from tests.faults.sweep.life import LOOK_SECONDS, PATIENCE, Life, StalledError, until
from tests.faults.sweep.scene import Scene

#: Rows that follow once the fault is over: they show that the job goes on. Of a batch of its own.
_FOLLOWING, _FOLLOWING_BATCH = 20, 90
#: Drivers that end by themselves, one after the other, before the case is given up.
_STARTS = 3
#: The listing says nothing when it stalls.
_LISTING_PATIENCE = 45.0


class MissedError(Exception):
    """The fault did not happen at its point."""


@dataclass
class Play:
    """A case while it is played."""

    scene: Scene
    case: Case
    sent: list[dict[str, Any]] = field(default_factory=list)
    lives: list[Life] = field(default_factory=list)
    #: When the fault happened.
    since: float = field(default_factory=time.monotonic)

    # -- drivers

    @property
    def patience(self) -> float:
        """How long rows may wait."""
        return _LISTING_PATIENCE if self.scene.variant.is_listing else PATIENCE

    def start(self) -> Life:
        """Start a driver, as a process of its own."""
        life = self.scene.life()
        self.lives.append(life)
        life.start()
        return life

    def drain(self) -> None:
        """Wait until every row is in a batch; a driver that was refused is started once more."""
        is_drained = self.scene.drained()
        for _ in range(_STARTS):
            life = self.lives[-1]
            is_over = partial(_is_over, life, is_drained)
            until(is_over, "every row in a batch", self.patience, LOOK_SECONDS)
            if not life.is_over:
                return
            self.start()
        raise StalledError(f"{_STARTS} drivers have ended: {self.lives[-2].error}")

    def follow(self) -> None:
        """Send what follows, and what brings out the rows that wait for the watermark."""
        scene, queues = self.scene, self.scene.context.settings.queues
        for queue, batches in zip(queues, scene.rows(_FOLLOWING_BATCH, 1), strict=True):
            self._send(queue, batches[0][:_FOLLOWING])
        self.drain()
        for row in scene.sample.closing(scene.context.job, self.sent):
            self._send(queues[0], [row])
            self.drain()

    def _send(self, queue: str, rows: list[dict[str, Any]]) -> None:
        self.scene.put(queue, rows)
        self.sent += rows

    def output_rows(self) -> int:
        """Return how many rows the first output has."""
        context = self.scene.context
        return int(context.client.get(f"{context.settings.output}/@row_count"))


def _is_over(life: Life, is_drained: Callable[[], bool]) -> bool:
    return life.is_over or is_drained()
