"""The state stores that a JVM holds: those of queries that have ended stay there for a minute.

Their memory counts in the limit that all stores of RocksDB share, so others write to disk sooner
(Spark, RocksDBMemoryManager), and the states of another query may be under the same paths.
"""

from __future__ import annotations

from pyspark.sql import SparkSession

from ytstream.connector.java import jvm_of

_WAIT = "spark.sql.streaming.stateStore.maintenanceShutdownTimeout"
"""How long Spark waits for the maintenance of the stores. It holds the lock that maintenance waits
for (StateStore.stop), so it waits until this is over: 300 s by default."""


def do_not_wait(spark: SparkSession) -> None:
    """Let unload() end soon."""
    spark.conf.set(_WAIT, "5s")


def unload(spark: SparkSession) -> None:
    """Unload all state stores. No query may run."""
    package = jvm_of(spark).org.apache.spark.sql.execution.streaming.state
    getattr(getattr(package, "StateStore$"), "MODULE$").stop()
