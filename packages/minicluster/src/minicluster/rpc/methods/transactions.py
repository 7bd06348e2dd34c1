"""Master and tablet transactions.

A tablet transaction lives on the proxy that started it: SPYT keeps its client pinned to that
address, and attaching, modifying or committing through another one fails.
"""

from __future__ import annotations

from ...control.parameters import LASTING, Harmless, each, read
from ...core import ids
from ...core.errors import generic
from ...cypress.transactions import DEFAULT_TIMEOUT_MS
from ...tables.transactions import Transaction
from ..messages import guid, set_guid
from ..parameters import NO_PINGS
from ..service import Invocation, method
from .cypress import attributes

MASTER, TABLET = 0, 1
ATOMICITY = {0: "full", 1: "none"}
DURABILITY_SYNC = 0


@method(
    "StartTransaction",
    parameters={
        **read(
            "type timeout id parent_id atomicity attributes deadline prerequisite_transaction_ids"
        ),
        **each("auto_abort ping ping_ancestors pinger_address", NO_PINGS),
        "durability": LASTING,
        "sticky": Harmless("a tablet transaction stays on its proxy, a master one is everywhere"),
    },
)
def start_transaction(call: Invocation) -> None:
    message = call.message
    timeout_ms = message.timeout // 1000 if message.HasField("timeout") else None
    if message.type == MASTER:
        transaction_id = call.cluster.transactions.start(
            parent=guid(message.parent_id) if message.HasField("parent_id") else None,
            timeout_ms=timeout_ms,
            deadline=message.deadline / 1e6 if message.HasField("deadline") else None,
            attributes=attributes(message.attributes),
            prerequisites=[guid(item) for item in message.prerequisite_transaction_ids],
        )
        start_timestamp = call.cluster.clock.timestamp()
    else:
        transaction = call.cluster.tablet_transactions.start(
            timeout_ms=timeout_ms,
            proxy=call.proxy,
            attributes=attributes(message.attributes),
            atomicity=ATOMICITY[message.atomicity],
            id=guid(message.id) if message.HasField("id") else None,
        )
        transaction_id, start_timestamp = transaction.id, transaction.start_timestamp
    set_guid(call.reply.id, transaction_id)
    call.reply.start_timestamp = start_timestamp


@method(
    "AttachTransaction",
    parameters={
        **read("transaction_id"),
        **each("auto_abort ping ping_ancestors ping_period pinger_address", NO_PINGS),
    },
)
def attach_transaction(call: Invocation) -> None:
    transaction_id = guid(call.message.transaction_id)
    reply = call.reply
    reply.durability = DURABILITY_SYNC
    reply.atomicity = 0
    if ids.is_master_transaction(transaction_id):
        # A proxy attaches without asking the master: the request after it fails (FACTS.md, m11).
        found = call.cluster.transactions.running.get(transaction_id)
        timeout = found.timeout if found else DEFAULT_TIMEOUT_MS / 1000
        reply.type = MASTER
        reply.start_timestamp = call.cluster.clock.last_timestamp
    else:
        transaction = call.cluster.tablet_transactions.get(transaction_id, call.proxy)
        timeout = transaction.timeout
        reply.type = TABLET
        reply.start_timestamp = transaction.start_timestamp
        reply.atomicity = 1 if transaction.atomicity == "none" else 0
    reply.timeout = round(timeout * 1e6)


@method("PingTransaction", parameters=read("transaction_id ping_ancestors"))
def ping_transaction(call: Invocation) -> None:
    transaction_id = guid(call.message.transaction_id)
    if ids.is_master_transaction(transaction_id):
        call.cluster.transactions.ping(transaction_id, ping_ancestors=call.message.ping_ancestors)
    else:
        call.cluster.tablet_transactions.ping(transaction_id, call.proxy)


@method("CommitTransaction", parameters=read("transaction_id"))
def commit_transaction(call: Invocation) -> None:
    transaction_id = guid(call.message.transaction_id)
    if ids.is_master_transaction(transaction_id):
        call.cluster.transactions.commit(transaction_id)
        timestamp = call.cluster.clock.timestamp()
    else:
        timestamp = call.cluster.tablet_transactions.commit(transaction_id, call.proxy)
    call.reply.primary_commit_timestamp = timestamp
    call.reply.commit_timestamps.cell_tags.append(ids.CELL_TAG)
    call.reply.commit_timestamps.timestamps.append(timestamp)


@method("AbortTransaction", parameters=read("transaction_id"))
def abort_transaction(call: Invocation) -> None:
    transaction_id = guid(call.message.transaction_id)
    if ids.is_master_transaction(transaction_id):
        call.cluster.transactions.abort(transaction_id)
    else:
        call.cluster.tablet_transactions.abort(transaction_id, call.proxy)


@method("GenerateTimestamps", parameters=read("count"))
def generate_timestamps(call: Invocation) -> None:
    count = call.message.count
    if not 1 <= count <= 1_000_000:
        raise generic(f"Cannot generate {count} timestamps")
    call.reply.timestamp = call.cluster.clock.timestamp()
    for _ in range(count - 1):
        call.cluster.clock.timestamp()


def tablet_transaction(call: Invocation) -> Transaction | None:
    """Return the tablet transaction that the message names, or None.

    Raises YtError for a transaction of another proxy.
    """
    if not call.message.HasField("transaction_id"):
        return None
    transaction_id = guid(call.message.transaction_id)
    if ids.is_master_transaction(transaction_id):
        # ValidateTabletTransactionId in ytlib/transaction_client
        raise generic(f"{transaction_id} is not a valid tablet transaction id")
    return call.cluster.tablet_transactions.get(transaction_id, call.proxy)
