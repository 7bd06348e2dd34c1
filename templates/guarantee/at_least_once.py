"""At least once: nothing is lost; after a crash the rows of up to one micro-batch may repeat.

Rows go to an ordered table in transactions of their own, and the consumer follows one batch behind
the checkpoint: a batch that was cut off is written again from its beginning.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame

from .schema import Column
from .settings import Settings

NAME = "at_least_once"

#: What `accept` may name: nothing, no refusal can be justified here.
ACCEPTABLE: Sequence[str] = ()

#: What the guarantee itself adds to the rows and to the output: nothing.
POSITION: Mapping[str, str] = {}
KEY: Sequence[Column] = ()
KEY_COLUMNS: Sequence[str] = ()

CONFS: Mapping[str, str] = {
    # Said aloud, because a cluster's defaults could switch it on: SPYT's source would then leave
    # the consumer to a transaction that nobody opens (YtStreamingSource.commit).
    "spark.yt.streaming.transactional": "false",
}


def admit(rows: DataFrame, _settings: Settings) -> DataFrame:
    """The rows as they are: any transformation may repeat rows and lose none."""
    return rows


def output_attributes(_settings: Settings, tablets: Mapping[str, int]) -> dict[str, Any]:
    """Attributes of a new output table: ordered, with as many tablets as the queues have."""
    return {"tablet_count": sum(tablets.values())}


def write_batch(*_: object) -> int:
    """Rows per ``modify_rows``, each a transaction of its own: far below 100 000 per tablet."""
    return 10_000


def sizing_problem(*_: object) -> str | None:
    """Nothing can be sized wrongly: no transaction holds more than one ``modify_rows``."""
    return None
