"""Reads the analysed plan of transform(): one row out of one row, the same in every replay.

An allow-list: an operator that is not known to be 1:1 is rejected. Spark cannot see whether a
Python UDF reads a clock or a service. Only a reader of the code can.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from ..connector.pyspark_internals import clock_pattern, has_clock_texts
from ..connector.spark_plan import Expression, Node, analysed
from ..connector.transform_plan import SOURCES, queues
from ..errors import JobError
from ..errors.error_codes import ErrorCode
from ..settings.job_settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ONE_TO_ONE = (
    "Project", "Filter", "SubqueryAlias", "View", "WithCTE", "CTERelationRef", "PipeOperator",
    "Union", "Repartition", "RepartitionByExpression", "RebalancePartitions", "Sort",
    "EventTimeWatermark", "ResolvedHint", "UnresolvedHint", "CollectMetrics",
)  # fmt: skip
_FRAMES = ("LogicalRDD", "LocalRelation")
"""What a frame of finished rows is to the plan of an output that is made of it."""
_ALLOWED = frozenset(SOURCES + _ONE_TO_ONE)
_JOINS: Mapping[tuple[bool, ...], Sequence[str]] = {
    (True, False): ("Inner", "Cross", "LeftOuter", "LeftSemi", "LeftAnti"),
    (False, True): ("Inner", "Cross", "RightOuter"),
}
"""Whether the stream stands left, right -> joins that make no row without one of the stream's."""
ACCEPTABLE = {"Join": "join:unique-key", "Subquery": "subquery:constant"}
"""What a user can justify, and the entry of `accept` that says so."""

_AGGREGATIONS = ("Aggregate", "Distinct", "Deduplicate", "DeduplicateWithinWatermark")
_REASONS = {
    **dict.fromkeys(_AGGREGATIONS, "makes one row of many"),
    **dict.fromkeys(("Sample", "GlobalLimit", "LocalLimit"), "chooses other rows in a replay"),
    "Generate": "explode and its like make many rows of one, which would share a key",
    "Join": "may make several rows of one, or others in a replay; with a unique key on the other "
    "side, whose rows do not change, accept it",
    "Join of streams": "a row may meet several rows, and others in a replay",
    "Outer join": "makes rows of the other side, which have no position in a queue",
    "LateralJoin": "may make several rows of one, which would share a key",
    "Subquery": "IN, EXISTS or scalar, its table may change between a write and its replay; if it "
    "does not, accept it",
    "Subquery over a stream": "has other rows in a replay",
    "Window": "uses other rows of the batch, which may be cut differently",
}


def verify(rows: DataFrame, settings: Settings, key: Mapping[str, str | None]) -> None:
    """Raise JobError unless the plan is 1:1, deterministic, and carries the key through untouched.

    ``key`` maps each key column to the source's column it must be, None for the queue's path.
    """
    plan = analysed(rows)
    kinds = _kinds(plan, lambda node: node.is_streaming)
    problems = [*_operators(kinds, settings), *_functions(rows, plan), *_sources(plan, settings)]
    _require([*problems, *_lost(plan, key)])


def verify_output(rows: DataFrame, settings: Settings, key: Sequence[str]) -> None:
    """Raise JobError unless an output of outputs() is 1:1 with the finished rows, its key theirs.

    The plan begins with the finished rows, so ``verify`` has seen what was before them.
    """
    plan = analysed(rows)
    frames = [node for node in plan.walk() if node.name in _FRAMES]
    kinds = (kind for kind in _kinds(plan, _has_frame) if kind not in _FRAMES)
    problems = [*_operators(kinds, settings), *_functions(rows, plan)]
    if len(frames) != 1:
        problems.append("outputs() uses the rows more than once: several would share a key")
    _require([*problems, *_lost(plan, {column: column for column in key})])


def _has_frame(node: Node) -> bool:
    return any(below.name in _FRAMES for below in node.walk())


def _require(problems: Sequence[str]) -> None:
    if problems:
        raise JobError(
            "idempotent needs a pure 1:1 transformation:\n  "
            + "\n  ".join(dict.fromkeys(problems)),
            'change transform.py, or set guarantee="transactional" in job.py, which allows it',
            code=ErrorCode.PLAN,
        )


def _lost(plan: Node, key: Mapping[str, str | None]) -> Iterator[str]:
    outputs = {name: number for number, name in plan.columns}
    for column, source in key.items():
        if column not in outputs:
            yield f"key column {column} is lost: select it as it came in"
        elif not _is_untouched(plan, outputs[column], source):
            yield f"key column {column} is computed or renamed: select it as it came in"


def _operators(kinds: Iterator[str], settings: Settings) -> Iterator[str]:
    for name in kinds:
        if name in _ALLOWED or ACCEPTABLE.get(name) in settings.accept:
            continue
        accept = f'; or accept = ["{ACCEPTABLE[name]}"]' if name in ACCEPTABLE else ""
        yield f"{name}: {_REASONS.get(name, 'not known to be 1:1')}{accept}"


def _kinds(plan: Node, is_ours: Callable[[Node], bool]) -> Iterator[str]:
    """Yield the kinds of operators and subqueries that a row of a queue meets on its way.

    ``is_ours`` tells whether such rows come out of an operator. The other side of a join is not on
    that way: the user who accepts the join answers for it.
    """
    pending = [plan]
    while pending:
        node = pending.pop()
        for subquery in node.subqueries:
            yield "Subquery over a stream" if subquery.is_streaming else "Subquery"
        if node.name == "Join":
            sides = tuple(map(is_ours, node.children))
            known = node.join_type in _JOINS.get(sides, ())
            yield "Join of streams" if all(sides) else "Join" if known else "Outer join"
            pending += [child for child in node.children if is_ours(child)]
        else:
            yield node.name
            pending += node.children


def _functions(rows: DataFrame, plan: Node) -> Iterator[str]:
    """Yield the innermost functions with other values in a replay, of a join's other side too."""
    clock = clock_pattern(rows.sparkSession)

    def differs(expression: Expression) -> bool:
        # Spark marks a clock as deterministic: it is fixed within a query.
        return not expression.is_deterministic or expression.contains(clock)

    pending = [expression for node in plan.walk() for expression in node.expressions]
    while pending:
        if differs(expression := pending.pop()):
            inner = [child for child in expression.children if differs(child)]
            pending += inner
            if not inner:
                yield f"{expression.function} is not deterministic: a replay has other values"
    if has_clock_texts(rows):
        yield (
            "a text such as 'now' is cast to a time: a replay has another one (for 'epoch' write "
            "timestamp_seconds(0))"
        )


def _sources(plan: Node, settings: Settings) -> Iterator[str]:
    read = Counter(queues(plan))
    for queue in settings.queues:
        if not read[queue]:
            yield f"queue {queue} is not read"
        elif read[queue] > 1:
            yield (
                f"queue {queue} is read {read[queue]} times, as by rows united with itself or a "
                "CTE that is used twice: several rows of one would share a key"
            )
    if read.keys() - set(settings.queues):
        yield "a stream is read that is not one of the queues in the configuration"


def _is_untouched(node: Node, wanted: int, source: str | None) -> bool:
    """Return whether the column with that expression id comes straight from the source's column.

    ``source`` None: it must be the literal path of the one queue that is read below the literal.
    """
    while node.name not in SOURCES and node.name not in _FRAMES:
        if node.name in ("Union", "CTERelationRef"):  # only these match columns by their position
            position = node.ids.index(wanted)
            return all(_is_untouched(child, child.ids[position], source) for child in node.children)
        if node.name == "Project" and (value := node.computed(wanted)) is not None:
            if value.name == "Literal":
                return source is None and queues(node) == [value.literal]
            if value.column is None:
                return False
            wanted = value.column
        below = [child for child in node.children if wanted in child.ids]
        if len(below) != 1:
            return False
        node = below[0]
    return (wanted, source) in node.columns
