"""Checks of what a function of foreachBatch does with tables: changes that no transaction holds."""

import ast
from collections.abc import Iterator, Sequence

from ..reading.dataframes import LOADS, batch_read
from ..reading.inspected_job import InspectedJob
from ..reading.reached_calls import Use, reached
from ..reading.syntax import BoundExpression, called
from ..rules import Finding

_SAVES = ("save", "yt", "insertInto", "saveAsTable")
"""What writes rows, at the end of a frame's `write`."""
_CLIENT_WRITES = ("insert_rows", "write_table")
"""Writes of ytsaurus-client."""


def findings(job: InspectedJob) -> Iterator[Finding]:
    """Yield what the functions of foreachBatch read and write back, delete and write apart."""
    for call, module in job.code.calls.get("foreachBatch", []):
        uses = [*reached(job.code, call.args, job.code.context(call, module))]
        yield from _written_back(job, uses)
        yield from _deleted(uses)
        yield from _apart(job, uses)


def _written_back(job: InspectedJob, uses: Sequence[Use]) -> Iterator[Finding]:
    """Yield the reads of tables that the same function writes."""
    written = {path for use in uses for path in [_written(job, use)] if path}
    for use in uses:
        is_read = called(use.node) in LOADS and not _is_write(use.node)
        read = batch_read(job.code, BoundExpression(use.node, use.context)) if is_read else None
        for path in read.paths if read else ():
            if path in written:
                what = f"{path} is read, and written back"
                yield _at(use, "written-back", what)


def _deleted(uses: Sequence[Use]) -> Iterator[Finding]:
    for use in uses:
        if called(use.node) == "delete_rows":
            yield _at(use, "driver-deletes", "delete_rows() in a function of foreachBatch")


def _apart(job: InspectedJob, uses: Sequence[Use]) -> Iterator[Finding]:
    """Yield the second table that a function writes."""
    writes = {path: use for use in reversed(uses) for path in [_written(job, use)] if path}
    first, *others = sorted(writes, key=lambda path: writes[path].node.lineno) or [""]
    for path in others:
        yield _at(writes[path], "separate-writes", f"{path} is written after {first}")


def _written(job: InspectedJob, use: Use) -> str | None:
    """Return the path of the table that a call writes; None for another call."""
    name = called(use.node)
    is_write = name in _CLIENT_WRITES or (name in _SAVES and _is_write(use.node))
    if not (is_write and use.node.args):
        return None
    path = job.code.value(BoundExpression(use.node.args[0], use.context))
    return path if isinstance(path, str) else None


def _is_write(call: ast.Call) -> bool:
    """Return whether a chain of calls begins at `.write` of a frame."""
    node: ast.expr = call
    while isinstance(node, ast.Call | ast.Attribute):
        if isinstance(node, ast.Attribute) and node.attr == "write":
            return True
        node = node.func if isinstance(node, ast.Call) else node.value
    return False


def _at(use: Use, rule: str, what: str) -> Finding:
    return Finding(use.context.module.file, use.node.lineno, rule, what)
