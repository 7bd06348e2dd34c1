"""The RPC front end from outside: a bare client on real sockets, in the server's event loop."""

from __future__ import annotations

import asyncio
import struct
from typing import Any

import pytest
from yt import yson

from minicluster.control.faults import Rule
from minicluster.core import ids
from minicluster.rows import wire
from minicluster.rpc import protos
from packages.minicluster.tests.support.rpc_client import (
    RpcClient,
    RpcError,
    build,
    describe,
    rows_of,
    text_id,
)
from packages.minicluster.tests.support.rpc_lab import Lab, in_lab
from tests.support import codes

MAP_NODE, FILE, TABLE, DOCUMENT, QUEUE_CONSUMER = 303, 400, 401, 421, 1700


# Requests, acknowledgements, errors


@in_lab()
async def test_health_check_is_bare_and_acknowledged(lab: Lab) -> None:
    lab.client.send("Discover", protos.rpc("TReqDiscover")(), bare=True, acknowledge=True)
    kind, _, _ = await lab.client.read_packet()
    assert kind == 1
    reply, _ = RpcClient.open_response(
        await lab.client.read_message(), "NYT.NRpc.NProto.TRspDiscover"
    )
    assert reply.up


@in_lab()
async def test_acknowledgements_come_in_the_order_of_the_packets(lab: Lab) -> None:
    header = protos.rpc("TRequestHeader")(service="ApiService", method="ExistsNode")
    body = build("TReqExistsNode", path="/").SerializeToString()
    sent = []
    for number in range(20):
        header.request_id.first, header.request_id.second = number, 1
        request = [b"rpci" + header.SerializeToString(), struct.pack("<II", 0, len(body)) + body]
        sent.append(lab.client.send_packet([*request], acknowledge=True))
    acknowledged: list[bytes] = []
    answers = 0
    while len(acknowledged) < 20 or answers < 20:
        kind, packet_id, _ = await lab.client.read_packet()
        acknowledged += [packet_id] if kind == 1 else []
        answers += kind == 0
    assert acknowledged == sent


@pytest.mark.parametrize(
    ("service", "method", "code", "message"),
    [
        ("ApiService", "MakeCoffee", 103, "Unknown method"),
        ("ApiService", "SuspendOperation", 1, "not supported by minicluster: SuspendOperation"),
        ("KitchenService", "MakeCoffee", 102, "Service is not registered"),
    ],
)
def test_unknown_methods_and_services(service: str, method: str, code: int, message: str) -> None:
    @in_lab()
    async def scenario(lab: Lab) -> None:
        lab.client.send(method, build("TReqExistsNode", path="/"), service=service)
        with pytest.raises(RpcError, match=message) as caught:
            RpcClient.open_response(await lab.client.read_message(), "")
        assert caught.value.code == code
        assert lab.gate.journal.counts[method] == 1

    scenario()


@in_lab()
async def test_a_body_that_is_no_message_fails_alone(lab: Lab) -> None:
    header = protos.rpc("TRequestHeader")(service="ApiService", method="GetNode")
    header.request_id.first, header.request_id.second = 1, 2
    for body in (b"", b"\1", struct.pack("<II", 0, 5) + b"\xff" * 5, struct.pack("<II", 9, 9)):
        lab.client.send_packet([b"rpci" + header.SerializeToString(), body])
        with pytest.raises(RpcError, match="deserializing request body"):
            RpcClient.open_response(await lab.client.read_message(), "")
    assert await lab.client.get("//sys/@cluster_name")


@pytest.mark.parametrize(
    "parts",
    [
        [],
        [None],
        [b"rpci"],
        [b"what is this", b"body"],
        [b"rpci\xff\xff\xff", b"body"],
        [b"rpci\x12\x01a\x1a\x01b", b"a request without an id"],
        [b"rpcp\x00"],
    ],
)
def test_what_is_no_message_closes_only_its_connection(parts: list[bytes | None]) -> None:
    @in_lab()
    async def scenario(lab: Lab) -> None:
        bad = await lab.connect()
        bad.send_packet(parts)
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            await bad.read_message()
        assert await lab.client.get("//sys/@cluster_name")

    scenario()


@in_lab()
async def test_bytes_that_are_no_packet_close_only_their_connection(lab: Lab) -> None:
    bad = await lab.connect()
    bad.writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\nAccept: everything\r\n\r\n")
    assert await bad.reader.read() == b""
    assert await lab.client.get("//sys/@cluster_name")


@in_lab()
async def test_a_thousand_connections(lab: Lab) -> None:
    clients = [await lab.connect() for _ in range(1000)]
    names = await asyncio.gather(*(client.get("//sys/@cluster_name") for client in clients))
    assert set(names) == {lab.cluster.name}


@in_lab()
async def test_a_client_that_stops_reading_holds_up_nobody(lab: Lab) -> None:
    await lab.client.create("//home/big", DOCUMENT, {"value": "x" * 1_000_000})
    deaf = await lab.connect()
    for _ in range(200):
        deaf.send("GetNode", build("TReqGetNode", path="//home/big"))
    await deaf.writer.drain()
    while lab.gate.journal.counts["GetNode"] == 0:
        await lab.client.call("ExistsNode", path="/")
    before = lab.gate.journal.counts["GetNode"]
    for _ in range(50):
        await lab.client.call("ExistsNode", path="/")
    assert lab.gate.journal.counts["GetNode"] - before < 100
    for _ in range(200):
        RpcClient.open_response(await deaf.read_message(), f"{protos.API}TRspGetNode")


# Cypress and files


@in_lab()
async def test_nodes_are_made_moved_listed_and_removed(lab: Lab) -> None:
    client = lab.client
    node_id = await client.create("//home/a/b", MAP_NODE)
    assert await client.get("//home/a/b/@id") == node_id
    assert ids.type_of(node_id) == MAP_NODE
    await client.create("//home/a/f", FILE)
    reply, _ = await client.call("ListNode", path="//home/a")
    assert sorted(yson.loads(reply.value)) == ["b", "f"]
    with pytest.raises(RpcError) as caught:
        await client.call("MoveNode", src_path="//home/a/f", dst_path="//home/a/b")
    assert caught.value.code == codes.ALREADY_EXISTS
    await client.call("MoveNode", src_path="//home/a/f", dst_path="//home/a/b", force=True)
    assert await client.get("//home/a/b/@type") == "file"
    await client.call("RemoveNode", path="//home/a", recursive=True)
    reply, _ = await client.call("ExistsNode", path="//home/a")
    assert not reply.exists


@in_lab()
async def test_what_an_rpc_request_depends_on(lab: Lab) -> None:
    client, cypress = lab.client, lab.cluster.cypress
    cypress.create("map_node", "//tmp/d")
    running = lab.cluster.transactions.start()

    async def create(name: str, transaction: str, revision: int) -> str:
        request = build("TReqCreateNode", path=f"//tmp/d/{name}", type=MAP_NODE)
        condition = request.prerequisite_options.transactions.add().transaction_id
        condition.first, condition.second = ids.to_parts(transaction)
        request.prerequisite_options.revisions.add(path=b"//tmp/d", revision=revision)
        client.send("CreateNode", request)
        try:
            client.open_response(await client.read_message(), f"{protos.API}TRspCreateNode")
        except RpcError as error:
            return f"{error.code}: {error.message}"
        return "made"

    revision = cypress.get("//tmp/d/@revision")
    wrong = await create("a", "1-2-10001-4", revision)
    assert wrong == "1000: Prerequisite check failed: transaction 1-2-10001-4 is missing"
    wrong = await create("a", running, revision + 1)
    assert wrong.startswith("1000: Prerequisite check failed: node //tmp/d revision mismatch")
    assert await create("a", running, revision) == "made"
    assert cypress.list("//tmp/d") == ["a"]


@in_lab()
async def test_what_an_rpc_copy_keeps_and_a_listing_shows(lab: Lab) -> None:
    client, cypress = lab.client, lab.cluster.cypress
    acl = [{"action": "allow", "subjects": ["everyone"], "permissions": ["read"]}]
    cypress.create("map_node", "//tmp/a", attributes={"acl": acl})
    await client.call("CopyNode", src_path="//tmp/a", dst_path="//tmp/b")
    await client.call("CopyNode", src_path="//tmp/a", dst_path="//tmp/c", preserve_acl=True)
    assert [cypress.get(f"//tmp/{name}/@acl") for name in "bc"] == [[], acl]
    reply, _ = await client.call("ListNode", path="//tmp", max_size=1)
    assert len(yson.loads(reply.value)) == 1


@in_lab()
async def test_a_missing_node_is_worded_as_spyt_expects(lab: Lab) -> None:
    with pytest.raises(RpcError) as caught:
        await lab.client.get("//home/nothing/here")
    assert caught.value.code == codes.RESOLVE
    assert caught.value.message.startswith("Error resolving path ")


@in_lab()
async def test_attributes_go_in_and_out(lab: Lab) -> None:
    await lab.client.create("//home/doc", DOCUMENT, {"value": {"a": [1, "два"]}, "mine": 7})
    assert await lab.client.get("//home/doc") == {"a": [1, "два"]}
    request = build("TReqGetNode", path="//home")
    request.attributes.keys.extend(["mine", "type"])
    lab.client.send("GetNode", request)
    reply, _ = RpcClient.open_response(await lab.client.read_message(), f"{protos.API}TRspGetNode")
    child = yson.loads(reply.value)["doc"]
    assert child.attributes["mine"] == 7
    value = yson.dumps("new", yson_format="binary")
    await lab.client.call("SetNode", path="//home/doc/@mine", value=value)
    assert await lab.client.get("//home/doc/@mine") == "new"


@in_lab()
async def test_files_are_streamed_both_ways(lab: Lab) -> None:
    data = [b"head", b"", bytes(range(256)) * 40_000, b"tail"]
    await lab.client.create("//home/f", FILE)
    await lab.client.write_file("//home/f", data)
    whole = b"".join(data)
    assert await lab.client.read_file("//home/f") == whole
    assert await lab.client.read_file("//home/f", offset=2, length=100) == whole[2:102]
    await lab.client.write_file("//home/f", [])
    assert await lab.client.read_file("//home/f") == b""


@in_lab()
async def test_a_reader_is_sent_no_more_than_its_window(lab: Lab) -> None:
    await lab.client.create("//home/f", FILE)
    await lab.client.write_file("//home/f", [bytes(10 << 20)])
    window = 2 << 20
    header = lab.client.send("ReadFile", build("TReqReadFile", path="//home/f"), window=window)
    taken = 0
    while taken < window:
        parts = await lab.client.read_message()
        taken += sum(len(part or b"") or 1 for part in parts[1:])
    await lab.client.call("ExistsNode", path="/")  # answered next: nothing more is on its way
    lab.client.send_feedback(header, taken)
    parts = await lab.client.read_message()
    assert parts[0] is not None
    assert parts[0][:4] == b"rpcp"


@in_lab()
async def test_a_file_whose_writer_goes_away_is_not_changed(lab: Lab) -> None:
    await lab.client.create("//home/f", FILE)
    await lab.client.write_file("//home/f", [b"before"])
    writer = await lab.connect()
    header = writer.send("WriteFile", build("TReqWriteFile", path="//home/f"))
    await writer.read_message()
    writer.send_stream(header, 0, [b"after"])
    await writer.read_message()
    await writer.close()
    while lab.gate.journal.counts["WriteFile"] < 2:
        await lab.client.call("ExistsNode", path="/")
    assert await lab.client.read_file("//home/f") == b"before"


@in_lab()
async def test_a_stream_out_of_order_is_an_error(lab: Lab) -> None:
    await lab.client.create("//home/f", FILE)
    header = lab.client.send("WriteFile", build("TReqWriteFile", path="//home/f"))
    await lab.client.read_message()
    lab.client.send_stream(header, 5, [b"x"])
    with pytest.raises(RpcError, match="out of order"):
        RpcClient.open_response(await lab.client.read_message(), "")


# Rows, queues, transactions

COLUMNS = [{"name": "n", "type": "int64"}, {"name": "s", "type": "string"}]
KEYED = yson.to_yson_type(
    [COLUMNS[0] | {"sort_order": "ascending"}, COLUMNS[1]],
    attributes={"strict": True, "unique_keys": True},
)


def row(n: int, text: str) -> bytes:
    return wire.encode([(0, wire.INT64, n), (1, wire.STRING, text.encode())])


async def make_queue(lab: Lab, tablets: int = 2) -> None:
    attributes = {"dynamic": True, "schema": COLUMNS, "tablet_count": tablets}
    await lab.client.create("//home/q", TABLE, attributes)
    await lab.client.create("//home/c", QUEUE_CONSUMER)
    for path in ("//home/q", "//home/c"):
        lab.cluster.tables.mount(path)
    lab.cluster.queues.register("//home/q", "//home/c", True)


async def start(client: RpcClient) -> str:
    request = build("TReqStartTransaction", type=1, sticky=True, timeout=15_000_000)
    client.send("StartTransaction", request)
    reply, _ = RpcClient.open_response(
        await client.read_message(), f"{protos.API}TRspStartTransaction"
    )
    assert reply.start_timestamp > 0
    return text_id(reply.id)


async def modify(
    client: RpcClient, path: str, rows: list[bytes], tx: str, kinds: list[int] | None = None
) -> None:
    request = build("TReqModifyRows", path=path, transaction_id=tx)
    request.row_modification_types.extend(kinds or [0] * len(rows))
    describe(request, ["n", "s"])
    client.send("ModifyRows", request, [wire.join(rows)])
    RpcClient.open_response(await client.read_message(), f"{protos.API}TRspModifyRows")


async def pull(client: RpcClient, partition: int, offset: int = 0) -> list[Any]:
    reply, attachments = await client.call(
        "PullConsumer",
        consumer_path="//home/c",
        queue_path="//home/q",
        partition_index=partition,
        offset=offset,
    )
    return rows_of(reply.rowset_descriptor, attachments)


async def pull_all(client: RpcClient) -> list[tuple[int, bytes]]:
    found = [pulled for partition in (0, 1) for pulled in await pull(client, partition)]
    return sorted((pulled["n"], pulled["s"]) for pulled in found)


@in_lab()
async def test_rows_are_seen_once_the_transaction_commits(lab: Lab) -> None:
    await make_queue(lab)
    tx = await start(lab.client)
    await modify(lab.client, "//home/q", [row(1, "a"), row(2, "b")], tx)
    assert await pull_all(lab.client) == []
    reply, _ = await lab.client.call("CommitTransaction", transaction_id=tx)
    assert reply.primary_commit_timestamp > 0
    assert await pull_all(lab.client) == [(1, b"a"), (2, b"b")]


@in_lab()
async def test_pulled_rows_name_their_position(lab: Lab) -> None:
    await make_queue(lab, tablets=1)
    for n in range(3):
        tx = await start(lab.client)
        await modify(lab.client, "//home/q", [row(n, "")], tx)
        await lab.client.call("CommitTransaction", transaction_id=tx)
    pulled = await pull(lab.client, 0, offset=1)
    assert [(r["$tablet_index"], r["$row_index"], r["n"]) for r in pulled] == [(0, 1, 1), (0, 2, 2)]


@in_lab()
async def test_an_answer_begins_at_its_first_row(lab: Lab) -> None:
    client = lab.client
    await make_queue(lab, tablets=1)
    tx = await start(client)
    await modify(client, "//home/q", [row(n, "") for n in range(5)], tx)
    await client.call("CommitTransaction", transaction_id=tx)
    await client.call("TrimTable", path="//home/q", tablet_index=0, trimmed_row_count=2)
    lab.cluster.queues.advance("//home/c", "//home/q", 0, None, 4)
    queue = {"queue_path": "//home/q", "partition_index": 0}
    consumer = {"consumer_path": "//home/c", **queue}
    cases: list[tuple[str, dict[str, Any], int]] = [
        ("PullQueue", {**queue, "offset": 0}, 2),
        ("PullQueue", {**queue, "offset": 3}, 3),
        ("PullQueue", {**queue, "offset": 7}, 7),
        ("PullConsumer", {**consumer, "offset": 1}, 2),
        ("PullConsumer", consumer, 4),
    ]
    for method, arguments, first in cases:
        reply, attachments = await client.call(method, **arguments)
        pulled = rows_of(reply.rowset_descriptor, attachments)
        assert reply.start_offset == first
        assert [r["$row_index"] for r in pulled if r] == list(range(first, 5))


@in_lab()
async def test_the_consumer_moves_with_its_transaction(lab: Lab) -> None:
    await make_queue(lab)
    tx = await start(lab.client)
    await lab.client.call(
        "AdvanceConsumer",
        transaction_id=tx,
        consumer_path="//home/c",
        queue_path="//home/q",
        partition_index=1,
        new_offset=5,
    )
    query = '* from [//home/c] where queue_cluster = "minicluster" and queue_path = "//home/q"'

    async def offsets() -> list[tuple[int, int]]:
        reply, attachments = await lab.client.call("SelectRows", query=query)
        found = rows_of(reply.rowset_descriptor, attachments)
        return [(r["partition_index"], r["offset"]) for r in found if r]

    assert await offsets() == []
    await lab.client.call("CommitTransaction", transaction_id=tx)
    assert await offsets() == [(1, 5)]


@in_lab()
async def test_an_aborted_transaction_leaves_nothing(lab: Lab) -> None:
    await make_queue(lab)
    tx = await start(lab.client)
    await modify(lab.client, "//home/q", [row(1, "a")], tx)
    await lab.client.call("AbortTransaction", transaction_id=tx)
    with pytest.raises(RpcError) as caught:
        await lab.client.call("CommitTransaction", transaction_id=tx)
    assert caught.value.code == codes.NO_SUCH_TRANSACTION
    assert await pull_all(lab.client) == []


@in_lab()
async def test_keys_are_looked_up(lab: Lab) -> None:
    keyed = [dict(COLUMNS[0], sort_order="ascending"), COLUMNS[1]]
    schema = yson.to_yson_type(keyed, attributes={"strict": True, "unique_keys": True})
    await lab.client.create("//home/t", TABLE, {"dynamic": True, "schema": schema})
    lab.cluster.tables.mount("//home/t")
    tx = await start(lab.client)
    await modify(lab.client, "//home/t", [row(1, "a"), row(2, "b")], tx)
    await lab.client.call("CommitTransaction", transaction_id=tx)
    request = build("TReqLookupRows", path="//home/t", keep_missing_rows=True)
    describe(request, ["n"])
    keys = [wire.encode([(0, wire.INT64, n)]) for n in (2, 3)]
    lab.client.send("LookupRows", request, [wire.join(keys)])
    reply, attachments = RpcClient.open_response(
        await lab.client.read_message(), f"{protos.API}TRspLookupRows"
    )
    assert rows_of(reply.rowset_descriptor, attachments) == [{"n": 2, "s": b"b"}, None]


@in_lab()
async def test_a_bad_rowset_is_refused_whole(lab: Lab) -> None:
    await make_queue(lab)
    tx = await start(lab.client)
    with pytest.raises(RpcError, match="modification types"):
        await modify(lab.client, "//home/q", [row(1, "a")], tx, kinds=[0, 0])
    request = build("TReqModifyRows", path="//home/q", transaction_id=tx)
    request.row_modification_types.append(0)
    describe(request, ["n", "s"])
    for data in (b"", b"\1", wire.join([row(1, "a")])[:-8], struct.pack("<QQ", 1, 1 << 60)):
        lab.client.send("ModifyRows", request, [data])
        with pytest.raises(RpcError, match="Malformed rowset"):
            RpcClient.open_response(await lab.client.read_message(), "")
    await lab.client.call("CommitTransaction", transaction_id=tx)
    assert await pull_all(lab.client) == []


@in_lab()
async def test_tables_are_cut_mounted_trimmed_and_described(lab: Lab) -> None:
    client = lab.client
    attributes = {"dynamic": True, "schema": COLUMNS, "tablet_count": 1}
    await client.create("//home/q", TABLE, attributes)
    await client.call("ReshardTable", path="//home/q", tablet_count=3)
    await client.call("MountTable", path="//home/q")
    assert await client.get("//home/q/@tablet_state") == "mounted"
    tx = await start(client)
    await modify(client, "//home/q", [row(n, "") for n in range(10)], tx)
    await client.call("CommitTransaction", transaction_id=tx)
    request = build("TReqGetTabletInfos", path="//home/q")
    request.tablet_indexes.extend([0, 1, 2])

    async def infos() -> list[tuple[int, int]]:
        client.send("GetTabletInfos", request)
        reply, _ = RpcClient.open_response(
            await client.read_message(), f"{protos.API}TRspGetTabletInfos"
        )
        return [(tablet.total_row_count, tablet.trimmed_row_count) for tablet in reply.tablets]

    counts = await infos()
    assert sorted(counts) == [(0, 0), (0, 0), (10, 0)]
    filled = counts.index((10, 0))
    await client.call("TrimTable", path="//home/q", tablet_index=filled, trimmed_row_count=4)
    assert (await infos())[filled] == (10, 4)
    await client.call("UnmountTable", path="//home/q")
    assert await client.get("//home/q/@tablet_state") == "unmounted"


@in_lab()
async def test_pivot_keys_go_in_and_out(lab: Lab) -> None:
    keyed = [dict(COLUMNS[0], sort_order="ascending"), COLUMNS[1]]
    schema = yson.to_yson_type(keyed, attributes={"strict": True, "unique_keys": True})
    await lab.client.create("//home/t", TABLE, {"dynamic": True, "schema": schema})
    request = build("TReqReshardTable", path="//home/t")
    describe(request, ["n"])
    pivots = [wire.encode([]), wire.encode([(0, wire.INT64, 10)])]
    lab.client.send("ReshardTable", request, [wire.join(pivots)])
    RpcClient.open_response(await lab.client.read_message(), f"{protos.API}TRspReshardTable")
    reply, _ = await lab.client.call(
        "GetTablePivotKeys", path="//home/t", represent_key_as_list=True
    )
    assert yson.loads(reply.value) == [[], [10]]


@in_lab()
async def test_pivot_keys_need_no_descriptor(lab: Lab) -> None:
    """client/api/rpc_proxy/client_impl.cpp, ReshardTable: the native client sends the keys alone.

    Their values go by their order: the ids in them are those of no name table.
    """
    keyed = [dict(COLUMNS[0], sort_order="ascending"), COLUMNS[1]]
    schema = yson.to_yson_type(keyed, attributes={"strict": True, "unique_keys": True})
    await lab.client.create("//home/t", TABLE, {"dynamic": True, "schema": schema})
    request = build("TReqReshardTable", path="//home/t")
    assert not request.HasField("rowset_descriptor")
    pivots = [wire.encode([]), wire.encode([(0, wire.INT64, 10)]), wire.encode([(0, 3, 20)])]
    lab.client.send("ReshardTable", request, [wire.join(pivots)])
    RpcClient.open_response(await lab.client.read_message(), f"{protos.API}TRspReshardTable")
    assert await lab.client.get("//home/t/@pivot_keys") == [[], [10], [20]]


@in_lab()
async def test_registrations_are_listed(lab: Lab) -> None:
    await make_queue(lab)
    paths: dict[str, Any] = {"queue_path": "//home/q", "consumer_path": "//home/c"}
    await lab.client.call("UnregisterQueueConsumer", **paths)
    with pytest.raises(RpcError, match="is not registered"):
        await pull(lab.client, 0)
    await lab.client.call("RegisterQueueConsumer", vital=False, **paths)
    reply, _ = await lab.client.call("ListQueueConsumerRegistrations", queue_path="//home/q")
    (found,) = reply.registrations
    assert found.consumer_path == b'<"cluster"="minicluster">//home/c'
    assert not found.vital
    assert await pull(lab.client, 0) == []


@in_lab()
async def test_a_static_table_is_read_by_rows_and_columns(lab: Lab) -> None:
    await lab.client.create("//home/s", TABLE, {"schema": COLUMNS})
    count = 25_000
    lab.cluster.tables.write("//home/s", [{"n": n, "s": str(n).encode()} for n in range(count)])
    meta, found = await lab.client.read_table("//home/s")
    assert [column.name for column in meta.schema.columns] == ["n", "s"]
    assert found == [{"n": n, "s": str(n).encode()} for n in range(count)]
    meta, found = await lab.client.read_table("//home/s{s}[#10:#12,#20]")
    assert meta.start_row_index == 10
    assert found == [{"s": b"10"}, {"s": b"11"}, {"s": b"20"}]


@in_lab()
async def test_partitions_cover_a_static_table(lab: Lab) -> None:
    await lab.client.create("//home/s", TABLE, {"schema": COLUMNS})
    rows = [{"n": n, "s": b"x" * 100} for n in range(1000)]
    lab.cluster.tables.write("//home/s", rows)
    request = build("TReqPartitionTables", partition_mode=1, data_weight_per_partition=10_000)
    request.paths.append(b"//home/s")
    lab.client.send("PartitionTables", request)
    reply, _ = RpcClient.open_response(
        await lab.client.read_message(), f"{protos.API}TRspPartitionTables"
    )
    assert len(reply.partitions) > 5
    found = []
    for partition in reply.partitions:
        for cut in partition.table_ranges:
            found += (await lab.client.read_table(cut.decode()))[1]
    assert found == rows


@in_lab()
async def test_dynamic_tables_are_read_by_key_and_by_tablet(lab: Lab) -> None:
    keyed = [dict(COLUMNS[0], sort_order="ascending"), COLUMNS[1]]
    schema = yson.to_yson_type(keyed, attributes={"strict": True, "unique_keys": True})
    attributes = {"dynamic": True, "schema": schema, "pivot_keys": [[], [5]]}
    await lab.client.create("//home/t", TABLE, attributes)
    await make_queue(lab)
    lab.cluster.tables.mount("//home/t")
    for path in ("//home/t", "//home/q"):
        for n in range(10):
            tx = await start(lab.client)
            await modify(lab.client, path, [row(n, "")], tx)
            await lab.client.call("CommitTransaction", transaction_id=tx)

    async def numbers(path: str) -> list[int]:
        return [found["n"] for found in (await lab.client.read_table(path))[1]]

    def between(low: str, high: str) -> str:
        return f"<ranges=[{{lower_limit={{{low}}};upper_limit={{{high}}}}}]>//home/"

    assert await numbers("//home/t") == list(range(10))
    assert await numbers(between("key=[3]", "key=[6]") + "t") == [3, 4, 5]
    assert await numbers(between("key=[3]", "key=[6;<type=max>#]") + "t") == [3, 4, 5, 6]
    assert await numbers(between("key=[<type=min>#]", "key=[2]") + "t") == [0, 1]
    assert await numbers(between('key_bound=[">";[7]]', "") + "t") == [8, 9]
    assert await numbers("<ranges=[{exact={key=[4]}}]>//home/t") == [4]
    tablets = [
        await numbers(between(f"tablet_index={index}", f"tablet_index={index + 1}") + "q")
        for index in (0, 1)
    ]
    assert sorted(tablets[0] + tablets[1]) == list(range(10))
    first = await numbers(between("tablet_index=1;row_index=1", "tablet_index=1;row_index=3") + "q")
    assert first == tablets[1][1:3]
    request = build("TReqPartitionTables", partition_mode=1)
    request.paths.append(b"//home/t")
    lab.client.send("PartitionTables", request)
    reply, _ = RpcClient.open_response(
        await lab.client.read_message(), f"{protos.API}TRspPartitionTables"
    )
    cuts = [await numbers(part.table_ranges[0].decode()) for part in reply.partitions]
    assert cuts == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]


@in_lab()
async def test_required_fields_are_required(lab: Lab) -> None:
    await make_queue(lab)
    request = build("TReqModifyRows", path="//home/q")
    request.row_modification_types.append(0)
    describe(request, ["n", "s"])
    body = request.SerializePartialToString()
    header = protos.rpc("TRequestHeader")(service="ApiService", method="ModifyRows")
    header.request_id.first = header.request_id.second = 1
    parts = [b"rpci" + header.SerializeToString(), struct.pack("<II", 0, len(body)) + body]
    lab.client.send_packet([*parts, wire.join([row(1, "a")])])
    with pytest.raises(RpcError, match="transaction_id missing"):
        RpcClient.open_response(await lab.client.read_message(), "")
    assert await pull_all(lab.client) == []


# Several proxies


@in_lab(proxies=2)
async def test_a_tablet_transaction_lives_on_one_proxy(lab: Lab) -> None:
    await make_queue(lab)
    other = await lab.connect(1)
    tx = await start(lab.client)
    for method in ("AttachTransaction", "PingTransaction", "CommitTransaction"):
        with pytest.raises(RpcError) as caught:
            await other.call(method, transaction_id=tx)
        assert caught.value.code == codes.NO_SUCH_TRANSACTION
    with pytest.raises(RpcError):
        await modify(other, "//home/q", [row(1, "a")], tx)
    again = await lab.connect(0)
    reply, _ = await again.call("AttachTransaction", transaction_id=tx)
    assert reply.type == 1
    await modify(again, "//home/q", [row(1, "a")], tx)
    await lab.client.call("CommitTransaction", transaction_id=tx)
    assert await pull_all(other) == [(1, b"a")]


@in_lab(proxies=2)
async def test_a_proxy_that_goes_down_takes_its_transactions_along(lab: Lab) -> None:
    await make_queue(lab)
    other = await lab.connect(1)
    tx = await start(lab.client)
    await modify(lab.client, "//home/q", [row(1, "a")], tx)
    await lab.proxies[0].down()
    with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
        await lab.client.read_message()
    with pytest.raises(ConnectionError):
        await lab.connect(0)
    await lab.proxies[0].up()
    again = await lab.connect(0)
    with pytest.raises(RpcError) as caught:
        await again.call("CommitTransaction", transaction_id=tx)
    assert caught.value.code == codes.NO_SUCH_TRANSACTION
    assert await pull_all(other) == []


@in_lab(proxies=2)
async def test_a_master_transaction_is_known_to_every_proxy(lab: Lab) -> None:
    reply, _ = await lab.client.call("StartTransaction", type=0, timeout=60_000_000)
    tx = text_id(reply.id)
    assert ids.type_of(tx) == ids.MASTER_TRANSACTION
    other = await lab.connect(1)
    await other.call("PingTransaction", transaction_id=tx)
    request = build("TReqCreateNode", path="//home/in_tx", type=MAP_NODE, recursive=True)
    request.transactional_options.transaction_id.CopyFrom(reply.id)
    other.send("CreateNode", request)
    RpcClient.open_response(await other.read_message(), f"{protos.API}TRspCreateNode")
    exists, _ = await lab.client.call("ExistsNode", path="//home/in_tx")
    assert not exists.exists
    await lab.client.call("CommitTransaction", transaction_id=tx)
    exists, _ = await lab.client.call("ExistsNode", path="//home/in_tx")
    assert exists.exists


# Faults


@in_lab()
async def test_faults_before_and_after(lab: Lab) -> None:
    rule: dict[str, Any] = {"method": "CreateNode", "where": {"path": "//home/x*"}}
    await lab.gate.add(Rule(action="fail", error={"code": 7, "message": "no"}, **rule))
    with pytest.raises(RpcError) as caught:
        await lab.client.create("//home/x1", MAP_NODE)
    assert caught.value.code == 7
    await lab.gate.add(Rule(action="lose_reply", **rule))
    unlucky = await lab.connect()
    with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
        await unlucky.create("//home/x2", MAP_NODE)
    reply, _ = await lab.client.call("ListNode", path="//home")
    assert yson.loads(reply.value) == ["x2"]


@in_lab()
async def test_a_delayed_request_holds_up_no_other(lab: Lab) -> None:
    await lab.client.create("//home/x", MAP_NODE)
    rule = await lab.gate.add(Rule(action="delay", method="ListNode"))
    lab.client.send("ListNode", build("TReqListNode", path="//home"))
    assert await lab.client.get("//home/x/@type") == "map_node"
    await lab.gate.remove(rule)
    reply, _ = RpcClient.open_response(await lab.client.read_message(), f"{protos.API}TRspListNode")
    assert yson.loads(reply.value) == ["x"]


async def make_sorted(lab: Lab) -> None:
    await lab.client.create("//home/t", TABLE, {"dynamic": True, "schema": KEYED})
    lab.cluster.tables.mount("//home/t")


async def rows_of_table(client: RpcClient) -> list[Any]:
    reply, attachments = await client.call("SelectRows", query="n, s from [//home/t]")
    selected = rows_of(reply.rowset_descriptor, attachments)
    return [(found["n"], found["s"]) for found in selected if found is not None]


async def commit_late(lab: Lab, tx: str, client: RpcClient) -> int:
    """Sends the commit and loses the connection; the id of the rule that holds it."""
    rule = await lab.gate.add(Rule(action="apply_late", method="CommitTransaction"))
    with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
        await client.call("CommitTransaction", transaction_id=tx)
    return rule


@in_lab()
async def test_a_late_commit_is_applied_on_release(lab: Lab) -> None:
    await make_queue(lab)
    await make_sorted(lab)
    writer = await lab.connect()
    tx = await start(writer)
    await modify(writer, "//home/q", [row(1, "late")], tx)
    await modify(writer, "//home/t", [row(1, "late")], tx)
    rule = await commit_late(lab, tx, writer)
    assert (await pull_all(lab.client), await rows_of_table(lab.client)) == ([], [])
    (entry,) = await lab.gate.release(rule, 10)
    assert (entry["args"], entry["error"]) == ({"transaction": tx}, None)
    assert await pull_all(lab.client) == await rows_of_table(lab.client) == [(1, b"late")]


@in_lab()
async def test_a_late_commit_conflicts_with_who_wrote_in_between(lab: Lab) -> None:
    await make_queue(lab)
    await make_sorted(lab)
    writer = await lab.connect()
    tx = await start(writer)
    await modify(writer, "//home/q", [row(1, "late")], tx)
    await modify(writer, "//home/t", [row(1, "late")], tx)
    rule = await commit_late(lab, tx, writer)
    other = await start(lab.client)
    await modify(lab.client, "//home/t", [row(1, "in time")], other)
    await lab.client.call("CommitTransaction", transaction_id=other)
    (entry,) = await lab.gate.release(rule, 10)
    assert entry["error"]["code"] == 1700
    assert entry["error"]["message"].endswith("Row lock conflict due to concurrent write")
    assert (await pull_all(lab.client), await rows_of_table(lab.client)) == ([], [(1, b"in time")])


@in_lab()
async def test_a_late_commit_is_not_stopped_any_more(lab: Lab) -> None:
    """Neither by the end of the lease, nor by the client, nor by the death of the proxy."""
    await make_sorted(lab)
    writer = await lab.connect()
    tx = await start(writer)
    await modify(writer, "//home/t", [row(1, "late")], tx)
    rule = await commit_late(lab, tx, writer)
    for method in ("AbortTransaction", "CommitTransaction"):
        with pytest.raises(RpcError, match='is in "committing" state') as caught:
            await lab.client.call(method, transaction_id=tx)
        assert caught.value.code == 11003
    await lab.client.call("PingTransaction", transaction_id=tx)
    lab.cluster.clock.advance(60)
    await lab.client.get("//home/@type")
    await lab.proxies[0].down()
    await lab.proxies[0].up()
    (entry,) = await lab.gate.release(rule, 10)
    assert entry["error"] is None
    assert await rows_of_table(await lab.connect()) == [(1, b"late")]


@in_lab()
async def test_other_transactions_end_while_a_commit_is_held(lab: Lab) -> None:
    await make_sorted(lab)
    idle = await start(lab.client)
    writer = await lab.connect()
    tx = await start(writer)
    rule = await commit_late(lab, tx, writer)
    lab.cluster.clock.advance(60)
    await lab.gate.release(rule, 10)
    for gone in (idle, tx):
        with pytest.raises(RpcError, match="is not found"):
            await lab.client.call("PingTransaction", transaction_id=gone)


@in_lab()
async def test_late_rows_find_their_transaction_gone(lab: Lab) -> None:
    """Only a commit is past expiry: rows that arrive late are refused like any others."""
    await make_sorted(lab)
    writer = await lab.connect()
    tx = await start(writer)
    rule = await lab.gate.add(Rule(action="apply_late", method="ModifyRows"))
    with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
        await modify(writer, "//home/t", [row(1, "late")], tx)
    lab.cluster.clock.advance(60)
    (entry,) = await lab.gate.release(rule, 10)
    assert entry["error"]["code"] == 11000


@in_lab()
async def test_a_held_commit_outlives_its_proxy(lab: Lab) -> None:
    await make_sorted(lab)
    tx = await start(lab.client)
    await modify(lab.client, "//home/t", [row(1, "slow")], tx)
    rule = await lab.gate.add(Rule(action="hold", method="CommitTransaction"))
    lab.client.send("CommitTransaction", build("TReqCommitTransaction", transaction_id=tx))
    await lab.gate.wait_hit(rule, 1, 10)
    await lab.proxies[0].down()
    await lab.proxies[0].up()
    other = await lab.connect()
    assert await rows_of_table(other) == []
    (entry,) = await lab.gate.release(rule, 10)
    assert entry["error"] is None
    assert await rows_of_table(other) == [(1, b"slow")]


@in_lab()
async def test_a_held_commit_is_answered_on_release(lab: Lab) -> None:
    await make_sorted(lab)
    tx = await start(lab.client)
    await modify(lab.client, "//home/t", [row(1, "slow")], tx)
    rule = await lab.gate.add(Rule(action="hold", method="CommitTransaction"))
    other = await lab.connect()
    commit = asyncio.create_task(lab.client.call("CommitTransaction", transaction_id=tx))
    await lab.gate.wait_hit(rule, 1, 10)
    assert await rows_of_table(other) == []
    await lab.gate.release(rule, 10)
    reply, _ = await commit
    assert reply.primary_commit_timestamp > 0
    assert await rows_of_table(other) == [(1, b"slow")]


@in_lab()
async def test_a_rule_can_take_the_proxy_down(lab: Lab) -> None:
    await lab.gate.add(Rule(action="proxy_down", method="CreateNode"))
    with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
        await lab.client.create("//home/x", MAP_NODE)
    with pytest.raises(ConnectionError):
        await lab.connect()
    assert not lab.cluster.cypress.exists("//home/x")


@in_lab()
async def test_the_journal_shows_what_a_request_was_about(lab: Lab) -> None:
    await make_queue(lab)
    tx = await start(lab.client)
    await modify(lab.client, "//home/q", [row(1, "a")], tx)
    shown = lab.gate.journal.entries[-1]
    assert (shown["protocol"], shown["proxy"]) == ("rpc", lab.proxies[0].address)
    assert shown["args"] == {"path": "//home/q", "transaction": tx, "rows": 1}
