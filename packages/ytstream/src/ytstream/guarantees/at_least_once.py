"""At least once: no row is lost; after a crash the rows of up to one micro-batch may repeat.

Rows go to an ordered table in transactions of their own, and the consumer follows one batch behind
the checkpoint: a batch that was cut off is written again from its beginning.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..columns import Column
from ..config import Settings
from .replaying import Replaying

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class AtLeastOnce(Replaying):
    """See the module."""

    name = "at_least_once"
    #: None: no refusal of this guarantee can be waived.
    acceptable: Sequence[str] = ()
    position: Mapping[str, str] = {}

    def key(self, queues: int) -> tuple[str, ...]:
        """Return no column: a key of the user's own needs the transaction (KEYED in pairs.py)."""
        return ()

    def admit(self, rows: DataFrame, settings: Settings) -> None:
        """Admit every plan: any transformation may repeat rows and loses none."""

    def admit_output(self, rows: DataFrame, settings: Settings) -> None:
        """Admit every plan, too."""

    def output_attributes(
        self, columns: Sequence[Column], settings: Settings, tablets: Mapping[str, int]
    ) -> dict[str, Any]:
        """Give an output as many tablets as the queues have."""
        return {"tablet_count": sum(tablets.values())}
