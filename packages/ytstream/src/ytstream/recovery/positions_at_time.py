"""`rewind to-time`: the rows of each partition from which on nothing after a time is missed.

Each partition moves to the first row that came at that time or later, by the `$timestamp` of
its rows, which grows with their numbers. Where the job had not read that far, it stays where
the job was, by its ledger. The times in the ledger are those of the drivers' clocks. If a clock was
slow, the job seems to have been further than it was, so the earlier of the two rows is the answer.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from ..cluster.timestamps import unix_seconds
from ..errors import JobError
from ..errors.error_codes import ErrorCode
from ..job import JobContext
from ..ledger import batch_history, ledger_rows, positions
from ..ledger.ledger_rows import Head
from ..ledger.offsets import Queue
from ..ledger.row_timestamps import TIMESTAMP, row_timestamps

_BATCHES, _ROWS = 500, 64
"""Batches that one request reads, and rows of a partition that one look of a search asks for."""


def now() -> datetime:
    """Return the time."""
    return datetime.now(UTC)


def parsed(words: Sequence[str]) -> datetime:
    """Return a time in ISO 8601, in UTC unless it names a zone. Raises JobError."""
    text = " ".join(words)
    try:
        time = datetime.fromisoformat(text)
        time = time if time.tzinfo is not None else time.replace(tzinfo=UTC)
        time.astimezone(UTC)  # fails outside of the years 1 to 9999
    except (ValueError, OverflowError) as error:
        remedy = "e.g. rewind to-time 2026-11-21T10:00"
        raise JobError(f"cannot read the time {text!r}", remedy, code=ErrorCode.USAGE) from error
    return time


def places(context: JobContext, time: datetime) -> tuple[list[str], list[str]]:
    """Return QUEUE:PARTITION=ROW for each partition, and what there is to say about them.

    Raises JobError for a time that is still to come, and for one that nothing knows.
    """
    if time > now():
        raise JobError(
            f"{time:%Y-%m-%d %H:%M:%S %Z} is still to come",
            "name a time in the past",
            code=ErrorCode.USAGE,
        )
    found = positions.read(context.client, context.settings, repair=True)
    head, utc = found.begun, f"{time.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
    known = _of_the_ledger(context, head, time) if head is not None else {}
    named, said = [], []
    for queue in found.queues:
        then = None if queue.path in found.renumbered else known.get(queue.path)
        came = _of_the_rows(context, queue, time, is_needed=then is None) or {}
        if then is None:
            rows: Mapping[int, int] = came
            said.append(f"{queue.path}: rows that came at {utc} or later")
            said += _beyond(queue, rows)
        else:
            said.append(f"{queue.path}: where the job was at {utc}, by its ledger")
            said += _corrected(queue, then, came, utc)
            rows = _earlier(queue, then, came)
            if head is not None and rows == head.ends.get(queue.path):
                said.append(f"{queue.path}: no batch has read it since then, so it is not moved")
        for partition, (lower, upper) in enumerate(zip(queue.lower, queue.upper, strict=True)):
            row = rows.get(partition, lower)
            if row < lower:
                said.append(
                    f"{queue.path}, partition {partition}: rows {row} to {lower - 1} are trimmed"
                )
            named.append(f"{queue.path}:{partition}={min(max(row, lower), upper)}")
    return named, said


def _earlier(queue: Queue, then: Mapping[int, int], came: Mapping[int, int]) -> Mapping[int, int]:
    """Return where the job was, or the first row that came at the time if that is earlier."""
    if not came:
        return then
    return {p: min(then.get(p, lower), came[p]) for p, lower in enumerate(queue.lower)}


def _corrected(
    queue: Queue, then: Mapping[int, int], came: Mapping[int, int], utc: str
) -> Iterator[str]:
    """Yield a line for each partition where the job cannot have been that far."""
    for partition, row in came.items():
        if row < then.get(partition, 0):
            yield (
                f"{queue.path}, partition {partition}: row {row} came at {utc} or later, by its "
                f"{TIMESTAMP}, though the ledger has the job at row {then[partition]} then: the "
                f"driver's clock was slow, so row {row} is next"
            )


def _beyond(queue: Queue, rows: Mapping[int, int]) -> Iterator[str]:
    """Yield a line for each partition whose rows all came later, or all earlier."""
    for partition, (lower, upper) in enumerate(zip(queue.lower, queue.upper, strict=True)):
        row, named = rows[partition], f"{queue.path}, partition {partition}"
        if lower == upper:
            yield f"{named}: it has no row; the next one is row {upper}"
        elif row == lower:
            yield f"{named}: no row came earlier; it is read from its first, row {lower}"
        elif row == upper:
            yield f"{named}: every row came earlier; it is read from its end, row {upper}"


def _of_the_ledger(
    context: JobContext, head: Head, time: datetime
) -> Mapping[str, Mapping[int, int]]:
    """Return where the job was at that time, by queue; empty if no batch of then is kept."""
    client, path = context.client, context.settings.ledger
    last = batch_history.at(client, path, head, time)
    if last is None:
        return {}
    # Of each partition where the first batch or move after it began; the head's row without one.
    first: dict[tuple[str, int], tuple[datetime, int]] = {}

    def note(row: Mapping[str, Any], rows: Mapping[str, Mapping[int, tuple[int, int]]]) -> None:
        ended = ledger_rows.time_of(row["ended"])
        for queue, partitions in rows.items():
            for partition, (begin, _) in partitions.items():
                known = first.get((queue, partition))
                if known is None or ended < known[0]:
                    first[queue, partition] = ended, begin

    number = head.number
    while number > int(last["number"]):
        lowest = max(int(last["number"]) + 1, number - _BATCHES + 1)
        for row in batch_history.batches(client, path, range(lowest, number + 1)):
            note(row, ledger_rows.ranges_of(row))
        number = lowest - 1
    for move in client.select_rows(ledger_rows.moves_query(path)):
        if ledger_rows.time_of(move["ended"]) > time:
            note(move, ledger_rows.moved_of(move))
    ends = {queue: dict(rows) for queue, rows in head.ends.items()}
    for (queue, partition), (_, begin) in first.items():
        ends.setdefault(queue, {})[partition] = begin
    return ends


def _of_the_rows(
    context: JobContext, queue: Queue, time: datetime, *, is_needed: bool
) -> dict[int, int] | None:
    """Return the first row of each partition that was written at that time or later.

    None for a queue without times, if they are not needed. Raises JobError if they are.
    """
    found = {}
    for partition, (lower, upper) in enumerate(zip(queue.lower, queue.upper, strict=True)):
        while lower < upper:  # the row is one of them, or there is none
            step = max(1, (upper - lower) // _ROWS)
            looked = _times(context, queue.path, partition, range(lower, upper, step))
            if looked is None and not is_needed:
                return None
            if looked is None:
                raise JobError(
                    "no batch that the ledger keeps is as old, and rows of "
                    f"{queue.path} have no {TIMESTAMP}",
                    "name rows: `rewind rows QUEUE:PARTITION=ROW`",
                    code=ErrorCode.NO_TIMESTAMP,
                )
            before = [row for row, at in looked.items() if at < time.timestamp()]
            after = [row for row, at in looked.items() if at >= time.timestamp()]
            if not looked:  # trimmed since
                break
            lower, upper = max(before, default=lower - 1) + 1, min(after, default=upper)
        found[partition] = lower
    return found


def _times(context: JobContext, path: str, partition: int, rows: range) -> dict[int, float] | None:
    """Return when these rows were written; None for a queue that does not say."""
    found = row_timestamps(context.client, path, [(partition, row) for row in rows])
    if found is None:
        return None
    return {row: float(unix_seconds(at or 0)) for (_, row), at in found.items()}
