"""SPYT's own sink: each output of a micro-batch goes through it, in the batch's transaction.

Its two classes are not documented; ``verify_sink`` says when another SPYT has others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from spyt.version import __version__ as SPYT_VERSION

from .. import confs
from ..cluster import first_line
from ..errors import JobError
from ..job import Connection
from ..plan import observed_name
from ..recovery.snapshot import read_head
from ..tablets import Java, Tablets
from .audit import observed
from .outputs import Frames
from .reading import is_readable

#: The transaction that SPYT has opened for the batch of this thread.
CONTEXT = "tech.ytsaurus.spyt.streaming.YtStreamingTransactionContext.get"
_SINK = "tech.ytsaurus.spyt.streaming.YtStreamingSink"


def verify_sink(spark: SparkSession, connection: Connection) -> None:
    """Raise JobError unless SPYT's sink and its transaction context are as this module calls them.

    Neither is documented, so another SPYT may not have them.
    """
    tablets = Tablets(spark._jvm, connection.settings)
    try:
        _sink(spark, connection, tablets.java, "output")
        tablets.java[CONTEXT]().isEmpty()
        if not is_readable(tablets.java):
            raise TypeError("its ranges of rows have another text")
        with tablets.transaction() as transaction:
            read_head(connection.settings.ledger, transaction.select)
    except (Py4JError, TypeError) as error:
        raise JobError(
            f"SPYT {SPYT_VERSION} has another sink than this runtime calls: {first_line(error)}",
            "use the SPYT that pyproject.toml pins, or a version of this template made for yours",
        ) from error


def _sink(spark: SparkSession, connection: Connection, java: Java, output: str) -> Any:
    path = connection.settings.outputs[output]
    parameters: Mapping[str, str] = {
        "path": path,
        **confs.filled(iter(confs.SINK), connection.values),
    }
    scala = java["org.apache.spark.api.python.PythonUtils.toScalaMap"](parameters)
    return java[_SINK](spark._jsparkSession.sqlContext(), path, scala)


def write_outputs(
    frames: Frames, connection: Connection, java: Java, number: int
) -> dict[str, int]:
    """Write the rows of each dynamic output through SPYT's sink, one output after the other.

    They go into the batch's transaction if it has one. Returns the number of rows by output. A sink
    for each call: one that is kept skips batch numbers up to its last without an error, and numbers
    begin at 0 again with a new checkpoint (YtStreamingSink.addBatch).
    """
    job = connection.job
    return {
        name: _count(write(frames[name], name, connection, java, number), name)
        for name in job.outputs
        if name in frames and name not in job.static
    }


def write(rows: DataFrame, name: str, connection: Connection, java: Java, number: int) -> Any:
    """Write the rows of one dynamic output; return their execution, which has counted them."""
    fenced = counted(connection.guarantee.fenced(rows), name)
    _sink(rows.sparkSession, connection, java, name).addBatch(number, fenced._jdf)
    return fenced._jdf.queryExecution()


def write_streamed(
    rows: DataFrame, execution: Any, connection: Connection, java: Java, number: int
) -> dict[str, int]:
    """Write the rows of the one output, which ``execution`` fences and counts.

    Returns the number of rows by output.
    """
    _sink(rows.sparkSession, connection, java, "output").addBatch(number, rows._jdf)
    return {"output": _count(execution, "output")}


def of_the_query(rows: DataFrame, execution: Any, java: Java) -> DataFrame:
    """Return the rows of a batch as a writer of SPYT's would get them: by the query's own plan.

    ``rows`` have a plan of their own around it (Spark, ForeachBatchSink).
    """
    frame = java[rows._jdf.getClass().getName()](execution, rows._jdf.encoder())
    return DataFrame(frame, rows.sparkSession)


def counted(rows: DataFrame, output: str) -> DataFrame:
    """Return the rows of ``output``, counted as they are written."""
    return rows.observe(observed_name(output), F.expr("count(1) as rows"))


def _count(execution: Any, output: str) -> int:
    found = dict(observed(execution))
    name = observed_name(output)
    return int(found[name].get(0)) if name in found else 0
