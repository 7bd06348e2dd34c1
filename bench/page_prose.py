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

- **Rows per second.** Of a `transactional` `map` batch of 1.65 s, 0.03 s are outside of Spark's \
tasks: taking the batch over 7 ms, gathering its tasks 6, the audit 8, the record 6; the \
verification, 22 ms, runs next to the tasks. The rest of the difference is in the tasks: the job \
counts rows where they are read and where they are written, and the listing counts none.
- **Processor seconds.** The job asks SPYT for the position of each row, for its audit, and SPYT \
builds a map for each row then. The job has it back by another collector \
(`-XX:+UseParallelGC`, which a job is submitted with) and by its checkpoint. Without positions the \
noise of two runs hid the difference.
- **REJECT.** Here every batch rejects 1,200 rows. They are selected from the queue by their \
positions and written by a Spark job of their own. Of 0.65 s, the select is about 0.12 s, what \
Spark plans about 0.2, the job about 0.3. A batch that rejects more than 2,048 rows is read a \
second time instead. A batch that rejects none is not.
- **Window.** The job does not start to write before the batch is verified, since nothing undoes \
its state.
- **Sessions**, the most expensive row. Its Python workers take most of it. Up to Python 3.12 each \
importer of `pyspark.zip` lists the archive again at the start of a task (CPython gh-103200): 42 \
of the 146 processor seconds of the listing's workers. `checked_state` spares the job that. What \
is left goes mostly to pandas: a frame for each key and batch.
- **Join.** Measured before the reference was kept on the executors: Python workers made it again \
in each batch, 3.8 to 4.0 processor seconds per million rows in every way.
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
