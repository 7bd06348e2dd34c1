"""Windows, and a commit whose reply is lost: the windows that the batch closed are written again.

SPYT removes `commits/N` when it has no answer, although the transaction is committed. Spark runs
the batch again. Batch N had no rows and closed a window. It writes the window again.
"""

from common import Example, words
from pyspark.sql import functions as F

COUNT = 20
OUTPUT = [{"name": "start", "type": "timestamp"}, {"name": "rows", "type": "int64"}]


def main(proxy: str, root: str) -> None:
    """Print how often each window comes out."""
    example = Example(proxy, root, 1, OUTPUT)

    def run(seconds: float, enough: int | None = None) -> None:
        windows = (
            example.read()
            .withWatermark("moment", "1 second")
            .groupBy(F.window("moment", "1 second"))
        )
        counts = windows.agg(F.count(F.lit(1)).alias("rows"))
        example.run(counts.select(F.col("window.start").alias("start"), "rows"), seconds, enough)

    example.send(0, range(COUNT))
    run(10)
    example.send(0, range(60_000, 60_000 + COUNT))
    run(60, enough=1)
    before = len(example.output())
    example.remove_the_commit()
    run(90, enough=before + 1)
    after = example.output()
    print(f"{before} windows before, {len(after)} rows after: {len(after) - before} written again")


if __name__ == "__main__":
    main(*words())
