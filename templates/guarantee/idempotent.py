"""Exactly once for stateless 1:1 transformations: every row is stored under its source's position.

The output is a sorted table whose key is where the row stood in its queue. A batch that was cut off
is written again, and writing the same row under the same key changes nothing.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import yt.type_info as ti
from pyspark.sql import DataFrame

from . import plan
from .keys import QUEUE_KEY, pivot_keys
from .schema import Column
from .settings import Settings

NAME = "idempotent"

#: What `accept` may name.
ACCEPTABLE: Sequence[str] = tuple(plan.ACCEPTABLE.values())

#: The row's place in its queue, and SPYT's names for it (StreamingUtils).
POSITION: Mapping[str, str] = {
    "tablet_index": "__spyt_streaming_src_tablet_index",
    "row_index": "__spyt_streaming_src_row_index",
}

#: The output's key, in its order; transform() must let these columns through as they are. SPYT's
#: position columns are nullable, though never null: required columns would refuse them.
KEY: Sequence[Column] = (
    *(Column(name, ti.Utf8, required=False, key=True) for name in QUEUE_KEY),
    *(Column(name, ti.Int64, required=False, key=True) for name in POSITION),
)
KEY_COLUMNS: Sequence[str] = (*QUEUE_KEY, *POSITION)

CONFS: Mapping[str, str] = {
    # The key makes repeats harmless; a transaction would only bind batches to one proxy.
    "spark.yt.streaming.transactional": "false",
    # A batch that runs again is to be cut as it was the first time.
    "spark.sql.adaptive.enabled": "false",
}


def admit(rows: DataFrame, settings: Settings) -> DataFrame:
    """The rows as they are. Raises JobError unless the plan is 1:1, pure and keeps the key."""
    plan.verify(rows, settings, {**dict.fromkeys(QUEUE_KEY), **POSITION})
    return rows


def output_attributes(_settings: Settings, tablets: Mapping[str, int]) -> dict[str, Any]:
    """Attributes of a new output table: pre-split, one tablet for each tablet of the queues."""
    # Rows go to the end of their tablet's key range: unsplit, one tablet would take all writes, and
    # the balancer would merge small tablets again (YTsaurus, "Tablet balancing").
    return {
        "pivot_keys": pivot_keys(tablets),
        "tablet_balancer_config": {"enable_auto_reshard": False},
    }


def write_batch(*_: object) -> int:
    """Rows per ``modify_rows``, each a transaction of its own: far below 100 000 per tablet."""
    return 10_000


def sizing_problem(*_: object) -> str | None:
    """Nothing can be sized wrongly: no transaction holds more than one ``modify_rows``."""
    return None
