"""The streams of a job: what each reads, what happens to the rows, where they go."""

import ast
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from .dataframes import LOADS, STARTS, Options, QueueReader, RowFlow, options_of, place_of, traced
from .name_resolution import Code
from .syntax import BoundExpression, Chain, Context, Step

_WRITER = "writeStream"


@dataclass(frozen=True)
class Query:
    """One writer of a stream, and the flow into it."""

    file: str
    line: int
    options: Options
    steps: tuple[Step, ...]
    flow: RowFlow
    path: Any
    path_at: BoundExpression | None = None
    """What names the path where it is not known."""
    is_traced: bool = True
    """False where the frame was not followed to its queues: these are all of the job's."""

    @property
    def queues(self) -> set[Any]:
        """The paths of the queues, a computed one included."""
        return {path for source in self.flow.sources for path in source.paths}

    def step(self, name: str) -> Step | None:
        """Return the last call of that name on the writer."""
        return next((step for step in reversed(self.steps) if step.name == name), None)


def read(code: Code) -> tuple[list[Query], list[tuple[str, int]]]:
    """Return the queries over YTsaurus, and the places of writers that no start was found for.

    A query counts if it reads or writes the format ``yt``, or writes with a function.
    """
    found: dict[Hashable, Query] = {}
    followed: set[ast.AST] = set()
    everything: RowFlow | None = None
    for name in STARTS:
        for call, module in code.calls.get(name, []):
            for context in code.called_from(call, module):
                chain = code.chain(BoundExpression(call, context), through=_WRITER)
                place = place_of(chain, _WRITER)
                if place is None:
                    continue
                followed.add(chain.steps[place].node)
                query = _query(code, chain, place)
                if not query.flow.sources:
                    everything = everything or RowFlow(tuple(_all_sources(code)))
                    query = replace(query, flow=everything, is_traced=False)
                if _is_of_spyt(query):
                    found.setdefault(_key(query, chain.steps[place].context, call), query)
    return list(found.values()), sorted(_others(code, followed))


def _key(query: Query, context: Context, call: ast.Call) -> Hashable:
    """Return what tells queries apart: one writer may be started for several frames."""
    given = tuple((name, bound.node) for name, bound in context.bound.items())
    return query.file, query.line, repr(query.path), call, given


def _others(code: Code, followed: set[ast.AST]) -> Iterator[tuple[str, int]]:
    for module, node in code.walk():
        is_name = isinstance(node, ast.Attribute) and node.attr == _WRITER
        is_text = isinstance(node, ast.Constant) and node.value == _WRITER
        if (is_name or is_text) and node not in followed:
            yield module.file, getattr(node, "end_lineno", None) or 0


def _is_of_spyt(query: Query) -> bool:
    return (
        query.step("foreachBatch") is not None
        or query.options.value("format") == "yt"
        or any(source.is_of_spyt for source in query.flow.sources)
    )


def _all_sources(code: Code) -> Iterator[QueueReader]:
    for name in LOADS:
        for call, module in code.calls.get(name, []):
            for context in code.called_from(call, module):
                yield from traced(code, BoundExpression(call, context)).sources


def _query(code: Code, chain: Chain, place: int) -> Query:
    writer, steps = chain.steps[place], tuple(chain.steps[place + 1 :])
    frame = writer.node.value if isinstance(writer.node, ast.Attribute) else writer.node
    options = options_of(code, steps)
    start = next(step for step in steps if step.name in STARTS)
    given = start.argument(0, "path")
    path = code.value(given) if given else options.value("path")
    named = given or options.at("path")
    flow = traced(code, BoundExpression(frame, writer.context))
    return Query(writer.context.module.file, writer.line, options, steps, flow, path, named)
