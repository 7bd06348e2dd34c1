"""A function that a query of Spark calls back, and what py4j keeps of it after the query's end.

py4j keeps the function until Java has collected the query. The function of a query refers to the
query, and Java keeps what Python refers to: so neither would ever go. It also keeps the connection
of the query's thread, and a thread of Python's at its other end, until the process ends (py4j,
PythonClient.giveBackConnection and ClientServerConnection.wait_for_commands).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from py4j.java_gateway import JavaObject

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

Function = Callable[["DataFrame", int], None]
"""What foreachBatch() takes."""


class Callback:
    """Calls a function with each micro-batch of one query."""

    def __init__(self, spark: SparkSession, function: Function) -> None:
        self._gateway: Any = spark.sparkContext._gateway
        self._function = function
        self._connection: Any = None

    def __call__(self, rows: DataFrame, number: int) -> None:
        if self._connection is None:  # this runs in the query's thread, in Java too
            self._connection = self._client().getPerThreadConnection()
        self._function(rows, number)

    def forget(self, query: StreamingQuery) -> None:
        """Let py4j forget the function and its connection, unless the query still runs.

        Java would call a function again whose connection breaks.
        """
        if query.isActive:
            return
        pool = self._gateway.gateway_property.pool
        for name, proxy in [*pool.dict.items()]:
            if getattr(proxy, "func", None) is self:  # pyspark, ForeachBatchFunction
                del pool[name]
        if self._connection is not None:
            self._connection.shutdown()
            self._client().connectionStopped(self._connection)
            self._connection = None

    def _client(self) -> Any:
        """Return Java's side of the connections to Python, as PySpark finds it."""
        return JavaObject("GATEWAY_SERVER", self._gateway._gateway_client).getCallbackClient()
