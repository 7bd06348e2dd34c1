"""What transform() receives: the rows of the queues, and the reference table."""

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from yt.common import YtError

from . import reference
from .cluster import first_line
from .errors import JobError
from .events import events
from .monitor import say
from .schema import Column, columns
from .settings import Settings
from .tables import REFERENCE, REFERENCE_KEY

#: Tables of the cluster that are read besides the queues, by their key in the configuration.
TABLES: Mapping[str, Sequence[Column]] = {
    "reference": columns("REFERENCE", REFERENCE, REFERENCE_KEY),
}

#: What was read last: a job that runs does not end because it cannot be read anew.
_read: dict[str, DataFrame] = {}


def inputs(spark: SparkSession, client: Any, settings: Settings) -> tuple[DataFrame, ...]:
    """The arguments of transform(). Raises JobError when the reference cannot be used."""
    try:
        _read["rows"] = reference.read(spark, client, settings.reference, TABLES["reference"])
    except (YtError, OSError, JobError) as error:
        if "rows" not in _read:
            raise
        say(f"WARNING: going on with the reference as it was read last: {first_line(error)}")
    return events(spark, settings), _read["rows"]


def lifetime(settings: Settings) -> float:
    """Seconds until a query is started anew, with the reference as it is then."""
    return settings.reference_refresh
