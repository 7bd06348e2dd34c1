"""A replay looks references up as of the batch that rejected a row, where the table keeps it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from tests.support.status_steps import head_of_batch, write_rows
from ytstream.job import JobContext
from ytstream.ledger.ledger_rows import BatchRow, Head, LookedUp, batch_row, head_row, microseconds
from ytstream_tools.replay import replayed_moments

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def context(looking_up: JobContext) -> JobContext:
    """A job with a reference."""
    return looking_up


def _batches(context: JobContext, *looked_up: LookedUp) -> None:
    """Let the ledger have batches, one a minute, of ten seconds each."""
    write_rows(context, head_row(head_of_batch(context, len(looked_up))))
    for number, one in enumerate(looked_up, 1):
        begun = BEGIN + timedelta(minutes=number)
        done = BatchRow({}, {}, begun, begun + timedelta(seconds=10), lookups={"auctions": one})
        write_rows(context, batch_row(Head(epoch=1, batch=number, number=number), done))


def _rejected(minute: int, second: int) -> dict[str, int]:
    return {"time": microseconds(BEGIN + timedelta(minutes=minute, seconds=second))}


def test_a_row_has_the_moment_of_the_batch_that_rejected_it(context: JobContext) -> None:
    table = str(context.client.get(f"{context.settings.references['auctions']}/@id"))
    first, second = (
        LookedUp("keys", table, int(context.client.generate_timestamp()), rows=rows)
        for rows in (7, 8)
    )
    gone = LookedUp("keys", "1-2-191-4", first.timestamp)
    _batches(context, first, second, gone)
    said = list[str]()
    found = replayed_moments.read(context, said.append)
    assert said == [
        "reference auctions: for rows of some batches as it is now, since the table was removed"
    ]
    moments = {
        (1, 0): first.timestamp, (1, 10): first.timestamp, (2, 5): second.timestamp,
        (0, 59): None, (1, 11): None, (3, 5): None,
    }  # fmt: skip
    for when, timestamp in moments.items():
        at = found.of(_rejected(*when)).get("auctions")
        assert (at.timestamp if at else None) == timestamp
    rows = [_rejected(1, 1), _rejected(1, 9), _rejected(2, 1), _rejected(1, 2)]
    assert found.first(rows) == rows[:2]
    assert found.first([]) == []


def test_a_job_without_references_reads_no_batch(context: JobContext) -> None:
    without = replace(context, job=replace(context.job, references={}))
    assert replayed_moments.read(without, print).of(_rejected(1, 1)) == {}
