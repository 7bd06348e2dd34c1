"""The packet that opens a connection of the native client; the Java client sends none.

Source: core/bus/tcp/connection.cpp, OnHandshakePacketReceived. A server answers a handshake with
its own and sends none by itself.
"""

from __future__ import annotations

from typing import Any

from google.protobuf.message import DecodeError

from ..core import ids
from . import protos
from .bus import BusError, Part

PACKET_ID = (1).to_bytes(16, "little")
FIRST_FREE_ID = 3
"""1 is the handshake, 2 the packet that begins TLS: no message may have their ids."""

SIGNATURE = b"bush"
DISABLED, REQUIRED = 0, 2
"""Two of the modes of encryption; the other is 1, optional."""


def answer(parts: list[Part]) -> list[Part]:
    """Return the parts of the answer to a handshake. Raises BusError."""
    if len(parts) != 1 or parts[0] is None or not parts[0].startswith(SIGNATURE):
        raise BusError("not a handshake")
    kind: Any = protos.message("NYT.NBus.NProto.THandshake")
    try:
        given = kind.FromString(parts[0][len(SIGNATURE) :])
    except DecodeError as error:
        raise BusError(f"bad handshake: {error}") from None
    if not given.IsInitialized():
        raise BusError("bad handshake: it has no connection id")
    if given.encryption_mode == REQUIRED:
        raise BusError("the client requires TLS, which the minicluster does not have")
    made = kind(encryption_mode=DISABLED, verification_mode=DISABLED)
    made.connection_id.first, made.connection_id.second = ids.to_parts(ids.new(0))
    return [SIGNATURE + made.SerializeToString()]
