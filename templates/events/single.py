"""What transform() receives: the rows of the one queue."""

from pyspark.sql import DataFrame, SparkSession

from .reader import read_queue
from .settings import Settings


def events(spark: SparkSession, settings: Settings) -> DataFrame:
    """The queue's rows. Raises JobError when the configuration names more than one queue."""
    (queue,) = settings.queues
    return read_queue(spark, settings, queue)
