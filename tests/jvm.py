"""How the tests start Spark's JVMs, of which a run of all tests needs about eighty.

Imports nothing that only one environment has: tests under Spark 3.5 import it as well.
"""

from __future__ import annotations

#: No JVM of the tests lives long enough for its second compiler, for a collector with threads of
#: its own, or for verifying the classes of released jars (a fifth of a short test), to pay.
OPTIONS = (
    "-XX:TieredStopAtLevel=1 -XX:-UseParallelGC -XX:+UseSerialGC "
    "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
)


def submit_args(master: str = "local[2]") -> str:
    """Return PYSPARK_SUBMIT_ARGS for a process whose Spark runs at ``master``."""
    return f"--driver-java-options '{OPTIONS}' --master {master} pyspark-shell"
