"""Rows into a minicluster and out of it over HTTP.

Bodies are made before the clock starts and answers are not looked into, so that the figures are
the minicluster's.
"""

from __future__ import annotations

import json
from typing import Any
from urllib.request import ProxyHandler, Request, build_opener

from yt import yson

from bench.servers import Server

Rows = list[dict[str, Any]]
Call = tuple[str, dict[str, Any], bytes]
CHUNK = 10_000
TABLE = "//tmp/rows"


def calls(columns: dict[str, str], rows: Rows, *, keyed: bool) -> dict[str, list[Call]]:
    """Return the requests to measure, by command."""
    starts = range(0, len(rows), CHUNK)
    chunks = [rows[start : start + CHUNK] for start in starts]
    found: dict[str, list[Call]] = {
        "insert_rows": [("insert_rows", {"path": TABLE}, _body(chunk)) for chunk in chunks],
        "select_rows": [("select_rows", {"query": f"* from [{TABLE}] limit {len(rows)}"}, b"")],
    }
    if keyed:
        key = next(iter(columns))
        keys = [[{key: row[key]} for row in chunk] for chunk in chunks]
        found["lookup_rows"] = [("lookup_rows", {"path": TABLE}, _body(chunk)) for chunk in keys]
    else:
        queue = {"queue_path": TABLE, "partition_index": 0, "max_row_count": CHUNK}
        found["pull_queue"] = [("pull_queue", {**queue, "offset": at}, b"") for at in starts]
    return found


def _body(rows: Rows) -> bytes:
    body: bytes = yson.dumps(rows, yson_type="list_fragment", yson_format="binary")
    return body


def send(server: Server, asked: list[Call]) -> None:
    for command, parameters, body in asked:
        headers = {
            "X-YT-Parameters": json.dumps(parameters),
            "X-YT-Input-Format": "<format=binary>yson",
            "X-YT-Output-Format": "<format=binary>yson",
        }
        url = f"http://{server.http}/api/v4/{command}"
        with OPENER.open(Request(url, body, headers, method="PUT")) as answer:
            answer.read()


OPENER = build_opener(ProxyHandler({}))
"""A proxy set in the environment must not come between."""
