"""The HTTP server: requests of the API into commands, results and errors into responses."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.web_exceptions import (
    HTTPException,
    HTTPMethodNotAllowed,
    HTTPRequestEntityTooLarge,
)

from ..cluster import Cluster
from ..control import routes
from ..control.faults import HangUp
from ..control.gate import Gate
from ..core import ids
from ..core.clock import iso
from ..core.errors import UNAUTHENTICATED, YtError, generic, not_supported
from . import bodies, formats
from .commands.system import VERSION
from .dispatch import Dispatcher, command_of
from .formats import Format
from .json_format import Json
from .registry import BINARY, COMMANDS, NULL, STRUCTURED, TABULAR, Command, WithParameters, etag
from .unsupported import LACKING

MAX_HEADER = 1 << 20
"""Parameters travel in a header, a long query included."""
MAX_ERROR_HEADER = 16 << 10
"""A longer error goes into the body alone: Python's HTTP client refuses long header lines."""
BACKLOG = 2048
HTTP_ROLE = "data"
"""The role of an HTTP proxy that was given no other (client/api/public.h)."""


class _DefectsOnly(logging.Filter):
    """A log filter: no stack trace for a request that is not HTTP or whose client is gone."""

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        return not isinstance(error, HttpProcessingError | ConnectionError)


_LOG = logging.getLogger(__name__)
_LOG.addFilter(_DefectsOnly())


class HttpServer:
    """The API on one address."""

    def __init__(self, cluster: Cluster, gate: Gate) -> None:
        self.address = ""
        self._cluster = cluster
        self._started = cluster.clock.now()
        self._dispatcher = Dispatcher(cluster, gate)
        self._runner = web.AppRunner(
            self._application(cluster, gate),
            access_log=None,
            logger=_LOG,
            auto_decompress=False,
            max_field_size=MAX_HEADER,
            max_line_size=MAX_HEADER,
            shutdown_timeout=1.0,
        )

    async def start(self, host: str, port: int) -> None:
        """Listen on the address. Raises OSError for a taken port."""
        await self._runner.setup()
        site = web.TCPSite(self._runner, host, port, backlog=BACKLOG)
        await site.start()
        self.address = "{}:{}".format(*self._runner.addresses[0])

    async def stop(self) -> None:
        await self._runner.cleanup()

    def _application(self, cluster: Cluster, gate: Gate) -> web.Application:
        application = web.Application(client_max_size=bodies.MAX_BODY, middlewares=[_answer_errors])
        application.add_routes(
            [
                web.get("/", self._version),
                web.get("/ping", self._ping),
                web.get("/version", self._version),
                web.get("/service", self._service),
                web.get("/cluster_connection", self._connection),
                web.get("/hosts", self._hosts),
                web.get("/api", self._versions),
                web.get("/api/{version}", self._commands),
                web.route("*", "/api/{version}/{command}", self._command),
                web.route("*", "/auth/whoami", self._whoami),
            ]
        )
        application.add_routes(routes.routes(cluster, gate))
        return application

    async def _ping(self, request: web.Request) -> web.Response:
        return web.Response()

    async def _version(self, request: web.Request) -> web.Response:
        return web.Response(text="minicluster\n")

    async def _hosts(self, request: web.Request) -> web.Response:
        known = request.query.get("role", HTTP_ROLE) == HTTP_ROLE
        return web.json_response([self.address] if known else [])

    async def _service(self, request: web.Request) -> web.Response:
        return web.json_response({"version": VERSION, "start_time": iso(self._started)})

    async def _connection(self, request: web.Request) -> web.Response:
        return web.json_response(self._cluster.cypress.get("//sys/@cluster_connection"))

    async def _versions(self, request: web.Request) -> web.Response:
        return web.json_response(["v4"])

    async def _whoami(self, request: web.Request) -> web.Response:
        return web.json_response({"login": "root", "realm": "minicluster"})

    async def _commands(self, request: web.Request) -> web.Response:
        _check_version(request)
        return web.json_response([command.describe() for command in COMMANDS.values()])

    async def _command(self, request: web.Request) -> web.Response:
        _check_version(request)
        name = request.match_info["command"]
        if name in LACKING:
            return failure(not_supported(name))
        if name not in COMMANDS:
            return failure(generic(f'Unknown command "{name}"'), 404)
        command = command_of(name)
        if command.volatile and request.method == "GET":
            raise HTTPMethodNotAllowed("GET", ["POST", "PUT"])
        body = await bodies.read(request)
        parameters = _parameters(request, command, body)
        # Parse the output format first: a bad one must fail before the command changes anything.
        wanted = _format(parameters, "output", formats.JSON)
        if command.output == TABULAR and not command.schemaless:
            wanted = wanted.of_one_schema()
        given, defect = None, None
        try:
            given = _input(command, parameters, body)
        except YtError as error:
            defect = error
        result = await self._dispatcher.run(name, parameters, given, defect)
        return _response(request, command, wanted, result)


_PART = "([0-9a-f]{8})"
_TRACE_PARENT = re.compile(f"00-{_PART * 4}-[0-9a-f]{{16}}-[0-9a-f]{{2}}")
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@web.middleware
async def _answer_errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Turn any failure of a request into an answer, or into the loss of its connection."""
    response = await _answer(request, handler)
    response.headers["Cache-Control"] = "no-store"
    if trace := _trace_id(request.headers.get("traceparent", "")):
        response.headers["X-YT-Trace-Id"] = trace
    return response


def _trace_id(parent: str) -> str | None:
    """Return the trace of a W3C header as YT writes ids: four hexadecimal numbers."""
    match = _TRACE_PARENT.fullmatch(parent)
    return "-".join(f"{int(part, 16):x}" for part in match.groups()) if match else None


async def _answer(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except YtError as error:
        return failure(error, 401 if error.code in UNAUTHENTICATED else 400)
    except HangUp:
        if request.transport is not None:
            request.transport.abort()
        raise asyncio.CancelledError from None
    except HTTPRequestEntityTooLarge:
        return failure(generic(f"Request body is larger than {bodies.MAX_BODY} bytes"), 413)
    except HTTPException as error:
        return failure(generic(f"{error.status} {error.reason}: {request.path}"), error.status)


def failure(error: YtError, status: int = 400) -> web.Response:
    """Return an error as YT's HTTP proxy sends it: in headers and, as JSON, in the body."""
    text = json.dumps(Json().shown(error.to_dict()), separators=(",", ":"))
    headers = {"X-YT-Request-Id": ids.new(0)}
    if len(text) <= MAX_ERROR_HEADER:
        headers["X-YT-Error"] = text
        headers["X-YT-Response-Code"] = str(error.code)
        headers["X-YT-Response-Message"] = json.dumps(error.message[:1000])
    return web.Response(
        status=status, body=text.encode(), content_type="application/json", headers=headers
    )


def _check_version(request: web.Request) -> None:
    version = request.match_info["version"]
    if version != "v4":
        raise generic(f'Unsupported API version "{version}"; "v4" is spoken here')


def _header(request: web.Request, name: str) -> bytes:
    return request.headers.get(name, "").encode("utf-8", "surrogateescape")


def _spoken(request: web.Request) -> Format:
    """Return the format of the headers."""
    given = request.headers.get("X-YT-Header-Format")
    return Format.parse(formats.of_header(given)) if given else formats.JSON


def _parameters(request: web.Request, command: Command, body: bytes) -> dict[str, Any]:
    """Collect parameters from query string, headers and, for a command without input, the body."""
    spoken = _spoken(request)
    found: dict[str, Any] = dict(request.query)
    sources = [_header(request, "X-YT-Parameters")]
    if command.input == NULL and request.method in ("POST", "PUT"):
        sources.append(body)
    for source in sources:
        if not source.strip():
            continue
        given = spoken.codec.load(source)
        if not isinstance(given, dict):
            raise generic("Parameters of a request must be a map")
        found.update(given)
    if "etag" in command.known.free and (mark := request.headers.get("If-None-Match")):
        found["etag"] = mark
    for way in ("input", "output"):
        header = request.headers.get(f"X-YT-{way.title()}-Format")
        if header and f"{way}_format" not in found:
            found[f"{way}_format"] = formats.of_header(header)
    return found


def _format(parameters: dict[str, Any], way: str, default: Format) -> Format:
    """Return the format of the "input" or the "output"."""
    name = f"{way}_format"
    return Format.parse(parameters[name]) if name in parameters else default


def _input(command: Command, parameters: dict[str, Any], body: bytes) -> Any:
    if command.input == BINARY:
        return body
    if command.input == STRUCTURED:
        return _format(parameters, "input", formats.YSON).codec.load(body)
    if command.input == TABULAR:
        return _format(parameters, "input", formats.YSON).load_rows(body)
    return None


UNWRITABLE = "The command is done, but its answer cannot be written"
"""How the error begins of a command that is done and whose answer its format cannot hold."""


def _response(request: web.Request, command: Command, wanted: Format, result: Any) -> web.Response:
    headers = {"X-YT-Request-Id": ids.new(0)}
    if isinstance(result, WithParameters):
        spoken = formats.YSON_TEXT if _spoken(request).name == "yson" else formats.JSON
        shown = spoken.codec.dump(result.parameters)
        headers["X-YT-Response-Parameters"] = shown.decode("latin-1")
        if "revision" in result.parameters:
            headers["ETag"] = etag(result.parameters)
            known = request.headers.get("If-None-Match")
            if known in (headers["ETag"], str(result.parameters["revision"])):
                return web.Response(status=304, headers=headers)
        result = result.result
    if command.output == NULL:
        return web.Response(headers=headers)
    if command.output == BINARY:
        return web.Response(body=result, content_type="application/octet-stream", headers=headers)
    codec = wanted.codec
    try:
        data = codec.dump_rows(result) if command.output == TABULAR else codec.dump(result)
    except YtError as error:
        if request.method == "GET":  # it has changed nothing
            raise
        raise generic(f"{UNWRITABLE}: {error.message}") from error
    return web.Response(body=data, content_type=codec.content_type, headers=headers)
