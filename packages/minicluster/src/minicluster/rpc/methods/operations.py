"""Operations: started, watched, changed and ended by SPYT's submit and driver."""

from __future__ import annotations

from typing import Any

from ...control.parameters import AT_ONCE, NO_INTERRUPT, only, read
from ...core.errors import not_supported
from ...operations import reports
from ...operations.model import TYPES
from ..bus import Part
from ..messages import guid, set_guid, text
from ..service import Invocation, method
from .cypress import from_yson, to_yson

_OPERATION = read("operation_id operation_alias")


def _named(message: Any) -> tuple[str | None, str | None]:
    """Return the id or the alias that a request gives."""
    if message.WhichOneof("operation_id_or_alias") == "operation_alias":
        return None, text(message.operation_alias)
    return guid(message.operation_id), None


@method("StartOperation", parameters=read("type spec"))
def start_operation(call: Invocation) -> None:
    type = TYPES.get(call.message.type)
    if type is None:
        raise not_supported(f"operations of type {call.message.type}")
    started = call.cluster.scheduler.start(type, from_yson(call.message.spec), tx=call.transaction)
    set_guid(call.reply.operation_id, started)


@method(
    "GetOperation",
    parameters={
        **_OPERATION,
        **read("attributes legacy_attributes"),
        "include_runtime": AT_ONCE,
        "maximum_cypress_progress_age": AT_ONCE,
    },
)
def get_operation(call: Invocation) -> None:
    message = call.message
    wanted = None
    if message.HasField("attributes"):
        wanted = [text(key) for key in (*message.attributes.keys, *message.attributes.paths)]
    elif message.legacy_attributes:
        wanted = [text(key) for key in message.legacy_attributes]
    operation = call.cluster.scheduler.find(*_named(message))
    shown = reports.operation_shown(operation, wanted or None, call.cluster.clock.now())
    call.reply.meta = to_yson(shown)


@method("UpdateOperationParameters", parameters={**_OPERATION, **read("parameters")})
def update_operation_parameters(call: Invocation) -> None:
    scheduler = call.cluster.scheduler
    operation = scheduler.manage(*_named(call.message))
    scheduler.update_parameters(operation, from_yson(call.message.parameters))


@method("CompleteOperation", parameters=_OPERATION)
def complete_operation(call: Invocation) -> None:
    call.cluster.scheduler.complete(call.cluster.scheduler.manage(*_named(call.message)))


@method("AbortOperation", parameters={**_OPERATION, **read("abort_message")})
def abort_operation(call: Invocation) -> None:
    operation = call.cluster.scheduler.manage(*_named(call.message))
    call.cluster.scheduler.abort(operation, text(call.message.abort_message) or None)


@method("AbortJob", parameters={**read("job_id"), "interrupt_timeout": NO_INTERRUPT})
def abort_job(call: Invocation) -> None:
    call.cluster.scheduler.abort_job(guid(call.message.job_id))


@method("GetJobStderr", parameters={**_OPERATION, **read("job_id limit offset"), "type": only(0)})
def get_job_stderr(call: Invocation) -> list[Part]:
    message, scheduler = call.message, call.cluster.scheduler
    job = scheduler.job_of(scheduler.find(*_named(message)), guid(message.job_id))
    data = scheduler.stderr(job)
    end = message.offset + message.limit if message.HasField("limit") else len(data)
    call.reply.total_size = len(data)
    call.reply.end_offset = min(end, len(data))
    return [data[message.offset : end]]
