"""The packet layer: bytes in, events out. Packets here are built by hand, from the format alone."""

from __future__ import annotations

import random
import struct

import pytest

from minicluster.rpc import bus
from minicluster.rpc.bus import Acknowledgement, Bus, BusError, Message

ID = bytes(range(16))


def packet(
    parts: list[bytes | None],
    *,
    flags: int = 0,
    kind: int = 0,
    signature: int = 0x78616D4F,
    checksum: int = 0,
    header_checksum: int = 0,
) -> bytes:
    sizes = [0xFFFFFFFF if part is None else len(part) for part in parts]
    fixed = struct.pack("<IHH16sIQ", signature, kind, flags, ID, len(parts), checksum)
    variable = struct.pack(f"<{len(parts)}I", *sizes) + b"\0" * 8 * len(parts)
    if kind:
        return fixed
    return fixed + variable + struct.pack("<Q", header_checksum) + b"".join(p or b"" for p in parts)


def events(data: bytes, step: int | None = None) -> list[bus.Event]:
    machine = Bus()
    found: list[bus.Event] = []
    for start in range(0, len(data), step or len(data)):
        machine.receive(data[start : start + (step or len(data))])
        while (event := machine.next_event()) is not None:
            found.append(event)
    assert machine.buffered == 0
    return found


PARTS: list[list[bytes | None]] = [[b""], [b"abc", None, b"", b"\0" * 1000], [], [None]]


@pytest.mark.parametrize("step", [1, 7, 36, 37, None])
def test_packets_arrive_however_the_bytes_are_cut(step: int | None) -> None:
    data = b"".join(packet(parts, flags=1) for parts in PARTS)
    assert events(data, step) == [Message(ID, parts, True) for parts in PARTS]


def test_null_and_empty_parts_differ() -> None:
    (event,) = events(packet([None, b""]))
    assert isinstance(event, Message)
    assert event.parts == [None, b""]
    assert not event.wants_acknowledgement


def test_acknowledgement_is_a_fixed_header_alone() -> None:
    assert bus.acknowledge(ID) == packet([], kind=1)
    assert events(packet([], kind=1)) == [Acknowledgement(ID)]


@pytest.mark.parametrize("parts", PARTS)
def test_pack_makes_what_a_client_expects(parts: list[bytes | None]) -> None:
    assert b"".join(bus.pack(ID, parts)) == packet(parts)


def test_checksum_is_that_of_the_java_client() -> None:
    # YtCrc64.fromBytes of ytsaurus-client 1.2.17 for the same bytes.
    assert bus.crc64(b"123456789") == -5478634293180130334 % (1 << 64)


def test_right_checksums_pass() -> None:
    fixed = packet([b"x"])[:28]
    variable = packet([b"x"])[36:48]
    good = packet([b"x"], checksum=bus.crc64(fixed), header_checksum=bus.crc64(variable))
    assert events(good) == [Message(ID, [b"x"], False)]


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (packet([b"x"], signature=1), "signature"),
        (packet([b"x"], checksum=1), "checksum of the fixed header"),
        (packet([b"x"], header_checksum=1), "checksum of the variable header"),
        (packet([b"x"])[:4] + b"\7" + packet([b"x"])[5:], "packet type"),
        (packet([])[:24] + b"\xff\xff\xff\x7f" + packet([])[28:], "parts in a packet"),
        (packet([b"x"])[:36] + b"\xff\xff\xff\x7f" + bytes(20), "a part of"),
        (struct.pack("<IHH16sIQ", 0x78616D4F, 1, 0, ID, 1, 0), "acknowledgement"),
        (b"GET / HTTP/1.1\r\nHost: a\r\nAccept: */*\r\n\r\n", "signature"),
    ],
)
def test_what_is_no_packet_is_refused(data: bytes, complaint: str) -> None:
    machine = Bus()
    machine.receive(data)
    with pytest.raises(BusError, match=complaint):
        machine.next_event()


def test_large_packets_are_refused_before_their_bytes_come() -> None:
    sizes = [1 << 28] * 3
    header = struct.pack("<IHH16sIQ", 0x78616D4F, 0, 0, ID, 3, 0)
    machine = Bus()
    machine.receive(header + struct.pack("<3I", *sizes) + bytes(32))
    with pytest.raises(BusError, match="a packet of"):
        machine.next_event()


def test_random_bytes_end_in_an_error_or_in_waiting_for_more() -> None:
    generator = random.Random(1)
    good = packet([b"abc", None, b"defgh"], flags=1)
    for _ in range(3000):
        broken = bytearray(good * 2)
        for _ in range(generator.randint(1, 5)):
            broken[generator.randrange(len(broken))] = generator.randrange(256)
        machine = Bus()
        machine.receive(bytes(broken[: generator.randint(0, len(broken))]))
        try:
            while machine.next_event() is not None:
                pass
        except BusError:
            continue
