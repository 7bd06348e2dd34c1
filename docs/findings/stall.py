"""A batch that was cut at max_rows_per_partition, a kill before its commit: the query stalls.

SPYT takes the start of the next batch from the consumer, and its end from there and the limit. That
is the end which `offsets/N` has, so Spark sees no new rows, for ever.
"""

from common import COLUMNS, Example, words
from pyspark.sql import functions as F

LIMIT = 20


def main(proxy: str, root: str) -> None:
    """Print how many rows come out."""
    example = Example(proxy, root, 1, COLUMNS)
    example.send(0, range(2 * LIMIT))
    stop = F.when(F.col("number") >= LIMIT, F.raise_error(F.lit("the second batch")))
    rows = example.read(LIMIT)
    example.run(rows.withColumn("number", F.coalesce(stop.cast("long"), "number")), 60)
    example.kill_before_the_commit()
    for attempt in range(2):
        example.send(0, range((2 + attempt) * LIMIT, (3 + attempt) * LIMIT))
        example.run(example.read(LIMIT), 15)
    print(f"{len(example.output())} of {4 * LIMIT} rows after two restarts with new rows")


if __name__ == "__main__":
    main(*words())
