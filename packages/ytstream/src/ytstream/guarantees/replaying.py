"""The part that guarantees without SPYT's transaction share.

The outputs of a batch are visible at once. After them one transaction of the runtime's own writes
the ledger's head; a batch that was cut off before runs again from its first row. SPYT moves the
consumer one batch behind.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ..config import Settings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Replaying:
    """Each ``modify_rows`` is a transaction of its own; a batch that was cut off is replayed."""

    in_transaction = False

    def fenced(self, rows: DataFrame) -> DataFrame:
        """Return the rows unchanged: what a task has written before it failed may repeat."""
        return rows

    def write_batch(self, settings: Settings, tablets: Mapping[str, int]) -> int:
        """Return a number far below the 100 000 rows of a tablet that a transaction may touch."""
        return 10_000

    def sizing_problem(
        self, settings: Settings, tablets: Mapping[str, int], output_tablets: int
    ) -> None:
        """Return None: no transaction holds more than one ``modify_rows``."""
