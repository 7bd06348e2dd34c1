"""The RPC layer: what the parts of a bus message say, without any I/O.

Part 0 is a four-byte tag and a protobuf header; the tag tells the five kinds of message apart. A
body (part 1 of a request or a response) is bare or in an envelope: the codec fields of the header
say which, and a response follows its request.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from google.protobuf.message import DecodeError
from yt import yson

from ..core import ids
from ..core.errors import NO_SUCH_METHOD, NO_SUCH_SERVICE, PROTOCOL, YtError
from . import protos
from .bus import Part

REQUEST = b"rpci"
RESPONSE = b"rpco"
CANCEL = b"rpcc"
PAYLOAD = b"rpcp"
FEEDBACK = b"rpcf"

NO_CODEC = 0
_ENVELOPE = struct.Struct("<II")


class MessageError(Exception):
    """Not an RPC message, or one without a request to answer; the connection has to be closed."""


@dataclass(slots=True)
class Request:
    """One call. `header` is a TRequestHeader; `id` its request id, also in every later message."""

    id: tuple[int, int]
    header: Any
    body: bytes
    attachments: list[Part]

    @property
    def service(self) -> str:
        return str(self.header.service)

    @property
    def method(self) -> str:
        return str(self.header.method)

    def parse(self, name: str) -> Any:
        """Return the body as that message of the API. Raises YtError when it is not one."""
        try:
            body = self.body
            if not self.header.HasField("request_codec"):
                body = _open_envelope(body)
            elif self.header.request_codec != NO_CODEC:
                raise YtError(PROTOCOL, f"Unsupported request codec {self.header.request_codec}")
            message = protos.message(name).FromString(body)
        except DecodeError as error:
            raise YtError(PROTOCOL, f"Error deserializing request body: {error}") from None
        # Python's parser lets required fields be missing.
        if not message.IsInitialized():
            missing = ", ".join(message.FindInitializationErrors())
            raise YtError(PROTOCOL, f"Error deserializing request body: {missing} missing")
        return message


@dataclass(slots=True, frozen=True)
class Cancel:
    id: tuple[int, int]


@dataclass(slots=True, frozen=True)
class Payload:
    """A piece of a client's stream; a null attachment ends it."""

    id: tuple[int, int]
    sequence_number: int
    attachments: list[Part]


@dataclass(slots=True, frozen=True)
class Feedback:
    """How many bytes of the server's stream the client has taken, null and empty ones as 1."""

    id: tuple[int, int]
    read_position: int


Incoming = Request | Cancel | Payload | Feedback


def parse(parts: Sequence[Part]) -> Incoming:
    """Return the message that the parts of a bus message hold. Raises MessageError."""
    if not parts or parts[0] is None:
        raise MessageError("a message without a header")
    tag, data = parts[0][:4], parts[0][4:]
    name = _HEADERS.get(tag)
    if name is None:
        raise MessageError(f"unknown message tag {tag!r}")
    try:
        header = protos.rpc(name).FromString(data)
    except DecodeError as error:
        raise MessageError(f"bad {name}: {error}") from None
    if not header.IsInitialized():
        raise MessageError(f"{name} lacks required fields")
    request_id = (header.request_id.first, header.request_id.second)
    match tag:
        case b"rpci":
            if len(parts) < 2 or parts[1] is None:
                raise MessageError("a request without a body")
            if not header.HasField("request_id"):
                raise MessageError("a request without an id")
            return Request(request_id, header, parts[1], list(parts[2:]))
        case b"rpcp":
            if header.codec != NO_CODEC:
                raise MessageError(f"unsupported codec {header.codec} of a streaming payload")
            return Payload(request_id, header.sequence_number, list(parts[1:]))
        case b"rpcf":
            return Feedback(request_id, header.read_position)
    return Cancel(request_id)


_HEADERS = {
    REQUEST: "TRequestHeader",
    CANCEL: "TRequestCancelationHeader",
    PAYLOAD: "TStreamingPayloadHeader",
    FEEDBACK: "TStreamingFeedbackHeader",
}


def response(request: Request, message: Any, attachments: Sequence[Part] = ()) -> list[Part]:
    """Return the parts of a successful answer."""
    header = _response_header(request)
    body: bytes = message.SerializeToString()
    if request.header.HasField("response_codec"):
        if request.header.response_codec != NO_CODEC:
            codec = request.header.response_codec
            return failure(request, YtError(PROTOCOL, f"Unsupported response codec {codec}"))
        header.codec = NO_CODEC
    else:
        body = _ENVELOPE.pack(0, len(body)) + body
    return [RESPONSE + header.SerializeToString(), body, *attachments]


def failure(request: Request, error: YtError) -> list[Part]:
    """Return the parts of an answer that is an error."""
    header = _response_header(request)
    _fill_error(header.error, error)
    return [RESPONSE + header.SerializeToString()]


def payload(request: Request, sequence_number: int, attachments: Sequence[Part]) -> list[Part]:
    """Return the parts of a piece of the server's stream."""
    header = protos.rpc("TStreamingPayloadHeader")()
    _fill_stream_header(header, request)
    header.sequence_number = sequence_number
    header.codec = NO_CODEC
    return [PAYLOAD + header.SerializeToString(), *attachments]


def feedback(request: Request, read_position: int) -> list[Part]:
    """Return the parts that tell the client how much of its stream was taken."""
    header = protos.rpc("TStreamingFeedbackHeader")()
    _fill_stream_header(header, request)
    header.read_position = read_position
    return [FEEDBACK + header.SerializeToString()]


def streamed_size(attachment: Part) -> int:
    """Return the size of an attachment in a stream's position: at least 1."""
    return len(attachment or b"") or 1


def no_such_method(request: Request) -> YtError:
    """Return the error, worded as in core/rpc/service_detail.cpp."""
    attributes = {"service": request.service, "method": request.method}
    return YtError(NO_SUCH_METHOD, "Unknown method", attributes)


def no_such_service(request: Request) -> YtError:
    """Return the error, worded as in core/rpc/server_detail.cpp."""
    return YtError(NO_SUCH_SERVICE, "Service is not registered", {"service": request.service})


def text(value: str | bytes) -> str:
    """Return the value of a string field. Raises YtError if it is not UTF-8.

    Python's protobuf returns bytes then.
    """
    if isinstance(value, str):
        return value
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise YtError(PROTOCOL, f"{value!r} is not UTF-8") from None


def guid(message: Any) -> str:
    """Return the text of a TGuid."""
    return ids.from_parts(message.first, message.second)


def set_guid(message: Any, identifier: str) -> None:
    message.first, message.second = ids.to_parts(identifier)


def _open_envelope(data: bytes) -> bytes:
    if len(data) < _ENVELOPE.size:
        raise YtError(PROTOCOL, "Error deserializing request body: no envelope")
    envelope_size, body_size = _ENVELOPE.unpack_from(data)
    start = _ENVELOPE.size + envelope_size
    if start + body_size != len(data):
        raise YtError(PROTOCOL, "Error deserializing request body: the envelope's sizes are wrong")
    envelope = protos.message("NYT.NProto.TSerializedMessageEnvelope")
    codec = envelope.FromString(data[_ENVELOPE.size : start]).codec if envelope_size else NO_CODEC
    if codec != NO_CODEC:
        raise YtError(PROTOCOL, f"Unsupported codec {codec} of the request's body")
    return data[start:]


def _response_header(request: Request) -> Any:
    header = protos.rpc("TResponseHeader")()
    header.request_id.first, header.request_id.second = request.id
    return header


def _fill_stream_header(header: Any, request: Request) -> None:
    header.request_id.first, header.request_id.second = request.id
    header.service = request.service
    header.method = request.method


def _fill_error(message: Any, error: YtError) -> None:
    message.code = error.code
    message.message = error.message
    for key, value in error.attributes.items():
        attribute = message.attributes.attributes.add()
        attribute.key = key
        attribute.value = yson.dumps(value, yson_format="binary")
    for inner in error.inner:
        _fill_error(message.inner_errors.add(), inner)
