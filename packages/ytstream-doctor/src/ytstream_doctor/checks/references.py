"""Checks of how a job joins its stream with tables: lookups by a client, and broadcasts."""

import ast
from collections.abc import Iterator, Mapping
from typing import Any

from ..reading.dataframes import LOADS, QueueReader, batch_read
from ..reading.inspected_job import InspectedJob
from ..reading.reached_calls import Use, reached
from ..reading.syntax import GAP, BoundExpression, Function, called
from ..rules import Finding

_IN_TASKS = (
    "mapPartitions", "mapPartitionsWithIndex", "foreachPartition", "mapInPandas", "mapInArrow",
    "applyInPandas", "udf", "pandas_udf",
)  # fmt: skip
"""What runs a function of the job's in a task."""
_LOOKUPS = ("lookup_rows", "select_rows")
"""Reads of ytsaurus-client by key."""
_READS = ("select_rows", "read_table")
_ALL = ("Exception", "BaseException", "YtError", "YtResponseError")
"""Errors that mean every one of these reads."""
MOST_ROWS = 100_000
"""A broadcast of a table with at most so many rows is not a fault. A generated job does it, too."""
SIZE = ("row_count", "chunk_row_count")
"""What tells the size of a table on the cluster: dynamic ones have no `row_count` at hand."""


def findings(job: InspectedJob, tables: Mapping[str, Mapping[str, Any]]) -> Iterator[Finding]:
    """Yield lookups whose errors are swallowed, and broadcasts of tables.

    ``tables`` are the attributes of paths, as far as the cluster was asked.
    """
    yield from _swallowed(job)
    yield from _broadcast(job, tables)


def _swallowed(job: InspectedJob) -> Iterator[Finding]:
    found: dict[ast.ExceptHandler, Finding] = {}
    for use in _in_tasks(job):
        handler = _handler(job, use.node)
        name = _lookup(job, use) if handler and handler not in found else None
        if handler and name:
            what = f"the errors of {name}() are swallowed"
            file = use.context.module.file
            found[handler] = Finding(file, handler.lineno, "swallowed-lookup", what)
    yield from found.values()


def _in_tasks(job: InspectedJob) -> Iterator[Use]:
    """Yield the calls of the functions that run in tasks."""
    for name in _IN_TASKS:
        for call, module in job.code.calls.get(name, []):
            yield from reached(job.code, call.args, job.code.context(call, module))
    for module, node in job.code.walk():
        if isinstance(node, ast.FunctionDef) and any(map(_is_udf, node.decorator_list)):
            yield from reached(job.code, node.body, job.code.context(node, module))


def _is_udf(decorator: ast.expr) -> bool:
    named = decorator.func if isinstance(decorator, ast.Call) else decorator
    name = named.attr if isinstance(named, ast.Attribute) else getattr(named, "id", "")
    return name in _IN_TASKS


def _handler(job: InspectedJob, node: ast.AST) -> ast.ExceptHandler | None:
    """Return the handler that swallows every error of a call in its function."""
    while (outer := job.code.parents.get(node)) is not None and not isinstance(outer, Function):
        if isinstance(outer, ast.Try) and node in outer.body:
            for handler in outer.handlers:
                if _takes_all(handler) and not _raises(handler):
                    return handler
        node = outer
    return None


def _takes_all(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    types = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    names = (each.attr if isinstance(each, ast.Attribute) else getattr(each, "id", "")
             for each in types)  # fmt: skip
    return any(name in _ALL for name in names)


def _raises(handler: ast.ExceptHandler) -> bool:
    return any(isinstance(node, ast.Raise) for each in handler.body for node in ast.walk(each))


def _lookup(job: InspectedJob, use: Use) -> str | None:
    """Return the read by key that a call is, or that the function reaches which it calls."""
    names = (called(each.node) for each in reached(job.code, [use.node], use.context))
    return next((name for name in names if name in _LOOKUPS), None)


def _broadcast(job: InspectedJob, tables: Mapping[str, Mapping[str, Any]]) -> Iterator[Finding]:
    for call, module in job.code.calls.get("broadcast", []):
        for use in reached(job.code, call.args, job.code.context(call, module)):
            read = _read(job, use)
            if read is None and called(use.node) not in _READS:
                continue
            paths = [path for path in (read.paths if read else ()) if _is_known(path)]
            if paths and all(_is_small(tables.get(path)) for path in paths):
                continue
            what = f"{', '.join(paths) or 'a table'} is broadcast"
            yield Finding(module.file, call.lineno, "large-broadcast", what)
            break


def _read(job: InspectedJob, use: Use) -> QueueReader | None:
    is_load = called(use.node) in LOADS
    return batch_read(job.code, BoundExpression(use.node, use.context)) if is_load else None


def _is_known(path: object) -> bool:
    return isinstance(path, str) and GAP not in path


def _is_small(attributes: Mapping[str, Any] | None) -> bool:
    """Return whether the cluster says that a table has few rows."""
    sizes = [int(attributes[name]) for name in SIZE if name in attributes] if attributes else []
    return bool(sizes) and max(sizes) <= MOST_ROWS
