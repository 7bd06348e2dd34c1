"""Queues, consumers and producers. Rows pass through in the wire format."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import rowsets
from ..bus import Part
from ..service import Invocation, method, path
from .transactions import tablet_transaction


def _limits(message: Any) -> tuple[int | None, int | None]:
    """(rows, bytes of data weight) that an answer may hold at most."""
    options = message.row_batch_read_options
    return (
        options.max_row_count if options.HasField("max_row_count") else None,
        options.max_data_weight if options.HasField("max_data_weight") else None,
    )


@method("PullQueue")
def pull_queue(call: Invocation) -> Sequence[Part]:
    message = call.message
    rowset = call.cluster.queues.pull(
        path(message.queue_path), message.partition_index, message.offset, *_limits(message)
    )
    call.reply.start_offset = message.offset
    return rowsets.write(call.reply.rowset_descriptor, rowset)


@method("PullConsumer", messages="NYT.NApi.NRpcProxy.NProto.T%sPullQueueConsumer")
def pull_consumer(call: Invocation) -> Sequence[Part]:
    message = call.message
    rowset = call.cluster.queues.pull_consumer(
        path(message.consumer_path),
        path(message.queue_path),
        message.partition_index,
        message.offset if message.HasField("offset") else None,
        *_limits(message),
    )
    call.reply.start_offset = message.offset
    return rowsets.write(call.reply.rowset_descriptor, rowset)


@method("AdvanceConsumer", messages="NYT.NApi.NRpcProxy.NProto.T%sAdvanceQueueConsumer")
def advance_consumer(call: Invocation) -> None:
    message = call.message
    call.cluster.queues.advance(
        path(message.consumer_path),
        path(message.queue_path),
        message.partition_index,
        message.old_offset if message.HasField("old_offset") else None,
        message.new_offset,
        tx=tablet_transaction(call),
    )
