"""A process whose Spark does not close: it leaves with code 3.

Started by Python, or by spark-submit. Prints the process id of the JVM, and a last line.
"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

from pyspark import SparkContext
from pyspark.sql import SparkSession

from ytstream import log
from ytstream.spark import session
from ytstream.spark.jvm_process import leave_if_hung


class Hanging:
    """A session whose JVM never comes to the end of ``stop``."""

    def __init__(self, jvm: Any) -> None:
        self._jvm = jvm

    def stop(self) -> None:
        """Hang in the JVM, as SparkContext.stop does in ContextCleaner.stop."""
        self._jvm.java.lang.Thread.sleep(600_000)


def main() -> int:
    """Return 4, unless the process has left before."""
    log.set_up()
    session.CLOSE_SECONDS = 0.5
    SparkContext._ensure_initialized()
    jvm: Any = SparkContext._jvm
    print("jvm", jvm.java.lang.ProcessHandle.current().pid(), flush=True)
    hanging, beside = Hanging(jvm), ThreadPoolExecutor()
    beside.submit(hanging.stop)  # Python would wait for this thread as well
    session.close(cast(SparkSession, hanging), beside)
    print("the last line")
    leave_if_hung(3)
    return 4


if __name__ == "__main__":
    sys.exit(main())
