"""The fields that every RPC method knows, and the check of a request (names: api_service.proto).

All fields of the messages in `PARTS` are named, with a dot. `EVERY` holds for all methods that have
such fields. The rules that a method is registered with override them. A field that is in neither is
refused if it is set, as is a field that the protocol of the SPYT wheel does not have.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from google.protobuf.unknown_fields import UnknownFieldSet

from ..control.parameters import (
    NO_ACCESS,
    NO_REPLICAS,
    ONE_MASTER,
    Harmless,
    Known,
    Rule,
    each,
    only,
    read,
)

NO_PINGS = Harmless("says when the client or the proxy pings; neither is ours to do")

PARTS = frozenset(
    {
        "transactional_options",
        "mutating_options",
        "master_read_options",
        "suppressable_access_tracking_options",
        "tablet_read_options",
        "tablet_range_options",
        "row_batch_read_options",
        "versioned_read_options",
    }
)

EVERY: dict[str, Rule] = {
    **read("prerequisite_options transactional_options.transaction_id"),
    "transactional_options.ping": NO_PINGS,
    "transactional_options.ping_ancestors": NO_PINGS,
    **each(
        "transactional_options.suppress_transaction_coordinator_sync "
        "transactional_options.suppress_upstream_sync "
        "transactional_options.suppress_strongly_ordered_transaction_barrier "
        "master_read_options.read_from "
        "master_read_options.expire_after_successful_update_time "
        "master_read_options.expire_after_failed_update_time "
        "master_read_options.cache_sticky_group_size "
        "master_read_options.disable_per_user_cache "
        "master_read_options.success_staleness_bound",
        ONE_MASTER,
    ),
    "mutating_options.mutation_id": Harmless("each request arrives once"),
    "mutating_options.retry": only(False),
    **each(
        "suppressable_access_tracking_options.suppress_access_tracking "
        "suppressable_access_tracking_options.suppress_modification_tracking "
        "suppressable_access_tracking_options.suppress_expiration_timeout_renewal",
        NO_ACCESS,
    ),
    "tablet_read_options.read_from": NO_REPLICAS,
    "tablet_read_options.cached_sync_replicas_timeout": NO_REPLICAS,
    "versioned_read_options.read_mode": only(0),
}


Fields = Sequence[tuple[Any, Any]]
"""The set fields of a message: descriptor and value, as `ListFields` gives them."""


def check(known: Known, message: Any, fields: Fields) -> None:
    """Raise YtError if a field of a request, or its value, is not supported."""
    free, limited = known.free, _limited_parts(known)
    for field, value in fields:
        name = field.name
        if name in free:
            continue
        if name not in PARTS:
            if not _says_nothing(field, value):
                known.check_limited(name, value)
        elif name in limited:
            for part, given in value.ListFields():
                if (full := f"{name}.{part.name}") not in free and not _says_nothing(part, given):
                    known.check_limited(full, given)
    for unknown in UnknownFieldSet(message):
        known.check_limited(f"field {unknown.field_number}", unknown.data)


@cache
def _limited_parts(known: Known) -> frozenset[str]:
    """Return the parts whose fields are checked one by one; in the others, every field is free."""
    limited = known.rules.keys() - known.free
    return frozenset(name.partition(".")[0] for name in limited if "." in name)


def _says_nothing(field: Any, value: Any) -> bool:
    """Return whether a field that is set asks for what its absence means.

    The native client sets many fields to their default, to an empty message or to a zero id.
    """
    if field.message_type is None:
        if field.is_repeated:
            return not any(value)
        return bool(value == field.default_value)
    items = value if field.is_repeated else (value,)
    return all(
        not len(UnknownFieldSet(item))
        and all(_says_nothing(inner, given) for inner, given in item.ListFields())
        for item in items
    )
