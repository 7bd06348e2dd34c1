"""`rewind` with totals: rows that are read again would be added again.

So a rewind back swaps empty tables in first. One transaction cannot: it may touch 100,000 rows of a
tablet, and a table has more. The head says what is under way, so that no start comes in between.
Each step may be repeated after a crash, by the same `rewind`:

1. write the intent into the head, with the id of each table that adds up,
2. make an empty table next to each that adds up,
3. move the former table out of the way, and the empty one to its path,
4. mount it; the start that follows moves the head, which also ends the intent.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from itertools import chain, count
from typing import TYPE_CHECKING, Any

from yt.common import YtError
from yt.wrapper.schema import TableSchema

from ..cluster.client import Client, facts
from ..errors import JobError
from ..errors.error_codes import ErrorCode
from ..job import JobContext
from ..ledger import ledger_rows, positions
from ..ledger.ledger_rows import Head
from ..ledger.positions import Snapshot
from ..ownership import job_marker
from .epoch import Epoch, verify_epoch

if TYPE_CHECKING:
    from ..connector.tablet_transactions import Tablets

INTENT = "emptying"
"""In the head's marker: what the rewind that is under way does to each table."""
_INSTEAD = "ytstream_instead_of"
"""An attribute of the empty table: the id of the table that it replaces."""
_KEPT = (
    "account", "tablet_cell_bundle", "primary_medium", "acl", "inherit_acl", "optimize_for",
    "compression_codec", "erasure_codec", "tablet_balancer_config", "in_memory_mode",
)  # fmt: skip
"""What the new table has of the former one, in addition to its schema and its tablets."""


def verify_swapped(head: Head) -> None:
    """Raise JobError where a rewind was cut off after it has announced empty tables."""
    if INTENT in head.marker:
        raise JobError(
            "a `rewind` with TOTALS=empty was cut off, and its tables may be empty already",
            "repeat it, with TOTALS=empty: it does what is left",
            code=ErrorCode.JOB_CHANGED,
        )


def verify_added_once(
    context: JobContext, found: Snapshot, *, is_back: bool, is_empty: bool
) -> None:
    """Raise JobError for a rewind that would add rows twice, or that empties no totals."""
    names = context.job.totals
    if is_empty and not names:
        raise JobError(
            "no output has aggregate= in tables.py: there are no totals to empty",
            "leave TOTALS=empty out",
            code=ErrorCode.USAGE,
        )
    if is_empty or not names:
        return
    verify_swapped(found.head or Head())
    paths = [context.settings.outputs[name] for name in names]
    may_repeat = is_back or (job_marker.is_lost(context, found) and _has_rows(context, paths))
    if may_repeat:
        raise JobError(
            f"{', '.join(paths)} has totals: rows that are read again would be added again",
            "TOTALS=empty (--totals empty) begins with an empty table, and keeps the previous one "
            "under another name; or move forward only",
            code=ErrorCode.OUTPUT_FILLED,
        )


def _has_rows(context: JobContext, paths: list[str]) -> bool:
    return any([*context.client.select_rows(f"* from [{path}] limit 1")] for path in paths)


def swap(context: JobContext, tablets: Tablets, mine: Epoch) -> list[str]:
    """Put an empty table in the place of each that adds up; return what was done.

    May be repeated. Raises JobError for a table that is not the rewind's.
    """
    plans = _announced(context, tablets, mine)
    for plan in plans:
        _swap(context.client, plan)
    return [plan.told for plan in plans]


def resume(context: JobContext) -> None:
    """Bring back the tables of a rewind that was cut off while they had no path, or no mount."""
    with suppress(YtError):  # no ledger yet: whoever calls says so
        head = positions.read_head(context.settings.ledger, context.client.select_rows)
        for plan in _plans_of(head or Head()):
            _bring_back(context.client, plan)


def planned(context: JobContext, head: Head) -> list[str]:
    """Return what a rewind from that head on does to the tables, a line each; change nothing."""
    plans = _plans_of(head) or _plans_for(context, head.epoch + 1)
    return [plan.told for plan in plans]


@dataclass(frozen=True)
class _Plan:
    """What a rewind does to a table, as the head has it.

    Names alone tell nothing: a ledger that is made again counts its epochs from 1, and others may
    have a table of that name. So the table that goes is known by its id.
    """

    path: str
    table: str
    """The id of the table that goes."""
    former: str
    """Where it goes."""
    fresh: str
    """Where the empty table is made."""

    @property
    def told(self) -> str:
        return (
            f"{self.path} begins empty, and counts from those rows on, in partitions that stay "
            f"from where they are; the previous table is {self.former}, unmounted"
        )


def _plans_of(head: Head) -> list[_Plan]:
    """Return the plans of a rewind that was cut off."""
    return [_Plan(**plan) for plan in head.marker.get(INTENT, ())]


def _plans_for(context: JobContext, number: int) -> list[_Plan]:
    """Return the plans of the rewind that raises the epoch to that number."""
    client, plans = context.client, []
    for name in context.job.totals:
        path = context.settings.outputs[name]
        table = str(client.get(f"{path}/@id"))
        former = _free(client, f"{path}_before_{number}")
        plans.append(_Plan(path, table, former, _free(client, f"{path}_empty")))
    return plans


def _free(client: Client, wanted: str) -> str:
    """Return the path, with a number where something has it."""
    numbered = (f"{wanted}_{number}" for number in count(2))
    return next(path for path in chain([wanted], numbered) if not client.exists(f"{path}&"))


def _announced(context: JobContext, tablets: Tablets, mine: Epoch) -> list[_Plan]:
    """Write the intent into the head, and return it: that of the first attempt, if there is one."""
    path = context.settings.ledger
    with tablets.transaction() as transaction:
        head = verify_epoch(positions.read_head(path, transaction.select), mine)
        if plans := _plans_of(head):
            return plans
        wanted = _plans_for(context, mine.number)
        marker = {**head.marker, INTENT: [asdict(plan) for plan in wanted]}
        rows = [ledger_rows.head_row(replace(head, marker=marker))]
        transaction.modify(path, ledger_rows.COLUMNS, rows)
    return wanted


def _swap(client: Client, plan: _Plan) -> None:
    if _id_of(client, plan.path) == plan.table:
        _remove_own(client, plan)  # one that was cut off may be older than the table's last change
        client.create("table", plan.fresh, attributes=_attributes(client, plan))
        client.unmount_table(plan.path, sync=True)
        client.move(plan.path, plan.former)
    _bring_back(client, plan)
    _verify_empty(client, plan)
    _remove_own(client, plan)  # `provision` may have made another one while the path was free


def _bring_back(client: Client, plan: _Plan) -> None:
    if not client.exists(plan.path):
        client.move(plan.fresh, plan.path)
    client.mount_table(plan.path, sync=True)


def _verify_empty(client: Client, plan: _Plan) -> None:
    """Raise JobError where a table with rows came to the path while the rewind was cut off."""
    if not _is_own(client, plan.path, plan) and [
        *client.select_rows(f"* from [{plan.path}] limit 1")
    ]:
        raise JobError(
            f"{plan.path} is another table than when the rewind began, and has rows: what is read "
            "again would be added to them",
            f"move it away, run `provision`, then repeat; the previous table is {plan.former}",
            code=ErrorCode.OUTPUT_FILLED,
        )


def _remove_own(client: Client, plan: _Plan) -> None:
    if not client.exists(plan.fresh):
        return
    if not _is_own(client, plan.fresh, plan):
        raise JobError(
            f"{plan.fresh} is in the way: the rewind makes the empty table there, and has not "
            "made this one",
            "move it away, then repeat",
            code=ErrorCode.OUTPUT_FILLED,
        )
    client.remove(plan.fresh)


def _is_own(client: Client, path: str, plan: _Plan) -> bool:
    found = facts(client, path, [_INSTEAD]) or {}
    return found.get(_INSTEAD) == plan.table


def _id_of(client: Client, path: str) -> str:
    return str((facts(client, path, ["id"]) or {}).get("id", ""))


def _attributes(client: Client, plan: _Plan) -> Mapping[str, Any]:
    """Return the attributes of an empty table like that one."""
    found = dict(facts(client, plan.path, ["schema", "pivot_keys", *_KEPT]) or {})
    schema = TableSchema.from_yson_type(found.pop("schema")).to_yson_type()
    return {"dynamic": True, "schema": schema, **found, _INSTEAD: plan.table}
