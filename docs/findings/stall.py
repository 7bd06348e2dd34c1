"""A batch that was cut at max_rows_per_partition, a kill before its commit: the query stalls.

SPYT takes the start of the next batch from the consumer, and its end from there and the limit. That
is the end which `offsets/N` has, so Spark sees no new rows, for ever.
"""

from common import COLUMNS, Example, words
from pyspark.sql import functions as F

LIMIT = 20


def main(proxy: str, root: str) -> None:
    """Print how many rows are written, with the entry and without it."""
    example = Example(proxy, root, 1, COLUMNS)
    example.send(0, range(2 * LIMIT))
    stop = F.when(F.col("number") >= LIMIT, F.raise_error(F.lit("the second batch")))
    rows = example.read(LIMIT)
    example.run(rows.withColumn("number", F.coalesce(stop.cast("long"), "number")), 60)
    example.kill_before_the_commit()
    for attempt in range(2):
        example.send(0, range((2 + attempt) * LIMIT, (3 + attempt) * LIMIT))
        example.run(example.read(LIMIT), 30)
    print(f"{len(example.output())} of {4 * LIMIT} rows after two restarts with new rows")
    example.remove_the_commit()
    example.run(example.read(LIMIT), 90, enough=4 * LIMIT)
    print(f"{len(example.output())} of {4 * LIMIT} rows without the last entry of commits")


if __name__ == "__main__":
    main(*words())
