"""Rows into the minicluster and out of it over HTTP.

    python http_rows.py OUTCOME ROWS

Runs inside a generated project. Bodies are made before the clock starts and answers are not looked
into, so that the figures are the minicluster's. They go to OUTCOME as JSON.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.request import ProxyHandler, Request, build_opener

from yt import yson
from yt.wrapper import YtClient

from minicluster import testing
from sample.rows import rows as bids
from tests.journeys.usage import Usage

Measure = Callable[..., dict[str, float]]
CHUNK = 10_000
TABLE = "//tmp/rows"
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


def small_rows(count: int) -> list[dict[str, Any]]:
    return [
        {"key": number, "amount": number * 7, "text": f"row {number}"} for number in range(count)
    ]


def main(outcome: Path, count: int) -> None:
    outcome.write_text(json.dumps(by_table(measure, count)))


def by_table(measure: Measure, count: int) -> dict[str, dict[str, float]]:
    """Return what ``measure`` says of each kind of row and table."""
    return {
        "small rows, queue": measure(SMALL, small_rows(count), keyed=False),
        "small rows, sorted table": measure(SMALL, small_rows(count), keyed=True),
        "bids, queue": measure(BID, list(bids(count)), keyed=False),
        "bids, sorted table": measure(BID, list(bids(count)), keyed=True),
    }


def measure(
    columns: dict[str, str], rows: list[dict[str, Any]], *, keyed: bool
) -> dict[str, float]:
    """Return the rows per processor second of the minicluster, by command."""
    starts = range(0, len(rows), CHUNK)
    bodies = [
        yson.dumps(rows[start : start + CHUNK], yson_type="list_fragment", yson_format="binary")
        for start in starts
    ]
    requests: dict[str, list[tuple[dict[str, Any], bytes]]] = {
        "insert_rows": [({"path": TABLE}, body) for body in bodies],
        "select_rows": [({"query": f"* from [{TABLE}] limit {len(rows)}"}, b"")],
    }
    if not keyed:
        queue = {"queue_path": TABLE, "partition_index": 0, "max_row_count": CHUNK}
        requests["pull_queue"] = [({**queue, "offset": start}, b"") for start in starts]
    with testing.start() as cluster:
        make_table(YtClient(cluster.http, token="any"), columns, keyed=keyed)
        found = {}
        for command, asked in requests.items():
            before = Usage.now(cluster.pid).minicluster
            for parameters, body in asked:
                send(cluster.http, command, parameters, body)
            found[command] = len(rows) / (Usage.now(cluster.pid).minicluster - before)
        return found


def make_table(client: Any, columns: dict[str, str], *, keyed: bool) -> None:
    described = [{"name": name, "type": type_} for name, type_ in columns.items()]
    if keyed:
        described[0]["sort_order"] = "ascending"
    schema = yson.to_yson_type(described, attributes={"strict": True, "unique_keys": keyed})
    client.create("table", TABLE, attributes={"dynamic": True, "schema": schema})
    client.mount_table(TABLE, sync=True)


#: A proxy set in the environment must not come between.
OPENER = build_opener(ProxyHandler({}))


def send(address: str, command: str, parameters: dict[str, Any], body: bytes) -> None:
    headers = {
        "X-YT-Parameters": json.dumps(parameters),
        "X-YT-Input-Format": "<format=binary>yson",
        "X-YT-Output-Format": "<format=binary>yson",
    }
    request = Request(f"http://{address}/api/v4/{command}", body, headers, method="PUT")
    with OPENER.open(request) as answer:
        answer.read()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
