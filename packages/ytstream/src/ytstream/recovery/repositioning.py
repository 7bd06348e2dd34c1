"""`rewind`: moves a stopped job to other rows, with an empty checkpoint."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ..errors import JobError
from ..errors.error_codes import ErrorCode
from ..job import JobContext
from ..ledger import positions
from ..ledger.ledger_rows import Head, Move
from ..ledger.offsets import Queue, Rows, ahead
from ..ledger.positions import Snapshot
from ..ownership import job_marker, output_marks
from ..schema.periods import REJECT
from ..staging import archive_pieces
from ..text_table import counted
from . import (
    emptied_totals,
    rewind_consequences,
    spark_logs,
    start,
)
from .epoch import Epoch, raise_epoch
from .start import StartPlan

if TYPE_CHECKING:
    from ..connector.tablet_transactions import Tablets


def rewind(
    context: JobContext,
    tablets: Tablets,
    to: str,
    rows: Sequence[str],
    *,
    overwrite: bool = False,
    empty: bool = False,
) -> list[str]:
    """Move the job to other rows, with an empty checkpoint; return what was done.

    ``to`` is "earliest", "latest" or "rows"; then ``rows`` are QUEUE:PARTITION=ROW, and other
    partitions stay where they are. With ``overwrite`` rows of a recreated queue may replace those
    that outputs hold under the same positions. With ``empty`` totals begin in empty tables.
    The marks of these outputs are written after the head: a process that dies in between has moved
    the job, and `rewind` asks for ``overwrite`` again. The second one moves the job as the first
    did, and no row was read meanwhile, since a start also fails. Raises JobError before any row
    is moved.
    """
    found = _verified(context, to, rows, overwrite=overwrite, empty=empty)
    least = _at_least(context, found)
    mine = raise_epoch(context.settings.ledger, tablets, Epoch(), repair=True, least=least)
    # An older driver's batch may have committed until then.
    found = positions.read(context.client, context.settings)
    targets = _targets(found, _stands(found), to, rows)
    output_marks.verify_outputs(context, found, overwrite=overwrite)
    head, moved = replace(found.head or Head(), batch=-1), _moved(found, targets)
    emptied: list[str] = []
    if empty:
        emptied = emptied_totals.swap(context, tablets, mine)
        since = {queue.path: rows for queue, rows in zip(found.queues, targets, strict=True)}
        head = replace(head, state_since=since, sums={})
    start.begin(context, tablets, mine, found, StartPlan(targets, head, move=Move("rewind", moved)))
    return [*_told(moved), *emptied, *_consequences(context, found, targets)]


def rehearse_rewind(
    context: JobContext,
    to: str,
    rows: Sequence[str],
    *,
    overwrite: bool = False,
    empty: bool = False,
) -> list[str]:
    """Return what `rewind` would do now; changes nothing. Raises JobError where it would."""
    found = _verified(context, to, rows, overwrite=overwrite, empty=empty)
    targets = _targets(found, _stands(found), to, rows)
    moved = _moved(found, targets)
    pairs = [pair for partitions in moved.values() for pair in partitions.values()]
    again = sum(max(0, was - now) for was, now in pairs)
    skipped = sum(max(0, now - was) for was, now in pairs)
    stays = "the job is there already; its checkpoint would be emptied"
    return [
        *(_told(moved) if pairs else [stays]),
        f"{counted(again, 'row')} would be read again, {skipped} skipped",
        *(emptied_totals.planned(context, found.head or Head()) if empty else ()),
        *_consequences(context, found, targets),
        "nothing was changed",
    ]


def _verified(
    context: JobContext, to: str, rows: Sequence[str], *, overwrite: bool, empty: bool
) -> Snapshot:
    """Return all positions. Raises JobError unless `rewind` may go there."""
    found = positions.read(context.client, context.settings, repair=True)
    if found.begun is not None:
        job_marker.verify_job(context, found.begun)
    job_marker.verify_owner(context, found)
    output_marks.verify_outputs(context, found, overwrite=overwrite)
    _verify_named(context, found, to, rows)
    moved = _moved(found, _targets(found, _stands(found), to, rows))
    is_back = _is_back(found, moved)
    emptied_totals.verify_added_once(context, found, is_back=is_back, is_empty=empty)
    rejecting = [name for name, one in context.job.archives.items() if one.late == REJECT]
    if is_back and rejecting:
        raise JobError(
            f"rows that are read again are late in {', '.join(rejecting)}, which rejects late rows",
            'set late="table" in STATIC for as long as they are read: they become tables of their '
            "own",
            code=ErrorCode.TABLES,
        )
    return found


def _is_back(found: Snapshot, moved: Mapping[str, Mapping[int, tuple[int, int]]]) -> bool:
    """Return whether rows are read again that were read before."""
    return any(
        now < was
        for path, rows in moved.items()
        if path not in found.renumbered
        for was, now in rows.values()
    )


def _moved(found: Snapshot, targets: Rows) -> dict[str, dict[int, tuple[int, int]]]:
    """Return the partitions that move: queue -> partition -> row before and after."""
    return {
        queue.path: {p: (was.get(p, 0), row) for p, row in now.items() if was.get(p, 0) != row}
        for queue, was, now in zip(found.queues, _stands(found), targets, strict=True)
    }


def _told(moved: Mapping[str, Mapping[int, tuple[int, int]]]) -> list[str]:
    lines = [
        f"{path}, partition {p}: from row {was} to row {now}"
        for path, rows in moved.items()
        for p, (was, now) in rows.items()
    ]
    return lines or ["the job was there already; its checkpoint is empty now"]


def _consequences(context: JobContext, found: Snapshot, targets: Rows) -> list[str]:
    """Return what happens to the state, to the outputs and to pieces of archives."""
    is_back = _is_back(found, _moved(found, targets))
    again = rewind_consequences.written_again(context) if is_back else []
    left = output_marks.former(context, found.head or Head())
    pieces = archive_pieces.left_behind(context) if _has_forgotten(context, found) else []
    return [*rewind_consequences.of_state(context, found, targets), *again, *left, *pieces]


def _verify_named(context: JobContext, found: Snapshot, to: str, rows: Sequence[str]) -> None:
    """Raise JobError for partitions that are to stay where nothing knows that they are."""
    if to != "rows" or not job_marker.is_nowhere(context, found):
        return
    wanted = [f"{q.path}:{p}" for q in found.queues for p in range(len(q.upper))]
    if missing := [place for place in wanted if place not in {r.rpartition("=")[0] for r in rows}]:
        raise JobError(
            "neither the ledger nor the consumer knows where the job was in " + ", ".join(missing),
            "name a row for each of them, or use `rewind earliest` or `rewind latest`",
            code=ErrorCode.POSITION_UNKNOWN,
        )


def _at_least(context: JobContext, found: Snapshot) -> Head:
    """Return what a head that is lost, or newer than the ledger, was at least.

    The checkpoint has folders of its epochs, and names of static tables are made of epochs: none
    may be used again. And a ledger whose rows are not numbered one after the other does not say
    that a batch between them has not happened: see staging.forgotten().
    """
    if not _has_forgotten(context, found):
        return Head()
    folders = spark_logs.numbers(context.client, context.settings.checkpoint)
    number = found.begun.number if found.begun is not None else 0
    return Head(epoch=max(folders, default=0), number=number + 1)


def _has_forgotten(context: JobContext, found: Snapshot) -> bool:
    """Return whether batches may have happened that the ledger does not know.

    It is lost, or the consumer is in front of it: then it may be an older copy. Only static tables
    ask for the latter.
    """
    head, job = found.begun, context.job
    if head is None:
        return job_marker.is_lost(context, found)
    return bool(job.archives or job.snapshots) and any(
        ahead(queue, head.ends[queue.path])
        for queue in found.queues
        if queue.path in head.ends and queue.path not in found.renumbered
    )


def _stands(found: Snapshot) -> Rows:
    """Return where the job is, by its ledger, or without one by its consumer."""
    head = found.begun
    return [
        head.ends[queue.path] if head is not None and queue.path in head.ends else queue.consumed
        for queue in found.queues
    ]


def _targets(found: Snapshot, stands: Rows, to: str, rows: Sequence[str]) -> list[dict[int, int]]:
    example = f"rows {found.queues[0].path}:0=42"
    if rows and to != "rows":
        raise JobError(
            "rows go with `rewind rows`, and only with it",
            f"e.g. rewind {example}",
            code=ErrorCode.USAGE,
        )
    ends = {"earliest": "lower", "latest": "upper"}
    if to in ends:
        return [dict(enumerate(getattr(queue, ends[to]))) for queue in found.queues]
    by_path = {queue.path: queue for queue in found.queues}
    named: dict[str, dict[int, int]] = {path: {} for path in by_path}
    for text in rows:
        match = re.fullmatch(r"(.+):([0-9]+)=([0-9]+)", text)
        if match is None:
            raise JobError(
                f"cannot read {text!r}",
                f"write QUEUE:PARTITION=ROW, e.g. {example}",
                code=ErrorCode.USAGE,
            )
        if match[1] not in by_path:
            raise JobError(
                f"{text!r}: the job does not read {match[1]}",
                f"its queues: {', '.join(by_path)}",
                code=ErrorCode.USAGE,
            )
        queue, partition, row = by_path[match[1]], int(match[2]), int(match[3])
        known = dict(enumerate(zip(queue.lower, queue.upper, strict=True)))
        if partition not in known or not known[partition][0] <= row <= known[partition][1]:
            raise JobError(
                f"{text!r} is not in the queue",
                f"its rows by partition: {known}",
                code=ErrorCode.USAGE,
            )
        if partition in named[queue.path]:
            raise JobError(
                f"{queue.path}, partition {partition}, is named more than once: rows "
                f"{named[queue.path][partition]} and {row}",
                "name one row for each partition; nothing was moved",
                code=ErrorCode.USAGE,
            )
        named[queue.path][partition] = row
    return [
        _kept(queue, was, queue.path in found.renumbered) | named[queue.path]
        if len(named[queue.path]) < len(queue.upper)
        else named[queue.path]
        for queue, was in zip(found.queues, stands, strict=True)
    ]


def _kept(queue: Queue, was: Mapping[int, int], is_recreated: bool) -> dict[int, int]:
    """Return the rows of partitions that stay. Raises JobError when the queue has no such rows."""
    rows = {partition: was.get(partition, 0) for partition in range(len(queue.upper))}
    if is_recreated or any(row > queue.upper[partition] for partition, row in rows.items()):
        raise JobError(
            f"{queue.path} was recreated or resharded: its partitions cannot stay where they were",
            "name a row for each of them, or use `rewind earliest` or `rewind latest`",
            code=ErrorCode.PARTITIONS_CHANGED,
        )
    return rows
