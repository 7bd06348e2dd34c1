"""Where a frame comes from: its queues, and the steps that its rows have gone through."""

import ast
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from .files import Module
from .name_resolution import Code
from .syntax import UNKNOWN, BoundExpression, Chain, Context, Function, Step, inside

LOADS = ("load", "table", "yt")
STARTS = ("start", "toTable")
UNIONS = ("union", "unionAll", "unionByName")
_TWO_FRAMES = (*UNIONS, "join", "crossJoin", "intersect", "exceptAll", "subtract")


@dataclass(frozen=True)
class Options:
    """The options of a reader or writer; ``is_whole`` unless some are computed."""

    given: Mapping[str, tuple[Any, Step, BoundExpression | None]]
    is_whole: bool

    def value(self, name: str) -> Any:
        """Return an option; None if it is missing, UNKNOWN if it is computed."""
        if name not in self.given:
            return None if self.is_whole else UNKNOWN
        return self.given[name][0]

    def is_true(self, name: str) -> bool:
        """Whether the option is given as true."""
        return str(self.value(name)).lower() == "true"

    def line(self, name: str) -> int:
        """Return the line of an option that is given."""
        return self.given[name][1].line

    def file(self, name: str) -> str:
        """Return the file of an option that is given."""
        return self.given[name][1].context.module.file

    def at(self, name: str) -> BoundExpression | None:
        """Return the expression of an option; None if it is missing."""
        return self.given[name][2] if name in self.given else None


@dataclass(frozen=True)
class QueueReader:
    """One reader of a queue; in a loop it stands for several, of which ``paths`` are known."""

    key: Hashable = field(repr=False)
    file: str
    line: int
    options: Options
    paths: tuple[Any, ...]
    is_many: bool
    steps: tuple[Step, ...] = ()
    """Steps between this queue and the union with others."""
    path_at: BoundExpression | None = None
    """What names the path, for a path that is not known."""

    @property
    def is_of_spyt(self) -> bool:
        """Whether a queue of YTsaurus is read."""
        return self.options.value("format") == "yt" or "consumer_path" in self.options.given


@dataclass(frozen=True)
class RowFlow:
    """The queues of a frame and all that happens to their rows."""

    sources: tuple[QueueReader, ...] = ()
    steps: tuple[Step, ...] = ()


def place_of(chain: Chain, name: str) -> int | None:
    """Return the place of a link in a chain."""
    return next((i for i, step in enumerate(chain.steps) if step.name == name), None)


def options_of(code: Code, steps: Sequence[Step]) -> Options:
    """Return the options that the links of a reader or a writer give."""
    given: dict[str, tuple[Any, Step, BoundExpression | None]] = {}
    is_whole = True
    for step in steps:
        pairs: list[tuple[Any, BoundExpression | None]] = []
        if step.name == "option":
            pairs = [(code.value(step.argument(0, "key")), step.argument(1, "value"))]
        elif step.name in ("format", "outputMode", "queryName"):
            names = ("source", "outputMode", "queryName")
            pairs = [(step.name, step.argument(0, *names))]
        elif step.name in ("options", *LOADS, *STARTS) and step.call:
            for word in step.call.keywords:
                bound = BoundExpression(word.value, step.context)
                if word.arg:
                    pairs.append((word.arg, bound))
                else:
                    more = _dictionary(code, bound)
                    is_whole = is_whole and more is not None
                    pairs += more or []
        for name, value in pairs:
            if name is UNKNOWN:
                is_whole = False
            else:
                given[str(name).lower()] = (code.value(value), step, value)
    return Options(given, is_whole)


def _dictionary(code: Code, bound: BoundExpression) -> list[tuple[Any, BoundExpression]] | None:
    found = bound
    while not isinstance(found.node, ast.Dict):
        target = code.resolved(found.node, found.context)
        if target is None:
            return None
        found = target
    if None in found.node.keys:
        return None
    return [
        (code.value(BoundExpression(key, found.context)), BoundExpression(value, found.context))
        for key, value in zip(found.node.keys, found.node.values, strict=True)
        if key is not None
    ]


def traced(code: Code, bound: BoundExpression) -> RowFlow:
    """Return the queues and the steps behind a frame."""
    if bound.context.is_too_deep:
        return RowFlow()
    chain = code.chain(bound)
    steps = [*chain.steps]
    place = place_of(chain, "readStream")
    if place is not None:
        end = next(
            (i for i in range(place + 1, len(steps)) if steps[i].name in LOADS), len(steps) - 1
        )
        sources = (_source(code, steps[place : end + 1]),)
        return _after(code, RowFlow(sources), steps[end + 1 :])
    first = steps[0].call if steps else None
    known = code.function(first.func, steps[0].context) if first else None
    root = chain.root
    if known and isinstance(root.node, ast.Name) and _is_no_frame(code, root.node.id, root.context):
        flow = _returned(code, *known, first, steps[0].context)
        return _after(code, flow, steps[1:])
    return _after(code, _rooted(code, chain.root), steps)


def batch_read(code: Code, bound: BoundExpression) -> QueueReader | None:
    """Return what a call reads that is not a stream: ``spark.read.format("yt").load(path)``."""
    steps = code.chain(bound).steps
    place = next((i for i, step in enumerate(steps) if step.name == "read"), None)
    return None if place is None else _source(code, steps[place:])


def _is_no_frame(code: Code, name: str, context: Context) -> bool:
    """Return whether methods of that name are functions of the job: of itself, or of a module."""
    return name in ("self", "cls", *code.imports[context.module.file])


def _rooted(code: Code, root: BoundExpression) -> RowFlow:
    node, context = root.node, root.context.deeper()
    if isinstance(node, ast.Call):
        known = code.function(node.func, context) if isinstance(node.func, ast.Name) else None
        if known:
            return _returned(code, *known, node, context)
        return _merged([traced(code, BoundExpression(value, context)) for value in node.args])
    if isinstance(node, ast.ListComp | ast.GeneratorExp):
        return traced(code, BoundExpression(node.elt, context))
    if isinstance(node, ast.List | ast.Tuple):
        return _merged([traced(code, BoundExpression(value, context)) for value in node.elts])
    if isinstance(node, ast.IfExp):
        sides = [
            traced(code, BoundExpression(value, context)) for value in (node.body, node.orelse)
        ]
        return _merged(sides)
    if isinstance(node, ast.Lambda):
        return traced(code, BoundExpression(node.body, context.deeper(function=node)))
    return RowFlow()


def _returned(
    code: Code,
    function: Function,
    module: Module,
    call: ast.Call | None,
    outer: Context,
    first: BoundExpression | None = None,
) -> RowFlow:
    """Return the flow of what a function returns, together with that of all that it is given."""
    context = inside(function, module, call, outer, first)
    values = code.returned(function)
    return _merged([traced(code, BoundExpression(value, context)) for value in values])


def _after(code: Code, flow: RowFlow, steps: Sequence[Step]) -> RowFlow:
    for step in steps:
        argument = step.argument(0, "other")
        if step.name == "transform" and argument and step.call:
            flow = _merged([flow, _transformed(code, step, argument)])
            continue
        if step.name in _TWO_FRAMES and argument:
            flow = _merged([flow, traced(code, argument)])
        sources = flow.sources
        if step.name not in _TWO_FRAMES and len(sources) == 1:
            (one,) = sources
            sources = (_with_step(one, step),)
        flow = RowFlow(sources, (*flow.steps, step))
    return flow


def _transformed(code: Code, step: Step, argument: BoundExpression) -> RowFlow:
    """Return what the function that ``DataFrame.transform`` is given does to the frame."""
    assert isinstance(step.call, ast.Call)
    assert isinstance(step.call.func, ast.Attribute)
    frame = BoundExpression(step.call.func.value, step.context.deeper())
    if isinstance(argument.node, ast.Lambda):
        function: Function = argument.node
        return _returned(code, function, step.context.module, None, step.context, frame)
    name = argument.node.attr if isinstance(argument.node, ast.Attribute) else ""
    name = argument.node.id if isinstance(argument.node, ast.Name) else name
    known = code.functions.get(name)
    return _returned(code, *known, None, step.context, frame) if known else RowFlow()


def _with_step(source: QueueReader, step: Step) -> QueueReader:
    return replace(source, steps=(*source.steps, step))


def _merged(flows: Sequence[RowFlow]) -> RowFlow:
    sources = {source.key: source for flow in reversed(flows) for source in reversed(flow.sources)}
    steps = {step.node: step for flow in flows for step in flow.steps}
    return RowFlow(tuple(reversed(sources.values())), tuple(steps.values()))


def _source(code: Code, steps: Sequence[Step]) -> QueueReader:
    reader, last = steps[0], steps[-1]
    options = options_of(code, steps)
    given = last.argument(0, "path")
    paths = tuple(code.values(given)) if given else (options.value("path"),)
    key = reader.node, tuple(id(bound.node) for bound in reader.context.bound.values())
    file, is_many = reader.context.module.file, _is_repeated(code, last)
    named = given or options.at("path")
    return QueueReader(key, file, reader.line, options, paths, is_many, path_at=named)


def _is_repeated(code: Code, step: Step) -> bool:
    """Return whether a loop stands around the reader, or around a call that leads to it."""
    loops = (ast.For, ast.ListComp, ast.GeneratorExp, ast.SetComp)
    nodes: list[ast.AST] = [step.node, *_leading(step.context)]
    return any(isinstance(outer, loops) for node in nodes for outer in code.around(node))


def _leading(context: Context) -> Iterator[ast.AST]:
    for bound in context.bound.values():
        yield bound.node
        if bound.context is not context:
            yield from _leading(bound.context)
