"""Checks of what a function of foreachBatch, or a loop, does with tables in no transaction."""

import ast
import re
from collections.abc import Iterable, Iterator, Sequence

from ..reading.dataframes import LOADS, batch_read
from ..reading.inspected_job import InspectedJob
from ..reading.reached_calls import Use, reached
from ..reading.syntax import BoundExpression, called
from ..rules import Finding

_SAVES = ("save", "yt", "insertInto", "saveAsTable")
"""What writes rows, at the end of a frame's `write`."""
_CLIENT_WRITES = ("insert_rows", "write_table")
"""Writes of ytsaurus-client."""
_DYNAMIC = "inconsistent_dynamic_write"
"""The option with which SPYT writes rows of a batch into a dynamic table."""


def findings(job: InspectedJob) -> Iterator[Finding]:
    """Yield what the functions of foreachBatch read and write back, delete, append, write apart."""
    repeated = dict[ast.AST, Use]()
    for call, module in job.code.calls.get("foreachBatch", []):
        uses = [*reached(job.code, call.args, job.code.context(call, module))]
        repeated |= {use.node: use for use in uses}
        yield from _written_back(job, uses)
        yield from _deleted(uses)
        yield from _apart(job, uses)
    for module, node in job.code.walk():
        if isinstance(node, ast.While):
            uses = [*reached(job.code, node.body, job.code.context(node, module))]
            repeated |= {use.node: use for use in uses}
    yield from _appended(job, repeated.values())


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


def _appended(job: InspectedJob, uses: Iterable[Use]) -> Iterator[Finding]:
    """Yield the static tables that each round appends to."""
    for use in uses:
        path = _client_appends(job, use) or _frame_appends(job, use)
        if path:
            yield _at(use, "endless-table", f"each round appends to {path}")


def _client_appends(job: InspectedJob, use: Use) -> str | None:
    """Return the path of the table that a call of write_table() appends to."""
    if called(use.node) != "write_table" or not use.node.args:
        return None
    target = use.node.args[0]
    if isinstance(target, ast.Call) and called(target) == "TablePath" and target.args:
        given = {word.arg: word.value for word in target.keywords}
        appends = given.get("append") or (target.args[1] if len(target.args) > 1 else None)
        if appends is None or job.code.value(BoundExpression(appends, use.context)) is not True:
            return None
        target = target.args[0]
        path = job.code.value(BoundExpression(target, use.context))
        return path if isinstance(path, str) else None
    path = job.code.value(BoundExpression(target, use.context))
    is_appended = isinstance(path, str) and re.match(r"<[^>]*append=%?true", path)
    return str(path).rpartition(">")[2] if is_appended else None


def _frame_appends(job: InspectedJob, use: Use) -> str | None:
    """Return the path of the table that `write` of a frame appends to, if it may be static."""
    path = _written(job, use) if called(use.node) in _SAVES else None
    steps = [node for node in _chain(use.node) if isinstance(node, ast.Call)] if path else []
    words = [word.value for word in use.node.keywords if word.arg == "mode"]
    words += [step.args[0] for step in steps if called(step) == "mode" and step.args]
    values = [job.code.value(BoundExpression(word, use.context)) for word in words]
    # Without this option, SPYT refuses a dynamic table (SPYT documentation, Dynamic tables).
    is_dynamic = any(_DYNAMIC in ast.unparse(step) for step in steps)
    return path if "append" in values and not is_dynamic else None


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
    return any(isinstance(node, ast.Attribute) and node.attr == "write" for node in _chain(call))


def _chain(node: ast.expr) -> Iterator[ast.expr]:
    """Yield the links of a chain of calls, the last one first."""
    while isinstance(node, ast.Call | ast.Attribute):
        yield node
        node = node.func if isinstance(node, ast.Call) else node.value


def _at(use: Use, rule: str, what: str) -> Finding:
    return Finding(use.context.module.file, use.node.lineno, rule, what)
