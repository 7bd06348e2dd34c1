"""The rows of references that a capture brings along: as of the batch's moment where it can."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.support.helpers import refusal
from ytstream import Column
from ytstream.job import JobContext
from ytstream.ledger.ledger_rows import LookedUp
from ytstream_tools.replay import captured_references

ROWS: list[dict[str, Any]] = [{"auction": n % 3, "bidder": n} for n in range(6)] + [{"auction": 99}]


@pytest.fixture
def context(looking_up: JobContext) -> JobContext:
    """A job with a reference of ten auctions."""
    _write(looking_up, 1)
    return looking_up


def _write(context: JobContext, seller: int) -> None:
    rows = [{"auction": key, "seller": seller} for key in range(10)]
    context.client.insert_rows(context.settings.references["auctions"], rows)


def _now(context: JobContext) -> LookedUp:
    """Return what a batch looks up that begins now."""
    table = str(context.client.get(f"{context.settings.references['auctions']}/@id"))
    return LookedUp("keys", table, int(context.client.generate_timestamp()))


def _sellers(context: JobContext, at: LookedUp | None, said: list[str]) -> dict[int, int]:
    known = {"auctions": at} if at is not None else {}
    found = captured_references.of(context, ROWS, known, said.append)["auctions"]
    return {row["auction"]: row["seller"] for row in found}


def test_the_rows_are_those_of_the_moment(context: JobContext) -> None:
    at, said = _now(context), list[str]()
    _write(context, 2)
    assert _sellers(context, at, said) == dict.fromkeys(range(10), 1)
    assert said == []


def test_of_a_large_reference_come_the_keys_of_the_rows(context: JobContext) -> None:
    small = replace(context, job=replace(context.job, reference_rows=9))
    at = _now(context)
    _write(context, 2)
    assert _sellers(small, at, []) == dict.fromkeys(range(3), 1)
    columns = [Column("id", "int64", key=True), Column("seller", "int64")]
    other = replace(small, job=replace(small.job, references={"auctions": columns}))
    schema = [{"name": "id", "type": "int64", "sort_order": "ascending"},
              {"name": "seller", "type": "int64"}]  # fmt: skip
    path = f"{context.settings.references['auctions']}-by-id"
    made = {"dynamic": True, "schema": schema}
    context.client.create("table", path, attributes=made)
    context.client.mount_table(path, sync=True)
    context.client.insert_rows(path, [{"id": key, "seller": 1} for key in range(10)])
    other = replace(other, settings=replace(other.settings, references={"auctions": path}))
    assert "its key column id is not a column of the queue" in refusal(
        lambda: captured_references.of(other, ROWS, {}, print)
    )


@pytest.mark.parametrize("is_removed", [False, True])
def test_else_they_are_those_of_now_and_it_is_said(context: JobContext, is_removed: bool) -> None:
    at, said = _now(context), list[str]()
    _write(context, 2)
    at = replace(at, table="1-2-3-4") if is_removed else replace(at, timestamp=1)
    assert _sellers(context, at, said) == dict.fromkeys(range(10), 2)
    why = "the table was removed" if is_removed else "it was built later"
    assert said == [f"reference auctions: its rows as they are now, since {why}"]
