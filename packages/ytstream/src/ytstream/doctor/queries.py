"""The streams of a job: what each reads, what happens to the rows, where they go."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from .frames import LOADS, STARTS, Flow, Options, Source, options_of, place_of, traced
from .names import Bound, Chain, Code, Step


@dataclass(frozen=True)
class Query:
    """One writer of a stream, and the flow into it."""

    file: str
    line: int
    options: Options
    steps: tuple[Step, ...]
    flow: Flow
    path: Any
    #: False where the frame was not followed to its queues: these are all of the job's.
    is_traced: bool = True

    @property
    def queues(self) -> set[Any]:
        """The paths of the queues, a computed one included."""
        return {path for source in self.flow.sources for path in source.paths}

    def step(self, name: str) -> Step | None:
        """Return the last call of that name on the writer."""
        return next((step for step in reversed(self.steps) if step.name == name), None)


def read(code: Code) -> list[Query]:
    """Return the streaming queries over YTsaurus: those that read or write the format ``yt``."""
    found: dict[tuple[str, int, str], Query] = {}
    everything: Flow | None = None
    for name in STARTS:
        for call, module in code.calls.get(name, []):
            for context in code.called_from(call, module):
                chain = code.chain(Bound(call, context))
                place = place_of(chain, "writeStream")
                if place is None:
                    continue
                query = _query(code, chain, place)
                if not query.flow.sources:
                    everything = everything or Flow(tuple(_all_sources(code)))
                    query = replace(query, flow=everything, is_traced=False)
                if _is_of_spyt(query):
                    found.setdefault((query.file, query.line, repr(query.path)), query)
    return list(found.values())


def _is_of_spyt(query: Query) -> bool:
    options = [query.options, *(source.options for source in query.flow.sources)]
    return any(each.value("format") == "yt" or "consumer_path" in each.given for each in options)


def _all_sources(code: Code) -> Iterator[Source]:
    for name in LOADS:
        for call, module in code.calls.get(name, []):
            for context in code.called_from(call, module):
                yield from traced(code, Bound(call, context)).sources


def _query(code: Code, chain: Chain, place: int) -> Query:
    writer, steps = chain.steps[place], tuple(chain.steps[place + 1 :])
    frame = writer.node.value if isinstance(writer.node, ast.Attribute) else writer.node
    options = options_of(code, steps)
    start = next(step for step in steps if step.name in STARTS)
    given = start.argument(0, "path")
    path = code.value(given) if given else options.value("path")
    flow = traced(code, Bound(frame, writer.context))
    return Query(writer.context.module.file, writer.line, options, steps, flow, path)
