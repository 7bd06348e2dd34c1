"""The packet layer of YT's bus protocol, without any I/O.

Bytes come in through `Bus.receive`, events come out of `Bus.next_event`; `pack` and `acknowledge`
turn answers into bytes. A packet is a fixed header, and for a message a variable header (sizes and
checksums of its parts) and the parts back to back. All numbers are little-endian.

Bytes that cannot be a packet raise `BusError`: the next packet cannot be found then, so the
only answer is to close the connection.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

SIGNATURE = 0x78616D4F
MESSAGE, ACKNOWLEDGEMENT = 0, 1
WANTS_ACKNOWLEDGEMENT = 1
NULL_PART = 0xFFFFFFFF
"""The size of a null part, which is not the same as an empty one."""

FIXED_HEADER = struct.Struct("<IHH16sIQ")
CHECKSUMMED = FIXED_HEADER.size - 8

MAX_PARTS = 1 << 20
"""Far above what a client sends; the protocol's own 2^28 would let 8 bytes ask for 3 GiB."""
MAX_PART = 1 << 28
"""The protocol's limit on one part, as in the Java client's decoder."""
MAX_PACKET = 1 << 29
"""A client may make the server hold this much; Spark sends a few megabytes at a time."""
MAX_CHECKED_HEADER = 1 << 12
"""Longer variable headers go unchecked: a CRC in Python costs about 0.1 us a byte."""

Part = bytes | None


class BusError(Exception):
    """These bytes are not the bus protocol, or ask for more than the server gives."""


@dataclass(slots=True, frozen=True)
class Message:
    id: bytes
    parts: list[Part]
    wants_acknowledgement: bool


@dataclass(slots=True, frozen=True)
class Acknowledgement:
    id: bytes


Event = Message | Acknowledgement


class Bus:
    """The receiving side of one connection."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._needed = FIXED_HEADER.size

    def receive(self, data: bytes) -> None:
        self._buffer += data

    @property
    def buffered(self) -> int:
        """Bytes received that belong to no event yet."""
        return len(self._buffer)

    def next_event(self) -> Event | None:
        """Return the next whole packet, or None until more bytes come. Raises BusError."""
        if len(self._buffer) < self._needed:
            return None
        signature, kind, flags, packet_id, count, checksum = FIXED_HEADER.unpack_from(self._buffer)
        if signature != SIGNATURE:
            raise BusError(f"bad packet signature {signature:#x}")
        _verify(checksum, self._buffer[:CHECKSUMMED], "fixed header")
        if kind == ACKNOWLEDGEMENT:
            if count:
                raise BusError(f"an acknowledgement with {count} parts")
            self._consume(FIXED_HEADER.size)
            return Acknowledgement(packet_id)
        if kind != MESSAGE:
            raise BusError(f"unknown packet type {kind}")
        parts = self._message_parts(count)
        if parts is None:
            return None
        return Message(packet_id, parts, bool(flags & WANTS_ACKNOWLEDGEMENT))

    def _message_parts(self, count: int) -> list[Part] | None:
        if count > MAX_PARTS:
            raise BusError(f"{count} parts in a packet, at most {MAX_PARTS} are allowed")
        body = FIXED_HEADER.size + 12 * count + 8
        if len(self._buffer) < body:
            self._needed = body
            return None
        sizes = struct.unpack_from(f"<{count}I", self._buffer, FIXED_HEADER.size)
        lengths = [0 if size == NULL_PART else size for size in sizes]
        if lengths and max(lengths) > MAX_PART:
            raise BusError(f"a part of {max(lengths)} bytes, at most {MAX_PART} are allowed")
        whole = body + sum(lengths)
        if whole > MAX_PACKET:
            raise BusError(f"a packet of {whole} bytes, at most {MAX_PACKET} are allowed")
        if body - FIXED_HEADER.size <= MAX_CHECKED_HEADER:
            (checksum,) = struct.unpack_from("<Q", self._buffer, body - 8)
            _verify(checksum, self._buffer[FIXED_HEADER.size : body - 8], "variable header")
        if len(self._buffer) < whole:
            self._needed = whole
            return None
        parts: list[Part] = []
        with memoryview(self._buffer) as view:
            position = body
            for size, length in zip(sizes, lengths, strict=True):
                end = position + length
                parts.append(None if size == NULL_PART else bytes(view[position:end]))
                position = end
        self._consume(whole)
        return parts

    def _consume(self, size: int) -> None:
        del self._buffer[:size]
        self._needed = FIXED_HEADER.size


def pack(packet_id: bytes, parts: Sequence[Part], *, acknowledge: bool = False) -> list[bytes]:
    """Return a message packet, in pieces to be written one after the other.

    Checksums go out as 0, which means "none": the Java client skips them then.
    """
    count = len(parts)
    flags = WANTS_ACKNOWLEDGEMENT if acknowledge else 0
    header = FIXED_HEADER.pack(SIGNATURE, MESSAGE, flags, packet_id, count, 0)
    sizes = [NULL_PART if part is None else len(part) for part in parts]
    variable = struct.pack(f"<{count}I", *sizes) + bytes(8 * count + 8)
    return [header + variable, *(part for part in parts if part)]


def acknowledge(packet_id: bytes) -> bytes:
    return FIXED_HEADER.pack(SIGNATURE, ACKNOWLEDGEMENT, 0, packet_id, 0, 0)


def _verify(checksum: int, data: bytes | bytearray, what: str) -> None:
    if checksum and checksum != crc64(data):
        raise BusError(f"wrong checksum of the {what}")


_POLYNOMIAL = 0xE543279765927881


def _make_table() -> list[int]:
    table = []
    for byte in range(256):
        value = byte << 56
        for _ in range(8):
            value = (value << 1) ^ (_POLYNOMIAL if value >> 63 else 0)
            value &= 0xFFFFFFFFFFFFFFFF
        table.append(value)
    return table


_TABLE = _make_table()


def crc64(data: bytes | bytearray) -> int:
    """Return YT's CRC-64 (core/misc/checksum.cpp): most significant bit first, from zero."""
    value = 0
    for byte in data:
        value = _TABLE[(value >> 56) ^ byte] ^ (value << 8 & 0xFFFFFFFFFFFFFFFF)
    return value
