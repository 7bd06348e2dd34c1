"""At least once: no row is lost; each attempt that fails may leave rows of one micro-batch twice.

Rows go to an ordered table in transactions of their own, and the ledger's head and the consumer
move after them: a batch that was cut off is written again from its beginning. One that fails at the
same write each time, for instance of a second output, appends the first output's rows each time.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from ..job import Guarantee
from ..schema.columns import Column
from ..settings.job_settings import Settings


class AtLeastOnce(Guarantee):
    """Admits every plan: any transformation may repeat rows and loses none."""

    name = "at_least_once"

    def key(self, queues: int) -> tuple[str, ...]:
        """Return no column: a key of the user's own needs the transaction (job_rules.toml)."""
        return ()

    def output_attributes(
        self, columns: Sequence[Column], settings: Settings, tablets: Mapping[str, int]
    ) -> dict[str, Any]:
        """Give an output as many tablets as the queues have."""
        return {"tablet_count": sum(tablets.values())}
