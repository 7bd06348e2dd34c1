"""From a request to its method: the table of methods, and the service that looks into it.

A method is a function of an `Invocation`; it is registered by its wire name and looked up here. The
paths, ids and counts that fault rules and the journal may look at are taken from the request's
fields by name, the same way for all methods.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..cluster import Cluster
from ..control.arguments import OF_RPC, Form
from ..control.gate import Gate
from ..control.journal import Call
from ..control.parameters import Known, Rule
from ..control.path import invoke, travel
from ..core.errors import YtError, not_supported
from ..cypress import prerequisites
from ..tables.mount_cache import through
from . import messages, protos
from .bus import Part
from .messages import Request, text
from .parameters import EVERY, Fields, check
from .streams import Stream

API_SERVICE = "ApiService"
DISCOVERY_SERVICE = "DiscoveryService"


@dataclass(slots=True)
class Invocation:
    """The material of a method. It fills in `reply`, and returns attachments if it has any.

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
    known: Known
    """The fields of the request that it knows."""


Registrar = Callable[[Body], Body]

MethodTable = dict[tuple[str, str], Method]
"""By (service, method), as a request names them."""

METHODS: MethodTable = {}


def method(
    name: str,
    *,
    parameters: Mapping[str, Rule] | None = None,
    messages: str | None = None,
    service: str = API_SERVICE,
) -> Registrar:
    """Register a method under its wire name.

    `parameters` are the rules for the fields of its own, in addition to those of every method. Its
    messages are TReq<Name> and TRsp<Name> of the API unless `messages`, a full name with `%s` for
    "Req" and "Rsp", says otherwise.
    """
    known = Known(name, EVERY, parameters or {})
    pattern = messages or f"{protos.API}T%s{name}"

    def register(body: Body) -> Body:
        METHODS[service, name] = Method(pattern % "Req", pattern % "Rsp", body, known)
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
        """Return the parts of the response. Raises HangUp to close the connection instead."""
        call = Call("rpc", self._proxy, request.method)
        try:
            return await self._answer(call, request, stream)
        except YtError as error:
            return messages.failure(request, error)

    async def _answer(self, call: Call, request: Request, stream: Stream) -> list[Part]:
        entry = self._methods.get((request.service, request.method))
        message = request.parse(entry.request) if entry else None
        fields = message.ListFields() if message is not None else ()
        call.args = arguments(fields)

        async def apply() -> list[Part]:
            if entry is None:
                raise self._refusal(request)
            check(entry.known, message, fields)
            self._require(fields)
            return await self._apply(entry, message, request, stream)

        return await travel(self._gate, call, apply)

    def _require(self, fields: Fields) -> None:
        """Raise YtError unless what the request makes a condition holds."""
        for field, value in fields:
            if field.name == "prerequisite_options":
                prerequisites.check(
                    self._cluster.cypress,
                    self._cluster.transactions,
                    [messages.guid(item.transaction_id) for item in value.transactions],
                    [(text(item.path), item.revision) for item in value.revisions],
                )

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
        with through(self._proxy):
            result = await invoke(request.method, entry.body, invocation)
        return messages.response(request, invocation.reply, result or ())


_SHOW: dict[Form, Callable[[Any], Any]] = {
    Form.TEXT: text,
    Form.TEXTS: lambda items: [text(item) for item in items],
    Form.ID: messages.guid,
    Form.COUNT: len,
    Form.INTEGER: int,
    Form.FLAG: bool,
}
_SHOWN = {name: (shown, _SHOW[form]) for name, (shown, form) in OF_RPC.items()}


def arguments(fields: Fields) -> dict[str, Any]:
    """Return the arguments of a request that the journal keeps.

    Raises YtError for text that is not UTF-8.
    """
    shown: dict[str, Any] = {}
    for field, value in fields:
        if field.name in _SHOWN:
            name, show = _SHOWN[field.name]
            shown[name] = show(value)
        elif field.name == "transactional_options" and value.HasField("transaction_id"):
            shown["transaction"] = messages.guid(value.transaction_id)
    return shown
