"""The rows of the proof: what a job would do wrong must show in the rows that are expected."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, pairwise
from typing import Any

import pytest

from tests.faults.sweep import history, oracle, playing
from tests.faults.sweep.jobs import JOBS
from tests.faults.sweep.lab import PARTITIONS, WRITE_ROWS, made_of
from tests.faults.sweep.recording import BATCH_ROWS, MORE, SEED, WAITING
from tests.faults.variants import Variant
from tests.support.examples import MERGE

Rows = list[dict[str, Any]]

KINDS = [
    Variant(guarantee, processing, queues)
    for guarantee, processing, queues in dict.fromkeys(
        (variant.guarantee, variant.processing, variant.queues) for variant in JOBS
    )
]
"""The variants whose rows differ."""


def _name(variant: Variant) -> str:
    return variant.name


def recorded(variant: Variant) -> list[list[Rows]]:
    """Return the batches of the recording, for each queue."""
    sample = made_of(variant).sample
    return [
        oracle.batches_of(
            variant, sample.make, sample.start_us, SEED + queue, WAITING + MORE, 0, BATCH_ROWS
        )
        for queue in range(variant.queues)
    ]


@pytest.mark.parametrize("variant", KINDS, ids=_name)
def test_each_batch_of_each_queue_has_rejected_rows(variant: Variant) -> None:
    rejected = made_of(variant).sample.others["rejected"]
    for batches in recorded(variant):
        assert all([*rejected(rows)] for rows in batches)
        # Both tasks of the middle batch write some: one of them may be held.
        for partition in range(PARTITIONS):
            part = batches[1][partition::PARTITIONS]
            assert 0 < len([*rejected(part)]) < len(part) - WRITE_ROWS


ARRIVALS = ((), (6,), (6, 6, 6, 6), (90, 90))
"""Rows that arrive: not at all, some, and in bursts."""
MERGES = [Variant("transactional", MERGE, queues) for queues in (1, 2)]
merge = pytest.mark.parametrize("variant", MERGES, ids=_name)
arrivals = pytest.mark.parametrize("arrivals", ARRIVALS, ids=str)


def micro_batches(variant: Variant, arrivals: Sequence[int]) -> list[Rows]:
    """Return the micro-batches of a case: those of the recording, and what arrives."""
    made = made_of(variant)
    found = [joined(rows) for rows in zip(*recorded(variant), strict=True)]
    for number, count in enumerate(arrivals, 1):
        seeds = [playing.seed_of(queue, number) for queue in range(variant.queues)]
        sent = joined(found)
        found.append(joined(oracle.arriving(variant, made, seed, count, sent) for seed in seeds))
    return found


def joined(batches: Iterable[Rows]) -> Rows:
    """Return the rows of all batches."""
    return [*chain.from_iterable(batches)]


def table(variant: Variant, batches: Sequence[Rows]) -> Counter[str]:
    """Return the rows that are expected in the output."""
    return history.expected_of(variant, joined(batches))["output"]


@merge
@arrivals
def test_a_merge_shows_a_batch_that_is_lost(variant: Variant, arrivals: Sequence[int]) -> None:
    batches = micro_batches(variant, arrivals)
    whole = table(variant, batches)
    for number in range(len(batches)):
        assert table(variant, batches[:number] + batches[number + 1 :]) != whole
    # Two batches in a row, and the rows of one queue of a batch.
    assert table(variant, batches[:1] + batches[3:]) != whole
    for part in (slice(BATCH_ROWS), slice(-BATCH_ROWS, None)):
        rows = [*batches[1]]
        del rows[part]
        assert table(variant, [batches[0], rows, *batches[2:]]) != whole


@merge
def test_a_merge_shows_each_row_that_shares_no_key(variant: Variant) -> None:
    batches = micro_batches(variant, ())
    whole = table(variant, batches)
    passing = made_of(variant).sample.passing(made_of(variant).job, joined(batches))
    unshared = [row for row in passing if not _module(variant).contends(row)]
    assert 0.55 < len(unshared) / len(passing) < 0.8
    for lost in unshared:
        kept = [[row for row in rows if row is not lost] for rows in batches]
        assert (whole - table(variant, kept)).total() == 1


@merge
@arrivals
def test_a_merge_shows_deletes_that_are_forgotten(
    variant: Variant, arrivals: Sequence[int]
) -> None:
    batches = micro_batches(variant, arrivals)
    whole = table(variant, batches)
    assert Counter(_merged(variant, batches)) == whole
    for number in range(WAITING):
        assert Counter(_merged(variant, batches, forgets=number)) != whole
    assert Counter(_merged(variant, batches, applies_stale=True)) != whole


def _merged(
    variant: Variant,
    batches: Sequence[Rows],
    *,
    forgets: int | None = None,
    applies_stale: bool = False,
) -> Iterator[str]:
    """Yield the output of MERGE, batch by batch, as the oracle counts it.

    It ``forgets`` the deletes after that batch, or ``applies_stale`` ones, which are too old.
    """
    made, with_deletes = made_of(variant), _module(variant)
    table: dict[int, oracle.Row] = {}
    deleted: dict[int, oracle.Row] = {}
    for number, rows in enumerate(batches):
        for row in map(with_deletes.seen, made.sample.passing(made.job, rows)):
            key = row["auction"]
            known = table.get(key) or deleted.get(key)
            is_newer = known is None or with_deletes.rank(row) > with_deletes.rank(known)
            if is_newer or (applies_stale and row["is_closed"]):
                for where in (table, deleted):
                    where.pop(key, None)
                (deleted if row["is_closed"] else table)[key] = row
        if number == forgets:
            deleted.clear()
    yield from oracle.counted(table.values(), history.columns_of(variant)["output"]).elements()


def _module(variant: Variant) -> Any:
    """Return the module with the expected rows of the variant."""
    return sys.modules[made_of(variant).sample.expected.__module__]


DEDUPLICATIONS = [variant for variant in KINDS if variant.processing == "deduplicate"]
COLLECTING = [variant for variant in KINDS if variant.processing in ("window", "sessions")]
"""Windows and sessions."""


@pytest.mark.parametrize("variant", DEDUPLICATIONS, ids=_name)
@arrivals
def test_a_deduplication_shows_ids_that_are_lost_or_not_looked_up(
    variant: Variant, arrivals: Sequence[int]
) -> None:
    batches = with_following(variant, micro_batches(variant, arrivals))
    whole = table(variant, batches)
    for number in range(1, len(batches)):
        assert not _late(variant, batches[:number], batches[number])
        # A job that forgets all ids, and one that forgets those of a batch.
        lost = table(variant, batches[:number]) + table(variant, batches[number:])
        assert (lost - whole).total() > 1
        alone = [row["event_id"] for row in joined(batches[:number][-1:])]
        assert {*alone} & {row["event_id"] for row in batches[number]}


@pytest.mark.parametrize("variant", COLLECTING, ids=_name)
def test_windows_and_sessions_have_rows_of_two_batches(variant: Variant) -> None:
    made, batches = made_of(variant), micro_batches(variant, ())
    for before, batch in pairwise(batches):
        closing = made.sample.closing(made.job, [*before, *batch])
        apart = table(variant, [before, closing]) + table(variant, [batch, closing])
        assert (table(variant, [before, batch, closing]) - apart).total() >= 10


@pytest.mark.parametrize("variant", COLLECTING, ids=_name)
@arrivals
def test_windows_and_sessions_close_in_a_recorded_batch_and_all_in_the_end(
    variant: Variant, arrivals: Sequence[int]
) -> None:
    made = made_of(variant)
    batches = with_following(variant, micro_batches(variant, arrivals))
    # The last batch of the backlog runs under the watermark of those before, and a batch without
    # rows follows it, and the one after a restart.
    counts = [table(variant, batches[:number]).total() for number in (2, WAITING, WAITING + MORE)]
    assert 0 < counts[0] < counts[1] < counts[2]
    for number, rows in enumerate(batches):
        assert not _late(variant, batches[: number + 1], rows)
    sent = joined(batches)
    expected = made.sample.expected([*sent, *made.sample.closing(made.job, sent)])
    assert sum(row["bids"] for row in expected) == len(made.sample.passing(made.job, sent))


def with_following(variant: Variant, batches: Sequence[Rows]) -> list[Rows]:
    """Return the micro-batches, and those of the rows that follow in each queue."""
    made, found = made_of(variant), [*batches]
    for queue in range(variant.queues):
        (rows,) = oracle.batches_of(
            variant, made.sample.make, made.sample.start_us, SEED + queue, 1,
            playing.FOLLOWING_BATCH, BATCH_ROWS,
        )  # fmt: skip
        found.append(playing.following(variant, joined(found), rows))
    return found


def _late(variant: Variant, before: Sequence[Rows], rows: Rows) -> list[oracle.Row]:
    """Return the rows that the watermark after ``before`` has passed."""
    made = made_of(variant)
    behind = 600_000_000 if variant.processing == "sessions" else 10_000_000
    watermark = made.sample.newest(made.job, joined(before)) - behind
    return [row for row in made.sample.passing(made.job, rows) if row["date_time"] < watermark]
