"""What this runtime takes from inside Spark and SPYT: the one place to read when they change.

    batches     a micro-batch: what it reads, and its plan, run once more
    frames      frames, sessions and queries: what PySpark keeps to itself
    plans       operators, expressions, and what an execution has counted
    spyt        sink, transaction and client of SPYT
    java        the session's JVM

None of it is documented. `check` calls the parts of SPYT (outputs/sink.py, verify_sink), tests run
all of it on each Spark version. spark/jvm_process.py knows how PySpark starts a JVM,
tablet_transactions.py speaks to the Java client of YTsaurus, which has a public interface. These
modules load no Spark.
"""
