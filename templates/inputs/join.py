"""What transform() receives: the rows of the queues, and the reference table."""

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from . import reference
from .events import events
from .schema import Column, columns
from .settings import Settings
from .tables import REFERENCE, REFERENCE_KEY

#: Tables of the cluster that are read besides the queues, by their key in the configuration.
TABLES: Mapping[str, Sequence[Column]] = {
    "reference": columns("REFERENCE", REFERENCE, REFERENCE_KEY),
}


def inputs(spark: SparkSession, client: Any, settings: Settings) -> tuple[DataFrame, ...]:
    """The arguments of transform(). Raises JobError when the reference cannot be used."""
    table = reference.read(spark, client, settings.reference, TABLES["reference"])
    return events(spark, settings), table


def lifetime(settings: Settings) -> float:
    """Seconds until a query has to be started anew, with the reference as it is then."""
    return settings.reference_refresh
