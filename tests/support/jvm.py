"""How the tests start Spark's JVMs, of which a run of all tests needs about eighty.

Imports nothing that only one environment has: tests under Spark 3.5 import it as well.
"""

from __future__ import annotations

OPTIONS = (
    "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m "
    "-XX:-UseParallelGC -XX:+UseSerialGC "
    "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
)
"""A JVM that lives for minutes has no use for its second compiler. Without it the JVM keeps a fifth
of the room for compiled code, and sweeps that. A collector with threads of its own does not pay
here, nor does verifying the classes of released jars (a fifth of a short test)."""

SHARED = (
    "--conf spark.sql.codegen.wholeStage=false --conf spark.sql.codegen.factoryMode=NO_CODEGEN "
    "--conf spark.io.compression.codec=lz4"
)
"""For tests that share a session: compiling a query for its few rows takes longer than to interpret
it (Spark: SQLConf, codegen), and snappy, which SPYT sets, looks for its version in all jars before
each broadcast. Whatever starts a Spark of its own has neither, as users' jobs."""


def submit_args(master: str = "local[2]", options: str = OPTIONS) -> str:
    """Return YTSTREAM_SUBMIT_ARGS for a process whose Spark runs at ``master``."""
    return f"--driver-java-options '{options}' --master {master} pyspark-shell"
