"""Every Spark, SPYT and checkpoint setting of a job, each with its reason.

One table: `make confs` prints it, docs/operations.md shows it, the session applies it. A value in
braces is a key of the configuration or a field of Job. Standard library only, so that the template
can read it without Spark.

Left out on purpose, because Structured Streaming does not read them although SPYT's pages name
them: ``spark.streaming.stopGracefullyOnShutdown`` and its timeout (old DStreams; see
query/supervisor.py for what stops this job) and ``spark.sql.streaming.adaptiveExecution.enabled``
(exists in no Spark).
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

#: What SPYT looks for where [spark] names no other path: the global
#: configuration, the releases, the Spark distributions.
SPYT_CONF, SPYT_RELEASES = "//home/spark/conf/global", "//home/spark/conf"
SPARK_DISTRIBUTIONS = "//home/spark/distrib"


class Size(NamedTuple):
    """A size of driver or executors: its name under [submit], Spark's key, the default."""

    name: str
    key: str
    default: str


class Conf(NamedTuple):
    """One setting; ``since`` is the first Spark version that knows it so. A later entry wins."""

    key: str
    value: str
    reason: str
    since: str = "3.5"


# A table, an entry a setting: the key and its value, and beside or below them the reason.
# fmt: off
COMMON = (
    Conf("spark.hadoop.yt.proxy", "{proxy}", "The cluster of the configuration."),
    Conf("spark.hadoop.yt.timeout", "300s",
         "SPYT 2.11 ships 30s, which one slow tablet exceeds; a request over it ends the query."),
    Conf("spark.hadoop.yt.proxyRole", "{proxy_role}",
         "A dedicated proxy role. Restarting a proxy aborts the batches that go through it."),
    Conf("spark.yt.write.dynBatchSize", "{dyn_batch_size}",
         "Rows per modify_rows; SPYT's 50 000 is half of what a transaction may hold."),
    Conf("spark.sql.session.timeZone", "UTC",
         "Otherwise results depend on the machine's time zone."),
    Conf("spark.sql.ansi.enabled", "true",
         "A value that cannot be cast stops the job and names itself; SPYT's default (false) "
         "writes null instead. Use try_cast where you want null."),
    Conf("spark.sql.execution.pandas.convertToArrowArraySafely", "true",
         "A number of a Python function that its column cannot hold stops the job; Spark's default "
         "(false) writes another number."),
    Conf("spark.sql.streaming.stopTimeout", "60000",
         "Milliseconds; 0, Spark's default, waits for ever for a query that hangs."),
    Conf("spark.sql.streaming.asyncLogPurge.enabled", "false",
         "Spark would remove old log entries in a thread of its own, and trip over temporary files "
         "that SPYT's file system renames: \"File .../commits/.77.<uuid>.tmp is not found\" ended "
         "queries under load."),
    Conf("spark.speculation", "false",
         "A speculative copy of a task writes its rows again."),
)
STATELESS = (
    Conf("spark.sql.streaming.minBatchesToRetain", "5",
         "Each start begins with an empty checkpoint; more entries are of no use."),
    *(Conf("spark.sql.streaming.checkpointFileManagerClass",
           f"org.apache.spark.sql.execution.streaming.{package}FileSystemBasedCheckpointFileManager",
           "For the checkpoint on the driver's disk: Spark's default there starts 20 processes for "
           "each batch (chmod, readlink; Hadoop, RawLocalFileSystem), a tenth of a second.", since)
      for package, since in (("", "3.5"), ("checkpointing.", "4.1"))),
)
STATEFUL = (
    Conf("spark.sql.shuffle.partitions", "{shuffle_partitions}",
         "The checkpoint fixes the number of state partitions, and every batch writes a file for "
         "each: Spark's 200 would be 200 new Cypress nodes per batch."),
    Conf("spark.sql.streaming.minBatchesToRetain", "10",
         "Versions of the state to go back to; recovery needs the last two, people want a few "
         "more."),
    Conf("spark.sql.streaming.stateStore.providerClass",
         "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider",
         "Spark's default, set explicitly: the tests kill and restart this one on SPYT's file "
         "system. RocksDB was not tried there."),
    Conf("spark.sql.streaming.stateStore.maintenanceInterval", "5min",
         "Snapshots and clean-up list each folder of the state, and a listing costs 1 + 2n "
         "requests to the master in SPYT's file system (YtFileSystem); Spark's 60 s is for HDFS."),
    Conf("spark.sql.streaming.checkpoint.fileChecksum.enabled", "false",
         "It adds a second file to each file of the state; Cypress verifies what it stores.",
         since="4.1"),
)
#: By guarantee.
GUARANTEES: Mapping[str, Sequence[Conf]] = {
    "transactional": (
        Conf("spark.yt.streaming.transactional", "true",
             "Output rows and consumer offsets in one transaction per micro-batch (SPYT >= "
             "2.11.0)."),
        Conf("spark.ytsaurus.rpc.job.proxy.enabled", "false",
             "A tablet transaction lives on one proxy that all tasks must reach; the driver's "
             "own job proxy is not reachable. `make submit` sets it, since the driver's "
             "environment is fixed there."),
        Conf("spark.task.maxFailures", "1",
             "A failed attempt has sent the rows it had buffered (YtStreamingSink closes its "
             "writer in `finally`), so the batch must fail with it."),
        Conf("spark.stage.maxConsecutiveAttempts", "1",
             "A fetch failure runs a stage again without counting as a task failure."),
        Conf("spark.dynamicAllocation.enabled", "false",
             "Tasks of a decommissioned executor run again without counting as failures."),
    ),
    "idempotent": (
        Conf("spark.yt.streaming.transactional", "false",
             "The key makes repeats harmless; a transaction would only bind batches to one "
             "proxy."),
        Conf("spark.sql.adaptive.enabled", "false",
             "A batch that runs again has to be cut as it was the first time."),
    ),
    "at_least_once": (
        Conf("spark.yt.streaming.transactional", "false",
             "Set explicitly, because a cluster's defaults could switch it on: SPYT's source "
             "would then leave the consumer to a transaction that is never opened "
             "(YtStreamingSource.commit)."),
    ),
}
#: A driver that this process starts, on this machine. On a cluster SPYT chooses master and ports.
LOCAL = (
    Conf("spark.driver.host", "127.0.0.1", "Only this machine needs to reach a local driver."),
    Conf("spark.driver.bindAddress", "127.0.0.1", "As spark.driver.host."),
    Conf("spark.driver.port", "0", "Any free port: SPYT's defaults name 27001 for every session."),
    Conf("spark.blockManager.port", "0", "Any free port, as for the driver."),
    Conf("spark.ui.enabled", "false", "`status` and the log show what the local UI would."),
    Conf("spark.log.level", "OFF",
         "The job prints the reason a query ends in one line; set ERROR to see traces."),
)
#: What every JVM is started with; see SUBMIT.
COLLECTOR = "-XX:+UseParallelGC"
#: Given to spark-submit besides the session's.
SUBMIT = (
    Conf("spark.ytsaurus.spyt.version", "{spyt_version}",
         "The SPYT on the cluster; it need not be the one that is installed here."),
    Conf("spark.ytsaurus.redirect.stdout.to.stderr", "true",
         "YTsaurus discards the driver's stdout and keeps its stderr."),
    Conf("spark.ytsaurus.driver.watch", "false",
         "spark-submit would stay until the operation ends; `submit` waits for the first batch."),
    Conf("spark.ytsaurus.driver.operation.alias", "{alias}",
         "Unique among running operations: a second submit is refused; `logs`, `status` and `stop` "
         "find the job by it."),
    Conf("spark.ytsaurus.remote.temp.files.directory", "{files}",
         "The job's own folder: executors of a restarted driver take these files again, and a "
         "cleaner of //tmp, SPYT's default, would have removed them."),
    Conf("spark.ytsaurus.driver.maxFailures", "10000",
         "The most that YTsaurus takes: it counts failures of the operation's whole runner, and "
         "starts the next attempt at once. The attempt itself waits, and gives up in time."),
    Conf("spark.ytsaurus.executor.maxFailures", "{executor_failures}",
         "As the driver's: SPYT multiplies it by the number of executors."),
    Conf("spark.shuffle.readHostLocalDisk", "false",
         "Executors of one node take shuffle files from each other's disk by default, and with a "
         "sandbox of its own each sees only its own. Two public SPYT jobs met that as FetchFailed "
         "on shuffle_*.index; a minicluster has one disk and cannot show it."),
    Conf("spark.driver.defaultJavaOptions", COLLECTOR,
         "Rows live for one batch: Java's default, G1, took a quarter more processor time. To have "
         "it, set spark.driver.extraJavaOptions to -XX:-UseParallelGC -XX:+UseG1GC."),
    Conf("spark.executor.defaultJavaOptions", COLLECTOR, "The same, for executors."),
    Conf("spark.pyspark.python", "{python}",
         "The Python of driver and executors; without it the node's `python3`. PYSPARK_PYTHON "
         "reaches only the machine that submits."),
    Conf("spark.ytsaurus.java.home", "{java}",
         "Java on the nodes; without it /opt/jdk and the number of the Java that submits."),
)
#: What driver and executors get; a user may write each under [submit] or under [spark]. The
#: defaults are SPYT's (its spark-defaults.conf), but for the driver's memory: the limit of a driver
#: with 1g is 1.4 GiB, the Python beside the JVM included, and public streaming jobs ran into it.
SIZES = (
    Size("driver_cores", "spark.driver.cores", "1"),
    Size("driver_memory", "spark.driver.memory", "2g"),
    Size("executors", "spark.executor.instances", "2"),
    Size("executor_cores", "spark.executor.cores", "1"),
    Size("executor_memory", "spark.executor.memory", "4g"),
)
#: Options of SPYT's reader, one for each queue.
READER = (
    Conf("consumer_path", "{consumer}",
         "The consumer whose offsets the batches move."),
    Conf("max_rows_per_partition", "{max_rows_per_partition}",
         "Per tablet and micro-batch. Without it an outage's backlog comes as one batch."),
    Conf("parsing_type_v3", "true",
         "Composite columns arrive as YSON bytes otherwise."),
    Conf("include_service_columns", "true",
         "The row's position in its queue: the key of `idempotent`, and what shows that a batch "
         "has read the rows that were planned."),
)
#: Options of the query, by whether it has state.
WRITER: Mapping[bool, Sequence[Conf]] = {
    True: (
        Conf("checkpointLocation", "{checkpoint_uri}",
             "With three slashes SPYT's YtFs renames atomically; a bare // path does not (YtFs). "
             "Each start has a folder of its own in it, named by its epoch."),
    ),
    False: (
        Conf("checkpointLocation", "{checkpoint_uri}",
             "A folder on the driver's disk for each start, removed at its end: the ledger holds "
             "every offset, no start uses an older folder and no executor reads it. On Cypress "
             "each batch would ask the master for two files."),
    ),
}
#: Parameters of SPYT's sink, for each micro-batch.
SINK = (
    Conf("write_type_v3", "true",
         "The sink does not read spark.yt.write.typeV3.enabled (YtDynamicTableWriter)."),
)
# fmt: on


#: Prefixes under which SPYT reads one setting (SparkConfYsonable, config/package.scala); the first
#: wins over the others.
ALIASES = ("spark.ytsaurus.", "spark.yt.", "spark.hadoop.yt.")
#: Settings that would undo the job's own, and where secrets would be readable.
_NEVER = ("spark.master", "spark.app.name", "spark.submit.", "spark.sql.streaming.unsupported")
_SECRET = ("token", "secret", "password")


def is_protected(key: str) -> bool:
    """Return whether the configuration may not set ``key``, whatever prefix it is written with."""
    tables = (COMMON, STATELESS, STATEFUL, *GUARANTEES.values(), LOCAL, SUBMIT)
    ours = {_bare(conf.key) for listed in tables for conf in listed}
    return (
        _bare(key) in ours or key.startswith(_NEVER) or any(word in key.lower() for word in _SECRET)
    )


def aliases(key: str) -> list[str]:
    """Return the other keys under which SPYT reads the setting ``key``."""
    bare = _bare(key)
    return [] if bare == key else [prefix + bare for prefix in ALIASES if prefix + bare != key]


def _bare(key: str) -> str:
    whole = key.removeprefix("spark.hadoop.") if key.startswith("spark.hadoop.spark.") else key
    for prefix in ALIASES:
        if whole.startswith(prefix):
            return whole.removeprefix(prefix)
    return whole


def of_session(guarantee: str, *, stateful: bool, spark: str) -> Iterator[Conf]:
    """Yield the settings of a job's session that the Spark version ``spark`` knows."""
    listed = (*COMMON, *(STATEFUL if stateful else STATELESS), *GUARANTEES[guarantee])
    yield from {conf.key: conf for conf in listed if conf.since <= spark}.values()


def filled(confs: Iterator[Conf], values: Mapping[str, object]) -> dict[str, str]:
    """Return key -> value with the braces filled in; a setting whose value is None is left out."""
    found: dict[str, str] = {}
    for conf in confs:
        if conf.value.startswith("{"):
            value = values[conf.value.strip("{}")]
            if value is not None:
                found[conf.key] = str(value)
        else:
            found[conf.key] = conf.value
    return found
