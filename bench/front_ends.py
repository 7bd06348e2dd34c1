"""Rows per processor second of the miniclusters of one or several trees of sources.

    python front_ends.py OUTCOME ROWS ROUNDS TREE...

Runs inside a generated project, whose sample rows it sends. In each round, each tree has a fresh
minicluster, and they take turns within a command, so that what else the machine does strikes all.
The figures go to OUTCOME as JSON: by front end, rows and command a list for each tree.
"""

from __future__ import annotations

import json
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from yt import yson
from yt.wrapper import YtClient

from bench import http_rows, rpc_rows
from bench.http_rows import TABLE, Rows
from bench.servers import Server, processor_seconds, serve
from sample.rows import rows as bids

FRONT_ENDS: dict[str, Any] = {"HTTP": http_rows, "RPC": rpc_rows}
SMALL = {"key": "int64", "amount": "int64", "text": "utf8"}
BID = {
    "event_id": "utf8",
    "auction": "int64",
    "bidder": "int64",
    "price": "int64",
    "channel": "utf8",
    "url": "utf8",
    "date_time": "timestamp",
    "extra": "utf8",
}


def small_rows(count: int) -> Rows:
    return [
        {"key": number, "amount": number * 7, "text": f"row {number}"} for number in range(count)
    ]


def main(outcome: Path, count: int, rounds: int, trees: list[Path]) -> None:
    found: dict[str, Any] = {name: {} for name in FRONT_ENDS}
    for kind, columns, rows in (("small", SMALL, small_rows), ("bids", BID, bids)):
        made = list(rows(count))
        for keyed in (False, True):
            what = f"{kind}, {'sorted table' if keyed else 'queue'}"
            for name, front_end in FRONT_ENDS.items():
                asked = front_end.calls(columns, made, keyed=keyed)
                rates: dict[str, list[list[float]]] = {c: [[] for _ in trees] for c in asked}
                for number in range(rounds):
                    with ExitStack() as stack:
                        servers = [stack.enter_context(serve(tree)) for tree in trees]
                        for server in servers:
                            make_table(server, columns, keyed=keyed)
                        for command, calls in asked.items():
                            order = range(len(trees))
                            for index in order if number % 2 else reversed(order):
                                seconds = measure(servers[index], front_end, calls)
                                rates[command][index].append(count / seconds)
                found[name][what] = rates
    outcome.write_text(json.dumps(found))


def measure(server: Server, front_end: Any, calls: list[Any]) -> float:
    """Return the processor seconds that the server takes for these requests."""
    before = processor_seconds(server.pid)
    front_end.send(server, calls)
    return processor_seconds(server.pid) - before


def make_table(server: Server, columns: dict[str, str], *, keyed: bool) -> None:
    client = YtClient(server.http, token="any")
    described = [{"name": name, "type": type_} for name, type_ in columns.items()]
    if keyed:
        described[0]["sort_order"] = "ascending"
    schema = yson.to_yson_type(described, attributes={"strict": True, "unique_keys": keyed})
    client.create("table", TABLE, attributes={"dynamic": True, "schema": schema})
    client.mount_table(TABLE, sync=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), list(map(Path, sys.argv[4:])))
