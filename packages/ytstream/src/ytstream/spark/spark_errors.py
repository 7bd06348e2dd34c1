"""Sorts Spark's exceptions into those that a restart may end and the others."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException, StreamingQueryException

from ..connector.java_trace import bottom, cluster_error, failed_lookup, trace_of
from ..declaration.user_errors import BRING, place, place_in
from ..errors import JobError, RestartableError, open_files
from ..errors.error_codes import ErrorCode
from ..guarantees.transactional import FENCED
from . import state_damage
from .jvm_process import OTHER_FOLDER, explained_jvm

_TOO_LONG = " is too long for dynamic data"
"""What YTsaurus says of a value above 16 MiB (client/table_client/unversioned_row.cpp,
ValidateDynamicValue)."""
_FATAL = (
    "[CAST_", "[DIVIDE_BY_ZERO", "[ARITHMETIC_OVERFLOW", "[NUMERIC_VALUE_OUT_OF_RANGE",
    "[CANNOT_PARSE_TIMESTAMP", "PythonException", "Illegal value", "out of allowed range",
    "Cannot find Spark field", "Cannot find YT columns", "cannot have null value",
    "Required column", "[USER_RAISED_EXCEPTION]", "json_of: ", _TOO_LONG,
)  # fmt: skip
"""Parts of messages that no restart ends, since the same row, plan or schema fails again; Spark's
error conditions ("[CAST_INVALID_INPUT] ...") among them."""

_NATIVE = (
    "UnsatisfiedLinkError", "failed to map segment from shared object",
    "Could not initialize class org.xerial.snappy", "Could not initialize class org.rocksdb",
    "Could not initialize class com.github.luben.zstd",
)  # fmt: skip
"""What Java says of a native library that it cannot load, first and later."""

_NO_JAR = re.compile(r"(ClassNotFoundException: |NoClassDefFoundError: )ytstream[./]\w+")
"""What Java says of a class of the job's own connector that an executor has not got."""

_CLIENT = re.compile(r"^\s*at (?:[\w.]+/)?(?:tech\.ytsaurus|io\.netty)\.", re.MULTILINE)
"""Frames of SPYT's client."""
_UNANSWERED = re.compile(
    r"java\.util\.concurrent\.TimeoutException.*\n(?:\s+at java\..*\n)+\s+at ytstream\."
)
"""The job's own connector has waited for a reply of the cluster: its frame is the first one that is
not the JDK's. Later frames are of whoever called the task, whatever has failed in it."""
_CONNECTIONS_OF_SPARK = (
    "at org.apache.spark.network.", "Python worker exited", "Python worker failed to connect",
)  # fmt: skip
"""In a trace: connections between driver, executors and Python workers."""

_MISSING = ("ModuleNotFoundError", "must be installed")
"""What Python and PySpark say of a package that a worker lacks or has in another version."""

_PYTHON_TRACE = re.compile(r"Traceback \(most recent call last\):\n(?:(?: .*)?\n)*(\S.*)")
"""The frames' lines are indented, the exception's is not."""

_CRASH = re.compile(r"Python worker exited unexpectedly.*")
"""Its cause is a java.io.EOFException, which says nothing."""


@contextmanager
def explained_spark(where: str = "") -> Iterator[None]:
    """Turn Spark's exceptions into one line each, which begins with ``where``.

    What the cluster has caused is what it is for any other client: OutageError for a cluster that
    is away, FullAccountError, UnmountedError, JobError for token and permissions. Raises JobError
    for a failure that every try would repeat and for a JVM that has ended, RestartableError for the
    rest.
    """
    try:
        with explained_jvm():
            yield
    except (PySparkException, Py4JJavaError) as error:
        raise _explanation(error, where) from error


def is_of_the_rows(error: JobError | RestartableError) -> bool:
    """Return whether other rows might pass: of a task, or of a commit of a transaction of ours.

    A server checks the rows of a transaction when it commits (YTsaurus, native transaction.cpp).
    """
    is_of_a_task = error.code is ErrorCode.BATCH_FAILED
    return is_of_a_task or any(part in str(error.__cause__ or error) for part in _FATAL)


def _explanation(error: PySparkException | Py4JJavaError, where: str) -> Exception:
    text, trace = str(error), trace_of(error)
    if open_files.SAID in trace:  # Spark wraps it, too, in what it says of a damaged state
        return RestartableError(
            f"{where}{cause(text)}", open_files.REMEDY, code=ErrorCode.OPEN_FILES
        )
    if found := _of_the_cluster(trace):
        return found
    if any(part in text for part in _NATIVE):
        return JobError(
            f"the job cannot continue: {where}Java cannot load a native library: {cause(text)}",
            f"{OTHER_FOLDER}; committed rows are kept",
            code=ErrorCode.TEMPORARY_FOLDER,
        )
    if lacking := _NO_JAR.search(text):
        return JobError(
            f"the job cannot continue: {where}an executor has not got the job's own connector: "
            f"{lacking[0]}",
            "executors fetch it from the driver as they do with --jars: let them reach the driver, "
            "or remove settings that keep jars away; committed rows are kept",
            code=ErrorCode.PACKAGES,
        )
    if damage := state_damage.found_in(trace):
        return damage.error(where)
    is_from_the_stream = isinstance(error, StreamingQueryException | Py4JJavaError)
    if FENCED in text or (is_from_the_stream and not any(part in text for part in _FATAL)):
        return RestartableError(f"{where}{failed_lookup(trace)}{cause(text)}")
    return _fatal(error, text, where)


def _of_the_cluster(trace: str) -> JobError | RestartableError | None:
    """Return the error of the cluster, unless the connection is one between Spark's processes."""
    is_of_spark = any(part in trace for part in _CONNECTIONS_OF_SPARK)
    is_of_the_client = _CLIENT.search(trace) or _UNANSWERED.search(trace)
    if bottom(trace).is_transport and (is_of_spark or not is_of_the_client):
        return None
    return cluster_error(trace)


def _fatal(error: PySparkException | Py4JJavaError, text: str, where: str) -> JobError:
    """Return the error of transform() or of the data."""
    code = ErrorCode.BATCH_FAILED
    remedy = "correct transform.py (try_cast gives null for what cannot be cast) or the data"
    found, line = cause(text), place(error)
    if "out of allowed range" in text:  # YTsaurus prints a negative value as an unsigned one
        remedy = (
            "keep such rows out with REJECT, or make the value null in transform.py; a date or "
            "time lies between 1970 and 2105; `capture failed` keeps the rows of the batch"
        )
    if _TOO_LONG in text:
        remedy = (
            "shorten the value in transform.py, or keep such rows out with REJECT, e.g. "
            "octet_length(text) > 8000000; `capture failed` keeps the rows of the batch"
        )
    if "PythonException" in text and any(part in found for part in _MISSING):
        # An executor that came after the start was not asked for its packages.
        code, remedy = ErrorCode.PACKAGES, BRING
    if not found.endswith(line):  # Spark 4 gives the error the frames of the Python worker
        found += line
    return JobError(
        f"the job cannot continue: {where}{found}",
        f"{remedy}; committed rows are kept",
        code=code,
    )


def cause(text: str) -> str:
    """Return what happened: the last line of a Python trace, Java's last cause, or the message."""
    if python := _PYTHON_TRACE.search(text):  # of a Python function in transform()
        return _shortened(python[1]) + place_in(python[0])
    if crashed := _CRASH.search(text):
        return _shortened(crashed[0])
    # Py4J's first line says which call it was, the second one begins with a colon.
    causes = re.findall(r"^(?:Caused by)?:(.*)", text, re.MULTILINE)
    lines = [line.rpartition("terminated with exception: ")[2] for line in text.splitlines()]
    # Behind an exception without a message Spark describes the query, under such headings.
    said = [line.strip() for line in [*reversed(causes), *lines] if not line.startswith("=== ")]
    # Some messages of Spark's consist of only their SQL state.
    with_content = (line for line in said if re.sub(r"SQLSTATE: \w+", "", line).strip())
    found = next(with_content, "Spark has given no reason")
    return _shortened(found.partition("; full error: {")[0])  # YTsaurusError repeats itself


def _shortened(text: str, limit: int = 400) -> str:
    return text if len(text) <= limit else f"{text[:limit]}..."
