"""Rows into a minicluster and out of it over RPC, as Spark's connector sends and asks for them.

Rowsets are made before the clock starts and answers are not looked into.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from typing import Any

from bench.http_rows import CHUNK, TABLE, Rows
from bench.servers import Server
from minicluster.core import ids
from minicluster.rows import wire
from minicluster.rpc import protos
from packages.minicluster.tests.support.rpc_client import RpcClient, build, describe

TYPES = {"int64": wire.INT64, "utf8": wire.STRING, "timestamp": wire.UINT64}
Call = tuple[str, Any, list[bytes | None]]


def calls(columns: dict[str, str], rows: Rows, *, keyed: bool) -> dict[str, list[Call]]:
    """Return the requests to measure, by method."""
    starts = range(0, len(rows), CHUNK)
    chunks = [rows[start : start + CHUNK] for start in starts]
    found: dict[str, list[Call]] = {
        "ModifyRows": [_modify(columns, chunk) for chunk in chunks],
        "SelectRows": [_select(len(rows))],
    }
    if keyed:
        key = dict(list(columns.items())[:1])
        found["LookupRows"] = [_lookup(key, chunk) for chunk in chunks]
    else:
        found["PullQueue"] = [_pull(start) for start in starts]
    return found


def send(server: Server, asked: Iterable[Call]) -> None:
    asyncio.run(send_to(server.rpc, asked))


def _modify(columns: dict[str, str], rows: Rows) -> Call:
    return modify(TABLE, list(columns), [_encoded(columns, row) for row in rows])


def modify(path: str, names: list[str], rows: list[bytes]) -> Call:
    """Return the request that writes rows which have these columns."""
    message = build("TReqModifyRows", path=path, transaction_id=ids.NULL)
    message.row_modification_types.extend([0] * len(rows))
    describe(message, names)
    return "ModifyRows", message, [wire.join(rows)]


def _encoded(columns: dict[str, str], row: dict[str, Any]) -> bytes:
    values = ((row[name], TYPES[kind]) for name, kind in columns.items())
    return wire.encode(
        (number, kind, value.encode() if isinstance(value, str) else value)
        for number, (value, kind) in enumerate(values)
    )


def _select(count: int) -> Call:
    return "SelectRows", build("TReqSelectRows", query=f"* from [{TABLE}] limit {count}"), []


def _lookup(key: dict[str, str], rows: Rows) -> Call:
    message = build("TReqLookupRows", path=TABLE)
    describe(message, list(key))
    return "LookupRows", message, [wire.join([_encoded(key, row) for row in rows])]


def _pull(start: int) -> Call:
    message = build("TReqPullQueue", queue_path=TABLE, offset=start, partition_index=0)
    message.row_batch_read_options.max_row_count = CHUNK
    return "PullQueue", message, []


async def send_to(address: str, asked: Iterable[Call]) -> None:
    """Send the requests one after the other."""
    client = await RpcClient.connect(address)
    for call in asked:
        for method, message, attachments in _in_a_transaction(call):
            client.send(method, message, attachments)
            name = f"{protos.API}TRsp{method}"
            reply, _ = client.open_response(await client.read_message(), name)
            if method == "StartTransaction":
                call[1].transaction_id.CopyFrom(reply.id)
    await client.close()


def _in_a_transaction(call: Call) -> Iterator[Call]:
    """Yield the call; one that writes, in a transaction of its own, as the connector does."""
    if call[0] != "ModifyRows":
        yield call
        return
    yield "StartTransaction", build("TReqStartTransaction", type=1, sticky=True, timeout=10**8), []
    yield call
    end = protos.api("TReqCommitTransaction")()
    end.transaction_id.CopyFrom(call[1].transaction_id)
    yield "CommitTransaction", end, []
