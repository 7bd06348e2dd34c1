"""RPC proxies on asyncio: connections, and proxies that can be taken down and up again."""

from __future__ import annotations

import asyncio
import itertools
from typing import cast

from ..cluster import Cluster
from ..control.faults import HangUp
from ..control.gate import Gate
from . import bus, handshake, messages, protos
from .bus import Bus, BusError, Part
from .messages import Cancel, Feedback, MessageError, Payload, Request
from .methods import METHODS
from .service import Service
from .streams import Stream

__all__ = ["JobProxy", "RpcProxy", "serve", "serve_job"]

LARGE = 1 << 16
"""Bytes from which on a part of an answer is not copied."""


class RpcProxy:
    """One listening address. Tablet transactions are bound to it, as on a real cluster."""

    def __init__(self, cluster: Cluster, gate: Gate, host: str, port: int) -> None:
        self._cluster = cluster
        self._gate = gate
        self._host = host
        self._port = port
        self._server: asyncio.Server | None = None
        self._connections: set[Connection] = set()

    @property
    def address(self) -> str:
        return f"{self._host}:{self._port}"

    @property
    def is_up(self) -> bool:
        return self._server is not None

    async def up(self) -> None:
        """Listen, on the same port as before if it was down."""
        if self._server is None:
            loop = asyncio.get_running_loop()
            self._server = await loop.create_server(self._connect, self._host, self._port)
            self._port = self._server.sockets[0].getsockname()[1]

    async def down(self) -> None:
        """Stop as if the process died.

        Connections break, requests in progress are not applied, and the transactions that only this
        proxy knew are gone.
        """
        if self._server is None:
            return
        self._server.close()
        self._server = None
        for connection in list(self._connections):
            connection.kill()
        self._cluster.tablet_transactions.drop_proxy(self.address)

    def _connect(self) -> Connection:
        service = Service(self._cluster, self._gate, self.address, METHODS)
        return Connection(service, self._connections)


class JobProxy(RpcProxy):
    """The RPC service of one job, on a Unix socket: `enable_rpc_proxy_in_job_proxy` asks for it.

    Tablet transactions that were started through it are bound to it, as to any proxy.
    """

    def __init__(self, cluster: Cluster, gate: Gate, path: str) -> None:
        super().__init__(cluster, gate, "", 0)
        self._path = path

    @property
    def address(self) -> str:
        return self._path

    async def up(self) -> None:
        """Listen on the socket, which must not be there yet."""
        if self._server is None:
            loop = asyncio.get_running_loop()
            self._server = await loop.create_unix_server(self._connect, self._path)


async def serve(cluster: Cluster, gate: Gate, host: str, port: int = 0) -> RpcProxy:
    """Start an RPC proxy and make it known to the gate.

    Raises OSError for a taken port, ProtosUnavailableError without the SPYT wheel.
    """
    protos.load()
    proxy = RpcProxy(cluster, gate, host, port)
    await proxy.up()
    gate.proxies[proxy.address] = proxy
    return proxy


async def serve_job(cluster: Cluster, gate: Gate, path: str) -> JobProxy:
    """Serve a job on a Unix socket. Raises OSError, ProtosUnavailableError."""
    protos.load()
    proxy = JobProxy(cluster, gate, path)
    await proxy.up()
    return proxy


class Connection(asyncio.Protocol):
    """One client. Each request is a task of its own, so that a delayed one holds up no other."""

    def __init__(self, service: Service, registry: set[Connection]) -> None:
        self._service = service
        self._registry = registry
        self._bus = Bus()
        self._streams: dict[tuple[int, int], Stream] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._packet_ids = itertools.count(handshake.FIRST_FREE_ID)
        self._writable = asyncio.Event()
        self._writable.set()

    # Events from asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._registry.add(self)

    def connection_lost(self, error: Exception | None) -> None:
        """End the streams; requests already received continue, as in a real proxy."""
        self._registry.discard(self)
        for stream in self._streams.values():
            stream.abort()
        self._writable.set()

    def pause_writing(self) -> None:
        """Take no more requests from a client that does not read, until it does."""
        self._writable.clear()
        self._transport.pause_reading()

    def resume_writing(self) -> None:
        self._writable.set()
        if not self._transport.is_closing():
            self._transport.resume_reading()
            self._take_packets()

    def data_received(self, data: bytes) -> None:
        self._bus.receive(data)
        self._take_packets()

    # Packets and messages

    def _take_packets(self) -> None:
        try:
            while self._writable.is_set() and not self._transport.is_closing():
                event = self._bus.next_event()
                if event is None:
                    return
                if isinstance(event, bus.Message):
                    if event.id == handshake.PACKET_ID:
                        answer = handshake.answer(event.parts)
                        self._transport.writelines(bus.pack(handshake.PACKET_ID, answer))
                        continue
                    if event.wants_acknowledgement:
                        self._transport.write(bus.acknowledge(event.id))
                    self._take(messages.parse(event.parts))
        except (BusError, MessageError):
            self._transport.abort()

    def _take(self, message: messages.Incoming) -> None:
        match message:
            case Request():
                if message.id in self._streams:
                    raise MessageError("two requests with one id")
                stream = Stream(message, self._send, self._drain)
                self._streams[message.id] = stream
                task = asyncio.create_task(self._serve(message, stream))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
            case Payload() if message.id in self._streams:
                self._streams[message.id].on_payload(message)
            case Feedback() if message.id in self._streams:
                self._streams[message.id].on_feedback(message)
            case Cancel() if message.id in self._streams:
                # A cancellation ends streams only: a cancelled change is still applied (model).
                self._streams[message.id].abort()

    async def _serve(self, request: Request, stream: Stream) -> None:
        try:
            await self._drain()
            self._send(await self._service.answer(request, stream))
        except HangUp:
            self._transport.abort()
        except Exception:
            # A defect of this program; the client must not wait for an answer that will not come.
            self._transport.abort()
            raise
        finally:
            self._streams.pop(request.id, None)

    def _send(self, parts: list[Part]) -> None:
        if not self._transport.is_closing():
            packet_id = next(self._packet_ids).to_bytes(16, "little")
            pieces = bus.pack(packet_id, parts)
            # Python 3.11's `writelines` makes one string of all.
            if max(map(len, pieces)) < LARGE:
                self._transport.writelines(pieces)
            else:
                for piece in pieces:
                    self._transport.write(piece)

    async def _drain(self) -> None:
        # One answer may fill the buffer again before the next waiter runs.
        while not self._writable.is_set():
            await self._writable.wait()

    def kill(self) -> None:
        """Break the connection and drop its requests, except the one that asks for this."""
        self._transport.abort()
        for task in self._tasks:
            if task is not asyncio.current_task():
                task.cancel()
