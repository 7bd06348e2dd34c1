"""What this runtime takes from inside Spark and SPYT: the one place to read when they change.

    choose_connector     our own reader and writer (``jvm/``), or SPYT's
    early_jvm            a JVM that starts while Python imports PySpark
    compile_java         compiles ``jvm/`` where it runs
    json_of              an `any` column as JSON text
    java, java_home      the session's JVM, and the Java of this machine
    local_environment    environment and options of a JVM on this machine
    key_lookup           columns of a table looked up by its key, an operator of our own
    python_functions     Python functions in a plan: no value is rounded or lost
    pyspark_internals    frames, sessions and queries: what PySpark keeps to itself
    spark_batch          a micro-batch: what it reads, and its plan, run once more
    spark_plan           operators, expressions, and what an execution has counted
    spyt                 sink, transaction and client of SPYT
    state_schema         the schema of a Python state, as workers can read it
    tablet_transactions  tablet transactions of SPYT's client
    transform_plan       what the plan of transform() tells of its rows

None of it is documented. `check` calls the parts of SPYT (outputs/sink.py, verify_sink), tests run
all of it on each Spark version. spark/jvm_process.py knows how PySpark starts a JVM,
tablet_transactions.py speaks to the Java client of YTsaurus, which has a public interface. These
modules load no Spark.
"""
