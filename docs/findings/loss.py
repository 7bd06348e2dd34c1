"""Two queues, a kill before a commit, new rows in one queue: rows of the other are lost.

SPYT takes the start of the next batch from the consumer. For a queue without new rows Spark takes
start and end from `offsets/N`: it reads nothing there, and the consumer is moved to that end.
"""

from common import COLUMNS, Example, words
from pyspark.sql import functions as F

COUNT = 100


def main(proxy: str, root: str) -> None:
    """Print how many rows of each queue come out."""
    example = Example(proxy, root, 2, COLUMNS)
    stop = F.when(F.col("number") % 1_000 >= COUNT, F.raise_error(F.lit("the second batch")))
    rows = example.read().withColumn("number", F.coalesce(stop.cast("long"), "number"))
    for queue in (0, 1):
        example.send(queue, range(1_000 * queue, 1_000 * queue + COUNT))
    example.run(rows, 60, enough=2 * COUNT)
    for queue in (0, 1):
        example.send(queue, range(1_000 * queue + COUNT, 1_000 * queue + 2 * COUNT))
    example.run(rows, 60)
    example.kill_before_the_commit()
    example.send(0, range(2 * COUNT, 3 * COUNT))
    example.run(example.read(), 60, enough=5 * COUNT)
    found = [int(str(row["number"])) >= 1_000 for row in example.output()]
    print(f"queue 0: {found.count(False)} of {3 * COUNT} rows")
    print(f"queue 1: {found.count(True)} of {2 * COUNT} rows")


if __name__ == "__main__":
    main(*words())
