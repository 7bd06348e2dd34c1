"""Master and tablet transactions, told apart by the type in their ids."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from ...control.parameters import LASTING, TUNING, Harmless, read
from ...core import ids
from ...core.errors import generic
from ..registry import HTTP_PROXY, STRUCTURED, Invocation, command, is_master


@command(
    "start_transaction",
    "start_tx",
    parameters={
        **read("type timeout deadline attributes atomicity transaction_id"),
        "durability": LASTING,
        "start_cypress_transaction": Harmless("a master transaction is one for Cypress"),
        "sticky": Harmless("the only HTTP proxy keeps every transaction"),
        "suppress_start_timestamp_generation": TUNING,
    },
    output=STRUCTURED,
    volatile=True,
)
def start_transaction(call: Invocation) -> Any:
    kind = call.get("type", "master")
    attributes = call.mapping("attributes")
    timeout = call.integer("timeout")
    if timeout is not None and timeout <= 0:
        raise generic(f"Transaction timeout must be positive, not {timeout}")
    if kind == "tablet":
        transaction = call.cluster.tablet_transactions.start(
            timeout_ms=timeout,
            proxy=HTTP_PROXY,
            attributes=attributes,
            atomicity=str(call.get("atomicity", "full")),
        )
        return {"transaction_id": transaction.id}
    if kind != "master":
        raise generic(f'Error parsing transaction type "{kind}"')
    started = call.cluster.transactions.start(
        parent=call.tx,
        timeout_ms=timeout,
        deadline=_seconds(call.get("deadline")),
        attributes=attributes,
        prerequisites=call.strings("prerequisite_transaction_ids") or [],
    )
    return {"transaction_id": started}


def _seconds(deadline: Any) -> float | None:
    """Return the seconds since the epoch of a time in milliseconds or in ISO 8601."""
    if deadline is None:
        return None
    if isinstance(deadline, int):
        return deadline / 1000
    try:
        return datetime.fromisoformat(str(deadline)).timestamp()
    except ValueError:
        raise generic(f'Error parsing deadline "{deadline}"') from None


def _own(call: Invocation) -> str:
    transaction_id = call.string("transaction_id")
    if transaction_id == ids.NULL:
        raise generic("A valid transaction is required")
    return transaction_id


@command(
    "ping_transaction",
    "ping_tx",
    parameters=read("transaction_id ping_ancestor_transactions"),
    volatile=True,
)
def ping_transaction(call: Invocation) -> None:
    transaction_id = _own(call)
    if is_master(transaction_id):
        call.cluster.transactions.ping(
            transaction_id, ping_ancestors=call.flag("ping_ancestor_transactions")
        )
    else:
        call.cluster.tablet_transactions.ping(transaction_id, HTTP_PROXY)


@command("commit_transaction", "commit_tx", parameters=read("transaction_id"), volatile=True)
def commit_transaction(call: Invocation) -> None:
    transaction_id = _own(call)
    if is_master(transaction_id):
        call.cluster.transactions.commit(transaction_id)
    else:
        call.cluster.tablet_transactions.commit(transaction_id, HTTP_PROXY)


@command(
    "abort_transaction",
    "abort_tx",
    parameters={**read("transaction_id"), "force": Harmless("an abort always succeeds")},
    volatile=True,
)
def abort_transaction(call: Invocation) -> None:
    transaction_id = _own(call)
    if is_master(transaction_id):
        call.cluster.transactions.abort(transaction_id)
    else:
        call.cluster.tablet_transactions.abort(transaction_id, HTTP_PROXY)


@command("generate_timestamp", output=STRUCTURED)
def generate_timestamp(call: Invocation) -> Any:
    return {"timestamp": call.cluster.clock.timestamp()}
