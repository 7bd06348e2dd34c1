"""What is looked for: each rule with its consequence, its source, and what a generated job does.

``known`` says how the consequence is known. "run": with the real SPYT and Spark against a
minicluster. "source": read in the sources. "documented": by the documentation that is named.
"derived": it follows from these. None of it was measured on a real cluster.
"""

from dataclasses import dataclass
from typing import NamedTuple


class Rule(NamedTuple):
    """One fault. ``rows`` is what happens to them: lost, repeated, stalled."""

    name: str
    rows: str
    consequence: str
    source: str
    known: str
    instead: str


@dataclass(frozen=True, order=True)
class Finding:
    """One place where a rule is broken; ``line`` 0 is a node on the cluster, or a whole file."""

    file: str
    line: int
    rule: str
    what: str

    @property
    def place(self) -> str:
        """The place as editors and terminals know it."""
        return f"{self.file}:{self.line}" if self.line else self.file


_DOC = "SPYT documentation, "
_LIST = (
    # -- the guarantee ---------------------------------------------------------------------------
    Rule(
        "at-least-once", "repeated",
        "Neither a transaction nor a key of the output prevents duplicates. A batch that a failure "
        "or a restart has cut off is written again from its first row.",
        f"{_DOC}Structured Streaming, Write guarantees; YtStreamingSink; YtDynTableUtils (up to 3 "
        "attempts of a write without a transaction)",
        "run",
        "You choose a guarantee: transactional and idempotent outputs have each row once.",
    ),
    Rule(
        "commit-log", "lost, repeated, stalled",
        "Spark writes commits/N before SPYT commits the transaction of batch N. After a kill "
        "between the two, Spark believes that the batch is done: with a backlog the query stalls "
        "forever, with several queues rows are lost, with state rows are counted twice.",
        "SPYT MicroBatchExecutionDecorators; Spark MicroBatchExecution.runBatch",
        "run",
        "Each start compares the log with a ledger that commits with the rows, and corrects it.",
    ),
    Rule(
        "foreach-batch", "repeated",
        "The function does not write in one transaction with the offsets. If it fails half-way, or "
        "the driver fails before it saves the offsets, the batch is written again.",
        "Spark ForeachBatchSink; SPYT YtStreamingTransactionContext (only its own sink uses it)",
        "source",
        "The batch function writes all outputs through SPYT's sink, in the transaction that moves "
        "the consumer.",
    ),
    Rule(
        "written-back", "lost, repeated",
        "The function reads its output whole, joins it with the batch and writes it back, outside "
        "of the transaction of the offsets. Another write in between is lost, a batch that runs "
        "again is merged twice, and each batch reads the whole table.",
        "Spark ForeachBatchSink; YTsaurus documentation, Dynamic tables, Transactions (a read "
        "takes no lock)",
        "derived",
        "`MERGE` looks up the keys of the batch in its own transaction, where a write of somebody "
        "else to such a key makes the batch run again.",
    ),
    Rule(
        "driver-deletes", "repeated, stalled",
        "The driver deletes rows by a client of its own, in another transaction than the rows and "
        "the offsets: after a failure in between, rows are deleted that are still needed, or stay. "
        "A late update brings a deleted row back. Without a token the client hangs.",
        "YTsaurus documentation, Python Wrapper, delete_rows; Spark ForeachBatchSink",
        "derived",
        "Rows of `MERGE` with DELETED, or apply_as_deletes of newest(), are deleted in the batch's "
        "transaction, and deletes are remembered.",
    ),
    Rule(
        "separate-writes", "repeated",
        "The tables are written one after the other. A failure in between leaves the first one "
        "with the batch and the others without it, and the batch is written again.",
        "Spark ForeachBatchSink; SPYT YtDynTableUtils",
        "source",
        "All outputs of a micro-batch are written in one transaction.",
    ),
    Rule(
        "endless-table", "repeated",
        "Each round appends rows to one static table, in a commit of its own. A round that is cut "
        "off or runs in two processes appends its rows twice. The table only grows, in small "
        "chunks, and nothing tells a reader which part of it is complete.",
        "YTsaurus documentation, Static tables, Appending; Storage, Chunks",
        "derived",
        "`STATIC` with Hourly(), Daily() or Every() gives each period a table of its own. It "
        "appears once, when it is complete, and goes when it is old.",
    ),
    # -- transactional mode ----------------------------------------------------------------------
    Rule(
        "job-proxy", "stalled",
        "With job proxies the transaction lives in the driver's own proxy, which executors cannot "
        "reach. The driver's is switched off only at submit: its environment is fixed there, and "
        "a setting of the session comes too late.",
        f"{_DOC}Transactional mode; spark.ytsaurus.rpc.job.proxy.enabled; YTsaurusOperationManager",
        "source",
        "The submit command has spark.ytsaurus.rpc.job.proxy.enabled=false, and the driver "
        "verifies it.",
    ),
    Rule(
        "task-retries", "repeated",
        "A failed task sends the rows that it has buffered: the sink closes its writer in "
        "`finally`. Its next attempt writes them again, and both are committed.",
        "SPYT YtStreamingSink.addBatch; spark.task.maxFailures (Spark: 4), "
        "spark.stage.maxConsecutiveAttempts (Spark: 4)",
        "run",
        "Both settings are 1, so that the batch fails with the task; the supervisor starts it "
        "again.",
    ),
    Rule(
        "dynamic-allocation", "repeated",
        "Tasks of a released executor run again and do not count as failures: the rows that they "
        "had sent are duplicated.",
        "spark.dynamicAllocation.enabled; Spark TaskSetManager; SPYT YtStreamingSink.addBatch",
        "derived",
        "spark.dynamicAllocation.enabled=false.",
    ),
    Rule(
        "speculation", "repeated",
        "The speculative copy of a task writes the same rows as the task.",
        "spark.speculation; SPYT YtStreamingSink.addBatch",
        "derived",
        "spark.speculation=false.",
    ),
    Rule(
        "tablet-limit", "stalled",
        "A transaction can write 100,000 rows to one tablet. All rows of one write go to a random "
        "tablet, so large writes may overflow it: the batch fails, and fails again. Batches of up "
        "to 100,000 rows never do.",
        f"{_DOC}Transactional mode, Output table sharding; spark.yt.write.dynBatchSize (SPYT: "
        "50000); native client (the tablet is drawn once for each request)",
        "source",
        "dynBatchSize is computed from the batch's size, and `check` compares it with the tablets.",
    ),
    Rule(
        "old-version", "lost, repeated, stalled",
        "SPYT 2.10 reads from the offset of its start again in each batch, and before Spark 3.5 no "
        "transaction is opened, though the consumer waits for it.",
        "SPYT YtStreamingSource (2.10.0 and 2.11.0 compared, SPYT-1092); "
        "MicroBatchExecutionDecorators, @Applicability",
        "source",
        "Pinned versions; a start verifies them and that SPYT's patch is in effect.",
    ),
    # -- the idempotent receiver -----------------------------------------------------------------
    Rule(
        "output-not-keyed", "repeated",
        "Without a sort order in its schema the table is an ordered one, and is created without "
        "an error. Rows that are written again are appended.",
        f"{_DOC}Idempotent receiver, Common configuration errors; YTsaurus documentation, Sorted "
        "dynamic tables",
        "documented",
        "The key's columns are declared, and `check` compares the table with the declaration.",
    ),
    Rule(
        "positions-lost", "repeated, stalled",
        "The rows reach the sink without their position in the queue. Where the output's key has "
        "it, each write fails. Elsewhere the output is at least once: rows that are written again "
        "are duplicated.",
        f"{_DOC}Idempotent receiver, Common configuration errors; Write guarantees",
        "documented",
        "The plan is checked before the start: a plan that drops the key is an error.",
    ),
    Rule(
        "queue-key", "lost",
        "Each queue numbers its rows from 0. Rows of two queues with the same tablet and row index "
        "have one key, and the later one replaces the other without an error.",
        f"{_DOC}Idempotent receiver, Multiple queues",
        "documented",
        "The column queue_id, the queue's path, is the first of the key.",
    ),
    Rule(
        "not-deterministic", "repeated",
        "A batch that runs again computes other values. Under the same key, the row changes after "
        "somebody has read it. In a filter or a key, it is lost or duplicated.",
        "Spark Expression.deterministic (rand, uuid and their like are seeded at each run); clocks "
        "are fixed only while the checkpoint exists",
        "source",
        "The plan is checked before the start, and the error names the expression.",
    ),
    Rule(
        "not-one-to-one", "lost",
        "If several rows are made of one source row, they share its key, and only the last one is "
        "kept. If a row is made of several, it gets another key when the batch runs again.",
        f"{_DOC}Idempotent receiver, When to use it",
        "documented",
        "The plan is checked before the start: anything but one row for one row is an error.",
    ),
    # -- reading and writing ---------------------------------------------------------------------
    Rule(
        "checkpoint-path", "stalled",
        "Spark opens a path without a scheme with the default file system, which SPYT sets to "
        "ytTable:///. A query without state works there, but Spark warns that correctness is not "
        "guaranteed. Rewriting state fails, because a rename cannot overwrite it. Without SPYT's "
        "defaults the path is on the driver's disk. In yt://a/b, a is taken for a host.",
        f"{_DOC}Structured Streaming, Checkpoint storage; spark-defaults.conf of SPYT "
        "(spark.hadoop.fs.defaultFS); Spark CheckpointFileManager; SPYT YtFileSystem",
        "derived",
        "The checkpoint is yt:///..., made from the Cypress path of the configuration.",
    ),
    Rule(
        "checkpoint-local", "repeated, stalled",
        "A checkpoint on the driver's disk is lost with the driver. The next driver begins at the "
        "consumer, which is up to a batch behind without transactions: rows are written again, and "
        "state is lost. foreachBatch without a checkpoint has a temporary one there. SPYT's sink "
        "does not start without one.",
        f"{_DOC}Structured Streaming, Working with offsets; Spark DataStreamWriter "
        "(SOURCES_ALLOW_ONE_TIME_QUERY); YtStreamingSource",
        "source",
        "The checkpoint is on Cypress. A start compares it with the ledger, and fails if state is "
        "lost.",
    ),
    Rule(
        "shared-checkpoint", "stalled",
        "In one driver, Spark takes both for the same query, and the start of the second stops the "
        "first. In two drivers the later writer of a batch finds the entry of the other "
        "(\"concurrent stream log update\") and ends.",
        "spark.sql.streaming.stopActiveRunOnRestart (Spark: true); Spark StreamingQueryManager, "
        "MicroBatchExecution",
        "source",
        "A job is one query with its own checkpoint.",
    ),
    Rule(
        "shared-consumer", "lost, repeated",
        "Each query moves the consumer when its own rows are done. The one that is behind begins "
        "at the consumer when it restarts, and skips what it has not read.",
        "SPYT YtStreamingSource (commit, getBatch: the later of checkpoint and consumer)",
        "source",
        "A job has its own consumer, which `provision` creates.",
    ),
    Rule(
        "output-mode", "stalled",
        "SPYT's sink takes only the mode append: the query does not start.",
        "SPYT YtStreamingProviderImpl.createSink (\"Only append mode is supported now\")",
        "source",
        "The output mode is always append.",
    ),
    Rule(
        "no-watermark", "stalled",
        "With the mode append, which the sink requires, Spark refuses an aggregation without a "
        "watermark. Other state is kept forever: it grows until an executor has no memory left.",
        "Spark UnsupportedOperationChecker; Structured Streaming Programming Guide, Watermarking",
        "documented",
        "The watermark is a part of the stateful job's code, and the size of its state is watched.",
    ),
    Rule(
        "state-partitions", "stalled",
        "Each batch writes at least one file per operator and partition to Cypress, 200 by "
        "default, each with a create, a write and a move. The number is fixed by the checkpoint "
        "at its first start.",
        "spark.sql.shuffle.partitions (Spark: 200); Spark OffsetSeqMetadata",
        "run",
        "shuffle_partitions is always set, by default to 8.",
    ),
    Rule(
        "no-consumer", "stalled",
        "SPYT's source needs a consumer. Without one, the query ends as soon as it starts.",
        "SPYT YtStreamingProviderImpl.createSource",
        "source",
        "The consumer is a part of the configuration, and `provision` makes and registers it.",
    ),
    Rule(
        "no-row-limit", "stalled",
        "After a pause the whole backlog is one batch: executors run out of memory, or the "
        "transaction exceeds its limits, at each attempt. The same happens with a limit that no "
        "batch reaches.",
        f"{_DOC}Structured Streaming, Configuring the number of rows per batch; "
        "YtStreamingSource.getDefaultReadLimit",
        "documented",
        "max_rows_per_partition is always set, by default to 20,000.",
    ),
    Rule(
        "no-trigger", "stalled",
        "Without an interval Spark asks for the queue's end every 10 ms while there is no new row. "
        "The user's limit of requests is shared by all that the user runs.",
        "Spark spark.sql.streaming.pollingDelay; YtStreamingSource.getMaxOffset",
        "source",
        "trigger_seconds is always set, by default to 5.",
    ),
    Rule(
        "available-now", "repeated, stalled",
        "SPYT's source does not know this trigger: all waiting rows are one batch, the row limit "
        "has no effect, and the consumer does not move. Without the checkpoint all is read again.",
        "SPYT YtStreamingSource (no SupportsTriggerAvailableNow); Spark AvailableNowSourceWrapper",
        "run",
        "Only intervals are offered.",
    ),
    Rule(
        "same-queue-twice", "lost, repeated",
        "Two readers of one queue share the offsets of one consumer. When one is ahead, the other "
        "skips rows or reads them again.",
        "SPYT YtStreamingSource.commit; YtQueueOffset",
        "derived",
        "A queue that is listed twice is an error.",
    ),
    Rule(
        "composite-types", "stalled",
        "Lists, structs, dictionaries and decimals need an option on both sides: the reader's "
        "parsing_type_v3, and the writer's write_type_v3, which no Spark setting replaces. "
        "Without, they are bytes, or the write fails.",
        f"{_DOC}Structured Streaming, Composite types; YtDynamicTableWriter (reads the option "
        "alone)",
        "source",
        "Both options are always set.",
    ),
    Rule(
        "async-log-purge", "stalled",
        "Spark removes old log entries in a separate thread, which fails on temporary files that "
        "SPYT's file system renames: \"File .../commits/.77.<uuid>.tmp is not found\" ends the "
        "query.",
        "spark.sql.streaming.asyncLogPurge.enabled (Spark: true)",
        "run",
        "spark.sql.streaming.asyncLogPurge.enabled=false.",
    ),
    Rule(
        "timeout", "stalled",
        "SPYT 2.11 ships 30 s for a request. One slow tablet exceeds it, and the query ends with "
        "its driver.",
        "spark.hadoop.yt.timeout; spark-defaults.conf of SPYT 2.11.2 (before 2.11, a number "
        "without a unit is seconds)",
        "source",
        "spark.hadoop.yt.timeout=300s.",
    ),
    Rule(
        "no-await", "stalled",
        "start() returns at once. When the script ends, the driver does, and its operation counts "
        "as completed.",
        "Spark DataStreamWriter.start, StreamingQuery.awaitTermination",
        "documented",
        "A supervisor watches the query and restarts it after a failure.",
    ),
    Rule(
        "no-effect", "-",
        "The setting has no effect, so what it should prevent can happen.",
        "Spark and SPYT, as named with the setting",
        "source",
        "`make confs` lists each setting with its reason. It has none without effect.",
    ),
    # -- queues and consumers --------------------------------------------------------------------
    Rule(
        "consumer-not-vital", "lost",
        "A queue that trims itself only waits for vital consumers, so it may remove rows that this "
        "job has not read. SPYT then reads as many others twice, without an error.",
        "YTsaurus documentation, Queues (auto_trim_config, vital); SPYT YtQueueUtils",
        "run",
        "`provision` registers the consumer as vital, and `check` verifies it.",
    ),
    Rule(
        "trimmed-by-age", "lost",
        "The queue removes rows at that age, read or not, even for a vital consumer. A job that "
        "was stopped for longer loses them, and SPYT reads as many others twice, without an error.",
        "YTsaurus store_trimmer.cpp (min_data_versions, max_data_ttl); SPYT YtQueueUtils",
        "run",
        "Rows that are gone are found at the start and in the run; on_data_loss says what happens.",
    ),
    # -- other tables --------------------------------------------------------------------------
    Rule(
        "unflushed-rows", "lost",
        "A read that is not a stream sees what is on disk. The newest rows of a dynamic table are "
        "in memory, by default for up to 15 minutes (dynamic_store_auto_flush_period): a join does "
        "not find them.",
        "YTsaurus documentation, Running operations on dynamic tables (enable_dynamic_store_read)",
        "documented",
        "The reference table of a join is read by a query of its rows, which sees all of them.",
    ),
    Rule(
        "swallowed-lookup", "lost",
        "A lookup that fails looks like keys that are not there. The rows go on without the "
        "values, or are skipped, and the batch is committed: nobody reads them again. A tablet "
        "that moves for some seconds is enough.",
        "Python's `except` without `raise`; YTsaurus documentation, Dynamic tables (errors of "
        "lookup_rows)",
        "derived",
        "`lookup()` repeats a request that fails. If that does not help, the batch fails, and runs "
        "again whole.",
    ),
    Rule(
        "large-broadcast", "stalled",
        "All rows of the table pass through the memory of the driver and of each executor: a "
        "table that grows ends the job. They are read when the query starts, so later changes of "
        "the table are not seen. Doctor names tables whose size it does not know, too: with "
        "--proxy it leaves out those with up to 100,000 rows.",
        "Spark BroadcastExchangeExec (8 GB, 512 million rows); spark.driver.maxResultSize "
        "(Spark: 1g); spark.sql.broadcastTimeout (Spark: 300 s)",
        "source",
        "`lookup()` reads the keys of each batch from a larger table, and no table whole.",
    ),
)  # fmt: skip
RULES = {rule.name: rule for rule in _LIST}

WITHOUT_EFFECT = {
    "spark.streaming.stopGracefullyOnShutdown":
        "only DStreams read it (Spark, StreamingContext); Structured Streaming does not",
    "spark.streaming.stopGracefullyOnShutdown.timeout":
        "no version of Spark has this setting",
    "spark.streaming.gracefulStopTimeout":
        "only DStreams read it; Structured Streaming has spark.sql.streaming.stopTimeout",
    "spark.streaming.backpressure.enabled":
        "only DStreams read it; max_rows_per_partition limits a batch",
    "spark.sql.streaming.adaptiveExecution.enabled":
        "no version of Spark has this setting",
    "spark.sql.streaming.schemaInference":
        "only sources of files read it (Spark, DataSource); a queue has its table's schema",
    "spark.yt.write.timeout":
        "the streaming sink does not read it (SPYT, YtDynamicTableWriter)",
    "spark.yt.transaction.timeout":
        "the streaming transaction has 5 minutes fixed (SPYT, YTsaurusStreamingTransactionSupport)",
    "spark.yt.transaction.pingInterval":
        "the streaming transaction has 30 s fixed (SPYT, YTsaurusStreamingTransactionSupport)",
}  # fmt: skip
"""Settings that a streaming job on SPYT reads nowhere, or reads otherwise; and why."""


_KAFKA = {
    "maxOffsetsPerTrigger": "max_rows_per_partition limits a batch",
    "minOffsetsPerTrigger": "SPYT has none",
    "startingOffsets": "the consumer says where to begin",
    "startingOffsetsByTimestamp": "the consumer says where to begin",
    "endingOffsets": "SPYT has none",
    "failOnDataLoss": "SPYT has none; rows that were trimmed are not an error",
    "minPartitions": "a task reads one tablet",
    "subscribe": "load() names the queue",
}
UNREAD = {
    **{name: f"only Spark's Kafka source reads it; {has}" for name, has in _KAFKA.items()},
    "queue": "SPYT's source does not read it; load() or the option path names the queue",
    "cluster": "SPYT's source does not read it; spark.hadoop.yt.proxy names the cluster",
}
"""Options that SPYT's source does not read, and what it has (SPYT, YtStreamingProviderImpl)."""


def spellings(key: str) -> tuple[str, ...]:
    """Return the names of a setting: SPYT reads spark.yt.X as spark.ytsaurus.X too, since 2.11."""
    if not key.startswith("spark.yt."):
        return (key,)
    return (key, key.replace("spark.yt.", "spark.ytsaurus.", 1))
