"""Tables as a whole: mounting, cutting into tablets, trimming, altering."""

from __future__ import annotations

from ...control.parameters import AT_ONCE, only, read
from ...rows import wire
from .. import rowsets
from ..messages import text
from ..service import Invocation, method
from .cypress import from_yson, to_yson

_TABLETS = read(
    "path tablet_range_options.first_tablet_index tablet_range_options.last_tablet_index"
)


def _tablets(call: Invocation) -> tuple[int | None, int | None]:
    """Return the (first, last) tablet, both included."""
    options = call.message.tablet_range_options
    return (
        options.first_tablet_index if options.HasField("first_tablet_index") else None,
        options.last_tablet_index if options.HasField("last_tablet_index") else None,
    )


@method("MountTable", parameters={**_TABLETS, **read("freeze")})
def mount_table(call: Invocation) -> None:
    message = call.message
    call.cluster.tables.mount(text(message.path), *_tablets(call), freeze=message.freeze)


@method("UnmountTable", parameters={**_TABLETS, "force": AT_ONCE})
def unmount_table(call: Invocation) -> None:
    call.cluster.tables.unmount(text(call.message.path), *_tablets(call))


@method("RemountTable", parameters=_TABLETS)
def remount_table(call: Invocation) -> None:
    call.cluster.tables.remount(text(call.message.path), *_tablets(call))


@method("FreezeTable", parameters=_TABLETS)
def freeze_table(call: Invocation) -> None:
    call.cluster.tables.freeze(text(call.message.path), *_tablets(call))


@method("UnfreezeTable", parameters=_TABLETS)
def unfreeze_table(call: Invocation) -> None:
    call.cluster.tables.unfreeze(text(call.message.path), *_tablets(call))


@method(
    "ReshardTable",
    parameters={
        **_TABLETS,
        **read("tablet_count rowset_descriptor"),
        "enable_slicing": only(False),
        "uniform": only(False),
    },
)
def reshard_table(call: Invocation) -> None:
    """Cut a table new_process: at the pivot keys of a rowset, or into a count of tablets."""
    message = call.message
    pivots = None
    # The native client sends pivot keys without a descriptor: their values are in order.
    if message.HasField("rowset_descriptor") or call.attachments:
        keys = wire.split(rowsets.joined(call.attachments))
        pivots = [
            [wire.to_python(kind, value) for _, kind, value in wire.values(key)] if key else []
            for key in keys
        ]
    first, last = _tablets(call)
    call.cluster.tables.reshard(
        text(message.path),
        tablet_count=message.tablet_count if message.HasField("tablet_count") else None,
        pivot_keys=pivots,
        first=first,
        last=last,
    )


@method("TrimTable", parameters=read("path tablet_index trimmed_row_count"))
def trim_table(call: Invocation) -> None:
    message = call.message
    count = message.trimmed_row_count
    signed = count - (1 << 64) if count >> 63 else count  # the field's type has no sign
    call.cluster.tables.trim(text(message.path), message.tablet_index, signed)


@method(
    "AlterTable",
    parameters={
        **read("path schema dynamic"),
        "schema_modification": only(0),
        "transactional_options.transaction_id": only(),
    },
)
def alter_table(call: Invocation) -> None:
    message = call.message
    call.cluster.tables.alter(
        text(message.path),
        schema=from_yson(message.schema) if message.HasField("schema") else None,
        dynamic=message.dynamic if message.HasField("dynamic") else None,
    )


@method("GetTabletInfos", parameters={**read("path tablet_indexes"), "request_errors": only(False)})
def get_tablet_infos(call: Invocation) -> None:
    message = call.message
    infos = call.cluster.tables.tablet_infos(text(message.path), list(message.tablet_indexes))
    for info in infos:
        shown = call.reply.tablets.add()
        for field in (
            "total_row_count",
            "trimmed_row_count",
            "barrier_timestamp",
            "last_write_timestamp",
        ):
            setattr(shown, field, info[field])


@method("GetTablePivotKeys", parameters=read("path represent_key_as_list"))
def get_table_pivot_keys(call: Invocation) -> None:
    """Answer with pivot keys as lists, or else as maps by column, which is the older form."""
    table_path = text(call.message.path)
    _, table = call.cluster.tables.sorted(table_path)
    keys = call.cluster.cypress.get(f"{table_path}/@pivot_keys")
    if not call.message.represent_key_as_list:
        keys = [dict(zip(table.schema.key_columns, key, strict=False)) for key in keys]
    call.reply.value = to_yson(keys)
