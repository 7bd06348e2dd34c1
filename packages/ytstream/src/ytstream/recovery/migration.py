"""`migrate`: adopts a stopped job whose guarantee, outputs or queues have changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ..job import JobContext
from ..ledger import positions
from ..ledger.ledger_rows import Head
from ..ledger.positions import Snapshot, is_moved
from ..ownership import job_marker, output_marks
from . import added_totals, start
from .epoch import Epoch, raise_epoch

if TYPE_CHECKING:
    from ..connector.tablet_transactions import Tablets


def migrate(context: JobContext, tablets: Tablets) -> list[str]:
    """Apply another guarantee, other outputs, fewer queues or the new tablets of a drained queue.

    Or let the tables add up what was in a state: once no older driver can commit, they get their
    functions. Until the head says so, neither the former job nor the new one starts.

    Returns what was done. Raises JobError when anything else has changed.
    """
    found = positions.read(context.client, context.settings)
    done, is_needed = _needed(context, found)
    if not is_needed:
        added_totals.add(context, added_totals.lacking(context))
        return done
    start.decide(context, found, migrating=True)
    epoch = raise_epoch(context.settings.ledger, tablets, Epoch())
    added_totals.add(context, added_totals.lacking(context))
    found = positions.read(context.client, context.settings)
    plan = start.decide(context, found, migrating=True)
    plan = replace(plan, head=replace(plan.head, sums=added_totals.bounds(context, plan.head)))
    start.begin(context, tablets, epoch, found, plan)
    done += [*plan.said, *output_marks.former(context, found.head or Head())]
    return [*done, "done: the next start continues where the job stopped"]


def rehearse_migrate(context: JobContext) -> list[str]:
    """Return what `migrate` would do now; changes nothing. Raises JobError where it would."""
    found = positions.read(context.client, context.settings)
    done, is_needed = _needed(context, found)
    if is_needed:
        plan = start.decide(context, found, migrating=True)
        done += [*plan.said, *output_marks.former(context, found.head or Head())]
    return [*done, "nothing was changed"]


def _needed(context: JobContext, found: Snapshot) -> tuple[list[str], bool]:
    """Return what has changed since the last start, and whether `migrate` has anything to do."""
    head, mine = found.begun, job_marker.marker_of(context)
    altered = added_totals.told(context, added_totals.lacking(context))
    if head is None:
        job_marker.verify_age(context, found)
        return altered or ["nothing to do: the job has not started yet"], False
    if done := [*_changes(found, head, mine, context.settings.queues), *altered]:
        return done, True
    return [f"nothing to do: the job's guarantee is {mine['guarantee']}"], False


def _changes(
    found: Snapshot, head: Head, mine: Mapping[str, object], queues: Sequence[str]
) -> list[str]:
    was, done = head.marker, []
    if was.get("guarantee") != mine["guarantee"]:
        done.append(
            f"the job's guarantee was {was.get('guarantee')} and is {mine['guarantee']} now"
        )
    if was.get("totals", []) != mine.get("totals", []) and mine["processing"] == "aggregate":
        done.append("the job keeps no state any more: its table has the totals")
    if was.get("outputs") != mine["outputs"]:
        done.append("the job's outputs now match the configuration")
    done += [
        f"{queue.path} was resharded, and all its rows were read before"
        for queue in found.queues
        if is_moved(head, queue)
    ]
    gone = sorted({*head.queues} - {*queues})
    return done + [f"{path} is not read any more; back, it continues where it was" for path in gone]
