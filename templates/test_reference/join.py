"""The reference table: what is read, what is refused, and when it is read again."""

from __future__ import annotations

import threading
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from yt.yson import to_yson_type

from demo.expected import REFERENCE
from demo.scenario import drained


def _refusal(stream: Any, run: Any) -> str:
    with pytest.raises(stream.module("errors").JobError) as caught:
        run()
    return str(caught.value)


def _read(stream: Any, described: Any = None) -> Any:
    return stream.module("reference").read(
        stream.spark,
        stream.client,
        stream.settings.reference,
        described or stream.module("inputs").TABLES["reference"],
    )


def test_all_rows_are_read_with_their_types(stream: Any) -> None:
    found = {row.auction: row for row in _read(stream).collect()}
    assert found.keys() == REFERENCE.keys()
    assert found[1_001].category == REFERENCE[1_001]["category"]
    assert _read(stream).dtypes == [
        ("auction", "bigint"),
        ("category", "string"),
        ("seller", "bigint"),
    ]


def test_a_row_without_a_key_is_said_and_does_no_harm(
    stream: Any, caplog: pytest.LogCaptureFixture
) -> None:
    stream.client.insert_rows(
        stream.settings.reference, [{"auction": None, "category": "nobody's"}]
    )
    with caplog.at_level("INFO", "job"):
        assert _read(stream).count() == len(REFERENCE) + 1
    assert "of which 1 have no key" in caplog.text


def test_a_key_that_is_no_key_is_refused(stream: Any) -> None:
    described = [
        replace(column, key=column.name == "category")
        for column in stream.module("inputs").TABLES["reference"]
    ]
    refusal = _refusal(stream, lambda: _read(stream, described))
    assert "7 keys (category) more than once" in refusal


def test_a_table_that_is_too_large_is_refused(stream: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream.module("reference"), "MOST_ROWS", len(REFERENCE))
    assert _read(stream).count() == len(REFERENCE)
    monkeypatch.setattr(stream.module("reference"), "MOST_ROWS", len(REFERENCE) - 1)
    assert "more than 89 rows" in _refusal(stream, lambda: _read(stream))


def test_a_type_that_is_not_read_is_refused_by_name(stream: Any) -> None:
    columns = stream.module("schema").columns
    described = columns("REFERENCE", [("auction", "int64", False), ("extra", "any", False)])
    assert "extra (yson)" in _refusal(stream, lambda: _read(stream, described))


def test_a_reference_of_another_schema_is_refused(stream: Any) -> None:
    path = stream.settings.reference
    stream.client.remove(path)
    key = {"name": "auction", "type": "utf8", "sort_order": "ascending"}
    columns = [key, {"name": "other", "type": "int64"}]
    schema = to_yson_type(columns, attributes={"unique_keys": True})
    stream.client.create("table", path, attributes={"dynamic": True, "schema": schema})
    stream.client.mount_table(path, sync=True)
    provision = stream.module("provision")
    refusal = _refusal(stream, lambda: provision.require(stream.client, stream.settings))
    assert f"reference {path}: column auction" in refusal
    assert "column category: missing" in refusal


def test_a_reference_that_cannot_be_read_anew_does_not_end_the_job(
    stream: Any, cluster: Any, caplog: pytest.LogCaptureFixture
) -> None:
    inputs = stream.module("inputs").inputs
    inputs(stream.spark, stream.client, stream.settings)
    error = {"code": 901, "message": "Access denied for user"}
    where = {"query": f"*{stream.settings.reference}*"}
    cluster.client.faults.add(
        method="select_rows", where=where, times=None, action="fail", error=error
    )
    with caplog.at_level("INFO", "job"):
        _, reference = inputs(stream.spark, stream.client, stream.settings)
    assert reference.count() == len(REFERENCE)
    assert "going on with the reference as it was read last: Access denied" in caplog.text


def test_a_change_is_seen_after_the_refresh_and_not_before(stream: Any) -> None:
    stream.settings = replace(stream.settings, reference_refresh=2.0)
    stream.send(200)
    one_query, stop = stream.module("supervisor")._one_query, threading.Event()
    lock = SimpleNamespace(is_held=True)
    is_drained = drained(stream.client, stream.settings)

    def refresh_until_drained() -> None:
        while not is_drained():  # each life of the query ends by itself
            one_query(stream.client, stream.spark, stream.settings, lock, stop)

    refresh_until_drained()
    outcome = stream.outcome()
    assert (outcome.lost, outcome.duplicated) == (0, 0)
    changed = [{"auction": auction, "category": "changed"} for auction in REFERENCE]
    stream.client.insert_rows(stream.settings.reference, changed, update=True)
    before = stream.found()
    stream.send(200)
    refresh_until_drained()
    new = stream.found() - before
    assert new.total() == 200 * len(stream.settings.queues)
    assert {row[4] for row in new} <= {"changed", None}
