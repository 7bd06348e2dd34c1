"""Rows of dynamic tables, in and out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...query import select
from ...rows import wire
from ...tables.row_locks import Taken, from_bits
from .. import rowsets, versioned
from ..bus import Part
from ..messages import text
from ..service import Invocation, method
from .transactions import tablet_transaction

SYNC_LAST_COMMITTED = 0x3FFFFFFFFFFFFF01
"""The first timestamp with a special meaning; all of them read the newest state here (model)."""


def _timestamp(value: int) -> int | None:
    return None if value >= SYNC_LAST_COMMITTED else value


@method("ModifyRows")
def modify_rows(call: Invocation) -> None:
    message = call.message
    locks = _locks(message)
    transaction = tablet_transaction(call)
    if any(locks) and transaction is not None:
        names = rowsets.names(message.rowset_descriptor)
        rowset, path = rowsets.joined(call.attachments), text(message.path)
        call.cluster.tables.lock_rowset(path, rowset, names, locks, transaction)
        return
    call.cluster.tables.modify_rowset(
        text(message.path),
        rowsets.joined(call.attachments),
        [*message.row_modification_types],
        rowsets.names(message.rowset_descriptor),
        tx=transaction,
    )


def _locks(message: Any) -> list[Taken]:
    """Return the locks that the client takes on each row, beside those that a write takes."""
    read = [*message.row_legacy_read_locks]
    masks = [*message.row_legacy_locks]
    if not (any(read) or any(masks)):  # the native client sends a zero for each row
        return []
    count = max(len(read), len(masks))
    given = zip(read or [0] * count, masks or [0] * count, strict=False)
    return [from_bits(*bits) for bits in given]


@method("LookupRows")
def lookup_rows(call: Invocation) -> Sequence[Part]:
    message = call.message
    names, keys = rowsets.read(message.rowset_descriptor, call.attachments)
    rowset = call.cluster.tables.lookup(
        text(message.path),
        rowsets.present(keys),
        names,
        columns=[text(name) for name in message.columns] or None,
        timestamp=_timestamp(message.timestamp),
        keep_missing=message.keep_missing_rows,
    )
    return rowsets.write(call.reply.rowset_descriptor, rowset)


@method("VersionedLookupRows")
def versioned_lookup_rows(call: Invocation) -> Sequence[Part]:
    """Answer with the versions of rows; with a retention config, with as many as it keeps."""
    message = call.message
    names, keys = rowsets.read(message.rowset_descriptor, call.attachments)
    wanted = [text(name) for name in message.columns] or None
    limit = (
        message.retention_config.max_data_versions if message.HasField("retention_config") else None
    )
    table, columns, found = call.cluster.tables.versions(
        text(message.path), rowsets.present(keys), names, columns=wanted
    )
    at = _timestamp(message.timestamp)
    rows: list[bytes | None] = []
    for versions in found:
        seen = [version for version in versions if at is None or version[0] <= at]
        if seen:
            rows.append(versioned.encode(seen, table.schema.key_count, columns, limit or None))
        elif message.keep_missing_rows:
            rows.append(None)
    descriptor = call.reply.rowset_descriptor
    described = table.schema.rowset_columns()
    rowsets.describe(descriptor, [described[index] for index in columns])
    descriptor.rowset_kind = rowsets.VERSIONED
    return [wire.join(rows)]


@method("SelectRows")
def select_rows(call: Invocation) -> Sequence[Part]:
    message = call.message
    rowset = select(
        call.cluster.tables,
        text(message.query),
        _timestamp(message.timestamp),
        join_without_key=message.allow_join_without_index,
    )
    return rowsets.write(call.reply.rowset_descriptor, rowset)
