"""Queues, consumers and producers. Rows pass through in the wire format."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...control.parameters import NO_REPLICAS, TUNING, Rule, read
from ...queues.paths import local
from ...queues.queues import QueueRowset
from .. import rowsets
from ..bus import Part
from ..messages import text
from ..service import Invocation, method
from .cypress import from_yson, to_yson
from .transactions import tablet_transaction

_LIMITS: dict[str, Rule] = {
    **read("row_batch_read_options.max_row_count row_batch_read_options.max_data_weight"),
    "row_batch_read_options.data_weight_per_row_hint": TUNING,
    "replica_consistency": NO_REPLICAS,
}
_SESSION = read("producer_path queue_path session_id")


def _local(call: Invocation, path: bytes) -> str:
    return local(text(path), call.cluster.name)


def _limits(message: Any) -> tuple[int | None, int | None]:
    """Return (rows, bytes of data weight) that an answer may hold at most."""
    options = message.row_batch_read_options
    return (
        options.max_row_count if options.HasField("max_row_count") else None,
        options.max_data_weight if options.HasField("max_data_weight") else None,
    )


@method(
    "PullQueue",
    parameters={
        **_LIMITS,
        **read("queue_path partition_index offset"),
        "use_native_tablet_node_api": TUNING,
    },
)
def pull_queue(call: Invocation) -> Sequence[Part]:
    message = call.message
    rowset = call.cluster.queues.pull(
        _local(call, message.queue_path), message.partition_index, message.offset, *_limits(message)
    )
    return _pulled(call, rowset)


@method(
    "PullConsumer",
    parameters={**_LIMITS, **read("consumer_path queue_path partition_index offset")},
    messages="NYT.NApi.NRpcProxy.NProto.T%sPullQueueConsumer",
)
def pull_consumer(call: Invocation) -> Sequence[Part]:
    message = call.message
    rowset = call.cluster.queues.pull_consumer(
        _local(call, message.consumer_path),
        _local(call, message.queue_path),
        message.partition_index,
        message.offset if message.HasField("offset") else None,
        *_limits(message),
    )
    return _pulled(call, rowset)


def _pulled(call: Invocation, rowset: QueueRowset) -> Sequence[Part]:
    call.reply.start_offset = rowset.start_offset
    return rowsets.write(call.reply.rowset_descriptor, rowset)


@method(
    "AdvanceConsumer",
    parameters=read(
        "transaction_id consumer_path queue_path partition_index old_offset new_offset"
    ),
    messages="NYT.NApi.NRpcProxy.NProto.T%sAdvanceQueueConsumer",
)
def advance_consumer(call: Invocation) -> None:
    message = call.message
    call.cluster.queues.advance(
        _local(call, message.consumer_path),
        _local(call, message.queue_path),
        message.partition_index,
        message.old_offset if message.HasField("old_offset") else None,
        message.new_offset,
        tx=tablet_transaction(call),
    )


@method("RegisterQueueConsumer", parameters=read("queue_path consumer_path vital partitions"))
def register_queue_consumer(call: Invocation) -> None:
    message = call.message
    partitions = list(message.partitions.items) if message.HasField("partitions") else None
    call.cluster.queues.register(
        _local(call, message.queue_path),
        _local(call, message.consumer_path),
        message.vital,
        partitions,
    )


@method("UnregisterQueueConsumer", parameters=read("queue_path consumer_path"))
def unregister_queue_consumer(call: Invocation) -> None:
    message = call.message
    call.cluster.queues.unregister(
        _local(call, message.queue_path), _local(call, message.consumer_path)
    )


@method("ListQueueConsumerRegistrations", parameters=read("queue_path consumer_path"))
def list_queue_consumer_registrations(call: Invocation) -> None:
    message = call.message
    found = call.cluster.queues.registrations(
        _local(call, message.queue_path) if message.HasField("queue_path") else None,
        _local(call, message.consumer_path) if message.HasField("consumer_path") else None,
    )
    for registration in found:
        shown = call.reply.registrations.add()
        shown.queue_path = _rich(call, registration.queue)
        shown.consumer_path = _rich(call, registration.consumer)
        shown.vital = registration.vital
        if registration.partitions is not None:
            shown.partitions.items.extend(registration.partitions)


def _rich(call: Invocation, queue_or_consumer: str) -> bytes:
    return f'<"cluster"="{call.cluster.name}">{queue_or_consumer}'.encode()


@method("CreateQueueProducerSession", parameters={**_SESSION, **read("user_meta")})
def create_queue_producer_session(call: Invocation) -> None:
    message = call.message
    session = call.cluster.producers.create_session(
        _local(call, message.producer_path),
        _local(call, message.queue_path),
        text(message.session_id),
        from_yson(message.user_meta) if message.HasField("user_meta") else None,
    )
    call.reply.sequence_number = session["sequence_number"]
    call.reply.epoch = session["epoch"]
    if session["user_meta"] is not None:
        call.reply.user_meta = to_yson(session["user_meta"])


@method("RemoveQueueProducerSession", parameters=_SESSION)
def remove_queue_producer_session(call: Invocation) -> None:
    message = call.message
    call.cluster.producers.remove_session(
        _local(call, message.producer_path),
        _local(call, message.queue_path),
        text(message.session_id),
    )


@method(
    "PushQueueProducer",
    parameters={
        **_SESSION,
        **read("transaction_id epoch user_meta sequence_number rowset_descriptor"),
        "require_sync_replica": NO_REPLICAS,
    },
)
def push_queue_producer(call: Invocation) -> None:
    message = call.message
    names, rows = rowsets.read(message.rowset_descriptor, call.attachments)
    result = call.cluster.producers.push(
        _local(call, message.producer_path),
        _local(call, message.queue_path),
        text(message.session_id),
        message.epoch,
        rowsets.present(rows),
        names,
        sequence_number=message.sequence_number if message.HasField("sequence_number") else None,
        user_meta=from_yson(message.user_meta) if message.HasField("user_meta") else None,
        tx=tablet_transaction(call),
    )
    call.reply.last_sequence_number = result["last_sequence_number"]
    call.reply.skipped_row_count = result["skipped_row_count"]
