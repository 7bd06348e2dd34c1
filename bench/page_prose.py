"""What docs/performance.md says around its tables."""

from __future__ import annotations

from bench.arrivals import SHORTEST_TRIGGER, WARM_BATCHES
from bench.sources import SPYT_PAGE

LIMITS = """\
**These are not the figures of a real cluster.** The cluster is a minicluster: one Python process
that holds all rows in memory, without a network, replicas or other users. Executors are threads of
the driver, and everything shares two processors. So this page compares variants of the same work
on the same machine. It does not tell you how many rows a job processes on your cluster. CPU seconds
and numbers of requests carry over best. Times carry over least: on a cluster a request takes
longer, and a commit waits for replicas.

The minicluster's limit of 100,000 rows per tablet in a transaction is lifted here, because SPYT's
example writes to random tablets and would sometimes exceed it.

Each case has its own minicluster, and each variant its own driver process. We interleave the
variants and start each round with a different one. The first batch of a run is not counted.
Figures are medians of the rounds, with quartiles in brackets. Ratios are medians of per-round
ratios, so background load affects both sides equally.

| variant | what it is |
|---|---|
| SPYT's example | from its documentation, in the same mode, with SPYT's defaults. \
We added a trigger, `max_rows_per_partition` and the number of state partitions of the job. A \
join reads its reference as the job does. The function of `sessions` goes to Spark unchanged |
| `job` | the generated job with its supervisor, ledger, audit and fence |
| `plain` | the same job without the feature that the case measures |
| `noop` | rows made in memory by Spark's rate source, the same transformation, and no output: \
what Spark itself needs |"""
OVERVIEW = """\
CPU seconds include the driver JVM, the Python driver and the Python workers, relative to the
variant in the second column. Below 1 is less.
"""
SHORT = """\
Why goals were missed:

- **Rows per second.** Most of a batch is to read, transform and write the rows. The rest is \
planning, logs and requests of the transaction, which wait for each other. The minicluster, one \
Python process, takes its CPU time from the same two processors (see below), with SPYT's example \
as well. That makes ratios smaller.
- **REJECT** costs CPU time. Spark evaluates the condition, here a comparison of strings, and the \
job counts reasons row by row, inside of Spark's generated code. The task that rejects a row makes \
its JSON, and sends it in a request of its own. The plan of each batch is longer, too.
- **State.** Without any input and output, Spark needs 0.6 of the CPU time of a `window` (`noop`). \
The job keeps its state in RocksDB, the example in memory, Spark's default. A `deduplicate` reads \
and writes a key for each row, so RocksDB costs it most.
- **Sessions** run in Python workers, which take most of the time. Up to Python 3.12, each \
importer of `pyspark.zip` lists the archive again at the start of a task (CPython gh-103200). \
`checked_state` avoids that. Most of the rest is pandas: a frame for each key and batch.
"""
"""What profiles and timings of single steps have shown; a new run does not change it."""
LOOKUPS = """\
`plain` joins with a reference of 10,000 rows, which it reads whole. `job` looks up the keys of each
batch in a reference of 1,000,000 or 3,000,000 rows in four tablets. The JVM has 1 GB. All keys are
equally likely, and `reference_cache_mb` is 0. In the case with the cache, keys are of a Zipf
distribution, and `reference_cache_mb` has its default. A request asks for up to 2,000 keys. The
minicluster keeps its rows in huge pages here. In small ones, half of a lookup is the time in which
the processor finds Python's objects, so it would measure the stand-in.
"""
ARRIVALS = f"""\
A generated `map` with the values of `config/production.toml`, four tablets, on two cores with the
minicluster. The first {WARM_BATCHES} batches and the last one do not count. For the latency,
`trigger_seconds` is {SHORTEST_TRIGGER}, the least that it can be. A row has arrived when its
producer's request is answered. The times end when the output has all rows of its micro-batch: the
last transaction that wrote them has committed, by the minicluster's journal.
"""
STARTS = """\
A generated project, started as you would start it, with rows waiting. The time ends with the
commit of the first batch.
"""
CHOSEN = {
    "curve-rows": (
        "a batch has a fixed cost, however many rows it has. So the default trigger is 5 s, and a "
        "batch takes up to 20,000 rows per partition."
    ),
    "curve-tablets": (
        "each tablet of a queue costs a read and a move of the consumer. A batch has as "
        "many tasks as there are cores, so a tablet does not cost a write."
    ),
    "curve-tablets-5ms": (
        "on a cluster a request takes longer than here. This case shows which requests wait for "
        "each other."
    ),
    "curve-columns": (
        "each column is read, decoded and written. With 40 columns, SPYT's example spends two "
        "thirds of its time in SPYT's reader, which asks for column names for each row (profile: "
        "UnversionedRowsetDeserializer, SchemaConverter.getOriginalName)."
    ),
    "curve-outputs": "a batch writes its outputs in parallel, each with its own tasks.",
    "curve-small": "the cost of a batch with hardly any rows: the latency of a quiet queue.",
    "curve-merge": (
        "each batch looks up the rows of its keys, and replaces those that are older. The table "
        "has all keys before the first measured batch."
    ),
    "curve-totals": (
        "`aggregate` of 1.0.0 keeps its totals in Spark's state, and writes them to a table too. "
        "New jobs have a table that adds them up. The JVM has 1 GB for a state and 512 MB for a "
        "table. Each row has a key far from the one before. All keys are there before the first "
        "measured batch. A state is a file for each of 8 partitions in each batch, changed or "
        "not, because Spark needs a version of each. A batch of `aggregate` with 10,000 keys "
        "writes a fifth of the rows of the others."
    ),
    "curve-state": (
        "the JVM has 1 GB, and each row has a key far from the one before. So a deduplication "
        "finds a repeat in every row. A batch writes the keys that it has changed: a file for each "
        "of 8 state partitions, changed or not. Spark's default of 200 partitions would write 200 "
        "files per batch."
    ),
    "curve-state-small": (
        "a deduplication searches each partition of its state for expired keys once while the "
        "watermark moves by a quarter of its delay, and not in each batch. So a batch of few rows "
        "does not take longer where there are many keys."
    ),
}
PUBLISHED = f"""\
[SPYT's page]({SPYT_PAGE})
gives the published figures: 5 million rows of about 70 bytes, 16 tablets, 8 executors of 2 cores.
Pass through had 1 million rows and one executor with one core. The columns on the right are bids of
about 150 bytes on this machine, so you cannot compare the two.
"""
