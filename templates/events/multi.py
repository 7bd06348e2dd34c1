"""What transform() receives: the rows of all queues, each with the queue it came from."""

from functools import reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from .reader import read_queue
from .settings import Settings


def events(spark: SparkSession, settings: Settings) -> DataFrame:
    """All queues' rows, ``queue_id`` (the queue's Cypress path) in front.

    One source per queue, in the sorted order of the settings: the checkpoint knows a source by its
    position alone, and SPYT ignores the path stored beside an offset.
    """
    sources = [
        read_queue(spark, settings, queue).select(F.lit(queue).alias("queue_id"), "*")
        for queue in settings.queues
    ]
    return reduce(lambda union, source: union.unionByName(source), sources)
