"""What docs/performance.md says around its tables."""

from __future__ import annotations

from bench.sources import SPYT_PAGE

LIMITS = """\
**No figure here is a real cluster's.** The cluster is a minicluster: one Python process that holds
all rows in memory, without a network, without replicas and without other users. Executors are
threads of the driver, and there are two processors for all of it. So this page compares ways of
doing the same work on the same machine; it does not say how many rows a job takes on a cluster.
Processor seconds and numbers of requests carry over best. Seconds carry over least: on a cluster
a request takes longer, and a commit waits for replicas.

The minicluster's limit of 100 000 rows of a tablet in a transaction is lifted: the listing, whose
writes go to tablets at random, would exceed it now and then.

Each case has a minicluster of its own, and a driver process for each way. The ways take turns:
each round begins with another one. The first batch of a run is left out. Figures are medians of
the rounds, with quartiles in brackets. A figure relative to another one is the median of the
quotients within a round: what else the machine did in that round strikes both.

| way | what it is |
|---|---|
| `listing` | SPYT's documentation as it stands, in the same mode, with SPYT's defaults. Added: a \
trigger, `max_rows_per_partition` and the number of state partitions, as the job has them. A join \
reads its reference as the job does; the function of `sessions` goes to Spark as it is |
| `job` | the generated job with its supervisor, ledger, audit and fence |
| `plain` | the same job without what the case is about |
| `noop` | rows made in memory by Spark's rate source, the same transformation, and no output: \
what Spark itself needs |"""
OVERVIEW = """\
Processor seconds are those of the driver JVM, the Python driver and the Python workers, relative
to the base: below 1 is less.
"""
#: What profiles and timings of single steps have shown; a new run does not change it.
SHORT = """\
What the missed goals are made of:

- **Rows per second.** The minicluster is one process and shares the two processors with the \
job. Of the 12 processor seconds that a million rows of a `transactional` `map` take, 6 are the \
minicluster's, so no job could be faster than 166,000 rows per second here, twice as fast as the \
listing. Spark alone (`noop`) takes 3.3 of the job's 5.9 seconds. Reading, counting and writing \
take 2.6, and 7.8 of the listing's 11.1.
- **Requests.** Of the 42 of a `map` batch 24 carry rows, 5,000 each. All rows of one such \
request go to one tablet of the output, at random. Smaller requests spread a large batch, since \
a transaction may touch 100,000 rows of one tablet. A batch of few rows makes 20 requests.
- **REJECT** costs processor time and hardly any rate (measured once: 0.99 of the rate, 1.43 of \
the processor time): the rejected rows come to the driver with the results of the tasks, and one \
request writes them. What is left is 2.4 microseconds a row for the aggregate that gathers them \
(Spark's ScalaAggregator) and 1.2 for the counts (CollectMetrics).
- **State.** Most of a `window` is Spark's own work: without any input and output it makes 1.2 \
of the listing's rate. The job keeps its state in RocksDB and the listing in memory, as Spark's \
default is. A `deduplicate` reads and writes a key for each row, so it pays most for that.
- **Sessions** go through Python workers, which take most of the time. Up to Python 3.12 each \
importer of `pyspark.zip` lists the archive again at the start of a task (CPython \
gh-103200). `checked_state` spares the job that. What is left goes mostly to pandas: a frame for \
each key and batch.
"""
STARTS = """\
A generated project, run as its owner runs it, with rows waiting. The end is the commit of the
first batch.
"""
CHOSEN = {
    "curve-rows": (
        "a batch has a fixed cost, which more rows share. So the default trigger is 5 s, and a "
        "batch takes up to 20 000 rows of a partition."
    ),
    "curve-tablets": (
        "each tablet of a queue is a read and a move of the consumer. A batch is gathered into as "
        "many tasks as there are cores, so tablets do not cost a write each."
    ),
    "curve-tablets-5ms": (
        "on a cluster a request takes longer than here, so this is where requests that wait for "
        "each other show."
    ),
    "curve-columns": "each column is read, decoded and written.",
    "curve-outputs": "a batch writes its outputs at the same time, each with its own tasks.",
    "curve-small": "what a batch costs that has hardly any rows: the latency of a quiet queue.",
    "curve-state": (
        "the JVM has 1 GB, and each row has a key far from the one before. So a deduplication "
        "finds a repeat in every row. A batch writes the keys that it has changed, a file for each "
        "of 8 state partitions, whether anything has changed there or not: Spark needs a version "
        "of each. Spark's own 200 partitions would be 200 files a batch. A batch of `aggregate` "
        "with few keys writes fewer rows. A deduplication searches all keys for expired ones in "
        "each batch, so a batch of few rows takes longer the more keys there are."
    ),
}
PUBLISHED = f"""\
[SPYT's page]({SPYT_PAGE})
has measured them with 5 million rows of about 70 bytes, 16 tablets and 8 executors of 2 cores;
pass through with 1 million rows and one executor of one core. The columns on the right are bids of
about 150 bytes on this machine: neither the same load nor the same machine.
"""
