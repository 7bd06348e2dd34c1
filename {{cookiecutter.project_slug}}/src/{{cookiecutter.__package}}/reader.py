"""One queue as a streaming DataFrame."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from .guarantee import POSITION
from .settings import Settings
from .tables import QUEUE


def read_queue(spark: SparkSession, settings: Settings, queue: str) -> DataFrame:
    """The rows of ``queue`` with the columns of tables.QUEUE, after the position columns if any."""
    stream = (
        spark.readStream.format("yt")
        .option("consumer_path", settings.consumer)
        # Per tablet and micro-batch. Without it an outage's backlog comes as one batch.
        .option("max_rows_per_partition", str(settings.max_rows_per_partition))
        # Composite columns arrive as YSON bytes otherwise.
        .option("parsing_type_v3", "true")
        .option("include_service_columns", "true" if POSITION else "false")
        .load(queue)
    )
    position = (F.col(old).alias(new) for new, old in POSITION.items())
    return stream.select(*position, *(name for name, _, _ in QUEUE))
