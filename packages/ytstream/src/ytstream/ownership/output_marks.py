"""The mark of an output: which job writes it and, for a key of positions, of which queues they are.

An attribute of the table, or of a static output's folder: two jobs would replace each other's rows
and totals, or publish tables of the same names. Rows of `idempotent` and of `rejected` are stored
under their positions in a queue, and a recreated queue counts from 0 again: its rows would replace
those of the former one. So the mark names the queues' object ids, even if the ledger is lost.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from ..errors import JobError
from ..errors.error_codes import ErrorCode
from ..job import REJECTED, JobContext
from ..ledger.ledger_rows import Head
from ..ledger.positions import MARKER, Snapshot, is_reused
from ..schema.columns import key_of, rejected_columns

SHARED = "output:shared"
"""The entry of `accept` with which ordered outputs may be another job's as well."""

_OF_ONE_QUEUE, _OF_SEVERAL = (key_of(rejected_columns(queues)) for queues in (1, 2))


def foreign(context: JobContext, name: str, mark: Any) -> tuple[str, str] | None:
    """Return whose the output is by its mark, and what to do; None if this job may write it."""
    if mark is None or is_ours(context, mark) or _is_shared(context, name):
        return None
    marked = mark if isinstance(mark, Mapping) else {}
    ways = ["name another path in [outputs]"]
    if marked.get("job") == context.job.name:
        ways.append("if this is that job: correct `ledger` in the configuration")
    path = context.settings.outputs[name]
    ways.append(f"if that job writes there no more: yt remove {path}/@{MARKER}")
    if _may_be_shared(context, name):
        ways.append(f'if both are to write there: accept = ["{SHARED}"] in the configuration')
    whose = f"belongs to the job {marked.get('job')!r} with the ledger {marked.get('ledger')}"
    return whose, "\n     ".join(ways)


def is_ours(context: JobContext, mark: Any) -> bool:
    """Return whether the mark is of this job: a ledger belongs to one job only."""
    return isinstance(mark, Mapping) and mark.get("ledger") == context.settings.ledger


def verify_outputs(context: JobContext, found: Snapshot, *, overwrite: bool = False) -> None:
    """Raise JobError for an output of another job.

    Unless ``overwrite`` also for one whose rows have positions of other queues than these.
    """
    for name, path in context.settings.outputs.items():
        if problem := foreign(context, name, found.outputs.get(path)):
            whose, ways = problem
            raise JobError(f"the output {path} {whose}", ways, code=ErrorCode.FOREIGN_OUTPUT)
    if overwrite or not (filled := [*_filled(context, replaceable(context, found))]):
        return
    raise JobError(
        f"{', '.join(filled)}: rows there are stored under their positions in a queue that was "
        "dropped and recreated, that has lost tablets and has as many again, or that the job does "
        "not read any more; new rows of the same positions would replace them",
        "to keep them give these outputs new paths in [outputs], run `provision`, and repeat this; "
        "a start then asks for `migrate`\n"
        "     to let them be replaced use `rewind` with --overwrite",
        code=ErrorCode.OUTPUT_FILLED,
    )


def replaceable(context: JobContext, found: Snapshot) -> list[str]:
    """Return the paths of the outputs whose rows have positions of other queues than these."""
    now, paths = {queue.path: queue.id for queue in found.queues}, []
    head = found.begun or Head()
    for name, columns in _by_position(context):
        was = _queues(context, found, name)
        if key_of(columns) == _OF_SEVERAL:
            is_changed = any(was.get(path, id_) != id_ for path, id_ in now.items())
        else:
            is_changed = not {*was.values()} <= {*now.values()}
        if is_changed or any(is_reused(head, queue) for queue in found.queues):
            paths.append(context.settings.outputs[name])
    return paths


def write(context: JobContext, found: Snapshot) -> None:
    """Write the marks that are missing or outdated."""
    settings, by_position = context.settings, dict(_by_position(context))
    now = {queue.path: queue.id for queue in found.queues}
    for name, path in settings.outputs.items():
        if _is_shared(context, name):  # the other job may not accept that
            continue
        mark: dict[str, Any] = {"job": context.job.name, "ledger": settings.ledger}
        if name in by_position:
            is_of_several = key_of(by_position[name]) == _OF_SEVERAL
            former = _queues(context, found, name) if is_of_several else {}
            mark["queues"] = {**former, **now}
        if found.outputs.get(path) != mark:
            context.client.set(f"{path}/@{MARKER}", mark)


def _queues(context: JobContext, found: Snapshot, name: str) -> Mapping[str, str]:
    """Return the queues, path -> object id, whose positions the output's rows may have.

    An output has no mark if the first start died before it wrote one, or if it was removed by hand:
    then those of the ledger count.
    """
    path = context.settings.outputs[name]
    mark, head = found.outputs.get(path), found.head or Head()
    queues = mark.get("queues") if isinstance(mark, Mapping) else None
    if isinstance(queues, Mapping):
        return {str(queue): str(id_) for queue, id_ in queues.items()}
    return head.ids if head.marker.get("outputs", {}).get(name) == path else {}


def _by_position(context: JobContext) -> Iterator[tuple[str, Any]]:
    job = context.job
    for name, columns in job.output_columns.items():
        if name not in job.static and key_of(columns) in (_OF_ONE_QUEUE, _OF_SEVERAL):
            yield name, columns


def _filled(context: JobContext, paths: list[str]) -> Iterator[str]:
    """Yield the tables that have a row."""
    for path in paths:
        if [*context.client.select_rows(f"tablet_index from [{path}] limit 1")]:
            yield path


def _is_shared(context: JobContext, name: str) -> bool:
    return SHARED in context.settings.accept and _may_be_shared(context, name)


def _may_be_shared(context: JobContext, name: str) -> bool:
    """Return whether rows of several jobs do no harm to each other there."""
    job = context.job
    return not (name in job.static or name == REJECTED or key_of(job.output_columns[name]))


def former(context: JobContext, head: Head) -> list[str]:
    """Return what to do about outputs that the job has written and does not write any more."""
    was, now = head.marker.get("outputs", {}), {*context.settings.outputs.values()}
    return [
        f"{path} keeps this job's mark: before another job writes there, yt remove {path}/@{MARKER}"
        for path in was.values()
        if path not in now and is_ours(context, context.client.get_attribute(path, MARKER, None))
    ]
