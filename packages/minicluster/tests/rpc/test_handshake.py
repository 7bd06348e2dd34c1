"""The handshake that opens a connection of the native client, and ids that answers may have."""

from __future__ import annotations

from typing import Any

import pytest

from minicluster.rpc import handshake, protos
from minicluster.rpc.bus import BusError, Part
from packages.minicluster.tests.support.rpc_client import FIXED, build
from packages.minicluster.tests.support.rpc_lab import Lab, in_lab

FILE = 400
HANDSHAKE = (1).to_bytes(16, "little")
KIND = "NYT.NBus.NProto.THandshake"


def given(**fields: Any) -> list[Part]:
    message = protos.message(KIND)(**fields)
    message.connection_id.first = 7
    message.connection_id.second = 8
    return [b"bush" + message.SerializeToString()]


def test_a_handshake_is_answered_without_encryption() -> None:
    (part,) = handshake.answer(given(multiplexing_band=0, encryption_mode=1))
    assert part is not None
    assert part[:4] == b"bush"
    answer = protos.message(KIND).FromString(part[4:])
    assert answer.encryption_mode == 0
    assert answer.connection_id.first


@pytest.mark.parametrize(
    ("parts", "complaint"),
    [
        (given(encryption_mode=2), "requires TLS"),
        ([b"rpci"], "not a handshake"),
        ([None], "not a handshake"),
        ([], "not a handshake"),
        ([b"bush", b""], "not a handshake"),
        ([b"bush\xff"], "bad handshake"),
        ([b"bush"], "bad handshake"),
    ],
)
def test_what_is_no_handshake_closes_the_connection(parts: list[Part], complaint: str) -> None:
    with pytest.raises(BusError, match=complaint):
        handshake.answer(parts)


@in_lab()
async def test_answers_have_ids_of_their_own(lab: Lab) -> None:
    """1 and 2 mean a handshake and the beginning of TLS to the native client."""
    writer = lab.client.writer
    (part,) = given()
    assert part is not None
    header = FIXED.pack(0x78616D4F, 0, 0, HANDSHAKE, 1, 0)
    writer.write(header + len(part).to_bytes(4, "little") + bytes(16) + part)
    kind, packet, parts = await lab.client.read_packet()
    assert (kind, packet, parts[0] and parts[0][:4]) == (0, HANDSHAKE, b"bush")
    seen = []
    for _ in range(3):
        lab.client.send("ExistsNode", build("TReqExistsNode", path="//tmp"), acknowledge=False)
        _, packet, _ = await lab.client.read_packet()
        seen.append(int.from_bytes(packet, "little"))
    assert seen == [3, 4, 5]


async def begin_read(lab: Lab) -> tuple[Any, int]:
    """Ask for a file; return the request's header, and the position after all that has come."""
    await lab.client.create("//tmp/f", FILE)
    await lab.client.write_file("//tmp/f", [b"some bytes"])
    message = build("TReqReadFile", path="//tmp/f")
    header = lab.client.send("ReadFile", message, window=1 << 20, acknowledge=False)
    parts: list[Part] = []
    while not parts or parts[-1] is not None:
        head, *received = await lab.client.read_message()
        assert head is not None
        assert head[:4] == b"rpcp"
        parts += received
    assert b"some bytes" in parts
    return header, sum(len(part or b"") or 1 for part in parts)


@in_lab()
async def test_the_end_of_a_readers_stream_is_acknowledged_before_the_answer(lab: Lab) -> None:
    """core/rpc/stream.cpp, TAttachmentsOutputStream: a null attachment counts as one byte, and the
    client's stream is closed when the server has read as far. Then the answer may come."""
    header, _ = await begin_read(lab)
    lab.client.send_stream(header, 0, [None])
    head, *_ = await lab.client.read_message()
    assert head is not None
    assert head[:4] == b"rpcf"
    feedback = protos.rpc("TStreamingFeedbackHeader").FromString(head[4:])
    assert feedback.request_id == header.request_id
    assert feedback.read_position == 1
    parts = await lab.client.read_message()
    lab.client.open_response(parts, f"{protos.API}TRspReadFile")


@in_lab()
async def test_a_reader_that_has_taken_all_needs_no_end_of_its_own(lab: Lab) -> None:
    """core/rpc/stream.cpp, AbortUnlessClosed; the Java client sends none."""
    header, position = await begin_read(lab)
    lab.client.send_feedback(header, position)
    parts = await lab.client.read_message()
    lab.client.open_response(parts, f"{protos.API}TRspReadFile")


@in_lab()
async def test_a_reader_has_nothing_to_send(lab: Lab) -> None:
    """core/concurrency/async_stream.cpp, ExpectEndOfStream"""
    header, _ = await begin_read(lab)
    lab.client.send_stream(header, 0, [b"data"])
    parts = await lab.client.read_message()
    with pytest.raises(Exception, match="Expected the end of the stream"):
        lab.client.open_response(parts, f"{protos.API}TRspReadFile")


@in_lab()
async def test_fields_that_say_nothing_are_accepted(lab: Lab) -> None:
    """The native client sets many fields to what their absence means."""
    message = build("TReqGetNode", path="//tmp/@type")
    message.complexity_limits.SetInParent()
    message.legacy_attributes.all = True
    lab.client.send("GetNode", message)
    lab.client.open_response(await lab.client.read_message(), f"{protos.API}TRspGetNode")
    message.complexity_limits.node_count = 5
    lab.client.send("GetNode", message)
    with pytest.raises(Exception, match="complexity_limits"):
        lab.client.open_response(await lab.client.read_message(), f"{protos.API}TRspGetNode")
