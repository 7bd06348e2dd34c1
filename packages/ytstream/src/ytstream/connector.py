"""What this runtime takes from inside Spark and SPYT: the one place to read when they change.

None of it is documented. `check` calls the parts of SPYT (query/sink.py, verify_sink), tests run
all of it on each Spark version. query/jvm.py knows how PySpark starts a JVM, tablets.py speaks to
the Java client of YTsaurus, which has a public interface. This module loads no Spark.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, reduce
from itertools import count
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from yt import yson

from .columns import Column
from .config import Settings, token
from .schema import table_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

#: Name of a position column -> SPYT's own in the rows of a source (StreamingUtils).
POSITION: Mapping[str, str] = {
    "tablet_index": "__spyt_streaming_src_tablet_index",
    "row_index": "__spyt_streaming_src_row_index",
}

#: The transaction that SPYT has opened for the batch of this thread, and its value there.
_CONTEXT = "tech.ytsaurus.spyt.streaming.YtStreamingTransactionContext"
_IN_CONTEXT = "tech.ytsaurus.spyt.streaming.StreamingTxContext"
_SINK = "tech.ytsaurus.spyt.streaming.YtStreamingSink"
#: A partition of SPYT's RDD: the tablet, the first row, and the row after the last one.
_RANGE = "tech.ytsaurus.spyt.streaming.YtQueueRange"
_RANGE_TEXT = re.compile(r"YtQueueRange\((\d+),(\d+),(\d+)\)")
#: Makes Spark's rows of the rowsets of the Java client.
_DESERIALIZER = "tech.ytsaurus.spyt.serializers.UnversionedRowsetDeserializer"
_ROWS = "tech.ytsaurus.client.rows"
_PYTHON_UTILS = "org.apache.spark.api.python.PythonUtils"

#: Leaves of a batch's plan: the field that says whether the rows are of a stream, and how many
#: arguments of the class are no fields (Spark, LogicalRDD: the session, and two options).
_LEAVES: Mapping[str, tuple[int, int]] = {"LogicalRDD": (4, 3), "LocalRelation": (2, 0)}

#: In the metadata of such columns (Spark, EventTimeWatermark.delayKey).
_WATERMARK = "spark.watermarkDelayMs"

#: The timeout of one request.
_TIMEOUT_SECONDS = 300


@dataclass
class Java:
    """Names in the JVM, each looked up once: py4j asks the JVM for every part of a name."""

    jvm: Any
    _found: dict[str, Any] = field(default_factory=dict)
    _schemas: dict[Sequence[Column], Any] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Any:
        """Return a class, or a static method of one."""
        if name not in self._found:
            self._found[name] = reduce(getattr, name.split("."), self.jvm)
        return self._found[name]

    def node(self, value: object) -> Any:
        """Return a Python value as a YSON tree of Java's."""
        text = yson.dumps(value, yson_format="text").decode("latin-1")
        return self["tech.ytsaurus.ysontree.YTreeTextSerializer.deserialize"](text)

    def value(self, node: Any) -> Any:
        """Return a YSON tree of Java's, or a list of them, as a Python value."""
        tree = self["tech.ytsaurus.ysontree.YTree.node"](node)
        text = self["tech.ytsaurus.ysontree.YTreeTextSerializer.serialize"](tree)
        return yson.yson_to_json(yson.loads(text.encode()))

    def schema(self, columns: Sequence[Column]) -> Any:
        """Return the schema of a table with these columns."""
        if columns not in self._schemas:
            made = self["tech.ytsaurus.core.tables.TableSchema.fromYTree"]
            self._schemas[columns] = made(self.node(table_schema(columns).to_yson_type()))
        return self._schemas[columns]

    def option(self, value: object) -> Any:
        """Return Scala's Option of a value; of None the empty one."""
        return self["scala.Option.apply"](value)


def _each(sequence: Any) -> Iterator[Any]:
    """Yield the items of a Scala sequence."""
    return (sequence.apply(index) for index in range(sequence.size()))


def _class_name(node: Any) -> str:
    """Return the name of the class of an object in the JVM."""
    return str(node.getClass().getSimpleName())


# -- Spark: plans ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Expression:
    """An expression of an operator."""

    jvm: Any

    @cached_property
    def name(self) -> str:
        """The name of the expression's class."""
        return _class_name(self.jvm)

    @property
    def function(self) -> str:
        """The name that a user knows."""
        return str(self.jvm.prettyName())

    @cached_property
    def children(self) -> list[Expression]:
        """The expressions that this one takes."""
        return [Expression(child) for child in _each(self.jvm.children())]

    @property
    def column(self) -> int | None:
        """The id of the column that this is; None for one that is computed."""
        return int(self.jvm.exprId().id()) if self.name == "AttributeReference" else None

    @property
    def has_watermark(self) -> bool:
        """Whether it is a column of the event time that a watermark is of, or of its window."""
        return self.column is not None and bool(self.jvm.metadata().contains(_WATERMARK))

    @property
    def literal(self) -> str:
        """The value of a literal, as text."""
        return str(self.jvm.value())

    @property
    def is_deterministic(self) -> bool:
        """Whether Spark takes its value for the same each time; it does so of a clock."""
        return bool(self.jvm.deterministic())

    def contains(self, pattern: Any) -> bool:
        """Return whether a pattern is in it, see clock_pattern()."""
        return bool(self.jvm.containsPattern(pattern))


@dataclass(frozen=True)
class Node:
    """An operator of a plan. Below a reference to a CTE is the CTE, once for each reference."""

    jvm: Any
    #: The plans of the CTEs that are defined above.
    ctes: Mapping[int, Any] = field(default_factory=dict)

    @cached_property
    def name(self) -> str:
        """The name of the operator's class."""
        return _class_name(self.jvm)

    @cached_property
    def children(self) -> tuple[Node, ...]:
        """The operators whose rows this one takes. An unused CTE is left out."""
        if self.name == "WithCTE":
            defined = {cte.id(): cte.child() for cte in _each(self.jvm.cteDefs())}
            return (Node(self.jvm.plan(), {**self.ctes, **defined}),)
        if self.name == "CTERelationRef":
            return (Node(self.ctes[self.jvm.cteId()], self.ctes),)
        return tuple(Node(child, self.ctes) for child in _each(self.jvm.children()))

    @cached_property
    def columns(self) -> list[tuple[int, str]]:
        """The columns that come out, in order: the id of the expression, and the name."""
        return [(column.exprId().id(), str(column.name())) for column in _each(self.jvm.output())]

    @property
    def ids(self) -> list[int]:
        """The ids of the columns that come out, in order."""
        return [number for number, _ in self.columns]

    @property
    def is_streaming(self) -> bool:
        """Whether rows of a stream are among its rows."""
        return bool(self.jvm.isStreaming())

    @property
    def expressions(self) -> list[Expression]:
        """The expressions of the operator itself, in order."""
        return [Expression(expression) for expression in _each(self.jvm.expressions())]

    @property
    def groups(self) -> list[Expression]:
        """The expressions that an aggregation groups by; SELECT DISTINCT does by all columns."""
        is_distinct = self.name == "Distinct"
        groups = self.jvm.output() if is_distinct else self.jvm.groupingExpressions()
        return [Expression(group) for group in _each(groups)]

    @property
    def subqueries(self) -> list[Node]:
        """The plans of the subqueries in its expressions."""
        return [Node(plan, self.ctes) for plan in _each(self.jvm.subqueries())]

    @property
    def join_type(self) -> str:
        """The type of a join."""
        return str(self.jvm.joinType().toString())

    @property
    def observation(self) -> str:
        """The name under which it observes its rows; empty for an operator that does not."""
        return str(self.jvm.name()) if self.name == "CollectMetrics" else ""

    @property
    def state_function(self) -> str | None:
        """The name of the function of applyInPandasWithState(); None for another operator."""
        if self.name != "FlatMapGroupsInPandasWithState":
            return None
        return str(self.jvm.functionExpr().name())

    def computed(self, number: int) -> Expression | None:
        """Return what a Project or Aggregate computes a column from; None if it passes it on."""
        is_project = self.name == "Project"
        listed = self.jvm.projectList() if is_project else self.jvm.aggregateExpressions()
        for expression in _each(listed):
            if expression.exprId().id() == number and _class_name(expression) == "Alias":
                value = expression.child()
                # A view in SQL casts each column to the type that it has.
                while _class_name(value) == "Cast" and value.dataType() == value.child().dataType():
                    value = value.child()
                return Expression(value)
        return None

    def walk(self) -> Iterator[Node]:
        """Yield this operator and all below it, those above others first."""
        pending = [self]
        while pending:
            yield (node := pending.pop())
            pending += reversed(node.children)


def analysed(rows: DataFrame) -> Node:
    """Return the topmost operator of the analysed plan of a frame."""
    return analysed_by(execution_of(rows))


def analysed_by(execution: Any) -> Node:
    """Return the topmost operator of the analysed plan of an execution."""
    return Node(execution.analyzed())


def metric(execution: Any, name: str) -> int:
    """Return the sum of a metric over the operators of a plan that was executed; 0 without any."""
    found = (node.jvm.metrics().get(name) for node in Node(execution.executedPlan()).walk())
    return sum(int(value.get().value()) for value in found if value.isDefined())


def late_watermark(execution: Any, name: str) -> int | None:
    """Return the watermark, in milliseconds, of an operator whose metric ``name`` is not 0.

    It is that of the operator nearest to the sources; None where there is no watermark.
    """
    marks = [
        node.jvm.eventTimeWatermarkForLateEvents()
        for node in Node(execution.executedPlan()).walk()
        if (found := node.jvm.metrics().get(name)).isDefined() and int(found.get().value())
    ]
    return int(marks[-1].get()) if marks and marks[-1].isDefined() else None


# -- Spark: rows -----------------------------------------------------------------------------------


def jvm_of(spark: SparkSession) -> Any:
    """Return the session's JVM."""
    return spark._jvm


def execution_of(rows: DataFrame) -> Any:
    """Return Spark's execution of a frame (QueryExecution)."""
    return rows._jdf.queryExecution()


def clock_pattern(spark: SparkSession) -> Any:
    """Return the pattern of expressions with a clock in them."""
    return jvm_of(spark).org.apache.spark.sql.catalyst.trees.TreePattern.CURRENT_LIKE()


def verify_stream(rows: DataFrame, output_mode: str) -> None:
    """Raise Spark's AnalysisException for a plan that it refuses as a stream."""
    sql = jvm_of(rows.sparkSession).org.apache.spark.sql
    mode = getattr(sql.streaming.OutputMode, output_mode.title())()
    checker = sql.catalyst.analysis.UnsupportedOperationChecker
    checker.checkForStreaming(analysed(rows).jvm, mode)


def start_unverified(writer: DataStreamWriter, spark: SparkSession) -> StreamingQuery:
    """Start a query whose plan Spark would refuse as a stream (Spark, ResolveWriteToStream).

    What runs in its batches is verified as ever: they have a copy of the session.
    """
    key = "spark.sql.streaming.unsupportedOperationCheck"
    spark.conf.set(key, "false")
    try:
        query = writer.start()
    finally:
        spark.conf.unset(key)
    query._jsq.streamingQuery().sparkSessionForStream().conf().unset(key)
    return query


def free(checkpointed: DataFrame) -> None:
    """Remove the blocks of a local checkpoint.

    Nothing else does before Java's collector runs (Spark, ContextCleaner).
    """
    analysed(checkpointed).jvm.rdd().unpersist(False)


def of_execution(rows: DataFrame, execution: Any, java: Java) -> DataFrame:
    """Return ``rows`` as an execution of the same rows gives them."""
    frame = java[rows._jdf.getClass().getName()](execution, rows._jdf.encoder())
    return type(rows)(frame, rows.sparkSession)


def of_no_stream(
    rows: DataFrame, node: Node, java: Java, others: Mapping[int, Any] = MappingProxyType({})
) -> DataFrame:
    """Return what ``node``, of the plan of the batch ``rows``, gives when it runs again.

    ``others`` are RDDs in the place of what some leaves read: number of the leaf -> RDD.
    """
    session = rows._jdf.sparkSession()
    again = _of_no_stream(node.jvm, session, java, others, count())
    frame = java[f"{rows._jdf.getClass().getName()}.ofRows"](session, again)
    return type(rows)(frame, rows.sparkSession)


def _of_no_stream(
    plan: Any, session: Any, java: Java, others: Mapping[int, Any], numbers: Iterator[int]
) -> Any:
    """Return the plan whose leaves are of no stream: Spark runs no other outside of a query."""
    if (name := _class_name(plan)) in _LEAVES:
        place, more = _LEAVES[name]
        fields = [plan.productElement(index) for index in range(plan.productArity())]
        fields[place] = False
        number = next(numbers)
        if name == "LogicalRDD":  # the other one has no rows
            fields[1] = others.get(number, fields[1])
        arguments = [session, java.option(None), java.option(None)][:more]
        return java[plan.getClass().getName()](*fields, *arguments)
    children = [
        _of_no_stream(child, session, java, others, numbers) for child in _each(plan.children())
    ]
    return plan.withNewChildren(java[f"{_PYTHON_UTILS}.toSeq"](children))


def leaves(node: Node) -> list[tuple[Node, list[str]]]:
    """Return what reads the rows of a plan, in order, and the columns it reads of its queue.

    Columns have the names that they have there (SPYT, MetadataFields).
    """
    found, position = [], {inner: f"${name}" for name, inner in POSITION.items()}
    for leaf in _each(node.jvm.collectLeaves()):
        fields = json.loads(leaf.schema().json())["fields"]
        names = (field["metadata"].get("original_name", field["name"]) for field in fields)
        found.append((Node(leaf), [position.get(name, name) for name in names]))
    return found


def selected_rdd(rows: DataFrame, leaf: Node, rowsets: Sequence[Any], java: Java) -> Any:
    """Return selected rows of a queue as SPYT makes Spark's rows of those it has pulled.

    ``rowsets`` are those of the Java client, with all columns that ``leaf`` reads (YtQueueRDD).
    """
    context, tag = rows._jdf.sparkSession().sparkContext(), java["scala.reflect.ClassTag.AnyRef"]()
    if not rowsets:
        return context.emptyRDD(tag)
    found = java["java.util.ArrayList"]()
    for rowset in rowsets:
        found.addAll(rowset.getRows())
    joined = java[f"{_ROWS}.UnversionedRowset"](rowsets[0].getSchema(), found)
    deserializer = java[_DESERIALIZER](leaf.jvm.schema())
    made = deserializer.deserializeQueueRowsetWithServiceColumns(
        java[f"{_ROWS}.QueueRowset"](joined, 0)
    )
    return context.parallelize(made.toList(), 1, tag)


def observed(execution: Any) -> Iterator[tuple[str, Any]]:
    """Yield the observations of one execution: name, and a JVM row of the figures."""
    metrics = execution.observedMetrics()
    names = metrics.keys().iterator()
    while names.hasNext():
        name = str(names.next())
        yield name, metrics.apply(name)


def state_verifier() -> Callable[[Any], None]:
    """Return a function that raises Spark's error for a state that does not fit its schema.

    Python workers get a function of a function whole, so it needs nothing of this runtime there.
    """
    verifiers: list[Callable[[Any], None]] = []  # made once for each task of Spark's

    def verify(state: Any) -> None:
        from pyspark.sql.types import _make_type_verifier

        if not verifiers:
            verifiers.append(_make_type_verifier(state._value_schema))
        verifiers[0](state.get)

    return verify


# -- Spark: a running query ------------------------------------------------------------------------


def planned_by(query: StreamingQuery, number: int) -> tuple[Any, list[dict[int, int]]]:
    """Return a query's execution of its batch, and where the partitions end after it.

    The ends are those of Spark's offset log; see by_queue(). The log keeps its newest entries in
    memory (Spark, HDFSMetadataLog), so this sends no request.
    """
    stream = query._jsq.streamingQuery()
    ends = []
    for offset in _each(stream.offsetLog().get(number).get().offsets()):
        # Empty for a queue that has not had a row yet.
        partitions = json.loads(offset.get().json())["partitions"] if offset.isDefined() else {}
        ends.append({int(partition): last + 1 for partition, last in partitions.items()})
    return stream.lastExecution(), ends


def progress_since(query: StreamingQuery, time: str) -> list[dict[str, Any]]:
    """Return what Spark tells of a query's triggers after that of ``time``, the oldest first.

    By the order of the reports, since the clock may be set back. Not by ``recentProgress``, which
    makes Python objects of the last hundred in each call.
    """
    told = query._jsq.recentProgress()
    found: list[dict[str, Any]] = []
    for index in reversed(range(len(told))):
        if told[index].timestamp() == time:
            break
        found.insert(0, json.loads(told[index].json()))
    return found


def ranges_read(execution: Any) -> list[dict[int, tuple[int, int]]]:
    """Return the rows that a batch reads, in the order of Spark's offset log.

    By tablet: the first row, and the row after the last one. A queue without new rows is an empty
    relation there (MicroBatchExecution.runBatch). A reference to a CTE is no place of its own: the
    CTE is in the plan as well, once.
    """
    leaves = [(leaf, _class_name(leaf)) for leaf in _each(execution.logical().collectLeaves())]
    return [
        _ranges(str(leaf.rdd().toJavaRDD().partitions().toString())) if name == "LogicalRDD" else {}
        for leaf, name in leaves
        if name != "CTERelationRef" and leaf.isStreaming()
    ]


def _ranges(text: str) -> dict[int, tuple[int, int]]:
    """Take the text of SPYT's ranges apart: it is one call for all of them."""
    found = (map(int, numbers) for numbers in _RANGE_TEXT.findall(text))
    return {tablet: (first, end) for tablet, first, end in found}


# -- SPYT ------------------------------------------------------------------------------------------


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
    scala = java[f"{_PYTHON_UTILS}.toScalaMap"](parameters)
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
    if _ranges(f"[{java[_RANGE](2, 5, 8).toString()}]") != {2: (5, 8)}:
        raise TypeError("its ranges of rows have another text")


def rpc_client(java: Java, settings: Settings, proxy: str | None) -> Any:
    """Return SPYT's client of the cluster, of one proxy alone if ``proxy`` names it."""
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
    or a file with it; a job on a cluster has YT_SECURE_VAULT_YT_TOKEN alone. Not settings of
    Spark's: those are shown in its UI.
    """
    conf = java["org.apache.hadoop.conf.Configuration"](False)
    conf.set("yt.proxy", settings.proxy)
    conf.set("yt.token", token(settings))
    conf.set("yt.timeout", f"{_TIMEOUT_SECONDS}s")
    if settings.proxy_role is not None:
        conf.set("yt.proxyRole", settings.proxy_role)
    return conf
