"""Spark runs in a JVM, a process of its own: says how that has ended."""

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkContext
from pyspark.errors import PySparkRuntimeError

from ..errors import JobError

#: A connection breaks a moment before the process has ended.
_LAST_SECONDS = 5.0
_REMEDY = "start again: nothing that was committed is lost; what the JVM itself said is above"


@contextmanager
def explained_jvm() -> Iterator[None]:
    """Turn the errors of a JVM that does not answer into one line. Raises JobError.

    Exceptions of Java pass: then the JVM has answered.
    """
    try:
        yield
    except Py4JJavaError:
        raise
    except PySparkRuntimeError as error:
        if "JAVA_GATEWAY_EXITED" not in str(error):
            raise
        raise JobError("Spark's JVM has ended while it started", _REMEDY) from error
    except (Py4JError, ConnectionError) as error:
        raise JobError(_ending(error), _REMEDY) from error


def _ending(error: Exception) -> str:
    # None where spark-submit has started the JVM.
    process: subprocess.Popen[bytes] | None = getattr(SparkContext._gateway, "proc", None)
    code = None
    if process is not None:
        try:
            code = process.wait(_LAST_SECONDS)
        except subprocess.TimeoutExpired:
            code = None
    if code is None:
        return f"Spark's JVM does not answer: {error}"
    if code == -signal.SIGKILL:
        return "Spark's JVM was killed (SIGKILL), as the system does when memory runs out"
    return f"Spark's JVM has ended with code {code}"
