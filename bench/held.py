"""Memory of a minicluster: with a million bids in a queue, and with many versions of one row.

    python held.py OUTCOME ROWS WRITES TREE

Runs inside a generated project, whose sample rows it sends. The figures go to OUTCOME as JSON.
"""

from __future__ import annotations

import json
import sys
import time
from itertools import islice
from pathlib import Path
from typing import Any

from yt.wrapper import YtClient

from bench import http_rows
from bench.front_ends import BID, make_table
from bench.http_rows import CHUNK, TABLE
from bench.servers import Server, resident, serve
from minicluster.client import Client
from packages.minicluster.tests.support.basics import BACKENDS, connect
from sample.rows import rows as bids

PATIENCE_SECONDS = 60.0
VERSION = {"key": "int64", "text": "utf8"}
BOUND = 10
"""Versions that a row may have in the second half of what is measured of one row."""


def main(outcome: Path, count: int, writes: int, tree: Path) -> None:
    found: dict[str, Any] = {}
    with serve(tree) as server:
        found["queue"] = queue(server, count)
    for bound in (None, BOUND):
        with serve(tree) as server:
            found[f"row {bound or ''}".strip()] = one_row(server, writes, bound)
    outcome.write_text(json.dumps(found))


def queue(server: Server, count: int) -> dict[str, float]:
    """Return the MiB before a queue of bids, with it, and once it was removed.

    A small queue comes and goes first: what a first request takes is no matter of rows.
    """
    fill(server, CHUNK)
    remove(server)
    before = settled(server, resident(server.pid))
    fill(server, count)
    full = resident(server.pid)
    remove(server)
    return {"rows": count, "before": before, "full": full, "after": settled(server, before)}


def fill(server: Server, count: int) -> None:
    make_table(server, BID, keyed=False)
    rows = iter(bids(count))
    while chunk := list(islice(rows, CHUNK)):
        http_rows.send(server, http_rows.calls(BID, chunk, keyed=False)["insert_rows"])


def remove(server: Server) -> None:
    YtClient(server.http, token="any").remove(TABLE)


def settled(server: Server, wanted: float) -> float:
    """Return the memory once it is within 10 % of what is wanted, or after a minute.

    The minicluster looks at its tables with some requests only: so it is asked on.
    """
    client = YtClient(server.http, token="any")
    until = time.monotonic() + PATIENCE_SECONDS
    while True:
        client.exists(TABLE)
        now = resident(server.pid)
        if now <= wanted * 1.1 or time.monotonic() > until:
            return now


def one_row(server: Server, writes: int, bound: int | None) -> dict[str, float | None]:
    """Return the MiB before one row was written so many times and after, and its versions."""
    if bound:
        Client(server.http).set_versions_per_row(bound)
    make_table(server, VERSION, keyed=True)
    write(server, range(10))
    before = resident(server.pid)
    write(server, range(writes))
    after = resident(server.pid)
    return {"rows": writes, "before": before, "full": after, "versions": versions(server)}


def write(server: Server, numbers: range) -> None:
    for number in numbers:
        row = {"key": 1, "text": f"{number:0200}"}
        http_rows.send(server, http_rows.calls(VERSION, [row], keyed=True)["insert_rows"])


def versions(server: Server) -> int | None:
    """Return how many versions the row has; None where the native client has no wheel."""
    if "rpc" not in BACKENDS:
        return None
    (row,) = connect(server.http, "rpc").lookup_rows(TABLE, [{"key": 1}], versioned=True)
    return len(row["text"])


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]))
