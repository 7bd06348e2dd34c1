"""Reads the analysed plan of transform(): one row out of one row, the same in every replay.

An allow-list: an operator that is not known to be 1:1 is refused. Spark cannot see whether a Python
UDF reads a clock or a service; only a reader of the code can.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ..config import Settings
from ..errors import JobError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SOURCES = ("StreamingRelation", "StreamingRelationV2", "StreamingExecutionRelation")
_ONE_TO_ONE = (
    "Project Filter SubqueryAlias Union Repartition RepartitionByExpression RebalancePartitions "
    "Sort EventTimeWatermark ResolvedHint UnresolvedHint CollectMetrics"
)
_ALLOWED = frozenset((*_SOURCES, *_ONE_TO_ONE.split()))
#: Operators that a user can justify, and the entry of `accept` that says so.
ACCEPTABLE = {"Join": "join:unique-key"}

_AGGREGATIONS = ("Aggregate", "Distinct", "Deduplicate", "DeduplicateWithinWatermark")
_REASONS = {
    **dict.fromkeys(_AGGREGATIONS, "makes one row of many"),
    **dict.fromkeys(("Sample", "GlobalLimit", "LocalLimit"), "chooses other rows in a replay"),
    "Generate": "explode and its like make many rows of one, which would share a key",
    "Join": "may make several rows of one; with a unique key on the other side, accept it",
    "Window": "looks at other rows of the batch, which may be cut differently",
}


def verify(rows: DataFrame, settings: Settings, key: Mapping[str, str | None]) -> None:
    """Raise JobError unless the plan is 1:1, deterministic, and carries the key through untouched.

    ``key`` maps each key column to the source's column it must be, None for a literal per queue.
    """
    plan = rows._jdf.queryExecution().analyzed()
    problems = list(_operators(plan, settings))
    problems += [f"{name} is not deterministic" for name in _nondeterministic(plan)]
    sources = [node for node in nodes(plan) if node_name(node) in _SOURCES]
    if len(sources) != len(settings.queues):
        problems.append(
            f"the plan reads {len(sources)} sources, the configuration names "
            f"{len(settings.queues)} queues: a queue united with itself, or left out"
        )
    outputs = {str(column.name()): column for column in _each(plan.output())}
    for column, source in key.items():
        if column not in outputs:
            problems.append(f"key column {column} is lost: select it as it came in")
        elif not _is_untouched(plan, outputs[column].exprId().id(), source):
            problems.append(f"key column {column} is computed or renamed: select it as it came in")
    if problems:
        raise JobError(
            "idempotent needs a pure 1:1 transformation:\n  "
            + "\n  ".join(dict.fromkeys(problems)),
            'change transform.py, or set guarantee="transactional" in job.py, which allows it',
        )


def _operators(plan: Any, settings: Settings) -> Iterator[str]:
    for name in map(node_name, nodes(plan)):
        if name in _ALLOWED or ACCEPTABLE.get(name) in settings.accept:
            continue
        accept = f'; or accept = ["{ACCEPTABLE[name]}"]' if name in ACCEPTABLE else ""
        yield f"{name}: {_REASONS.get(name, 'not known to be 1:1')}{accept}"


def _nondeterministic(plan: Any) -> Iterator[str]:
    """Yield the names of the innermost expressions that Spark marks as not deterministic."""
    pending = [expression for node in nodes(plan) for expression in _each(node.expressions())]
    while pending:
        expression = pending.pop()
        if not expression.deterministic():
            inner = [child for child in _each(expression.children()) if not child.deterministic()]
            pending += inner
            if not inner:
                yield str(expression.prettyName())


def _is_untouched(node: Any, wanted: int, source: str | None) -> bool:
    """Return whether the column with that expression id comes straight from the source's column."""
    name = node_name(node)
    if name in _SOURCES:
        ids = {column.exprId().id(): str(column.name()) for column in _each(node.output())}
        return source is not None and ids.get(wanted) == source
    if name == "Project":
        for expression in _each(node.projectList()):
            if expression.exprId().id() == wanted and node_name(expression) == "Alias":
                child = expression.child()
                if node_name(child) == "Literal":
                    return source is None
                if node_name(child) != "AttributeReference":
                    return False
                wanted = child.exprId().id()
                break
    children = list(_each(node.children()))
    if name == "Union":
        position = [column.exprId().id() for column in _each(node.output())].index(wanted)
        return all(
            _is_untouched(child, child.output().apply(position).exprId().id(), source)
            for child in children
        )
    return any(_is_untouched(child, wanted, source) for child in children)


def nodes(plan: Any) -> Iterator[Any]:
    """Yield the operators of a logical plan, the topmost first."""
    yield plan
    for child in _each(plan.children()):
        yield from nodes(child)


def _each(sequence: Any) -> Iterator[Any]:
    return (sequence.apply(index) for index in range(sequence.size()))


def node_name(node: Any) -> str:
    """Return the name of an operator's class."""
    return str(node.getClass().getSimpleName())
