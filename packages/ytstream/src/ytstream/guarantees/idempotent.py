"""Exactly once for stateless 1:1 transformations: every row is stored under its source's position.

The output is a sorted table whose key is the row's place in its queue. A batch that was cut off is
written again, and writing the same row under the same key changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..connector.spyt import POSITION
from ..job import Guarantee
from ..schema.columns import Column
from ..schema.table_schema import split_by_position
from ..settings.job_settings import Settings
from . import one_to_one

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

QUEUE_KEY = "queue_id"


class Idempotent(Guarantee):
    """See the module."""

    name = "idempotent"
    acceptable: Sequence[str] = tuple(one_to_one.ACCEPTABLE.values())
    position: Mapping[str, str] = POSITION

    def key(self, queues: int) -> tuple[str, ...]:
        """Return the position, and with several queues the queue in front of it.

        transform() must return these columns unchanged. Without ``queue_id`` rows at equal
        positions of two queues would overwrite each other.
        """
        return (*((QUEUE_KEY,) if queues > 1 else ()), *self.position)

    def admit(self, rows: DataFrame, settings: Settings) -> None:
        """Raise JobError unless the plan is 1:1 and keeps the key."""
        sources: dict[str, str | None] = dict.fromkeys(self.key(len(settings.queues)))
        one_to_one.verify(rows, settings, sources | dict(self.position))

    def admit_output(self, rows: DataFrame, settings: Settings) -> None:
        """Raise JobError unless the plan over the finished rows is 1:1 and keeps the key."""
        one_to_one.verify_output(rows, settings, self.key(len(settings.queues)))

    def output_attributes(
        self, columns: Sequence[Column], settings: Settings, tablets: Mapping[str, int]
    ) -> dict[str, Any]:
        """Pre-split a new output: one tablet for each tablet of the queues."""
        return split_by_position(tablets)
