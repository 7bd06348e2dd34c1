"""Rows into the minicluster and out of it over RPC, as Spark's connector sends and asks for them.

    python rpc_rows.py OUTCOME ROWS

Runs inside a generated project, as http_rows.py does, with the same tables. Rowsets are made before
the clock starts and answers are not looked into. The figures go to OUTCOME as JSON.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from yt.wrapper import YtClient

from bench.http_rows import CHUNK, TABLE, by_table, make_table
from minicluster import ids, testing
from minicluster.rows import wire
from minicluster.rpc import protos
from packages.minicluster.tests.rpc_client import RpcClient, build, describe
from tests.journeys.usage import Usage

TYPES = {"int64": wire.INT64, "utf8": wire.STRING, "timestamp": wire.UINT64}
Rows = list[dict[str, Any]]
Call = tuple[str, Any, list[bytes | None]]


def main(outcome: Path, count: int) -> None:
    outcome.write_text(json.dumps(by_table(measure, count)))


def measure(columns: dict[str, str], rows: Rows, *, keyed: bool) -> dict[str, float]:
    """Return the rows per processor second of the minicluster, by method."""
    starts = range(0, len(rows), CHUNK)
    calls: dict[str, list[Call]] = {
        "ModifyRows": [_modify(columns, rows[start : start + CHUNK]) for start in starts],
        "SelectRows": [_select(len(rows))],
    }
    if not keyed:
        calls["PullQueue"] = [_pull(start) for start in starts]
    with testing.start() as cluster:
        make_table(YtClient(cluster.http, token="any"), columns, keyed=keyed)
        found = {}
        for method, asked in calls.items():
            before = Usage.now(cluster.pid).minicluster
            asyncio.run(_send(cluster.rpc[0], asked))
            found[method] = len(rows) / (Usage.now(cluster.pid).minicluster - before)
        return found


def _modify(columns: dict[str, str], rows: Rows) -> Call:
    message = build("TReqModifyRows", path=TABLE, transaction_id=ids.NULL)
    message.row_modification_types.extend([0] * len(rows))
    describe(message, list(columns))
    return "ModifyRows", message, [wire.join([_encoded(columns, row) for row in rows])]


def _encoded(columns: dict[str, str], row: dict[str, Any]) -> bytes:
    values = ((row[name], TYPES[kind]) for name, kind in columns.items())
    return wire.encode(
        (number, kind, value.encode() if isinstance(value, str) else value)
        for number, (value, kind) in enumerate(values)
    )


def _select(count: int) -> Call:
    return "SelectRows", build("TReqSelectRows", query=f"* from [{TABLE}] limit {count}"), []


def _pull(start: int) -> Call:
    message = build("TReqPullQueue", queue_path=TABLE, offset=start, partition_index=0)
    message.row_batch_read_options.max_row_count = CHUNK
    return "PullQueue", message, []


async def _send(address: str, calls: list[Call]) -> None:
    client = await RpcClient.connect(address)
    for call in calls:
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


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
