"""The query of docs/deploy.md: rows that a batch which was cut off has left in two outputs."""

from __future__ import annotations

import re
import shlex

from yt.wrapper import YtClient

from minicluster.testing import Running
from tests.support.project import ROOT

_PAGE = (ROOT / "docs/deploy.md").read_text(encoding="utf-8")
_KEY = [{"name": name, "type": "int64", "sort_order": "ascending"} for name in
        ("tablet_index", "row_index")]  # fmt: skip
_QUERIES = re.findall(r"^yt select-rows .* --format json$", _PAGE, re.MULTILINE)


def test_the_query_finds_rows_that_are_in_both_outputs(minicluster: Running) -> None:
    client = YtClient(minicluster.http, token="any")
    paths = {"OUTPUT": ("id", "utf8"), "REJECTED": ("time", "timestamp")}
    for name, (column, type_) in paths.items():
        schema = [*_KEY, {"name": column, "type": type_}]
        client.create("table", f"//{name}", attributes={"dynamic": True, "schema": schema})
        client.mount_table(f"//{name}", sync=True)
    client.insert_rows("//OUTPUT", [_row(number, id=str(number)) for number in range(4)])
    client.insert_rows("//REJECTED", [_row(number, time=7) for number in (2, 5)])
    (command,) = _QUERIES
    query = shlex.split(command)[2].replace("[", "[//")
    found = [*client.select_rows(query)]
    assert found == [{"o.tablet_index": 1, "o.row_index": 2, "r.time": 7}]


def _row(number: int, **values: object) -> dict[str, object]:
    return {"tablet_index": 1, "row_index": number, **values}
