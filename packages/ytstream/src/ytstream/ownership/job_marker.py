"""Whose ledger, consumer and checkpoint these are; checked before every start."""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

from ..errors import JobError
from ..errors.error_codes import ErrorCode
from ..job import JobContext
from ..ledger.ledger_rows import Head
from ..ledger.positions import LOST_HEAD, MARKER, Snapshot
from ..staging import archive_pieces
from . import output_marks

_ANEW = "configure a new consumer, checkpoint, ledger and [outputs]"


def marker_of(context: JobContext) -> dict[str, Any]:
    """Return what the head of this job's ledger says of the job."""
    job = context.job
    columns = [c for listed in (job.queue_columns, *job.output_columns.values()) for c in listed]
    described = [f"{column.name} {column.type} {column.required}" for column in columns]
    return {
        "job": job.name,
        "guarantee": context.guarantee.name,
        "processing": job.processing,
        "outputs": dict(context.settings.outputs),
        "schema": sha256("\n".join(described).encode()).hexdigest(),
        **({"totals": list(job.totals)} if job.totals else {}),
    }


def verify_owner(context: JobContext, found: Snapshot) -> None:
    """Raise JobError when another job reads by this consumer, or has its state in this folder.

    A start removes the checkpoint folders of former epochs: those of another job would be lost.
    """
    settings, job = context.settings, context.job.name
    foreign = {
        name: f"the {name} {path} belongs to the job {owner!r} with the ledger {ledger}"
        for name, path, marker in (
            ("consumer", settings.consumer, found.consumer_marker),
            ("checkpoint", settings.checkpoint, found.checkpoint_marker),
        )
        if marker is not None
        for owner, ledger in [(marker.get("job"), marker.get("ledger", settings.ledger))]
        if (owner, ledger) != (job, settings.ledger)
    }
    if foreign:
        raise JobError(
            f"{'; '.join(foreign.values())}; this is {job!r} with {settings.ledger}",
            f"give this job a {' and a '.join(foreign)} of its own, or correct `ledger` in the "
            "configuration",
            code=ErrorCode.FOREIGN_OBJECT,
        )


def verify_ledger(context: JobContext, found: Snapshot) -> None:
    """Raise JobError when the job has run and its ledger has no head."""
    verify_age(context, found)
    settings = context.settings
    said = f"the ledger {settings.ledger} has no head row, though the job has run"
    if is_nowhere(context, found):
        raise JobError(
            f"{said}; the consumer {settings.consumer} was recreated and does not know where",
            "restore both as they were after the last batch; or use `rewind`, which writes a new "
            "head, with an empty state: `earliest` reads all rows again, `latest` the next ones, "
            "`rows` all from those on that you name" + _kept_pieces(context),
            code=ErrorCode.HEAD_LOST,
        )
    if is_lost(context, found):
        raise JobError(said, LOST_HEAD + _kept_pieces(context), code=ErrorCode.HEAD_LOST)


def _kept_pieces(context: JobContext) -> str:
    """Return what else to do where the ledger names rows of archives that are nowhere else."""
    lines = [f"\n     {line}" for line in archive_pieces.left_behind(context)]
    return "".join(lines)


def verify_age(context: JobContext, found: Snapshot) -> None:
    """Raise JobError for a job that ran before 1.0.0: the first versions kept no ledger."""
    settings = context.settings
    own = {settings.consumer: found.consumer_marker, settings.checkpoint: found.checkpoint_marker}
    for path, marker in own.items():
        if marker is not None and "ledger" not in marker:
            raise JobError(
                f"{path} is of a job that ran before ytstream 1.0.0, without a ledger",
                "`rewind rows` takes it over where the consumer is: at most one micro-batch "
                "behind, with an empty state",
                code=ErrorCode.NO_LEDGER,
            )


def is_lost(context: JobContext, found: Snapshot) -> bool:
    """Return whether the job has run, and its ledger has no head."""
    return found.begun is None and (found.consumer_marker is not None or is_nowhere(context, found))


def is_nowhere(context: JobContext, found: Snapshot) -> bool:
    """Return whether the job has run, and neither ledger nor consumer knows where it is."""
    if found.begun is not None or found.consumer_marker is not None:
        return False
    is_marked = any(output_marks.is_ours(context, mark) for mark in found.outputs.values())
    return is_marked or found.checkpoint_marker is not None


def mark(context: JobContext, found: Snapshot) -> None:
    """Write the marks of consumer, checkpoint and outputs where they are missing or outdated."""
    settings = context.settings
    mine = {"job": context.job.name, "ledger": settings.ledger}
    for path in (settings.consumer, settings.checkpoint):
        if context.client.get_attribute(path, MARKER, None) != mine:
            context.client.set(f"{path}/@{MARKER}", mine)
    output_marks.write(context, found)


def verify_job(context: JobContext, head: Head) -> None:
    """Raise JobError when the ledger is another job's."""
    mine, marker, path = marker_of(context), head.marker, context.settings.ledger
    for key in ("job", "processing"):
        if marker.get(key) != mine[key]:
            raise JobError(
                f"the ledger {path} belongs to another job: its {key} is {marker.get(key)!r}, "
                f"this job's is {mine[key]!r}",
                f"restore {marker.get(key)!r} in job.py, or give this job its own: {_ANEW}",
                code=ErrorCode.FOREIGN_OBJECT,
            )


def verify_declaration(context: JobContext, head: Head) -> None:
    """Raise JobError for a changed guarantee, other outputs or fewer queues: see `migrate`."""
    mine, path = marker_of(context), context.settings.ledger
    for key, name in (("guarantee", "guarantee"), ("outputs", "[outputs]")):
        if (was := head.marker.get(key)) != mine[key]:
            raise JobError(
                f"the job's {name} was {_shown(was)} and is {_shown(mine[key])} now, by its ledger "
                f"{path}",
                "stop the job, run `migrate`, and start it again: "
                + _after_that(context, head, key)
                + "\n     or restore the previous one: nothing has changed yet",
                code=ErrorCode.JOB_CHANGED,
            )
    if (was := head.marker.get("totals", [])) != (now := mine.get("totals", [])):
        changed = ", ".join(sorted({*was} ^ {*now}))
        raise JobError(
            f"aggregate= of tables.py is new, or gone, for {changed}, by the ledger {path}",
            "stop the job, run `migrate`, and start it again: it continues with its next row, and "
            "adds it to what the table has\n"
            "     or restore the previous tables.py and transform.py: nothing has changed yet",
            code=ErrorCode.JOB_CHANGED,
        )
    if gone := sorted({*head.queues} - {*context.settings.queues}):
        raise JobError(
            f"the job has read {', '.join(gone)}, which the configuration does not name any more",
            "put it back, or run `migrate`, which leaves its further rows unread until it is back"
            + _if_moved(context, head, gone),
            code=ErrorCode.QUEUE_REMOVED,
        )


def _if_moved(context: JobContext, head: Head, gone: Sequence[str]) -> str:
    """Return what to do if a queue has only changed its path: the job would take it for a new one.

    It has other rows than those of `start_from` to read, and only the ledger says which.
    """
    new = [path for path in context.settings.queues if path not in head.ids]
    if not new:
        return ""
    names = {path: f"NEW-{path.rpartition('/')[2]}" for path in gone}
    also = ", with the new path of each"
    if len(new) == len(gone) == 1:
        names, also = {gone[0]: new[0]}, ""
    rows = [
        f"{names[path]}:{partition}={row}"
        for path in gone
        for partition, row in sorted(head.ends.get(path, {}).items())
    ]
    return (
        f"\n     {', '.join(new)} is a new queue to the job, which reads it from "
        f"{context.settings.start_from}. If it is {', '.join(gone)} under another path, do not run "
        f"`migrate`: `rewind rows {' '.join(rows)}`{also} continues where the job was"
        + (", with an empty state" if context.job.kind.is_stateful else "")
    )


_AFTER_A_CRASH = {
    "transactional": "no crash repeats or loses a row",
    "idempotent": "a row that a crash repeats replaces itself, under its position in the queue",
    "at_least_once": "a crash may repeat the rows of a batch",
}
"""Guarantee -> what a crash does from its first batch on."""


def _after_that(context: JobContext, head: Head, key: str) -> str:
    """Return what `migrate` keeps and what is different after it."""
    kept = "it continues with its next row"
    if context.job.kind.is_stateful:
        kept += ", its state is kept"
    if key == "outputs":
        return (
            f"{kept}, and rows go to the new paths; those written before stay where they are, "
            "nothing is copied"
        )
    after = _AFTER_A_CRASH[context.guarantee.name]
    if head.marker.get("guarantee") == "at_least_once":
        after += "; a batch that was cut off before may be written once more, for the last time"
    return f"{kept}, rows written before stay as they are, and from then on {after}"


def verify_queues(context: JobContext, found: Snapshot, head: Head) -> None:
    """Raise JobError for a queue that was dropped and recreated."""
    for queue in found.queues:
        if (was := head.ids.get(queue.path, queue.id)) != queue.id:
            raise JobError(
                f"queue {queue.path} was dropped and recreated (object {was} is now {queue.id}): "
                "its rows are numbered from 0, the ledger's mean nothing",
                "use `rewind`: `earliest` reads all its rows, `latest` the next ones"
                + _before_that(output_marks.replaceable(context, found)),
                code=ErrorCode.QUEUE_RECREATED,
            )


def _before_that(outputs: list[str]) -> str:
    """Return what to do first about outputs whose rows new ones would replace."""
    if not outputs:
        return ""
    return (
        f"\n     before that give {' and '.join(outputs)} new paths in [outputs] and run "
        "`provision`: rows there are stored under their positions in the previous queue, and new "
        "rows replace those of the same positions (`rewind` with --overwrite lets them)"
    )


def remarks(context: JobContext, head: Head) -> list[str]:
    """Return what to tell of a declaration that has changed harmlessly."""
    if head.marker.get("schema") == marker_of(context)["schema"]:
        return []
    return ["tables.py has changed: existing rows stay as they are"]


def _shown(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} = {path}" for name, path in value.items())
    return str(value)
