"""What transform() receives: the rows of the queues."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from .events import events
from .schema import Column
from .settings import Settings

#: Tables of the cluster that are read besides the queues, by their key in the configuration.
TABLES: Mapping[str, Sequence[Column]] = {}


def inputs(spark: SparkSession, _client: Any, settings: Settings) -> tuple[DataFrame, ...]:
    """The arguments of transform()."""
    return (events(spark, settings),)


def lifetime(_settings: Settings) -> float:
    """Seconds until a query has to be started anew with fresh inputs: never."""
    return math.inf
