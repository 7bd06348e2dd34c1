"""The requests of a journal by kind: who answers them on a cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from minicluster.client import Entry
from minicluster.core import ids

MASTER, TABLETS = "master", "tablets"
_TABLETS = frozenset({
    "ModifyRows", "SelectRows", "LookupRows", "PullQueue", "PullConsumer", "PullQueueConsumer",
    "AdvanceConsumer", "AdvanceQueueConsumer", "GetTabletInfos", "AttachTransaction",
    "insert_rows", "delete_rows", "select_rows", "lookup_rows", "pull_queue", "pull_consumer",
    "advance_consumer", "get_tablet_infos",
})  # fmt: skip
"""Requests about rows, in both protocols; SPYT attaches to no other transactions than tablets'."""
_OF_TABLETS = (1, "tablet")
"""The types of a transaction that a client starts: of tablets in RPC and in HTTP."""
_OF_PROXIES = frozenset(("Discover", "DiscoverProxies", "discover_proxies", "hosts"))
"""Which proxies there are is the proxies' own matter."""


def kinds(entries: Iterable[Entry], begin: float, end: float) -> dict[str, dict[str, int]]:
    """Return the number of requests by kind and method, of those between two moments."""
    found = {MASTER: Counter[str](), TABLETS: Counter[str]()}
    for entry in entries:
        if begin <= entry.time < end and entry.method not in _OF_PROXIES:
            found[_kind(entry)][entry.method] += 1
    return {kind: dict(sorted(counts.items())) for kind, counts in found.items()}


def _kind(entry: Entry) -> str:
    if entry.method in _TABLETS or entry.args.get("type") in _OF_TABLETS:
        return TABLETS
    transaction = str(entry.args.get("transaction", ""))
    about_one = entry.method.lower().replace("_", "") in (
        "committransaction", "aborttransaction", "pingtransaction",
    )  # fmt: skip
    if about_one and ids.is_id(transaction) and not ids.is_master_transaction(transaction):
        return TABLETS
    return MASTER
