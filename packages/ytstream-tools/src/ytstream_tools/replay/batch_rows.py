"""The rows of batches, read once more from the real queues: nothing is written there.

A batch of the ledger names its rows. Of one that has failed the ledger knows where it began, and
Spark's offset log, where it has the batch, where it ends.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ytstream.cluster.client import Client
from ytstream.errors import JobError
from ytstream.errors.error_codes import ErrorCode
from ytstream.job import REJECTED, JobContext
from ytstream.ledger import ledger_rows, positions
from ytstream.ledger.ledger_rows import Head, LookedUp, batch_name
from ytstream.ledger.offsets import Queue
from ytstream.recovery import spark_logs
from ytstream.recovery.checkpoint_repair import path_of

CapturedRow = Mapping[str, Any]
Ranges = Mapping[str, Mapping[int, tuple[int, int]]]
"""Queue -> partition -> first row, and the one after the last."""
QUEUE, PARTITION, NUMBER = "$queue", "$tablet_index", "$row_index"
"""Where a row was; no column of a queue begins with $."""
FAILED_BATCH = "failed"
"""The word for the batch after the last one that has happened."""
_CHUNK = 5_000
"""Rows that one request reads."""
MOST_REJECTED = 100
"""Rejected rows that are saved at most."""


@dataclass(frozen=True)
class CapturedBatch:
    """The rows of one batch, each with its position."""

    name: str
    rows: Sequence[CapturedRow]


def head_of(context: JobContext) -> Head:
    """Return the ledger's head. Raises JobError for a job that has never run."""
    head = positions.read_head(context.settings.ledger, context.client.select_rows)
    if head is None or head.folder is None:
        raise JobError(
            "the job has never run: its ledger is empty",
            "`status` shows where it is",
            code=ErrorCode.NEVER_RUN,
        )
    return head


def ranges_of(context: JobContext, word: str) -> tuple[str, Ranges]:
    """Return the name and the rows of the batch that a word names. Raises JobError for none."""
    head = head_of(context)
    if word == FAILED_BATCH:
        return batch_name(head.epoch, head.batch + 1), _next(context, head)
    match = re.fullmatch(r"([0-9]+)-([0-9]+)", word)
    if match is None:
        raise JobError(
            f"cannot read the batch {word!r}",
            f"name epoch and number as in the log, e.g. 3-12, or {FAILED_BATCH!r} for the one "
            "after the last that has happened",
            code=ErrorCode.USAGE,
        )
    epoch, number = int(match[1]), int(match[2])
    query = (
        f"number, epoch, batch, queues from [{context.settings.ledger}] "
        f'where kind = "batch" and epoch = {epoch} and batch = {number}'
    )
    found = next(iter(context.client.select_rows(query)), None)
    if found is None:
        raise JobError(
            f"the ledger has no batch {word}; its last one is {ledger_rows.last_name(head)}",
            "`status` lists the last batches; old ones are removed, and one that has failed is "
            f"named {FAILED_BATCH!r}",
            code=ErrorCode.NO_BATCH,
        )
    return word, ledger_rows.ranges_of(found)


def looked_up_in(context: JobContext, word: str) -> Mapping[str, LookedUp]:
    """Return what a batch of the ledger has looked up, by reference; nothing of a failed one."""
    match = re.fullmatch(r"([0-9]+)-([0-9]+)", word)
    if match is None:
        return {}
    query = ledger_rows.tables_query(context.settings.ledger, [(int(match[1]), int(match[2]))])
    rows = context.client.select_rows(query)
    return next((ledger_rows.lookups_of(row) for row in rows), {})


def rows_of(context: JobContext, ranges: Ranges) -> tuple[list[CapturedRow], list[str]]:
    """Return the rows that are still there, and a line for each partition with trimmed ones."""
    client, found, trimmed = context.client, list[CapturedRow](), list[str]()
    for path, partitions in ranges.items():
        if not any(end > first for first, end in partitions.values()):
            continue
        queue = positions.queue(client, path, {})
        names = columns_of(client, path)
        for partition, (first, end) in sorted(partitions.items()):
            lower = _lower(queue, partition, end)
            if first < min(lower, end):
                line = f"{path}, partition {partition}: rows {first} to {min(lower, end) - 1}"
                trimmed.append(f"{line} are trimmed")
            for row in read_range(client, path, names, partition, max(first, lower), end):
                found.append({QUEUE: path, **row})
    return found, trimmed


def rejected_of(context: JobContext, reason: str) -> tuple[list[CapturedRow], list[str]]:
    """Return the newest rows that REJECT has kept out for a reason, as rows_of() does.

    Raises JobError for a job that rejects none, and for a reason under which none is.
    """
    head_of(context)
    path = context.settings.outputs.get(REJECTED)
    if path is None:
        raise JobError(
            "the job has no output `rejected`",
            "name a batch instead",
            code=ErrorCode.NOT_FOR_THIS_JOB,
        )
    several = len(context.settings.queues) > 1
    place = f"{'queue_id, ' if several else ''}tablet_index, row_index, reason"
    known: dict[str, int] = {}
    ranges: dict[str, dict[int, list[int]]] = {}
    for row in context.client.select_rows(f"{place} from [{path}] limit 1000000"):
        known[row["reason"]] = known.get(row["reason"], 0) + 1
        if row["reason"] == reason:
            queue = row["queue_id"] if several else context.settings.queues[0]
            ranges.setdefault(str(queue), {}).setdefault(int(row["tablet_index"]), []).append(
                int(row["row_index"])
            )
    if not ranges:
        listed = ", ".join(f"{name!r} ({count})" for name, count in sorted(known.items())) or "none"
        raise JobError(
            f"no row was rejected for {reason!r}",
            f"reasons of rows there: {listed}",
            code=ErrorCode.NO_ROWS,
        )
    found, trimmed = list[CapturedRow](), list[str]()
    for queue, partitions in ranges.items():
        for partition, numbers in partitions.items():
            for number in sorted(numbers)[-MOST_REJECTED:]:
                rows, lines = rows_of(context, {queue: {partition: (number, number + 1)}})
                found += rows
                trimmed += lines
    return found[-MOST_REJECTED:], trimmed


def reference_of(context: JobContext) -> list[CapturedRow]:
    """Return the rows of the reference as it is now; none for a job without one."""
    path = context.settings.reference
    return [dict(row) for row in context.client.select_rows(f"* from [{path}]")] if path else []


def _next(context: JobContext, head: Head) -> Ranges:
    """Return the rows of the batch after the head, as far as they are there."""
    client, settings = context.client, context.settings
    folder, number = path_of(settings, head.folder or 0), head.batch + 1
    planned: dict[str, Mapping[int, int]] = {}
    if number in spark_logs.numbers(client, f"{folder}/offsets"):
        ends = spark_logs.planned(client, folder, number).ends
        planned = dict(zip(head.queues, spark_logs.by_queue(ends, len(head.queues)), strict=True))
    found: dict[str, dict[int, tuple[int, int]]] = {}
    for path in settings.queues:
        queue = positions.queue(client, path, {})
        for partition, upper in enumerate(queue.upper):
            first = head.ends.get(path, {}).get(partition, 0)
            end = min(upper, first + settings.max_rows_per_partition)
            end = planned.get(path, {}).get(partition, end) if planned else end
            if end > first:
                found.setdefault(path, {})[partition] = first, end
    if not found:
        raise JobError(
            f"no row waits after {ledger_rows.last_name(head)}, so no batch has failed there",
            "name a batch by epoch and number; `status` lists the last ones",
            code=ErrorCode.NO_BATCH,
        )
    return found


def _lower(queue: Queue, partition: int, end: int) -> int:
    return queue.lower[partition] if partition < len(queue.lower) else end


def columns_of(client: Client, path: str) -> str:
    """Return the columns that producers fill, as a query names them."""
    names = [str(column["name"]) for column in client.get(f"{path}/@schema")]
    return ", ".join(f"[{name}]" for name in names if not name.startswith("$"))


def read_range(
    client: Client, path: str, names: str, partition: int, first: int, end: int
) -> Iterator[CapturedRow]:
    for start in range(first, end, _CHUNK):
        last = min(start + _CHUNK, end) - 1
        yield from client.select_rows(
            f"[{PARTITION}], [{NUMBER}], {names} from [{path}] where [{PARTITION}] = {partition} "
            f"and [{NUMBER}] between {start} and {last}"
        )
