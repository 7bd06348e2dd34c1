"""`rewind` with totals: rows that are read again would be added again.

So a rewind back swaps empty tables in first. One transaction cannot: it may touch 100,000 rows of a
tablet, and a table has more. The head says what is under way, so that no start comes in between.
Each step may be repeated after a crash, by the same `rewind`:

1. write the intent into the head,
2. make an empty table next to each that adds up,
3. move the former table out of the way, and the empty one to its path,
4. mount it; the start that follows moves the head, which also ends the intent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
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
from . import job_ownership
from .epoch import Epoch, verify_epoch

if TYPE_CHECKING:
    from ..connector.tablet_transactions import Tablets

INTENT = "emptying"
"""In the head's marker: the epoch of the rewind that swaps the tables."""
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
    may_repeat = is_back or (job_ownership.is_lost(context, found) and _has_rows(context, paths))
    if may_repeat:
        raise JobError(
            f"{', '.join(paths)} has totals: rows that are read again would be added again",
            "TOTALS=empty (--totals empty) begins with an empty table, and keeps the previous one "
            "under another name; or move forward only",
            code=ErrorCode.OUTPUT_FILLED,
        )


def _has_rows(context: JobContext, paths: list[str]) -> bool:
    return any([*context.client.select_rows(f"* from [{path}] limit 1")] for path in paths)


def swap(context: JobContext, tablets: Tablets, mine: Epoch) -> None:
    """Put an empty table in the place of each that adds up. May be repeated."""
    number = _announced(context, tablets, mine)
    for path, former in _former(context, number):
        _swap(context.client, path, former)


def resume(context: JobContext) -> None:
    """Bring back the tables of a rewind that was cut off while they had no path, or no mount."""
    with suppress(YtError):  # no ledger yet: whoever calls says so
        head = positions.read_head(context.settings.ledger, context.client.select_rows)
        if head is not None and INTENT in head.marker:
            for name in context.job.totals:
                _bring_back(context.client, context.settings.outputs[name])


def told(context: JobContext, number: int) -> Iterator[str]:
    """Yield a line for each table that is swapped by the rewind of that epoch."""
    for path, former in _former(context, number):
        yield (
            f"{path} begins empty, and counts from those rows on; the previous table is {former}, "
            "unmounted"
        )


def number_of(head: Head, mine: Epoch) -> int:
    """Return the number of a rewind: that of the first attempt, where one was cut off."""
    return int(head.marker.get(INTENT, mine.number))


def _announced(context: JobContext, tablets: Tablets, mine: Epoch) -> int:
    """Write the intent into the head; return the number of the rewind."""
    path = context.settings.ledger
    with tablets.transaction() as transaction:
        head = verify_epoch(positions.read_head(path, transaction.select), mine)
        number = number_of(head, mine)
        marker = {**head.marker, INTENT: number}
        rows = [ledger_rows.head_row(replace(head, marker=marker))]
        transaction.modify(path, ledger_rows.COLUMNS, rows)
    return number


def _former(context: JobContext, number: int) -> Iterator[tuple[str, str]]:
    for name in context.job.totals:
        path = context.settings.outputs[name]
        yield path, f"{path}_before_{number}"


def _swap(client: Client, path: str, former: str) -> None:
    fresh = _fresh(path)
    if not client.exists(former):
        if client.exists(fresh):  # one that was cut off may be older than the table's last change
            client.remove(fresh)
        client.create("table", fresh, attributes=_attributes(client, path))
        client.unmount_table(path, sync=True)
        client.move(path, former)
    _bring_back(client, path)


def _bring_back(client: Client, path: str) -> None:
    if not client.exists(path):
        client.move(_fresh(path), path)
    client.mount_table(path, sync=True)


def _fresh(path: str) -> str:
    return f"{path}_empty"


def _attributes(client: Client, path: str) -> Mapping[str, Any]:
    """Return the attributes of an empty table like that one."""
    found = dict(facts(client, path, ["schema", "pivot_keys", *_KEPT]) or {})
    schema = TableSchema.from_yson_type(found.pop("schema")).to_yson_type()
    return {"dynamic": True, "schema": schema, **found}
