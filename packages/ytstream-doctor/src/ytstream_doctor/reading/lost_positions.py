"""Whether the positions in the queue, which SPYT adds to the rows, reach the sink."""

import ast
import re
from collections.abc import Iterable, Iterator, Sequence

from ytstream.connector.spyt import POSITION

from .name_resolution import Code
from .queries import Query
from .syntax import GAP, UNKNOWN, BoundExpression, Step, called

_SELECTS = ("select", "selectExpr")
_ALL = "*"
_UNFOLLOWED = {
    "agg", "count", "groupBy", "groupby", "rollup", "cube", "toDF", "join", "crossJoin",
    "mapInPandas", "mapInArrow", "applyInPandas", "unpivot", "melt", "colRegex",
}  # fmt: skip
"""After these the rows are others, or columns have names that are not written there."""
_ALIAS = re.compile(r"\bas\s+`?(\w+)`?\s*$", re.IGNORECASE)

Names = dict[str, frozenset[str]]


def lost_at(code: Code, query: Query) -> Step | None:
    """Return the step after which a position is in no column; None if none is known to do that."""
    if not query.is_traced:
        return None
    for number in range(len(query.flow.sources)):
        if found := _lost_at(code, _path(query, number)):
            return found
    return None


def _path(query: Query, number: int) -> Iterator[Step]:
    """Yield the steps of one queue's rows: its own, and those behind the union with others."""
    sources = query.flow.sources
    own = {step.node for step in sources[number].steps}
    others = {step.node for source in sources for step in source.steps} - own
    yield from (step for step in query.flow.steps if step.node not in others)


def _lost_at(code: Code, steps: Iterator[Step]) -> Step | None:
    names: Names = {name: frozenset({name}) for name in POSITION.values()}
    for step in steps:
        if step.name in _UNFOLLOWED:
            return None
        after = _after(code, step, names)
        if after is None:
            return None
        if not all(after.values()):
            return step
        names = after
    return None


def _after(code: Code, step: Step, names: Names) -> Names | None:
    """Return the columns that hold each position after a step; None if that cannot be told."""
    if step.call is None:
        return names
    if step.name in _SELECTS:
        return _selected(code, step, names)
    values = [code.value(bound) for bound in _arguments(code, step) or []]
    if step.name.startswith("withColumn") and step.call.keywords:
        return None
    if step.name == "drop":
        return {position: held - {*values} for position, held in names.items()}
    if step.name == "withColumnRenamed" and len(values) == 2:
        return _renamed(names, *values)
    if step.name == "withColumn" and len(values) == 2:
        found = mentioned(code, step.argument(1, "col"))
        return _with(names, values[0], None if found is None else words_of(found))
    return None if step.name in ("withColumns", "withColumnsRenamed") else names


def _renamed(names: Names, old: object, new: object) -> Names | None:
    if not isinstance(new, str):
        return None
    if not isinstance(old, str):  # it may be the name of a position
        return _with(names, new, None)
    return {
        position: frozenset(new if each == old else each for each in held)
        for position, held in names.items()
    }


def _with(names: Names, column: object, held_by: set[str] | None) -> Names:
    """Return the names with one more column, which may hold anything if that is not known."""
    own = {str(column)}
    return {
        position: held | own if held_by is None or held_by & held else held - own
        for position, held in names.items()
    }


def words_of(texts: Iterable[str]) -> set[str]:
    """Return the words of column names and SQL expressions."""
    return {word for text in texts for word in re.findall(r"\w+", text)}


def _selected(code: Code, step: Step, names: Names) -> Names | None:
    after: dict[str, set[str]] = {position: set() for position in names}
    arguments = _arguments(code, step)
    if arguments is None:
        return None
    for bound in arguments:
        found = mentioned(code, bound)
        if found is None:
            return None
        if _ALL in found:
            after = {position: after[position] | held for position, held in names.items()}
            continue
        if any(text.endswith(f".{_ALL}") for text in found):
            return None
        text = code.value(bound)
        for position, held in names.items():
            for name in words_of(found) & held:
                after[position].add(_alias(code, bound, text) or name)
    return {position: frozenset(held) for position, held in after.items()}


def _alias(code: Code, bound: BoundExpression, text: object) -> str | None:
    """Return the name that an expression gives to its column."""
    if isinstance(text, str):
        match = _ALIAS.search(text)
        return match[1] if match else None
    node: ast.AST = bound.node
    while found := code.resolved(bound.node, bound.context):
        bound, node = found, found.node
    if isinstance(node, ast.Call) and called(node) in ("alias", "name") and node.args:
        value = code.value(BoundExpression(node.args[0], bound.context))
        return value if isinstance(value, str) else None
    return None


def _arguments(code: Code, step: Step) -> list[BoundExpression] | None:
    """Return the arguments, those of a list apart; None if a list is computed."""
    found: list[BoundExpression] = []
    for node in step.call.args if step.call else ():
        bound = BoundExpression(node.value if isinstance(node, ast.Starred) else node, step.context)
        while target := code.resolved(bound.node, bound.context):
            bound = target
        if isinstance(bound.node, ast.List | ast.Tuple):
            found += [BoundExpression(item, bound.context) for item in bound.node.elts]
        elif isinstance(node, ast.Starred):
            return None
        else:
            found.append(BoundExpression(node, step.context))
    return found if not any(isinstance(each.node, ast.Starred) for each in found) else None


def mentioned(code: Code, bound: BoundExpression | None) -> set[str] | None:
    """Return the texts and attributes in an expression; None if a name in it is unknown."""
    if bound is None:
        return None
    found: set[str] = set()
    pending: list[BoundExpression] = [bound]
    while pending:
        one = pending.pop()
        node, context = one.node, one.context
        if context.is_too_deep:
            return None
        value = code.value(one)
        if value is not UNKNOWN and GAP not in str(value):
            found.add(str(value))
        elif isinstance(node, ast.Call) and called(node) == "lit":
            continue
        elif isinstance(node, ast.Call):
            given: Sequence[ast.expr] = [*node.args, *(word.value for word in node.keywords)]
            pending += [BoundExpression(each, context) for each in given]
            if isinstance(node.func, ast.Attribute):
                is_module = isinstance(node.func.value, ast.Name)
                pending += [] if is_module else [BoundExpression(node.func.value, context)]
        elif target := code.resolved(node, context):
            pending.append(target)
        elif isinstance(node, ast.Attribute):
            found.add(node.attr)
        elif isinstance(node, ast.Subscript):
            pending.append(BoundExpression(node.slice, context))
        elif isinstance(node, ast.Name | ast.Starred | ast.ListComp | ast.GeneratorExp):
            return None
        else:
            parts = [each for each in ast.iter_child_nodes(node) if isinstance(each, ast.expr)]
            pending += [BoundExpression(each, context) for each in parts]
    return found
