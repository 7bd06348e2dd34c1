"""Rejected rows after a `rewind`: which were read again, by the ledger; no JVM."""

from __future__ import annotations

from argparse import Namespace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.support.helpers import ContextOf, fails_with
from tests.support.status_steps import head_of_batch, write_rows
from ytstream.errors.error_codes import ErrorCode
from ytstream.job import JobContext
from ytstream.ledger import batch_history, ledger_rows, positions
from ytstream.ledger.ledger_rows import BatchRow, Head, Move, batch_row, head_row
from ytstream.ownership import output_marks
from ytstream.spark import session
from ytstream_tools.commands import replay_rejected
from ytstream_tools.replay import rejected_table, reread
from ytstream_tools.replay.rejected_table import RejectedTable
from ytstream_tools.replay.replay_counts import ReplayCounts
from ytstream_tools.replay.reread import LedgerReads, PositionStatus, Rewind

START = datetime(2026, 11, 21, 10, tzinfo=UTC)


def _time(minutes: float) -> int:
    return ledger_rows.microseconds(START + timedelta(minutes=minutes))


def _batch(queue: str, number: int, epoch: int, rows: tuple[int, int]) -> dict[str, object]:
    """Return the row of a batch that was at work for a minute; batch 1 began at START."""
    started = START + timedelta(minutes=number - 1)
    done = BatchRow({queue: {0: rows}}, {}, started, started + timedelta(minutes=1))
    return batch_row(Head(epoch=epoch, batch=number - 1, number=number), done)


def _moved_back(context: JobContext, to: int) -> str:
    """Write batches of rows 0 to 29, a rewind from row 30, and a batch that reads ten again."""
    queue = context.settings.queues[0]
    write_rows(
        context,
        *(_batch(queue, n, 1, (10 * n - 10, 10 * n)) for n in (1, 2, 3)),
        ledger_rows.move_row(2, Move("rewind", {queue: {0: (30, to)}})),
        _batch(queue, 4, 2, (to, to + 10)),
        head_row(head_of_batch(context, 4, ends={queue: {0: to + 10}})),
    )
    return queue


def test_a_row_that_was_read_again_and_accepted_is_not_replayed(
    provisioned_of: ContextOf,
) -> None:
    context = provisioned_of("transactional")
    queue = _moved_back(context, 10)
    readings = reread.read(context)
    assert readings.of(queue, 0, 5, _time(0.5)) is PositionStatus.REJECTED  # never read again
    assert readings.of(queue, 0, 15, _time(1.5)) is PositionStatus.ACCEPTED
    assert readings.of(queue, 0, 15, _time(3.5)) is PositionStatus.REJECTED  # rejected again
    assert readings.of(queue, 0, 25, _time(2.5)) is PositionStatus.NEXT
    assert readings.of(queue, 1, 25, _time(2.5)) is PositionStatus.REJECTED


def test_a_long_ledger_is_read_back_to_the_first_rewind(
    provisioned_of: ContextOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The batch that has read a row again may be many batches ago."""
    monkeypatch.setattr(reread, "_BATCHES", 1)
    context = provisioned_of("transactional")
    queue = _moved_back(context, 0)
    head = head_of_batch(context, 5, ends={queue: {0: 20}})
    write_rows(context, _batch(queue, 5, 2, (10, 20)), head_row(head))
    readings = reread.read(context)
    assert readings.of(queue, 0, 5, _time(0.5)) is PositionStatus.ACCEPTED
    assert readings.of(queue, 0, 5, _time(3.5)) is PositionStatus.REJECTED


def test_without_a_rewind_no_batch_of_the_ledger_is_read(
    provisioned_of: ContextOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = provisioned_of("transactional")
    queue = context.settings.queues[0]
    skip = ledger_rows.move_row(2, Move("skip", {queue: {0: (10, 20)}}))
    head = head_row(head_of_batch(context, 1, ends={queue: {0: 20}}))
    write_rows(context, _batch(queue, 1, 1, (0, 10)), skip, head)
    monkeypatch.setattr(batch_history, "batches", None)
    assert reread.read(context).of(queue, 0, 5, _time(9)) is PositionStatus.REJECTED


@pytest.mark.parametrize(
    ("moved", "status"),
    [
        ({0: (30, 0)}, PositionStatus.RENUMBERED),  # `earliest`
        ({0: (10, 20)}, PositionStatus.RENUMBERED),  # a higher number, but of a row before
        ({}, PositionStatus.RENUMBERED),
        (None, PositionStatus.REJECTED),
    ],
)
def test_a_row_of_a_removed_partition_stays_if_the_job_was_moved_since(
    provisioned_of: ContextOf, moved: dict[int, tuple[int, int]] | None, status: PositionStatus
) -> None:
    """The rewound job reads it under another number, behind those of the last partition."""
    context = provisioned_of("transactional")
    queue = context.settings.queues[0]
    head = head_of_batch(context, 1, ends={queue: {0: 30}}, retired={queue: {1: 20}})
    write_rows(context, _batch(queue, 1, 1, (0, 10)), head_row(head))
    if moved is not None:
        write_rows(context, ledger_rows.move_row(2, Move("rewind", {queue: moved})))
    assert reread.read(context).of(queue, 1, 5, _time(0.5)) is status


def test_a_rewind_before_the_reshard_keeps_no_row_of_a_removed_partition(
    provisioned_of: ContextOf,
) -> None:
    context = provisioned_of("transactional")
    queue = _moved_back(context, 10)
    head = head_of_batch(context, 4, ends={queue: {}}, retired={queue: {0: 20}})
    write_rows(context, head_row(head))
    readings = reread.read(context)
    assert readings.of(queue, 0, 15, _time(1.5)) is PositionStatus.ACCEPTED
    assert readings.of(queue, 0, 15, _time(3.5)) is PositionStatus.REJECTED


def test_a_rewind_that_knows_no_former_position_counts_as_one_that_goes_back(
    provisioned_of: ContextOf,
) -> None:
    """The ledger was lost, and the job has begun with the earliest rows."""
    context = provisioned_of("transactional")
    queue = context.settings.queues[0]
    head = head_of_batch(context, 2, ends={queue: {0: 20}})
    move = ledger_rows.move_row(2, Move("rewind", {queue: {}}))
    write_rows(context, move, _batch(queue, 2, 3, (0, 20)), head_row(head))
    assert reread.read(context).of(queue, 0, 5, _time(-9)) is PositionStatus.ACCEPTED


def _rewound(context: JobContext, hours: float, kept: range) -> LedgerReads:
    """Return what is read of a ledger that keeps so many batches after a rewind to row 10."""
    queue = context.settings.queues[0]
    move = ledger_rows.move_row(2, Move("rewind", {queue: {0: (30, 10)}}))
    head = head_of_batch(context, 6, ends={queue: {0: 40}})
    batches = {n: _batch(queue, n, 2, (10 * n - 20, 10 * n - 10)) for n in kept}
    write_rows(context, {**move, "ended": _time(60 * hours)}, *batches.values(), head_row(head))
    return reread.read(context)


@pytest.mark.parametrize(
    ("kept", "row", "status"),
    [
        (range(4, 7), 15, PositionStatus.UNKNOWN),
        (range(0), 25, PositionStatus.UNKNOWN),
        (range(4, 7), 25, PositionStatus.ACCEPTED),  # by a batch that is kept
        (range(4, 7), 5, PositionStatus.REJECTED),  # before the row that the job was moved to
        (range(4, 7), 45, PositionStatus.NEXT),
    ],
)
def test_a_row_is_not_replayed_whose_batches_the_ledger_has_dropped(
    provisioned_of: ContextOf, kept: range, row: int, status: PositionStatus
) -> None:
    """The dropped batches may have accepted it. That would put it into the outputs twice."""
    context = provisioned_of("transactional", "map", 1, rejects=True)
    reads, counts = _rewound(context, 0, kept), ReplayCounts()
    queue = context.settings.queues[0]
    assert reads.of(queue, 0, row, _time(-1)) is status
    found = [{"tablet_index": 0, "row_index": row, "reason": "odd", "time": _time(-1)}]
    free = RejectedTable(context).free(lambda _: (), reads, found, counts)
    assert bool(free) is (status is PositionStatus.REJECTED)
    assert counts.unknown == (status is PositionStatus.UNKNOWN)
    said = [reason for reason in counts.reasons() if "no longer has the batches" in reason]
    assert len(said) == counts.unknown


def test_a_row_that_was_rejected_after_the_last_rewind_is_replayed(
    provisioned_of: ContextOf,
) -> None:
    """Otherwise one rewind would keep all later rows in `rejected`, once its batches are gone."""
    context = provisioned_of("transactional")
    reads, queue = _rewound(context, -2, range(4, 7)), context.settings.queues[0]
    assert reads.of(queue, 0, 15, _time(-1)) is PositionStatus.REJECTED
    assert reads.of(queue, 0, 15, _time(-119)) is PositionStatus.UNKNOWN  # two clocks differ


class _CountingRun(list[reread._ReadRange]):
    """Counts how many of its items are taken."""

    taken = 0

    def __getitem__(self, index: Any) -> Any:
        self.taken += 1
        return super().__getitem__(index)

    def __iter__(self) -> Any:
        for index in range(len(self)):
            yield self[index]


def test_a_row_is_found_without_going_through_all_batches() -> None:
    """A replay asks for each row of a chunk, in an open transaction. 500,000 batches are kept."""
    run = _CountingRun(reread._ReadRange(1, n, n + 1, n, n) for n in reversed(range(100_000)))
    reads = LedgerReads({"queue": {0: 100_000}}, {("queue", 0): [run]})
    assert reads.of("queue", 0, 77, 77) is PositionStatus.REJECTED
    assert reads.of("queue", 0, 78, 77) is PositionStatus.ACCEPTED
    assert run.taken < 100


def test_the_newest_of_several_reads_of_a_row_decides(provisioned_of: ContextOf) -> None:
    """Between two moves rows are read in their order; a move may go back or forward."""
    context = provisioned_of("transactional")
    queue, starts = context.settings.queues[0], (0, 10, 20, 10, 20, 50, 0, 30, 40)
    head = head_of_batch(context, len(starts), ends={queue: {0: 90}})
    move = ledger_rows.move_row(1, Move("rewind", {queue: {}}))
    batches = [_batch(queue, n, 1, (start, start + 10)) for n, start in enumerate(starts, start=1)]
    write_rows(context, move, *batches, head_row(head))
    reads = reread.read(context)
    for row in range(60):
        last = max(n for n, start in enumerate(starts) if start <= row < start + 10)
        for batch in range(len(starts)):
            status = PositionStatus.REJECTED if batch == last else PositionStatus.ACCEPTED
            assert reads.of(queue, 0, row, _time(batch + 0.5)) is status


def test_rows_of_removed_partitions_are_counted_among_those_that_stay(
    provisioned_of: ContextOf,
) -> None:
    context = provisioned_of("transactional", "map", 1, rejects=True)
    queue, counts = context.settings.queues[0], ReplayCounts()
    found = [
        {"tablet_index": 1, "row_index": n, "reason": "odd", "time": _time(0)} for n in range(3)
    ]
    rewinds = {queue: [Rewind(2, _time(0), {})]}
    reads = LedgerReads({queue: {0: 9}}, retired={queue: {1: 3}}, rewinds=rewinds)
    assert not RejectedTable(context).free(lambda _: (), reads, found, counts)
    assert counts.stayed == 3
    (reason,) = counts.reasons()
    assert "a reshard has removed their partition" in reason


def test_nothing_is_replayed_where_the_position_of_the_job_is_lost(
    provisioned_of: ContextOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every object but `rejected` was removed and provisioned: `run` fails with the same error."""
    context = provisioned_of("transactional", "map", 1, rejects=True)
    assert reread.read(context) == LedgerReads()  # the job has not started yet
    output_marks.write(context, positions.read(context.client, context.settings))
    monkeypatch.setattr(session, "opened", None)
    given = Namespace(dry_run=False, replace=False, remove_dropped=False)
    with fails_with(ErrorCode.HEAD_LOST):
        replay_rejected._run(context, given)
    with fails_with(ErrorCode.HEAD_LOST):
        reread.read(context)


def test_a_chunk_has_as_many_rows_as_its_bytes_allow(
    provisioned_of: ContextOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And a row with more bytes is a chunk of its own."""
    monkeypatch.setattr(rejected_table, "CHUNK_BYTES", 250)
    context = provisioned_of("transactional", "map", 1, rejects=True)
    sizes = [100, 100, 100, 1_000, 100, 100]
    rows = [
        {"tablet_index": 0, "row_index": n, "reason": "odd", "row": "x" * size, "time": _time(0)}
        for n, size in enumerate(sizes)
    ]
    client = context.client
    client.insert_rows(context.settings.outputs["rejected"], rows)
    found: list[list[int]] = []
    last: tuple[int, ...] = ()
    while chunk := RejectedTable(context).read(client.select_rows, last):
        found.append([row["row_index"] for row in chunk])
        last = (0, found[-1][-1])
    assert found == [[0, 1], [2], [3], [4, 5]]
