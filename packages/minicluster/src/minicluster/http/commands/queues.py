"""Queues, consumers and producers."""

from __future__ import annotations

from typing import Any

from ...control.parameters import NO_REPLICAS, TUNING, Rule, read
from ...queues.paths import local
from ...rows.named import shown
from ..registry import STRUCTURED, TABULAR, Invocation, command

_LIMITS: dict[str, Rule] = {
    **read("max_row_count max_data_weight"),
    "data_weight_per_row_hint": TUNING,
    "replica_consistency": NO_REPLICAS,
    "use_native_tablet_node_api": TUNING,
}
_POSITION = read("consumer_path queue_path partition_index")
_SESSION = read("producer_path queue_path session_id")


@command(
    "register_queue_consumer",
    parameters=read("queue_path consumer_path vital partitions"),
    volatile=True,
)
def register_queue_consumer(call: Invocation) -> None:
    call.cluster.queues.register(
        local(call.rich("queue_path"), call.cluster.name),
        local(call.rich("consumer_path"), call.cluster.name),
        call.required_flag("vital"),
        call.get("partitions"),
    )


@command("unregister_queue_consumer", parameters=read("queue_path consumer_path"), volatile=True)
def unregister_queue_consumer(call: Invocation) -> None:
    call.cluster.queues.unregister(
        local(call.rich("queue_path"), call.cluster.name),
        local(call.rich("consumer_path"), call.cluster.name),
    )


@command(
    "list_queue_consumer_registrations",
    parameters=read("queue_path consumer_path"),
    output=STRUCTURED,
)
def list_queue_consumer_registrations(call: Invocation) -> Any:
    return call.cluster.queues.list_registrations(
        local(call.rich("queue_path"), call.cluster.name)
        if call.get("queue_path") is not None
        else None,
        local(call.rich("consumer_path"), call.cluster.name)
        if call.get("consumer_path") is not None
        else None,
    )


@command(
    "pull_queue",
    parameters={**_LIMITS, **read("queue_path partition_index offset")},
    output=TABULAR,
    heavy=True,
)
def pull_queue(call: Invocation) -> Any:
    rowset = call.cluster.queues.pull(
        local(call.rich("queue_path"), call.cluster.name),
        call.number("partition_index"),
        call.number("offset"),
        call.integer("max_row_count"),
        call.integer("max_data_weight"),
    )
    return shown(rowset)


@command(
    "pull_queue_consumer",
    "pull_consumer",
    parameters={**_POSITION, **_LIMITS, **read("offset")},
    output=TABULAR,
    heavy=True,
)
def pull_queue_consumer(call: Invocation) -> Any:
    rowset = call.cluster.queues.pull_consumer(
        local(call.rich("consumer_path"), call.cluster.name),
        local(call.rich("queue_path"), call.cluster.name),
        call.number("partition_index"),
        call.integer("offset"),
        call.integer("max_row_count"),
        call.integer("max_data_weight"),
    )
    return shown(rowset)


@command(
    "advance_queue_consumer",
    "advance_consumer",
    parameters={
        **_POSITION,
        **read("old_offset new_offset transaction_id client_side"),
    },
    volatile=True,
)
def advance_queue_consumer(call: Invocation) -> None:
    call.cluster.queues.advance(
        local(call.rich("consumer_path"), call.cluster.name),
        local(call.rich("queue_path"), call.cluster.name),
        call.number("partition_index"),
        call.integer("old_offset"),
        call.number("new_offset"),
        tx=call.tablet_tx,
        client_side=call.flag("client_side"),
    )


@command(
    "create_queue_producer_session",
    parameters={**_SESSION, **read("user_meta")},
    output=STRUCTURED,
    volatile=True,
)
def create_queue_producer_session(call: Invocation) -> Any:
    return call.cluster.producers.create_session(
        local(call.rich("producer_path"), call.cluster.name),
        local(call.rich("queue_path"), call.cluster.name),
        call.string("session_id"),
        call.get("user_meta"),
    )


@command("remove_queue_producer_session", parameters=_SESSION, output=STRUCTURED, volatile=True)
def remove_queue_producer_session(call: Invocation) -> Any:
    call.cluster.producers.remove_session(
        local(call.rich("producer_path"), call.cluster.name),
        local(call.rich("queue_path"), call.cluster.name),
        call.string("session_id"),
    )
    return {}


@command(
    "push_queue_producer",
    parameters={
        **_SESSION,
        **read("epoch sequence_number user_meta transaction_id"),
        "require_sync_replica": NO_REPLICAS,
    },
    input=TABULAR,
    output=STRUCTURED,
    volatile=True,
    heavy=True,
)
def push_queue_producer(call: Invocation) -> Any:
    queue = local(call.rich("queue_path"), call.cluster.name)
    transaction = call.tablet_tx
    tables = call.cluster.tables
    names, encoded = tables.encode(queue, call.rows(tables.node(queue)[1].schema))
    return call.cluster.producers.push(
        local(call.rich("producer_path"), call.cluster.name),
        queue,
        call.string("session_id"),
        call.number("epoch"),
        encoded,
        names,
        sequence_number=call.integer("sequence_number"),
        user_meta=call.get("user_meta"),
        tx=transaction,
    )
