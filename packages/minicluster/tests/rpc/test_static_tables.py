"""Static tables over RPC, as SPYT writes them: blocks of rows, tasks in nested transactions."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest
from yt import yson

from minicluster import persist
from minicluster.cluster import Cluster
from minicluster.control.faults import Rule
from minicluster.core.errors import YtError
from minicluster.rows import bulk, wire
from minicluster.rpc import protos
from packages.minicluster.tests.support.rpc_client import RpcClient, RpcError, block, build, text_id
from packages.minicluster.tests.support.rpc_lab import Lab, in_lab
from tests.support import codes
from tests.support.server_errors import UNAVAILABLE

MAP_NODE, TABLE = 303, 401
T = "//home/t"
APPEND = f'<"append"="true";>{T}'
COLUMNS = [
    {"name": "n", "type": "int64", "required": True},
    {"name": "s", "type": "utf8"},
    {"name": "any", "type": "any"},
]
PLAIN = COLUMNS[:2]
NAMES = ["n", "s"]


def row(n: int | None, text: str | None) -> bytes:
    return wire.encode(
        [(0, wire.INT64, n), (1, wire.STRING, None if text is None else text.encode())]
    )


def rows(*numbers: int, names: list[str] = NAMES) -> bytes:
    return block(names, [row(n, f"row {n}") for n in numbers])


async def start(lab: Lab, parent: str | None = None) -> str:
    request = build("TReqStartTransaction", type=0, **({"parent_id": parent} if parent else {}))
    lab.client.send("StartTransaction", request)
    reply, _ = RpcClient.open_response(
        await lab.client.read_message(), f"{protos.API}TRspStartTransaction"
    )
    return text_id(reply.id)


async def numbers(lab: Lab, path: str = T) -> list[int]:
    return [found["n"] for found in (await lab.client.read_table(path))[1]]


@in_lab()
async def test_rows_are_written_and_the_writer_is_told_the_schema(lab: Lab) -> None:
    await lab.client.create(T, TABLE, {"schema": PLAIN})
    header, schema = await lab.client.begin_write(T)
    assert [(column.name, column.required) for column in schema.columns] == [
        ("n", True),
        ("s", False),
    ]
    assert schema.strict
    # Only the first block names the columns.
    await lab.client.end_write(header, [rows(1, 2), rows(3, names=[])])
    assert (await lab.client.read_table(T))[1] == [
        {"n": n, "s": f"row {n}".encode()} for n in (1, 2, 3)
    ]
    await lab.client.write_table(T, rows(4))
    assert await numbers(lab) == [4]
    await lab.client.write_table(APPEND, rows(5))
    assert await numbers(lab) == [4, 5]
    await lab.client.write_table(T)
    assert await numbers(lab) == []


@in_lab()
async def test_columns_go_by_their_names(lab: Lab) -> None:
    await lab.client.create(T, TABLE, {"schema": COLUMNS})
    written = wire.encode([(0, wire.STRING, b"x"), (1, wire.INT64, 1)])
    await lab.client.write_table(T, block(["s", "n"], [written]))
    assert (await lab.client.read_table(T))[1] == [{"n": 1, "s": b"x", "any": None}]


@in_lab()
async def test_a_table_without_schema_takes_any_columns(lab: Lab) -> None:
    await lab.client.create(T, TABLE)
    await lab.client.write_table(T, rows(1))
    await lab.client.write_table(APPEND, rows(2, names=["other", "s"]))
    expected = [{"n": 1, "s": b"row 1"}, {"s": b"row 2", "other": 2}]
    assert (await lab.client.read_table(T))[1] == expected


@pytest.mark.parametrize(
    ("kind", "value", "stored"),
    [
        (wire.ANY, yson.dumps({"a": 1}), {b"a": 1}),
        (wire.STRING, b"{a=1}", b"{a=1}"),
        (wire.INT64, -1, -1),
        (wire.UINT64, 1, 1),
        (wire.BOOLEAN, True, True),
        (wire.NULL, None, None),
    ],
)
def test_an_any_column_takes_values_of_every_type(kind: int, value: Any, stored: Any) -> None:
    @in_lab()
    async def scenario(lab: Lab) -> None:
        await lab.client.create(T, TABLE, {"schema": COLUMNS})
        written = wire.encode([(0, wire.INT64, 1), (1, kind, value)])
        await lab.client.write_table(T, block(["n", "any"], [written]))
        assert (await lab.client.read_table(T))[1] == [{"n": 1, "s": None, "any": stored}]

    scenario()


BAD = [
    ("unknown column", ["n", "x"], row(1, "x"), 307, 'Unknown column "x" in strict schema'),
    ("null in a required column", NAMES, row(None, "x"), 307, 'Required column "n"'),
    ("a required column is missing", ["s"], wire.encode([(0, 16, b"x")]), 307, 'column "n"'),
    ("wrong type", NAMES, wire.encode([(0, wire.UINT64, 1)]), 307, 'validating column "n"'),
    ("not UTF-8", NAMES, wire.encode([(0, 3, 1), (1, 16, b"\xff")]), 307, 'validating column "s"'),
    ("not YSON", ["n", "any"], wire.encode([(0, 3, 1), (1, 17, b"{")]), 307, "Not a valid YSON"),
    ("twice", ["n", "n"], wire.encode([(0, 3, 1), (1, 3, 1)]), 1, 'Duplicate "n" column'),
    ("no such id", ["n"], wire.encode([(0, 3, 1), (9, 3, 1)]), 1, "id 9 is not found"),
]


@pytest.mark.parametrize(("names", "bad", "code", "message"), [each[1:] for each in BAD])
def test_a_bad_row_is_refused_and_nothing_is_written(
    names: list[str], bad: bytes, code: int, message: str
) -> None:
    @in_lab()
    async def scenario(lab: Lab) -> None:
        await lab.client.create(T, TABLE, {"schema": COLUMNS})
        await lab.client.write_table(T, rows(7))
        with pytest.raises(RpcError, match=message) as caught:
            await lab.client.write_table(T, block(names, [bad]))
        assert caught.value.code == code
        assert await numbers(lab) == [7]

    scenario()


MANY = range(bulk.ROWS_BEFORE + 1)
"""After so many rows, a block of usual ones is taken as a whole."""


@in_lab()
async def test_a_block_of_many_rows_is_stored_as_it_came(lab: Lab) -> None:
    await lab.client.create(T, TABLE, {"schema": PLAIN})
    await lab.client.write_table(T, rows(*MANY))
    _, found = await lab.client.read_table(T)
    assert found == [{"n": n, "s": f"row {n}".encode()} for n in MANY]


@pytest.mark.parametrize(
    ("bad", "code"),
    [
        pytest.param(row(None, "x"), 307, id="null"),
        pytest.param(wire.encode([(0, 3, 1), (1, 16, b"\xff")]), 307, id="not UTF-8"),
        pytest.param(row(1, "x" * 60), 308, id="weight"),
    ],
)
def test_a_bad_row_among_many_is_refused(bad: bytes, code: int) -> None:
    @in_lab()
    async def scenario(lab: Lab) -> None:
        await lab.client.create(T, TABLE, {"schema": PLAIN})
        many = block(NAMES, [*(row(n, f"row {n}") for n in MANY), bad])
        header, _ = await lab.client.begin_write(T, config=b"{max_row_weight=60}")
        with pytest.raises(RpcError) as caught:
            await lab.client.end_write(header, [many])
        assert caught.value.code == code
        assert await numbers(lab) == []

    scenario()


@pytest.mark.parametrize(
    "damaged",
    [
        b"",
        b"\x02\0\0\0",
        block(NAMES, [])[:-1],
        block(NAMES, []) + b"x",
        struct.pack("<I", 0),
        struct.pack("<IQ", 2, 1 << 40),
        struct.pack("<IQ2sQ", 2, 2, b"\xff\xff", 0),
        block(NAMES, [struct.pack("<Q", wire.MISSING_ROW)]),
    ],
)
def test_a_damaged_block_is_refused(damaged: bytes) -> None:
    @in_lab()
    async def scenario(lab: Lab) -> None:
        await lab.client.create(T, TABLE, {"schema": PLAIN})
        with pytest.raises(RpcError):
            await lab.client.write_table(T, rows(1), damaged)
        assert await numbers(lab) == []

    scenario()


@in_lab()
async def test_what_cannot_be_written_is_refused_before_the_rows_come(lab: Lab) -> None:
    queue = {"schema": PLAIN, "dynamic": True}
    await lab.client.create("//home/q", TABLE, queue)
    await lab.client.create("//home/folder", MAP_NODE)
    for path, code in (("//home/no", codes.RESOLVE), ("//home/q", 1), ("//home/folder", 1)):
        with pytest.raises(RpcError) as caught:
            await lab.client.begin_write(path)
        assert caught.value.code == code
    await lab.client.create(T, TABLE, {"schema": PLAIN})
    request = build("TReqWriteTable", path=T, format=b"yson")
    lab.client.send("WriteTable", request)
    with pytest.raises(RpcError, match="format"):
        RpcClient.open_response(await lab.client.read_message(), "")


@in_lab()
async def test_a_row_must_stay_below_the_weight_that_the_writer_is_given(lab: Lab) -> None:
    await lab.client.create(T, TABLE, {"schema": PLAIN})
    header, _ = await lab.client.begin_write(T, config=b"{max_row_weight=20}")
    with pytest.raises(RpcError, match="Row weight is too large") as caught:
        await lab.client.end_write(header, [block(NAMES, [row(1, "x" * 20)])])
    assert caught.value.code == 308


# Jobs: a transaction of the job, one nested into it for each attempt of a task


@in_lab()
async def test_tasks_append_side_by_side_and_readers_see_all_at_once(lab: Lab) -> None:
    await lab.client.create(T, TABLE, {"schema": PLAIN})
    job = await start(lab)
    tasks = [await start(lab, job) for _ in range(3)]
    clients = [await lab.connect() for _ in tasks]
    headers = [
        (await client.begin_write(APPEND, tx=task))[0]
        for client, task in zip(clients, tasks, strict=True)
    ]
    for number in (2, 0, 1):
        await clients[number].end_write(headers[number], [rows(10 * number, 10 * number + 1)])
    modes = {lock["mode"] for lock in await lab.client.get(f"{T}/@locks")}
    assert modes == {"shared"}
    # The rows of a task come whole, in the order of the commits; an aborted attempt leaves none.
    for task in (tasks[1], tasks[0]):
        await lab.client.call("CommitTransaction", transaction_id=task)
    await lab.client.call("AbortTransaction", transaction_id=tasks[2])
    again = await start(lab, job)
    await lab.client.write_table(APPEND, rows(20, 21), tx=again)
    await lab.client.call("CommitTransaction", transaction_id=again)
    assert await numbers(lab) == []
    assert await lab.client.get(f"{T}/@row_count") == 0
    await lab.client.call("CommitTransaction", transaction_id=job)
    assert await numbers(lab) == [10, 11, 0, 1, 20, 21]


@in_lab()
async def test_a_job_that_is_aborted_leaves_neither_rows_nor_table(lab: Lab) -> None:
    cypress, transactions = lab.cluster.cypress, lab.cluster.transactions
    job = await start(lab)
    cypress.create("table", T, tx=job, attributes={"schema": PLAIN})
    made = cypress.create("table", T, tx=job, attributes={}, ignore_existing=True)
    task = await start(lab, job)
    await lab.client.write_table(APPEND, rows(1), tx=task)
    transactions.commit(task)
    assert cypress.get(f"{T}/@row_count", tx=job) == 1
    assert not cypress.exists(T)
    transactions.abort(job)
    assert not cypress.exists(T)
    assert not cypress.exists(f"#{made}")


@in_lab()
async def test_a_task_that_was_never_committed_adds_nothing(lab: Lab) -> None:
    await lab.client.create(T, TABLE, {"schema": PLAIN})
    job = await start(lab)
    lost, good = await start(lab, job), await start(lab, job)
    for task in (lost, good):
        await lab.client.write_table(APPEND, rows(1), tx=task)
    for ended in (good, job):
        await lab.client.call("CommitTransaction", transaction_id=ended)
    assert await numbers(lab) == [1]
    with pytest.raises(RpcError, match="No such transaction"):
        await lab.client.call("CommitTransaction", transaction_id=lost)


@in_lab()
async def test_a_dead_job_holds_the_table_until_its_time_is_up(lab: Lab) -> None:
    await lab.client.create(T, TABLE, {"schema": PLAIN})
    job = lab.cluster.transactions.start(timeout_ms=300_000)
    task = lab.cluster.transactions.start(parent=job, timeout_ms=300_000)
    await lab.client.write_table(APPEND, rows(1), tx=task)
    await lab.client.write_table(APPEND, rows(2))
    with pytest.raises(RpcError) as caught:
        await lab.client.call("RemoveNode", path=T)
    assert caught.value.code == codes.CONCURRENT_TRANSACTION_LOCK_CONFLICT
    lab.cluster.pass_time(301)
    assert await numbers(lab) == [2]
    await lab.client.call("RemoveNode", path=T)


@in_lab()
async def test_a_write_whose_client_or_transaction_goes_away_changes_nothing(lab: Lab) -> None:
    await lab.client.create(T, TABLE, {"schema": PLAIN})
    writer = await lab.connect()
    header, _ = await writer.begin_write(T)
    writer.send_stream(header, 0, [rows(1)])
    await writer.read_message()
    await writer.close()
    job = await start(lab)
    header, _ = await lab.client.begin_write(APPEND, tx=job)
    lab.cluster.transactions.abort(job)
    with pytest.raises(RpcError, match="Error resolving path"):
        await lab.client.end_write(header, [rows(2)])
    assert await numbers(lab) == []


@in_lab()
async def test_a_fault_stops_a_write_before_its_rows(lab: Lab) -> None:
    await lab.client.create(T, TABLE, {"schema": PLAIN})
    job = await start(lab)
    await lab.gate.add(
        Rule(method="WriteTable", where={"transaction": job}, action="fail", error=UNAVAILABLE)
    )
    with pytest.raises(RpcError, match="unable to synchronize"):
        await lab.client.begin_write(APPEND, tx=job)
    await lab.client.write_table(APPEND, rows(1), tx=job)
    assert await numbers(lab) == []
    assert lab.gate.journal.counts["WriteTable"] == 2


# Locks


@in_lab()
async def test_appends_share_a_table_and_everything_else_has_it_alone(lab: Lab) -> None:
    cypress, transactions = lab.cluster.cypress, lab.cluster.transactions
    await lab.client.create(T, TABLE, {"schema": PLAIN})
    job, other = await start(lab), await start(lab)
    await lab.client.write_table(APPEND, rows(1), tx=job)
    await lab.client.write_table(APPEND, rows(2), tx=other)
    await lab.client.write_table(APPEND, rows(3))
    with pytest.raises(RpcError) as caught:
        await lab.client.write_table(T, rows(4))
    assert caught.value.code == codes.CONCURRENT_TRANSACTION_LOCK_CONFLICT
    with pytest.raises(YtError) as removed:
        cypress.remove(T)
    assert removed.value.code == codes.CONCURRENT_TRANSACTION_LOCK_CONFLICT
    with pytest.raises(YtError) as altered:
        lab.cluster.tables.alter(T, schema=PLAIN)
    assert altered.value.code == codes.CONCURRENT_TRANSACTION_LOCK_CONFLICT
    transactions.commit(other)
    transactions.commit(job)
    assert await numbers(lab) == [3, 2, 1]


@in_lab()
async def test_a_write_after_appends_replaces_them_and_is_appended_to(lab: Lab) -> None:
    await lab.client.create(T, TABLE, {"schema": PLAIN})
    await lab.client.write_table(T, rows(0))
    job = await start(lab)
    inner = await start(lab, job)
    await lab.client.write_table(APPEND, rows(1), tx=job)
    await lab.client.write_table(T, rows(2), tx=inner)
    await lab.client.write_table(APPEND, rows(3), tx=inner)
    lab.cluster.transactions.commit(inner)
    await lab.client.write_table(APPEND, rows(4), tx=job)
    lab.cluster.transactions.commit(job)
    assert await numbers(lab) == [2, 3, 4]


@in_lab()
async def test_a_sorted_table_is_appended_to_in_its_order_by_one_at_a_time(lab: Lab) -> None:
    schema = [{"name": "n", "type": "int64", "sort_order": "ascending"}, PLAIN[1]]
    await lab.client.create(T, TABLE, {"schema": schema})
    job = await start(lab)
    first, second = await start(lab, job), await start(lab, job)
    await lab.client.write_table(APPEND, rows(1, 2), tx=first)
    with pytest.raises(RpcError) as caught:
        await lab.client.write_table(APPEND, rows(3), tx=second)
    assert caught.value.code == codes.CONCURRENT_TRANSACTION_LOCK_CONFLICT
    lab.cluster.transactions.commit(first)
    with pytest.raises(RpcError, match="Sort order violation"):
        await lab.client.write_table(APPEND, rows(1), tx=second)
    await lab.client.write_table(APPEND, rows(3), tx=second)
    for ended in (second, job):
        lab.cluster.transactions.commit(ended)
    assert await numbers(lab) == [1, 2, 3]


@in_lab()
async def test_tables_are_concatenated(lab: Lab) -> None:
    for name, number in (("a", 1), ("b", 2), ("t", 0)):
        await lab.client.create(f"//home/{name}", TABLE, {"schema": PLAIN})
        await lab.client.write_table(f"//home/{name}", rows(number))
    request = build("TReqConcatenateNodes", dst_path=APPEND)
    request.src_paths.extend([b"//home/a", b"//home/b"])
    lab.client.send("ConcatenateNodes", request)
    RpcClient.open_response(await lab.client.read_message(), f"{protos.API}TRspConcatenateNodes")
    assert await numbers(lab) == [0, 1, 2]


@in_lab()
async def test_feedback_that_comes_late_is_ignored(lab: Lab) -> None:
    """The Java client sends it from several threads."""
    await lab.client.create(T, TABLE, {"schema": PLAIN})
    header = lab.client.send("WriteTable", build("TReqWriteTable", path=T))
    parts = (await lab.client.read_message())[1:]
    await lab.client.read_message()
    size = sum(len(part or b"") for part in parts)
    for position in (size + 1, size):
        lab.client.send_feedback(header, position)
    await lab.client.end_write(header, [rows(1)])
    assert await numbers(lab) == [1]


def test_a_saved_state_keeps_what_was_appended_in_a_transaction(
    cluster: Cluster, tmp_path: Path
) -> None:
    cluster.cypress.create("table", T, attributes={"schema": PLAIN})
    job = cluster.transactions.start()
    cluster.tables.write(T, [{"n": 1}], attributes={"append": True}, tx=job)
    persist.save(cluster, str(tmp_path / "state"))
    other = Cluster()
    persist.load(other, str(tmp_path / "state"))
    assert other.cypress.get(f"{T}/@row_count") == 0
    other.transactions.commit(job)
    assert other.cypress.get(f"{T}/@row_count") == 1
