"""What an exception of Java's says about the cluster: the cause at the bottom of its trace decides.

SPYT's client throws in the middle of Spark, and Spark wraps what it catches into errors of its own:
a state file that cannot be written because a proxy has restarted is a CANNOT_LOAD_STATE_STORE, for
example (RocksDBStateStoreProvider.loadStateStore). The outer exceptions are no reason to end a job.
"""

import re
from dataclasses import dataclass

from ..cluster.server_errors import judged
from ..errors import JobError, OutageError, RestartableError

_OUTAGES = (
    "java.net.", "java.nio.channels.", "io.netty.", "javax.net.ssl.", "java.io.IOException",
    "java.io.EOFException", "java.util.concurrent.TimeoutException",
    "java.util.concurrent.CancellationException",
    "tech.ytsaurus.client.rpc.AcknowledgementTimeoutException",
)  # fmt: skip
"""What Java throws for a cluster that cannot be reached, by the beginning of a class' name: no
connection, a broken one, no reply, a request that ended with its connection. Any other exception
without a code of the cluster's is an error of a program: waiting does not help."""
_NO_PROXIES = "Cannot get rpc proxies"
"""Of a RuntimeException, whatever its cause: the HTTP proxy names no RPC proxy (ClientPool)."""
_HIDDEN = "Failed to set transaction into 'CLOSED' state"
"""Of the transaction in which SPYT moves a consumer: SPYT aborts it when its commit has failed, and
the client's complaint about that hides the cluster's answer (YtQueueOffset,
advanceWithNewTransaction; ApiServiceTransaction, throwWrongState)."""
_CAUSE = re.compile(r"^(?:Caused by)?: (.*)$", re.MULTILINE)
"""A cause begins a line. The first one has nothing before its colon, as Py4J prints it."""
_WRAPPED = re.compile(r"^.*(?:\(TID \d+\) \([^)]*\): |terminated with exception: )")
"""What Spark puts before an exception that it has only as text: of a task on another machine
(TaskSetManager, handleFailedTask), of a query (StreamingQueryException)."""
_LOOKUP = re.compile(r"RuntimeException: (cannot look up .*)")
"""The job's own connector names the lookup that has failed, and its reference (Call.java)."""
_CLASS = re.compile(r"^((?:\w+\.)+[\w$]+)(?:: |$)")
_ANSWER = "; full error: {"
"""'message' <== 'inner message' <== ...; full error: {...} (SPYT's client, YTsaurusError)."""


@dataclass(frozen=True)
class JavaCause:
    """One exception of a trace."""

    name: str
    """The class, if the trace says it."""
    message: str

    @property
    def line(self) -> str:
        """What happened, in one line: of an answer of the cluster, the innermost message."""
        said, answer, _ = self.message.partition(_ANSWER)
        return said.rpartition("<== ")[2].strip("'") if answer else said or self.name

    @property
    def codes(self) -> frozenset[int]:
        """The codes of the cluster's answer, those of inner errors included."""
        answer = self.message.partition(_ANSWER)[2]
        return frozenset(int(code) for code in re.findall(r'"code"=(\d+)', answer))

    @property
    def is_transport(self) -> bool:
        """Whether a connection could not be made, broke or stayed silent."""
        return self.name.startswith(_OUTAGES)


def trace_of(error: BaseException) -> str:
    """Return all that is known of an exception: PySpark's own text has no trace in it."""
    stack = getattr(error, "_stackTrace", None)  # CapturedException (pyspark.errors)
    return f"{error}\n{stack}" if stack else str(error)


def bottom(trace: str) -> JavaCause:
    """Return the last cause of a trace; suppressed exceptions are indented and do not count."""
    causes = _CAUSE.findall(trace)
    line = _WRAPPED.sub("", causes[-1] if causes else trace.partition("\n")[0])
    name = _CLASS.match(line)
    return JavaCause(name[1], line[name.end() :]) if name else JavaCause("", line)


def failed_lookup(trace: str) -> str:
    """Return which lookup has failed, with a colon behind it; empty if none has."""
    found = _LOOKUP.search(trace)
    return f"{found[1].strip()}: " if found else ""


def cluster_error(trace: str) -> JobError | RestartableError | None:
    """Return the error of the cluster that a trace ends with; None if it was not the cluster."""
    cause, what = bottom(trace), failed_lookup(trace)
    if cause.codes:
        return judged(cause.codes.__contains__, f"{what}{cause.line}")
    if cause.is_transport or _NO_PROXIES in trace:
        said = f"the RPC proxies do not answer: {what}{cause.line}"
        return OutageError(said, "wait for the cluster")
    if cause.message.startswith(_HIDDEN):
        return OutageError("a commit of SPYT's has failed, and its error is hidden", "wait for it")
    return None
