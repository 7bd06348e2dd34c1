"""SPYT: its sink, the transaction that it opens for a batch, and its client of the cluster."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ..settings.job_settings import Settings, token
from .java import PYTHON_UTILS, Java, jvm_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


POSITION: Mapping[str, str] = {
    "tablet_index": "__spyt_streaming_src_tablet_index",
    "row_index": "__spyt_streaming_src_row_index",
}
"""Name of a position column -> SPYT's own in the rows of a source (StreamingUtils)."""
_CONTEXT = "tech.ytsaurus.spyt.streaming.YtStreamingTransactionContext"
"""The transaction that SPYT has opened for the batch of this thread, and its value there."""
_IN_CONTEXT = "tech.ytsaurus.spyt.streaming.StreamingTxContext"
_SINK = "tech.ytsaurus.spyt.streaming.YtStreamingSink"
_RANGE = "tech.ytsaurus.spyt.streaming.YtQueueRange"
"""A partition of SPYT's RDD: the tablet, the first row, and the row after the last one."""
_RANGE_TEXT = re.compile(r"YtQueueRange\((\d+),(\d+),(\d+)\)")
_TIMEOUT_SECONDS = 300
"""The timeout of one request."""


def is_patched(spark: SparkSession, *, is_before_4_1: bool) -> bool:
    """Return whether SPYT's Java agent has rewritten Spark's micro-batch execution.

    The agent renames the original ``runBatch`` (SPYT, MicroBatchExecutionDecorators); without it
    the session works and ``spark.yt.streaming.transactional`` silently does nothing.
    """
    folder = "streaming" if is_before_4_1 else "streaming.runtime"
    name = f"org.apache.spark.sql.execution.{folder}.MicroBatchExecution"
    methods = jvm_of(spark).java.lang.Class.forName(name).getDeclaredMethods()
    return "__runBatch" in {method.getName() for method in methods}


def sink(spark: SparkSession, java: Java, parameters: Mapping[str, str]) -> Any:
    """Return a new sink of SPYT's, which writes into the table ``path`` of the parameters."""
    scala = java[f"{PYTHON_UTILS}.toScalaMap"](parameters)
    return java[_SINK](spark._jsparkSession.sqlContext(), parameters["path"], scala)


def add_batch(into: Any, number: int, rows: DataFrame) -> None:
    """Write the rows into a sink, in the transaction of this thread if there is one."""
    into.addBatch(number, rows._jdf)


def opened_transaction(java: Java) -> tuple[str, str | None] | None:
    """Return id and proxy of the transaction that SPYT has opened for the batch of this thread."""
    context = java[f"{_CONTEXT}.get"]()
    if context.isEmpty():
        return None
    proxy = context.get().stickyAddress()
    return str(context.get().txId()), str(proxy.get()) if proxy.isDefined() else None


@contextmanager
def inside(java: Java, transaction_id: str, proxy: str) -> Iterator[None]:
    """Let SPYT's sinks in this thread write into that transaction."""
    java[f"{_CONTEXT}.setContext"](java[_IN_CONTEXT](transaction_id, java.option(proxy)))
    try:
        yield
    finally:
        java[f"{_CONTEXT}.clearTransactionId"]()


def verify_spyt(java: Java) -> None:
    """Raise TypeError or Py4JError unless transaction and ranges are as this module takes them."""
    opened_transaction(java)
    if ranges(f"[{java[_RANGE](2, 5, 8).toString()}]") != {2: (5, 8)}:
        raise TypeError("its ranges of rows have another text")


def ranges(text: str) -> dict[int, tuple[int, int]]:
    """Take the text of SPYT's ranges apart: it is one call for all of them."""
    found = (map(int, numbers) for numbers in _RANGE_TEXT.findall(text))
    return {tablet: (first, end) for tablet, first, end in found}


def rpc_client(java: Java, settings: Settings, proxy: str | None) -> Any:
    """Return SPYT's client of the cluster, of only one proxy if ``proxy`` names it."""
    package = "tech.ytsaurus.spyt.wrapper.client"
    made = java[f"{package}.YtClientConfigurationConverter.ytClientConfiguration"]
    configuration = made(_hadoop_conf(java, settings))
    if proxy is not None:
        configuration = configuration.copy(
            configuration.proxy(),
            configuration.user(),
            configuration.token(),
            configuration.timeout(),
            configuration.proxyRole(),
            configuration.extendedFileTimeout(),
            configuration.proxyNetworkName(),
            configuration.useCommonProxies(),
            java.option(proxy),
            configuration.retry(),
        )
    return java[f"{package}.YtClientProvider.ytRpcClient"](configuration, java.option(None)).yt()


def attached(java: Java, client: Any, transaction_id: str) -> Any:
    """Return a transaction that SPYT has opened and will commit, without pings of our own."""
    attach = java["tech.ytsaurus.spyt.wrapper.YtWrapper.attachTransaction"]
    return attach(transaction_id, False, java.option(None), client)


def _hadoop_conf(java: Java, settings: Settings) -> Any:
    """Return the cluster and the token, as SPYT's own clients are told of them.

    So SPYT names the user as it does everywhere. ``YtClientConfiguration.default`` wants YT_TOKEN
    or a file with it; a job on a cluster has only YT_SECURE_VAULT_YT_TOKEN. Not settings of
    Spark's: those are shown in its UI.
    """
    conf = java["org.apache.hadoop.conf.Configuration"](False)
    conf.set("yt.proxy", settings.proxy)
    conf.set("yt.token", token(settings))
    conf.set("yt.timeout", f"{_TIMEOUT_SECONDS}s")
    if settings.proxy_role is not None:
        conf.set("yt.proxyRole", settings.proxy_role)
    return conf
