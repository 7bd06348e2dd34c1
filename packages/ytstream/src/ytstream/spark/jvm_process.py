"""Spark runs in a JVM, a process of its own: says how that has ended, and ends one that hangs."""

import gc
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkContext
from pyspark.errors import PySparkRuntimeError

from ..connector import early_jvm
from ..errors import JobError
from ..errors.error_codes import ErrorCode

_LAST_SECONDS = 5.0
"""A connection breaks a moment before the process has ended."""
_PIPE_SECONDS = 1.0
"""How long the JVM gets to pass on the last lines of this process, which spark-submit pipes."""
CLOSING = "closing Spark"
"""The name of the thread in which a session closes."""
OTHER_FOLDER = (
    "name a folder on a file system that is not mounted noexec, in the environment: "
    "JAVA_TOOL_OPTIONS=-Djava.io.tmpdir=FOLDER (Java does not read TMPDIR on Linux)"
)
"""What to do where libraries cannot be loaded."""
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
        raise JobError(
            "Spark's JVM has ended while it started", _REMEDY, code=ErrorCode.JVM_ENDED
        ) from error
    except (Py4JError, ConnectionError) as error:
        raise JobError(_ending(error), _REMEDY, code=ErrorCode.JVM_ENDED) from error


@contextmanager
def ended_by_interrupt() -> Iterator[None]:
    """Let Ctrl-C end the JVM, and the block with KeyboardInterrupt.

    PySpark's own handler (SparkContext, `_do_init`) calls the JVM within the call that it
    interrupts. Py4J has one connection for each thread (py4j.clientserver), so one call reads the
    answer to the other, or waits for ever.
    """
    process, was_interrupted = _process(), False
    # Of SIGINT not the former one, which is PySpark's.
    afterwards: dict[int, Any] = {
        signal.SIGINT: signal.default_int_handler,
        signal.SIGTERM: signal.getsignal(signal.SIGTERM),
    }

    def end(_number: int, _frame: object) -> None:
        nonlocal was_interrupted
        was_interrupted = True
        _expect_end()
        if process is not None:
            process.terminate()
        raise KeyboardInterrupt

    for number in afterwards:
        signal.signal(number, end)
    try:
        yield
    except BaseException as error:
        if was_interrupted and not isinstance(error, KeyboardInterrupt):
            raise KeyboardInterrupt from error  # a call of the JVM on the way out of the block
        raise
    finally:
        for number, handler in afterwards.items():
            signal.signal(number, handler)
        if was_interrupted and process is not None:
            _wait_for_end(process)


def _expect_end() -> None:
    """Let the server that reads accumulators end without a trace (pyspark/accumulators.py)."""
    context = SparkContext._active_spark_context
    if context is not None:
        context._accumulatorServer.handle_error = lambda *_: None  # type: ignore[method-assign]


def _wait_for_end(process: "subprocess.Popen[bytes]") -> None:
    try:
        process.wait(_LAST_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()


def started() -> Any:
    """Start the JVM with no Spark in it, if none runs, and return it. Raises JobError.

    If one that has begun does not start, PySpark tries again, and this says why.
    """
    with explained_jvm():
        begun = None if SparkContext._gateway else early_jvm.gateway()
        SparkContext._ensure_initialized(gateway=begun)
    return SparkContext._jvm


def log_in(jvm: Any, name: str) -> None:
    """Give Hadoop the user's name: its own login asks the system, and fails without an answer."""
    users = jvm.org.apache.hadoop.security.UserGroupInformation
    users.setLoginUser(users.createRemoteUser(name))


def verify_native_libraries(jvm: Any) -> None:
    """Raise JobError where the JVM cannot load a library from its folder for temporary files.

    Spark's codecs (snappy, zstd, lz4), RocksDB and netty copy theirs into java.io.tmpdir and load
    them from there. On a file system that is mounted noexec, the first batch would fail.
    """
    folder = str(jvm.java.lang.System.getProperty("java.io.tmpdir"))
    try:
        flags = os.statvfs(folder).f_flag
    except OSError as error:
        problem = f"cannot be used: {error.strerror}"
    else:
        if not flags & getattr(os, "ST_NOEXEC", 0):  # only Linux has the flag
            return
        problem = "is mounted noexec, and Spark loads its native libraries from there"
    raise JobError(
        f"Java's folder for temporary files, {folder}, {problem}",
        OTHER_FOLDER,
        code=ErrorCode.TEMPORARY_FOLDER,
    )


def within(seconds: float, call: Callable[[], object], name: str = CLOSING) -> bool:
    """Call, in a thread of its own; return whether that ended in time. Errors of the JVM pass."""

    def run() -> None:
        with suppress(Py4JError, ConnectionError):
            call()

    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    thread.join(seconds)
    return not thread.is_alive()


def tell_to_end() -> bool:
    """Let this process's JVM end on its own; return whether it has one.

    To close Spark first takes a second. The JVM removes its files (Spark's ShutdownHookManager),
    and nobody waits for that. Nor does anybody need the memory of this process sorted out, for
    which Python takes half a second at its end.
    """
    if (process := _process()) is None:
        return False
    _expect_end()
    process.terminate()
    gc.freeze()
    return True


def leave_if_hung(code: int) -> None:
    """End this process and the JVM with ``code`` if Spark still has not closed.

    Python would wait for its threads, and they wait for the JVM. The JVM would wait for its own.
    """
    if all(thread.name != CLOSING for thread in threading.enumerate()):
        return
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    gateway = SparkContext._gateway
    if (process := _process()) is not None:
        process.kill()
    elif gateway is not None:
        # spark-submit's own, the driver's process on a cluster: it waits for this one, and would
        # close Spark once more.
        time.sleep(_PIPE_SECONDS)
        runtime = gateway.jvm.java.lang.Runtime.getRuntime()
        within(_LAST_SECONDS, lambda: runtime.halt(code), "ending the JVM")
    os._exit(code)


def _process() -> "subprocess.Popen[bytes] | None":
    """Return the JVM's process; None where spark-submit has started it."""
    return getattr(SparkContext._gateway, "proc", None)


def _ending(error: Exception) -> str:
    code = None
    if (process := _process()) is not None:
        try:
            code = process.wait(_LAST_SECONDS)
        except subprocess.TimeoutExpired:
            code = None
    if code is None:
        return f"Spark's JVM does not answer: {error}"
    if code == -signal.SIGKILL:
        return "Spark's JVM was killed (SIGKILL), as the system does when memory runs out"
    return f"Spark's JVM has ended with code {code}"
