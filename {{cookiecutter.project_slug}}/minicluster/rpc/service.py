"""From a request to its method: the table of methods, and the one path that every call takes.

A method is a function of an `Invocation`; it is registered by its wire name and looked up here. The
paths, ids and counts that fault rules and the journal may look at are taken from the request's
fields by name, the same way for all methods.
"""

from __future__ import annotations

import asyncio
import inspect
import sys
import traceback
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..errors import YtError, generic, not_supported
from ..gate import Call, Gate
from . import messages, protos
from .bus import Part
from .messages import Request, text

if TYPE_CHECKING:
    from ..state.cluster import Cluster
    from .streams import Stream

API_SERVICE = "ApiService"
DISCOVERY_SERVICE = "DiscoveryService"


@dataclass(slots=True)
class Invocation:
    """What a method works on. It fills in `reply`, and returns attachments if it has any.

    `proxy` is the address of the RPC proxy that the request came to; `stream` is what a streaming
    method reads from and writes to.
    """

    cluster: Cluster
    gate: Gate
    proxy: str
    message: Any
    attachments: list[Part]
    reply: Any
    stream: Stream

    @property
    def transaction(self) -> str | None:
        """The master transaction the request is made in."""
        options = self.message.transactional_options
        return messages.guid(options.transaction_id) if options.HasField("transaction_id") else None


Body = Callable[[Invocation], Sequence[Part] | Awaitable[Sequence[Part] | None] | None]


@dataclass(slots=True, frozen=True)
class Method:
    request: str
    response: str
    body: Body


Registrar = Callable[[Body], Body]

MethodTable = dict[tuple[str, str], Method]
"""By (service, method) as they stand in a request."""

METHODS: MethodTable = {}


def method(name: str, *, messages: str | None = None, service: str = API_SERVICE) -> Registrar:
    """Registers a method under its wire name.

    Its messages are TReq<Name> and TRsp<Name> of the API unless `messages`, a full name with `%s`
    for "Req" and "Rsp", says otherwise.
    """
    pattern = messages or f"{protos.API}T%s{name}"

    def register(body: Body) -> Body:
        METHODS[service, name] = Method(pattern % "Req", pattern % "Rsp", body)
        return body

    return register


class Service:
    """Answers the requests that come to one RPC proxy."""

    def __init__(self, cluster: Cluster, gate: Gate, proxy: str, methods: MethodTable) -> None:
        self._cluster = cluster
        self._gate = gate
        self._proxy = proxy
        self._methods = methods
        self._services = {service for service, _ in methods}

    async def answer(self, request: Request, stream: Stream) -> list[Part]:
        """The parts of the response. Raises HangUp when the connection is to be closed instead."""
        call = Call("rpc", self._proxy, request.method)
        try:
            return await self._answer(call, request, stream)
        except YtError as error:
            return messages.failure(request, error)

    async def _answer(self, call: Call, request: Request, stream: Stream) -> list[Part]:
        entry = self._methods.get((request.service, request.method))
        message = request.parse(entry.request) if entry else None
        call.args = arguments(message) if message is not None else {}
        await self._gate.enter(call)
        reply: list[Part] = []
        try:
            if entry is None:
                raise self._refusal(request)
            reply = await self._apply(entry, message, request, stream)
        except YtError as error:
            call.error = error
        await self._gate.leave(call)
        return messages.failure(request, call.error) if call.error else reply

    def _refusal(self, request: Request) -> YtError:
        if request.service not in self._services:
            return messages.no_such_service(request)
        if request.service == API_SERVICE and protos.is_api_method(request.method):
            return not_supported(request.method)
        return messages.no_such_method(request)

    async def _apply(
        self, entry: Method, message: Any, request: Request, stream: Stream
    ) -> list[Part]:
        invocation = Invocation(
            self._cluster,
            self._gate,
            self._proxy,
            message,
            request.attachments,
            protos.message(entry.response)(),
            stream,
        )
        try:
            result = entry.body(invocation)
            if inspect.isawaitable(result):
                result = await result
        except (YtError, asyncio.CancelledError):
            raise
        except Exception as error:
            # A defect of this program must not take the other clients' connections with it.
            traceback.print_exc(file=sys.stderr)
            raise generic(f"Internal error in {request.method}: {error!r}") from error
        return messages.response(request, invocation.reply, result or ())


ARGUMENTS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "path": ("path", text),
    "paths": ("paths", lambda paths: [text(item) for item in paths]),
    "src_path": ("source_path", text),
    "src_paths": ("source_paths", lambda paths: [text(item) for item in paths]),
    "dst_path": ("destination_path", text),
    "queue_path": ("queue", text),
    "consumer_path": ("consumer", text),
    "producer_path": ("producer", text),
    "transaction_id": ("transaction", messages.guid),
    "id": ("id", messages.guid),
    "row_modification_types": ("rows", len),
    "partition_index": ("partition", int),
    "offset": ("offset", int),
    "old_offset": ("old_offset", int),
    "new_offset": ("new_offset", int),
    "query": ("query", text),
    "type": ("type", int),
    "recursive": ("recursive", bool),
    "force": ("force", bool),
    "tablet_index": ("tablet_index", int),
    "trimmed_row_count": ("trimmed_row_count", int),
    "session_id": ("session_id", text),
    "vital": ("vital", bool),
}
"""Request field -> what it is called in the journal and in fault rules, and how it is shown."""


def arguments(message: Any) -> dict[str, Any]:
    """What the journal keeps of a request. Raises YtError for text that is none."""
    shown: dict[str, Any] = {}
    for field, value in message.ListFields():
        if field.name in ARGUMENTS:
            name, show = ARGUMENTS[field.name]
            shown[name] = show(value)
        elif field.name == "transactional_options" and value.HasField("transaction_id"):
            shown["transaction"] = messages.guid(value.transaction_id)
    return shown
