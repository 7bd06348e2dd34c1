"""WARN: rows that meet a condition are counted under its reason, and kept."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from tests.support.helpers import StreamOf, head_of, refusal, unconnected
from ytstream.declaration.validation import verify
from ytstream.job import REJECTED
from ytstream.ledger.ledger_rows import warned_of
from ytstream.settings.job_settings import OWN, SPYT
from ytstream_tools.status.status_text import status

WARN = {"no channel": "channel IS NULL", "cheap": "price < 10000"}


@pytest.mark.thorough
@pytest.mark.spark
@pytest.mark.parametrize(
    ("connector", "processing", "rejects"),
    [
        (OWN, "map", True),
        pytest.param(SPYT, "map", True, marks=pytest.mark.journey),
        pytest.param(OWN, "window", False, marks=pytest.mark.journey),
    ],
    indirect=["connector"],
)
def test_rows_are_counted_and_kept(
    stream_of: StreamOf, connector: str, processing: str, rejects: bool
) -> None:
    stream = stream_of("transactional", processing, rejects=rejects)
    stream.redeclare(warn=WARN)
    stream.send(500)
    stream.drain()
    stream.send(300)
    stream.drain()
    kept = [*stream.sample.passing(stream.context.job, stream.sent)]
    wanted = {
        "no channel": sum(row["channel"] is None for row in kept),
        "cheap": sum(row["price"] < 10_000 for row in kept),
    }
    assert min(wanted.values()) > 0
    assert head_of(stream).totals.warned == wanted
    assert _of_batches(stream.client.select_rows(_query(stream.settings.ledger))) == wanted
    said = f"warned of in the last 2 batches: {wanted['cheap']} cheap, {wanted['no channel']} no"
    assert said in status(stream.context)
    stream.close()
    outcome = stream.outcome()
    assert (outcome.lost, outcome.duplicated) == (0, 0)
    assert (head_of(stream).totals.written.get(REJECTED, 0) > 0) == rejects


def _with_a_tuple(job: Any) -> Any:
    return replace(job, warn=())


def _query(ledger: str) -> str:
    return f'state from [{ledger}] where kind = "batch"'


def _of_batches(rows: Iterable[Mapping[str, Any]]) -> Mapping[str, int]:
    found: dict[str, int] = {}
    for row in rows:
        for reason, count in warned_of(row).items():
            found[reason] = found.get(reason, 0) + count
    return found


@pytest.mark.spark
def test_a_condition_that_spark_does_not_know_names_its_entry(stream_of: StreamOf) -> None:
    stream = stream_of("transactional")
    stream.redeclare(warn={"odd": "prize < 1"})
    assert "WARN['odd'] in transform.py: " in refusal(stream.flow)


def test_a_reason_is_in_one_of_both() -> None:
    job = replace(unconnected("transactional").job, warn={"odd": "price < 1"})
    verify(job)  # it needs no output
    both = replace(job, reject={"odd": "price < 0"})
    assert "REJECT and WARN have the same reason: odd" in refusal(lambda: verify(both))
    assert "WARN['odd']: wanted one line as the reason and a SQL condition" in refusal(
        lambda: verify(replace(job, warn={"odd": ""}))
    )
    assert "warn: wanted a dict" in refusal(lambda: verify(_with_a_tuple(job)))
