"""The states of tablets, and how a table is cut into them anew."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from yt import yson

from ..core.errors import YtError, generic, not_supported
from .table import (
    FROZEN,
    MOUNTED,
    UNMOUNTED,
    Table,
    Tablet,
    new_tablets,
    not_mounted,
    require_readable,
    set_trimmed_row_counts,
    tablet_at,
)


def tablet_range(
    table: Table, path: str, first: int | None = None, last: int | None = None
) -> list[Tablet]:
    """Return tablets first..last, both included; all without limits. Raises YtError."""
    begin = 0 if first is None else first
    end = len(table.tablets) - 1 if last is None else last
    if not 0 <= begin <= end < len(table.tablets):
        raise generic(
            f"Invalid tablet range [{begin}, {end}] of table {path}: "
            f"it has {len(table.tablets)} tablet(s)"
        )
    return table.tablets[begin : end + 1]


def require_unmounted(table: Table, message: str) -> None:
    """Raise YtError, with the message, when a tablet is not unmounted."""
    for tablet in table.tablets:
        if tablet.state != UNMOUNTED:
            raise generic(
                f'{message} since not all of its tablets are in "unmounted" state',
                tablet_id=tablet.id,
                tablet_state=tablet.state,
            )


def mount(
    table: Table,
    path: str,
    first: int | None,
    last: int | None,
    *,
    freeze: bool,
    next_revision: Callable[[], int],
    now: float,
) -> None:
    table.schema.validate_dynamic()
    for tablet in tablet_range(table, path, first, last):
        if tablet.state == UNMOUNTED:
            tablet.mount_revision = next_revision()
            _set_state(tablet, FROZEN if freeze else MOUNTED, now)
            tablet.data.drop_chunks()
        elif freeze != (tablet.state == FROZEN):
            raise _wrong_state("mount", tablet)


def unmount(table: Table, path: str, first: int | None, last: int | None) -> None:
    for tablet in tablet_range(table, path, first, last):
        tablet.data.flush()
        _set_state(tablet, UNMOUNTED)


def freeze(table: Table, path: str, first: int | None, last: int | None, now: float) -> None:
    for tablet in tablet_range(table, path, first, last):
        if tablet.state == UNMOUNTED:
            raise _wrong_state("freeze", tablet)
        tablet.data.flush()
        _set_state(tablet, FROZEN, now)


def unfreeze(table: Table, path: str, first: int | None, last: int | None) -> None:
    for tablet in tablet_range(table, path, first, last):
        if tablet.state == UNMOUNTED:
            raise _wrong_state("unfreeze", tablet)
        _set_state(tablet, MOUNTED)
        tablet.data.drop_chunks()


def _set_state(tablet: Tablet, state: str, now: float | None = None) -> None:
    if state != FROZEN:
        tablet.frozen_at = None
    elif tablet.state != FROZEN:
        tablet.frozen_at = now
    tablet.state = state


def _wrong_state(action: str, tablet: Tablet) -> YtError:
    """Return the master's error (server/master/tablet_server/tablet_base.cpp, Validate...)."""
    return generic(f'Cannot {action} tablet {tablet.id} in "{tablet.state}" state')


def reshard(
    table: Table,
    path: str,
    first: int | None,
    last: int | None,
    tablet_count: int | None,
    pivot_keys: Sequence[Sequence[Any]] | None,
    trimmed_row_counts: Sequence[int] | None,
) -> None:
    """Cut tablets first..last, both included, anew; those of an ordered table keep their rows."""
    if tablet_count is None and pivot_keys is None:
        # client/driver/table_commands.cpp, TReshardTableCommand
        raise generic('Must specify either "pivot_keys" or "tablet_count"')
    old = tablet_range(table, path, first, last)
    for tablet in old:
        if tablet.state != UNMOUNTED:
            raise generic(f"Cannot reshard table since tablet {tablet.id} is not unmounted")
    begin = first or 0
    end = begin + len(old)
    if table.sorted and pivot_keys is None and len(old) < len(table.tablets):
        raise not_supported("resharding of a part of a sorted table without pivot keys")
    made = new_tablets(
        table.schema,
        tablet_count,
        pivot_keys,
        low=old[0].pivot,
        high=table.tablets[end].pivot if end < len(table.tablets) else None,
    )
    if table.ordered:
        _move_rows(old, made)
    if trimmed_row_counts is not None and any(tablet.data.rows for tablet in made):
        raise not_supported(f"trimmed row counts of {path}, which has rows")
    table.tablets[begin:end] = made
    if trimmed_row_counts is not None:
        set_trimmed_row_counts(table, trimmed_row_counts)


def _move_rows(old: list[Tablet], new: list[Tablet]) -> None:
    removed = old[len(new) :]
    for tablet in removed:
        if tablet.data.dropped != tablet.data.trimmed:
            # server/master/tablet_server/tablet.cpp, ValidateReshardRemove
            raise generic(
                f"Some chunks of tablet {tablet.id} are not fully trimmed; such a tablet cannot "
                "participate in resharding"
            )
    for before, after in zip(old, new, strict=False):
        after.data = before.data
    for tablet in removed:
        target = new[-1].data
        if tablet.data.rows:
            target.append(tablet.data.rows, max(target.last_commit, tablet.data.last_commit))
            target.flush()


def trim(table: Table, path: str, tablet_index: int, trimmed_row_count: int) -> None:
    tablet = tablet_at(table, tablet_index, path)
    if tablet.state != MOUNTED:
        raise not_mounted(tablet, path)
    if trimmed_row_count > tablet.data.total:
        # server/node/tablet_node/tablet_manager.cpp
        raise generic(
            f"Cannot trim tablet {tablet.id} at row {trimmed_row_count} "
            f"since it only has {tablet.data.total} row(s)"
        )
    tablet.data.trim(trimmed_row_count)


def info(table: Table, path: str, index: int, timestamp: int) -> dict[str, Any]:
    """Return the row counts of one tablet at that time. Raises YtError when it is not mounted."""
    tablet = tablet_at(table, index, path)
    require_readable(tablet, path)
    return {
        "total_row_count": tablet.data.total,
        "trimmed_row_count": tablet.data.trimmed,
        "delayed_lockless_row_count": 0,
        "barrier_timestamp": yson.YsonUint64(timestamp),
        "last_write_timestamp": yson.YsonUint64(
            table.last_commit if table.sorted else tablet.data.last_commit
        ),
    }
