"""A bare RPC client for the tests: framing by hand, messages from the SPYT wheel, no retries."""

from __future__ import annotations

import asyncio
import itertools
import struct
from typing import Any

from yt import yson

from minicluster.core import ids
from minicluster.rows import wire
from minicluster.rpc import protos

FIXED = struct.Struct("<IHH16sIQ")
SIGNATURE = 0x78616D4F
NULL = 0xFFFFFFFF
Part = bytes | None


class RpcError(Exception):
    """The server's TError."""

    def __init__(self, error: Any) -> None:
        super().__init__(f"{error.code}: {error.message}")
        self.code = error.code
        self.message = error.message


class RpcClient:
    """One connection to an RPC proxy."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self._request_ids = itertools.count(1)

    @classmethod
    async def connect(cls, address: str) -> RpcClient:
        host, port = address.rsplit(":", 1)
        return cls(*await asyncio.open_connection(host, int(port)))

    async def close(self) -> None:
        self.writer.close()

    def send_packet(self, parts: list[Part], *, acknowledge: bool = False) -> bytes:
        packet_id = next(self._request_ids).to_bytes(16, "big")
        sizes = [NULL if part is None else len(part) for part in parts]
        self.writer.write(
            FIXED.pack(SIGNATURE, 0, int(acknowledge), packet_id, len(parts), 0)
            + struct.pack(f"<{len(parts)}I", *sizes)
            + bytes(8 * len(parts) + 8)
            + b"".join(part or b"" for part in parts)
        )
        return packet_id

    async def read_packet(self) -> tuple[int, bytes, list[Part]]:
        """Return the next packet as (kind, packet id, parts)."""
        head = await self.reader.readexactly(FIXED.size)
        signature, kind, _, packet_id, count, _ = FIXED.unpack(head)
        assert signature == SIGNATURE
        if kind == 1:
            return kind, packet_id, []
        sizes = struct.unpack(f"<{count}I", await self.reader.readexactly(4 * count))
        await self.reader.readexactly(8 * count + 8)
        parts: list[Part] = []
        for size in sizes:
            parts.append(None if size == NULL else await self.reader.readexactly(size))
        return kind, packet_id, parts

    async def read_message(self) -> list[Part]:
        while True:
            kind, _, parts = await self.read_packet()
            if kind == 0:
                return parts

    def send(
        self,
        method: str,
        message: Any,
        attachments: list[Part] | None = None,
        *,
        service: str = "ApiService",
        bare: bool = False,
        window: int | None = None,
        acknowledge: bool = True,
    ) -> Any:
        """Send a request and return its header."""
        header = protos.rpc("TRequestHeader")(service=service, method=method)
        header.request_id.first = next(self._request_ids)
        header.request_id.second = 7
        header.protocol_version_major = 1
        body = message.SerializeToString()
        if bare:
            header.request_codec = header.response_codec = 0
        else:
            body = struct.pack("<II", 0, len(body)) + body
        if window is not None:
            header.server_attachments_streaming_parameters.window_size = window
        parts = [b"rpci" + header.SerializeToString(), body, *(attachments or [])]
        self.send_packet(parts, acknowledge=acknowledge)
        return header

    def send_stream(self, header: Any, number: int, attachments: list[Part]) -> None:
        payload = protos.rpc("TStreamingPayloadHeader")(
            service=header.service, method=header.method, sequence_number=number, codec=0
        )
        payload.request_id.CopyFrom(header.request_id)
        self.send_packet([b"rpcp" + payload.SerializeToString(), *attachments])

    def send_feedback(self, header: Any, position: int) -> None:
        feedback = protos.rpc("TStreamingFeedbackHeader")(
            service=header.service, method=header.method, read_position=position
        )
        feedback.request_id.CopyFrom(header.request_id)
        self.send_packet([b"rpcf" + feedback.SerializeToString()])

    @staticmethod
    def open_response(parts: list[Part], reply: str) -> tuple[Any, list[Part]]:
        """Return (message, attachments) of a response. Raises RpcError."""
        assert parts[0] is not None
        assert parts[0][:4] == b"rpco"
        header = protos.rpc("TResponseHeader").FromString(parts[0][4:])
        if header.error.code:
            raise RpcError(header.error)
        body = parts[1]
        assert body is not None
        if not header.HasField("codec"):
            envelope, size = struct.unpack_from("<II", body)
            body = body[8 + envelope :]
            assert len(body) == size
        return protos.message(reply).FromString(body), parts[2:]

    async def call(
        self, method: str, attachments: list[Part] | None = None, **fields: Any
    ) -> tuple[Any, list[Part]]:
        """Make one unary call; fields that end in `_id` take a text id, and `path`s take str."""
        names = {"PullConsumer": "PullQueueConsumer", "AdvanceConsumer": "AdvanceQueueConsumer"}
        name = names.get(method, method)
        message = build(f"TReq{name}", **fields)
        self.send(method, message, attachments)
        return self.open_response(await self.read_message(), f"{protos.API}TRsp{name}")

    async def get(self, path: str) -> Any:
        reply, _ = await self.call("GetNode", path=path)
        return yson.loads(reply.value)

    async def create(self, path: str, code: int, attributes: dict[str, Any] | None = None) -> str:
        request = build("TReqCreateNode", path=path, type=code, recursive=True)
        for key, value in (attributes or {}).items():
            item = request.attributes.attributes.add()
            item.key, item.value = key, yson.dumps(value, yson_format="binary")
        self.send("CreateNode", request)
        reply, _ = self.open_response(await self.read_message(), f"{protos.API}TRspCreateNode")
        return text_id(reply.node_id)

    async def write_file(self, path: str, data: list[bytes]) -> None:
        header = self.send("WriteFile", build("TReqWriteFile", path=path), window=10 << 20)
        handshake = await self.read_message()
        if handshake[0] and handshake[0][:4] == b"rpcp":
            assert handshake[1:] == [None]
            for number, chunk in enumerate([*data, None]):
                self.send_stream(header, number, [chunk])
            handshake = await self.read_message()
        while handshake[0] and handshake[0][:4] == b"rpcf":
            handshake = await self.read_message()
        self.open_response(handshake, f"{protos.API}TRspWriteFile")

    async def read_file(self, path: str, *, window: int = 10 << 20, **fields: Any) -> bytes:
        header = self.send("ReadFile", build("TReqReadFile", path=path, **fields), window=window)
        self.send_stream(header, 0, [None])
        pieces: list[bytes] = []
        position = 0
        while True:
            parts = await self.read_message()
            assert parts[0] is not None
            if parts[0][:4] == b"rpcf":
                continue
            if parts[0][:4] == b"rpco":
                self.open_response(parts, f"{protos.API}TRspReadFile")
                return b"".join(pieces[1:])
            for part in parts[1:]:
                position += len(part or b"") or 1
                if part is not None:
                    pieces.append(part)
            self.send_feedback(header, position)

    async def read_table(self, path: str) -> tuple[Any, list[Any]]:
        """Return (meta, rows) of a bulk read."""
        header = self.send("ReadTable", build("TReqReadTable", path=path), window=1 << 20)
        meta: Any = None
        rows: list[Any] = []
        names: list[str] = []
        position = 0
        while True:
            parts = await self.read_message()
            assert parts[0] is not None
            if parts[0][:4] == b"rpco":
                self.open_response(parts, f"{protos.API}TRspReadTable")
                return meta, rows
            for part in parts[1:]:
                position += len(part or b"") or 1
                if part is None:
                    continue
                if meta is None:
                    meta = protos.api("TRspReadTableMeta").FromString(part)
                    continue
                rowset, _statistics = unpack(part)
                descriptor_data, data = unpack(rowset)
                descriptor = protos.api("TRowsetDescriptor").FromString(descriptor_data)
                names += [entry.name for entry in descriptor.name_table_entries]
                rows += [wire.to_dict(found, names) for found in wire.split(data) if found]
            self.send_feedback(header, position)

    async def begin_write(
        self, path: str, *, tx: str | None = None, config: bytes = b"{}"
    ) -> tuple[Any, Any]:
        """Begin to write rows; return the request's header and the table's schema."""
        request = build("TReqWriteTable", path=path, config=config)
        if tx is not None:
            guid = request.transactional_options.transaction_id
            guid.first, guid.second = ids.to_parts(tx)
        header = self.send("WriteTable", request, window=16_000_000)
        parts: list[Part] = []
        while not parts or parts[-1] is not None:
            message = await self.read_message()
            if message[0] and message[0][:4] == b"rpco":
                self.open_response(message, "")
            parts += message[1:]
        meta = protos.api("TWriteTableMeta").FromString(parts[0])
        return header, meta.schema

    async def end_write(self, header: Any, blocks: list[bytes]) -> None:
        """Send blocks of rows and the null attachment, and wait for the answer."""
        for number, block in enumerate([*blocks, None]):
            self.send_stream(header, number, [block])
        while (message := await self.read_message())[0][:4] == b"rpcf":  # type: ignore[index]
            pass
        self.open_response(message, f"{protos.API}TRspWriteTable")

    async def write_table(self, path: str, *blocks: bytes, tx: str | None = None) -> None:
        header, _ = await self.begin_write(path, tx=tx)
        await self.end_write(header, list(blocks))


def build(name: str, **fields: Any) -> Any:
    """Return a message of the API: str becomes bytes where needed, text ids become GUIDs."""
    message = protos.api(name)()
    for field, value in fields.items():
        kind = message.DESCRIPTOR.fields_by_name[field]
        if kind.message_type is not None and kind.message_type.name == "TGuid":
            target = getattr(message, field)
            target.first, target.second = ids.to_parts(value)
        elif kind.type == kind.TYPE_BYTES:
            setattr(message, field, value.encode() if isinstance(value, str) else value)
        else:
            setattr(message, field, value)
    return message


def text_id(guid: Any) -> str:
    return ids.from_parts(guid.first, guid.second)


def rows_of(descriptor: Any, attachments: list[Part]) -> list[dict[str, Any] | None]:
    """Return an answer's rows as maps."""
    names = [entry.name for entry in descriptor.name_table_entries]
    rows = wire.split(b"".join(part or b"" for part in attachments))
    return [None if row is None else wire.to_dict(row, names) for row in rows]


def describe(message: Any, names: list[str]) -> None:
    descriptor = message.rowset_descriptor
    descriptor.wire_format_version = 1
    descriptor.rowset_kind = 1
    for name in names:
        descriptor.name_table_entries.add().name = name


def block(names: list[str], rows: list[bytes]) -> bytes:
    """Return a block of rows as SPYT sends it; `names` go to the end of the name table."""
    descriptor = protos.api("TRowsetDescriptor")(rowset_format=0)
    for name in names:
        descriptor.name_table_entries.add().name = name
    parts = [descriptor.SerializeToString(), wire.join(list(rows))]
    framed = [struct.pack("<Q", len(part)) + part for part in parts]
    return struct.pack("<I", len(parts)) + b"".join(framed)


def unpack(data: bytes) -> list[bytes]:
    """Return the parts of an attachment with rows."""
    (count,) = struct.unpack_from("<I", data)
    parts, position = [], 4
    for _ in range(count):
        (size,) = struct.unpack_from("<Q", data, position)
        parts.append(data[position + 8 : position + 8 + size])
        position += 8 + size
    assert position == len(data)
    return parts
