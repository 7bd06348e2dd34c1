"""The examples of `PROVOKE.md`, each run as it stands there."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yt.wrapper as yt
from yt.packages import requests

from minicluster import testing
from packages.minicluster.tests.conftest import connect

PAGE = Path(__file__).parents[1] / "PROVOKE.md"
EXAMPLES = re.findall(r"\n([^\n]+):\n\n```python\n(.*?)```", PAGE.read_text(), re.DOTALL)


def refused(call: Callable[[], object], message: str = "") -> None:
    with pytest.raises((yt.YtError, requests.RequestException)) as caught:
        call()
    assert message in str(caught.value)


def insert_in_a_transaction(client: Any, path: str, rows: list[dict[str, Any]]) -> str:
    transaction = client.start_transaction(type="tablet", timeout=60_000)
    with client.Transaction(transaction_id=transaction, ping=False):
        client.insert_rows(path, rows)
    return str(transaction)


def remount(client: Any, path: str) -> None:
    client.unmount_table(path, sync=True)
    client.mount_table(path, sync=True)


def test_the_page_has_no_other_code() -> None:
    assert PAGE.read_text().count("```") == 2 * len(EXAMPLES)
    assert all(len(code.splitlines()) == 3 for _, code in EXAMPLES)


@pytest.mark.parametrize("code", [pytest.param(code, id=title) for title, code in EXAMPLES])
def test_examples(code: str, fresh: testing.Running, tmp_path: Path) -> None:
    client = connect(fresh)
    value = {"name": "v", "type": "string"}
    key = {"name": "k", "type": "int64", "sort_order": "ascending"}
    for path, schema in (("//tmp/t", [key, value]), ("//tmp/q", [value])):
        client.create("table", path, attributes={"dynamic": True, "schema": schema})
        client.mount_table(path, sync=True)
    fresh.client.journal.clear()
    tools = {"refused": refused, "remount": remount}
    tools["insert_in_a_transaction"] = insert_in_a_transaction
    exec(code, {"cluster": fresh, "client": client, "folder": tmp_path, **tools})
