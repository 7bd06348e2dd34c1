"""A request is applied and its answer is lost: those that build a reference table or an archive."""

from __future__ import annotations

import json
from typing import Any

import pytest
import requests
from yt import yson

from minicluster import testing
from packages.minicluster.tests.conftest import connect

COLUMNS = yson.to_yson_type(
    [{"name": "k", "type": "int64", "sort_order": "ascending"}, {"name": "v", "type": "int64"}],
    attributes={"unique_keys": True, "strict": True},
)
PIECE, WHOLE, SORTED, LINK = (f"//tmp/{name}" for name in ("piece", "whole", "sorted", "link"))


@pytest.mark.parametrize(
    ("command", "parameters", "path", "value"),
    [
        (
            "concatenate",
            {"source_paths": [PIECE], "destination_path": WHOLE},
            f"{WHOLE}/@row_count",
            1,
        ),
        ("alter_table", {"path": PIECE, "dynamic": True}, f"{PIECE}/@dynamic", True),
        ("mount_table", {"path": SORTED}, f"{SORTED}/@tablet_state", "mounted"),
        ("link", {"target_path": PIECE, "link_path": LINK}, f"{LINK}&/@target_path", PIECE),
        (
            "start_operation",
            {
                "operation_type": "merge",
                "spec": {"input_table_paths": [PIECE], "output_table_path": WHOLE},
            },
            f"{WHOLE}/@row_count",
            1,
        ),
    ],
)
def test_it_was_applied(
    fresh: testing.Running, command: str, parameters: dict[str, Any], path: str, value: Any
) -> None:
    client = connect(fresh)
    for name in (PIECE, WHOLE):
        client.create("table", name, attributes={"schema": COLUMNS})
    client.write_table(PIECE, [{"k": 1, "v": 1}])
    client.create("table", SORTED, attributes={"schema": COLUMNS, "dynamic": True})
    fresh.client.faults.add(method=command, action="lose_reply")
    url = f"http://{fresh.http}/api/v4/{command}"
    with pytest.raises(requests.ConnectionError):
        requests.post(url, headers={"X-YT-Parameters": json.dumps(parameters)}, timeout=10)
    assert client.get(path) == value
