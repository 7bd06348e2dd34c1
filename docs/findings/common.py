"""SPYT's transactional example, on queues, a consumer and an output that are made for it.

Each script takes two words: the cluster's proxy and a Cypress folder, which it empties.
"""

import os
import sys
import time

import spyt  # before pyspark
import yt.wrapper as yt
from pyspark.sql import DataFrame, SparkSession

COLUMNS = [{"name": "number", "type": "int64"}, {"name": "moment", "type": "timestamp"}]


class Example:
    """The objects, and the query on them."""

    def __init__(self, proxy: str, root: str, queues: int, output: list[dict[str, str]]) -> None:
        """Make the objects, and a session of the transactional mode."""
        os.environ.setdefault("SPARK_CONF_DIR", f"{os.path.dirname(spyt.__file__)}/conf")
        self.root, self.client = root, yt.YtClient(proxy=proxy)
        self.queues = [f"{root}/queue-{number}" for number in range(queues)]
        self.sent = [0] * queues
        self.client.create("map_node", root, recursive=True, force=True)
        for path in self.queues:
            self._table(path, COLUMNS)
        self._table(f"{root}/output", output)
        self.client.create("queue_consumer", f"{root}/consumer")
        self.client.mount_table(f"{root}/consumer", sync=True)
        for path in self.queues:
            self.client.register_queue_consumer(path, f"{root}/consumer", vital=True)
        self.spark = (
            SparkSession.builder.master("local[2]")
            .config("spark.hadoop.yt.proxy", proxy)
            .config("spark.yt.streaming.transactional", "true")
            .config("spark.sql.session.timeZone", "UTC")
            .getOrCreate()
        )

    def _table(self, path: str, columns: list[dict[str, str]]) -> None:
        attributes = {"dynamic": True, "schema": columns}
        self.client.create("table", path, attributes=attributes)
        self.client.mount_table(path, sync=True)

    def send(self, queue: int, numbers: range, first_us: int = 1_704_067_200_000_000) -> None:
        """Append rows. Each is a millisecond later than the one before."""
        rows = [{"number": n, "moment": yt.yson.YsonUint64(first_us + 1_000 * n)} for n in numbers]
        path = self.queues[queue]
        self.client.insert_rows(path, rows)
        self.sent[queue] += len(rows)
        # SPYT reads a queue's end here, which the Queue Agent refreshes every few seconds.
        while self._end(path) < self.sent[queue]:
            time.sleep(0.5)

    def _end(self, path: str) -> int:
        partitions = self.client.get(f"{path}/@queue_partitions")
        return sum(partition.get("upper_row_index", 0) for partition in partitions)

    def read(self, limit: int = 1_000) -> DataFrame:
        """Return the stream of all queues."""
        streams = [
            self.spark.readStream.format("yt")
            .option("consumer_path", f"{self.root}/consumer")
            .option("max_rows_per_partition", limit)
            .option("parsing_type_v3", "true")
            .load(path)
            for path in self.queues
        ]
        found = streams[0]
        for stream in streams[1:]:
            found = found.union(stream)
        return found

    def run(self, rows: DataFrame, seconds: float, enough: int | None = None) -> None:
        """Run the query for so long, or until it ends or the output has ``enough`` rows."""
        query = (
            rows.writeStream.outputMode("append")
            .format("yt")
            .option("checkpointLocation", f"yt:/{self.root}/checkpoint")
            .option("path", f"{self.root}/output")
            .option("write_type_v3", True)
            .trigger(processingTime="200 milliseconds")
            .start()
        )
        end = time.monotonic() + seconds
        while query.isActive and time.monotonic() < end:
            if enough is not None and len(self.output()) >= enough:
                break
            time.sleep(0.2)
        time.sleep(2)  # let the batch end
        query.stop()

    def output(self) -> list[dict[str, object]]:
        """Return the rows of the output."""
        return list(self.client.select_rows(f"* from [{self.root}/output]"))

    def log(self, name: str) -> list[int]:
        """Return the numbers of the checkpoint's entries in `offsets` or `commits`."""
        return sorted(
            int(n) for n in self.client.list(f"{self.root}/checkpoint/{name}") if n.isdigit()
        )

    def remove_the_commit(self) -> None:
        """Remove the last entry of `commits`, as SPYT does when it has no answer to its commit."""
        last = self.log("commits")[-1]
        self.client.remove(f"{self.root}/checkpoint/commits/{last}")

    def kill_before_the_commit(self) -> None:
        """Leave what a driver leaves that is killed between `commits/N` and SPYT's commit.

        The batch N has an entry in `offsets`, and its transaction has come to nothing. Spark has
        written `commits/N` before SPYT commits (MicroBatchExecution, YtTransactionalStreaming).
        """
        last = self.log("offsets")[-1]
        assert self.log("commits")[-1] == last - 1
        commits = f"{self.root}/checkpoint/commits"
        self.client.copy(f"{commits}/{last - 1}", f"{commits}/{last}")


def words() -> tuple[str, str]:
    """Return the proxy and the folder of the command line."""
    if len(sys.argv) != 3:
        raise SystemExit(f"usage: python {sys.argv[0]} PROXY //CYPRESS/FOLDER")
    return sys.argv[1], sys.argv[2]
