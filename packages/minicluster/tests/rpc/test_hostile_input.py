"""Damaged and hostile input on live connections: the others are served, and nothing changes."""

from __future__ import annotations

import asyncio
import random
import struct
from contextlib import suppress

import pytest
from yt import yson

from minicluster.cluster import Cluster
from minicluster.control.gate import Gate
from minicluster.rows import wire
from minicluster.rpc import bus, protos, server
from packages.minicluster.tests.support.rpc_client import RpcClient, build, describe

ROUNDS = 400


def requests() -> list[bytes]:
    """Return whole packets of requests of many kinds, to be damaged."""
    modify = build("TReqModifyRows", path="//home/q", transaction_id="1-2-10002-4")
    modify.row_modification_types.append(0)
    describe(modify, ["n"])
    messages = [
        ("GetNode", build("TReqGetNode", path="//home/doc/@"), []),
        ("ListNode", build("TReqListNode", path="//home"), []),
        ("ModifyRows", modify, [wire.join([wire.encode([(0, wire.INT64, 5)])])]),
        ("SelectRows", build("TReqSelectRows", query="* from [//home/q]"), []),
        ("ReadFile", build("TReqReadFile", path="//home/f"), []),
        ("WriteFile", build("TReqWriteFile", path="//home/nothing"), []),
        ("PullQueue", build("TReqPullQueue", queue_path="//home/q", partition_index=0), []),
        ("ReadTable", build("TReqReadTable", path="//home/q[#1:#2]{n}"), []),
        ("WriteTable", build("TReqWriteTable", path="<append=%true>//home/s", config=b"{}"), []),
        ("StartTransaction", build("TReqStartTransaction", type=1, sticky=True), []),
    ]
    packets = []
    for method, message, attachments in messages:
        header = protos.rpc("TRequestHeader")(service="ApiService", method=method)
        header.request_id.first = header.request_id.second = 9
        body = message.SerializeToString()
        body = struct.pack("<II", 0, len(body)) + body
        parts = [b"rpci" + header.SerializeToString(), body, *attachments]
        packets.append(b"".join(bus.pack(bytes(16), parts, acknowledge=True)))
    return packets


def damage(generator: random.Random, packet: bytes) -> bytes:
    data = bytearray(packet)
    for _ in range(generator.randint(1, 4)):
        position = generator.randrange(len(data))
        match generator.randrange(4):
            case 0:
                data[position] ^= 1 << generator.randrange(8)
            case 1:
                del data[position : position + generator.randint(1, 40)]
            case 2:
                data[position:position] = generator.randbytes(generator.randint(1, 20))
            case 3:
                data[position : position + 4] = struct.pack("<I", generator.choice(SIZES))
        if not data:
            return b"\0"
    return bytes(data)


SIZES = [0, 1, 0x7FFFFFFF, 0xFFFFFFFF, 1 << 28]


@pytest.mark.parametrize("seed", range(4))
def test_damaged_packets_hurt_nobody(seed: int, capsys: pytest.CaptureFixture[str]) -> None:
    async def scenario() -> None:
        cluster = Cluster()
        gate = Gate(cluster.tick, cluster.committing)
        proxy = await server.serve(cluster, gate, "127.0.0.1")
        prepare(cluster)
        before = contents(cluster)
        good = await RpcClient.connect(proxy.address)
        generator = random.Random(seed)
        packets = requests()
        for _ in range(ROUNDS):
            bad = await RpcClient.connect(proxy.address)
            for _ in range(generator.randint(1, 3)):
                bad.writer.write(damage(generator, generator.choice(packets)))
            with suppress(ConnectionError):
                await bad.writer.drain()
            assert await good.get("//sys/@cluster_name") == cluster.name
            bad.writer.close()
        assert contents(cluster) == before
        await good.close()
        await proxy.down()

    asyncio.run(asyncio.wait_for(scenario(), 60))
    # A defect would have been reported there; refusals are not.
    assert "Traceback" not in capsys.readouterr().err


def prepare(cluster: Cluster) -> None:
    cluster.cypress.create("document", "//home/doc", attributes={"value": {"a": 1}})
    cluster.cypress.create("file", "//home/f")
    cluster.cypress.create("table", "//home/s")
    cluster.cypress.write_file("//home/f", b"contents")
    schema = [{"name": "n", "type": "int64"}]
    cluster.cypress.create("table", "//home/q", attributes={"dynamic": True, "schema": schema})
    cluster.tables.mount("//home/q")
    rows = [(0, wire.encode([(0, wire.INT64, n)])) for n in range(5)]
    cluster.tables.modify("//home/q", rows, ["n"])


def contents(cluster: Cluster) -> object:
    return (
        yson.dumps(cluster.cypress.get("//home/doc"), yson_format="text"),
        sorted(cluster.cypress.list("//home")),
        cluster.cypress.read_file("//home/f"),
        cluster.queues.pull("//home/q", 0, 0).rows,
    )
