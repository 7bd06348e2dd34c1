"""The arguments of transform(): the rows of the queues, and the reference table of a join."""

from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from ..cluster.timestamps import SECONDS_BIT
from ..connector.choose_connector import in_use, observe_in_code, remove_expired_later
from ..connector.spyt import POSITION
from ..connector.transform_plan import observed_name
from ..errors import JobError
from ..errors.error_codes import ErrorCode
from ..job import REJECTED, JobContext
from ..ledger.row_timestamps import TIMESTAMP
from ..settings import spark_conf

INNER_POSITION = {name: f"__ytstream_{name}" for name in POSITION}
"""The position under names of the runtime's own, for jobs that reject rows."""

ARRIVED = "__ytstream_arrived"
"""When the cluster has written a row of a queue, for archives without `by`."""


def events(spark: SparkSession, context: JobContext) -> DataFrame:
    """Return the rows of all queues with the columns of tables.QUEUE.

    With several queues ``queue_id``, the queue's Cypress path, stands in front; behind it the
    position columns, if the guarantee has any. Each queue is one source, in the sorted order of the
    settings: the checkpoint knows a source only by its position, and SPYT ignores the path stored
    beside an offset.
    """
    queues = context.settings.queues
    if in_use(spark, context.settings).is_own:
        observe_in_code(spark, observed_name(""), REJECTED)
        remove_expired_later(spark)
    if len(queues) == 1:
        return _queue(spark, context, queues[0])
    sources = [
        _queue(spark, context, queue).select(F.lit(queue).alias("queue_id"), "*")
        for queue in queues
    ]
    return reduce(DataFrame.unionByName, sources)


def _queue(spark: SparkSession, context: JobContext, queue: str) -> DataFrame:
    options, row = (
        spark_conf.filled(iter(spark_conf.READER), context.values),
        POSITION["row_index"],
    )
    # try_sum: null instead of an error where row numbers are beyond what a sum can hold.
    stream = (
        spark.readStream.format(in_use(spark, context.settings).source)
        .options(**options)
        .load(queue)
        .observe(observed_name(queue), F.count("*").alias("rows"), F.try_sum(row).alias("sum"))
    )
    position = [F.col(old).alias(new) for new, old in context.guarantee.position.items()]
    if context.job.rejects:
        position += [F.col(POSITION[name]).alias(new) for name, new in INNER_POSITION.items()]
    if context.job.arrivals:
        position.append(_arrival(stream, queue, context.job.arrivals[0]))
    return stream.select(*position, *(column.name for column in context.job.queue_columns))


def _arrival(stream: DataFrame, queue: str, output: str) -> Column:
    """Return when a row was written. Raises JobError for a queue that does not say it."""
    if TIMESTAMP not in stream.columns:
        raise JobError(
            f"STATIC[{output!r}] has no by=, and {queue} has no column {TIMESTAMP} that says when "
            "a row was written",
            "ask its owner to declare the column, which the cluster fills in, or name a column of "
            "the output with by=; nothing was started",
            code=ErrorCode.NO_TIMESTAMP,
        )
    # A text: SPYT's uint64 is a type of its own.
    number = F.col(f"`{TIMESTAMP}`").cast("string").cast("long")
    return F.timestamp_seconds(F.shiftright(number, SECONDS_BIT)).alias(ARRIVED)
