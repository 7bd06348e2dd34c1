"""The page on the ledger: its columns, its rows and its queries are those of the runtime."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from typing import Any

import pytest
from yt import yson

from minicluster import testing
from packages.minicluster.tests.support.yt_process import Shell, running_shell
from tests.support.examples import example, settings_of
from tests.support.project import ROOT
from ytstream.cluster.client import connect
from ytstream.ledger import ledger_rows
from ytstream.schema.columns import type_name
from ytstream.schema.table_schema import table_schema

PAGE = (ROOT / "docs/runtime/ledger.md").read_text(encoding="utf-8")
LEDGER = "//home/ytstream/job/ledger"
QUERIES = re.findall(r"^```sh\n(.*?)```\n\n```text\n(.*?)```$", PAGE, re.MULTILINE | re.DOTALL)
"""A command of the page, and what it prints."""


def shown() -> list[dict[str, Any]]:
    """Return the rows that the page shows."""
    found, decoder = [], json.JSONDecoder()
    for block in re.findall(r"^```json\n(.*?)```$", PAGE, re.MULTILINE | re.DOTALL):
        rest = block.strip()
        while rest:
            row, end = decoder.raw_decode(rest)
            found.append(row)
            rest = rest[end:].strip()
    return found


def test_each_column_has_its_line() -> None:
    named = re.findall(r"^\| `(\w+)` \| ([^|]+) \|", PAGE, re.MULTILINE)
    wanted = []
    for column in ledger_rows.COLUMNS:
        kind = {"yson": "any"}.get(type_name(column.type), type_name(column.type))
        more = ", key" if column.key else ", required" if column.required else ""
        wanted.append((column.name, kind + more))
    assert named == wanted
    assert f"{ledger_rows.KEPT:,}" in PAGE


def test_the_runtime_reads_the_head_that_is_shown() -> None:
    head = ledger_rows.head_of(LEDGER, iter(shown()[:1]))
    assert head is not None
    assert (head.epoch, head.folder, head.batch, head.number) == (2, 2, 0, 2)
    again = ledger_rows.head_row(head)
    assert again == {name: shown()[0][name] for name in again} | {"ended": again["ended"]}


def test_the_batches_that_are_shown_end_where_the_head_is() -> None:
    head, *batches, skip = shown()
    assert (skip["kind"], {batch["kind"] for batch in batches}) == ("skip", {"batch"})
    assert [batch["number"] for batch in batches] == [1, 2]
    for batch in batches:
        assert batch.keys() == {column.name for column in ledger_rows.COLUMNS}
        ranges = batch["queues"][0]["rows"].values()
        assert sum(end - first for first, end in ranges) == batch["rows_read"]
    ends = {partition: end for partition, (_, end) in batches[-1]["queues"][0]["rows"].items()}
    assert head["queues"][0]["ends"] == ends
    assert skip.keys() == {column.name for column in ledger_rows.COLUMNS}
    (queue,) = skip["queues"]
    moved = {int(p): tuple(pair) for p, pair in queue["moved"].items()}
    assert all(first == ends[str(p)] < after for p, (first, after) in moved.items())
    again = ledger_rows.move_row(skip["epoch"], ledger_rows.Move("skip", {queue["path"]: moved}))
    assert again == {name: skip[name] for name in again} | {"ended": again["ended"]}


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """Start a minicluster with the ledger that the page shows, and `yt` on it."""
    with testing.start() as cluster:
        job = example("transactional", "map").job
        client: Any = connect(settings_of(job, "//home/none", proxy=cluster.http))
        schema = table_schema(ledger_rows.COLUMNS).to_yson_type()
        attributes = {"dynamic": True, "schema": schema, **ledger_rows.ATTRIBUTES}
        client.create("table", LEDGER, recursive=True, attributes=attributes)
        client.mount_table(LEDGER, sync=True)
        rows = shown()
        for row in rows:
            for name in ("started", "ended"):
                row[name] = None if row[name] is None else yson.YsonUint64(row[name])
        client.insert_rows(LEDGER, rows)
        with running_shell(cluster.http, tmp_path_factory.mktemp("shell")) as started:
            yield started


def test_there_are_queries() -> None:
    assert len(QUERIES) == 5
    assert len(QUERIES) == PAGE.count("```sh")


@pytest.mark.parametrize(("command", "printed"), QUERIES)
def test_a_query_prints_what_the_page_shows(shell: Shell, command: str, printed: str) -> None:
    yt, *words = shlex.split(command)
    assert yt == "yt"
    assert _rows(shell(*words)) == _rows(printed)


def _rows(text: str) -> list[Any]:
    return [json.loads(line) for line in text.splitlines()]
