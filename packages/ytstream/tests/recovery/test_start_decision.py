"""before_start.decide(): what a start can find, and where the next batch begins; no cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from tests.support.helpers import refusal, unconnected
from ytstream.job import JobContext
from ytstream.ledger.ledger_rows import Head, Move
from ytstream.ledger.offsets import Queue
from ytstream.ledger.positions import Snapshot
from ytstream.ownership.job_marker import marker_of
from ytstream.recovery.start import StartPlan, decide

QUEUE = "//home/job/queue-0"
OTHER = "//home/job/queue-1"
LEDGER = "//home/job/ledger"

KINDS = [
    *(("transactional", "map"), ("transactional", "window")),
    *(("at_least_once", "map"), ("at_least_once", "window"), ("idempotent", "map")),
]
"""Those of one guarantee differ in state alone; a head without a batch has none to verify."""
for_all = pytest.mark.parametrize("kind", KINDS, ids="-".join)
Kind = tuple[str, str]


def _queue(
    consumed: Mapping[int, int] | None = None,
    *,
    path: str = QUEUE,
    lower: tuple[int, ...] = (0, 0),
    upper: tuple[int, ...] = (100, 100),
) -> Queue:
    return Queue(path, "1-2-3-4", lower, upper, consumed or {})


def _context(kind: Kind, queues: int = 1, **changes: Any) -> JobContext:
    context = unconnected(*kind, queues)
    return replace(context, settings=replace(context.settings, **changes))


def _head(context: JobContext, ends: Mapping[int, int], **changes: Any) -> Head:
    head = Head(3, "process 1", 3, ends={QUEUE: ends}, ids={QUEUE: "1-2-3-4"})
    return replace(head, marker=marker_of(context), **changes)


def _first(kind: Kind, queue: Queue, **changes: Any) -> StartPlan:
    return decide(_context(kind, **changes), Snapshot((queue,), None, None))


def _continued(kind: Kind, queue: Queue, ends: Mapping[int, int], **changes: Any) -> StartPlan:
    context = _context(kind, **changes)
    return decide(context, Snapshot((queue,), _head(context, ends), None))


def _is_transactional(kind: Kind) -> bool:
    return kind[0] == "transactional"


@pytest.mark.parametrize(
    ("start_from", "rows"), [("earliest", {0: 10, 1: 0}), ("latest", {0: 70, 1: 5})]
)
@for_all
def test_a_first_start_begins_where_the_configuration_says(
    kind: Kind, start_from: str, rows: dict[int, int]
) -> None:
    queue = _queue(lower=(10, 0), upper=(70, 5))
    plan = _first(kind, queue, start_from=start_from)
    assert (plan.rows, plan.head) == ([rows], Head())
    places = f"{rows[0]}, {rows[1]}"
    assert plan.notes == (
        f"first read of {QUEUE}: from its {start_from} rows, by partition {places}",
    )


@for_all
def test_start_from_is_for_queues_that_are_new_to_the_consumer(kind: Kind) -> None:
    plan = _first(kind, _queue({0: 5}), start_from="latest")
    assert plan.rows == [{0: 5, 1: 0}]
    assert plan.notes == (f"first read of {QUEUE}: from where its consumer is, by partition 5, 0",)


@pytest.mark.parametrize(
    ("consumed", "row", "place"),
    [({}, 100, "its latest rows"), ({0: 5}, 5, "where its consumer is")],
)
@for_all
def test_the_same_holds_for_a_queue_that_the_ledger_does_not_know(
    kind: Kind, consumed: dict[int, int], row: int, place: str
) -> None:
    context = _context(kind, 2, start_from="latest")
    queues = (_queue({0: 20}), _queue(consumed, path=OTHER, lower=(0,), upper=(100,)))
    plan = decide(context, Snapshot(queues, _head(context, {0: 20, 1: 0}), None))
    assert plan.rows == [{0: 20, 1: 0}, {0: row}]
    assert plan.notes == (f"first read of {OTHER}: from {place}, by partition {row}",)


@pytest.mark.parametrize("row", [0, 10, 20])
@for_all
def test_the_ledger_decides_and_the_consumer_follows(kind: Kind, row: int) -> None:
    plan = _continued(kind, _queue({0: row}), {0: 20, 1: 0})
    assert plan.rows == [{0: 20, 1: 0}]
    behind = f"the consumer was behind the ledger on {QUEUE}, partition 0: moved to where the"
    assert [behind in note for note in plan.warnings] == (
        [True] if _is_transactional(kind) and row < 20 else []
    )


@for_all
def test_a_consumer_ahead_of_the_ledger(kind: Kind) -> None:
    """In SPYT's transaction it moves with the head; elsewhere an older driver may have moved it."""
    place = f"{QUEUE}, partition 1: row 30, the ledger has 20"
    skip = f"to skip those rows: `rewind rows {QUEUE}:1=30`. If the ledger is an older copy, their"

    def decided() -> StartPlan:
        return _continued(kind, _queue({0: 20, 1: 30}), {0: 20, 1: 20})

    if _is_transactional(kind):
        text = refusal(decided)
        assert f"the consumer was moved forward on {place}\n  -> {skip} " in text
        assert f"{QUEUE} --partition-index 1 --new-offset 20" in text
        return
    plan = decided()
    assert plan.rows == [{0: 20, 1: 20}]
    (said,) = plan.warnings
    assert f"the consumer was ahead of the ledger on {place}: moved back; {skip} " in said
    assert plan.notes == ()


def test_a_queue_that_may_have_changed_its_path() -> None:
    """It would be read from `start_from`: its rows again, or none of those that wait."""
    moved = f"{QUEUE}-moved"

    def said(*now: str, was: Mapping[str, Mapping[int, int]]) -> str:
        context = _context(("transactional", "map"))
        context = replace(context, settings=replace(context.settings, queues=now))
        ids = dict.fromkeys(was, "1-2-3-4")
        found = tuple(_queue(path=path) for path in now)
        return refusal(
            lambda: decide(
                context, Snapshot(found, replace(_head(context, {}), ends=was, ids=ids), None)
            )
        )

    text = said(moved, was={QUEUE: {0: 20, 1: 7}})
    assert f"`rewind rows {moved}:0=20 {moved}:1=7`" in text
    assert "rewind" not in said(OTHER, was={QUEUE: {0: 20}, OTHER: {0: 1}})
    text = said(moved, f"{OTHER}-moved", was={QUEUE: {0: 20}, OTHER: {0: 1}})
    assert "`rewind rows NEW-queue-0:0=20 NEW-queue-1:0=1`" in text


@for_all
def test_trimmed_rows_are_refused_with_the_exact_gap(kind: Kind) -> None:
    """Counted from the ledger, not from the consumer, which may be behind it."""
    text = refusal(lambda: _continued(kind, _queue({0: 10}, lower=(25, 0)), {0: 20, 1: 0}))
    assert text.startswith(f"5 rows of {QUEUE} were trimmed")
    assert "partition 0, rows 20 to 24" in text
    assert 'set on_data_loss = "skip"' in text


@for_all
def test_trimmed_rows_are_skipped_on_demand_and_nothing_repeats(kind: Kind) -> None:
    queue = _queue({0: 10, 1: 3}, lower=(25, 0))
    plan = _continued(kind, queue, {0: 20, 1: 7}, on_data_loss="skip")
    assert plan.rows == [{0: 25, 1: 7}]
    assert "5 rows" in plan.warnings[-1]
    assert plan.move == Move("skip", {QUEUE: {0: (20, 25)}})


@pytest.mark.parametrize(
    ("ends", "upper", "said"),
    [({0: 20}, (15, 0), "partition 0 ends at row 15"), ({1: 20}, (99,), "partition 1 ends at row")],
    ids=["fewer rows", "fewer tablets"],
)
@for_all
def test_a_queue_shorter_than_what_was_read_is_refused(
    kind: Kind, ends: dict[int, int], upper: tuple[int, ...], said: str
) -> None:
    queue = _queue(lower=(0,) * len(upper), upper=upper)
    text = refusal(lambda: _continued(kind, queue, ends))
    assert said in text
    assert "recreated" in text


@for_all
def test_a_partition_that_came_later_starts_at_its_first_row(kind: Kind) -> None:
    queue = _queue({0: 20, 1: 20}, lower=(0, 0, 0), upper=(20, 20, 5))
    assert _continued(kind, queue, {0: 20, 1: 20}).rows == [{0: 20, 1: 20, 2: 0}]


@pytest.mark.parametrize(
    ("marker", "said"),
    [
        ({"job": "another"}, "belongs to another job: its job is 'another'"),
        ({"processing": "another"}, "belongs to another job: its processing is 'another'"),
        ({"guarantee": "another"}, "run `migrate`"),
        ({"outputs": {"output": "//home/other"}}, "[outputs] was output = //home/other and is"),
    ],
)
@for_all
def test_the_ledger_of_another_job_is_refused(
    kind: Kind, marker: dict[str, Any], said: str
) -> None:
    context = _context(kind)
    head = _head(context, {})
    head = replace(head, marker={**head.marker, **marker})
    assert said in refusal(lambda: decide(context, Snapshot((_queue(),), head, None)))


@pytest.mark.parametrize(
    ("ids", "said"),
    [
        ({QUEUE: "9-9-9-9"}, "was dropped and recreated"),
        ({QUEUE: "1-2-3-4", OTHER: "5-6-7-8"}, f"the job has read {OTHER}, which"),
        ({OTHER: "5-6-7-8"}, f"the job has read {OTHER}, which"),
        ({}, None),
    ],
    ids=["recreated", "removed", "replaced", "added"],
)
@for_all
def test_the_ledger_is_of_certain_queues(kind: Kind, ids: dict[str, str], said: str | None) -> None:
    context = _context(kind)
    found = Snapshot((_queue(),), _head(context, {0: 0, 1: 0}, ids=ids), None)
    if said is None:
        assert decide(context, found).rows == [{0: 0, 1: 0}]
    else:
        assert said in refusal(lambda: decide(context, found))


@for_all
def test_a_removed_queue_is_at_its_rows_whatever_the_consumer_and_start_from_say(
    kind: Kind,
) -> None:
    context = _context(kind, 2, start_from="latest")
    ends = {QUEUE: {0: 20, 1: 0}, OTHER: {0: 30, 1: 0}}
    ids = dict.fromkeys(ends, "1-2-3-4")
    head = replace(_head(context, {}), ends=ends, ids=ids, removed=frozenset({OTHER}))
    queues = (_queue({0: 20}), _queue({0: 10}, path=OTHER))
    assert decide(context, Snapshot(queues, head, None)).rows == [*ends.values()]


@pytest.mark.parametrize(
    "marker", [{"job": "another", "ledger": LEDGER}, {"job": "map-of-bids", "ledger": "//home/x"}]
)
@pytest.mark.parametrize("has_run", [True, False])
def test_the_consumer_of_another_job_is_refused(marker: dict[str, str], has_run: bool) -> None:
    context = _context(("transactional", "map"))
    head = _head(context, {}) if has_run else None
    text = refusal(lambda: decide(context, Snapshot((_queue(),), head, marker)))
    assert f"belongs to the job '{marker['job']}' with the ledger {marker['ledger']}" in text


@pytest.mark.parametrize("head", [None, Head(3, "process 1")], ids=["no row", "no start"])
@for_all
def test_a_lost_ledger_is_refused(kind: Kind, head: Head | None) -> None:
    context = _context(kind)
    marker = {"job": context.job.name, "ledger": LEDGER}
    text = refusal(lambda: decide(context, Snapshot((_queue({0: 5}),), head, marker)))
    assert "has no head row, though the job has run" in text
