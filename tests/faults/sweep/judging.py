"""What counts as held: what the tables, the drivers and the ledger say after a case."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from minicluster.client import Entry
from tests.faults import protocol
from tests.faults.sweep import cases, history, oracle, ranges, repeats
from tests.faults.sweep.cases import Case
from tests.faults.sweep.lab import PARTITIONS
from tests.faults.sweep.playing import Play
from tests.faults.sweep.points import COMMITS, Point
from tests.faults.sweep.recording import BATCH_ROWS, Recording
from tests.support.examples import MERGE, TOTALS
from tests.support.verdict import EXACT, FAILED, HELD, MISSED, STALLED, Verdict
from ytstream.ledger import positions

OF_ROWS = ("output", "rejected")
"""Objects of the requests that write rows."""
_APPLIED = (cases.KILLED_AFTER, cases.LOST_REPLY)
"""Faults after which the request is applied."""
_MOVES = ("AdvanceConsumer", "advance_queue_consumer")


@dataclass
class Result:
    """What came of a case."""

    verdict: str
    tables: Verdict = EXACT
    said: str = ""
    """What a person has to know: why it was missed, where it stalls."""
    starts: int = 0
    """Drivers that were started after the first fault."""
    failures: int = 0
    """Failures that the drivers have counted: `most_failures` of them end a job."""
    rewritten: int = 0
    """Rows that were written again under the key of an idempotent output, which hides them."""
    recovered: float = 0.0
    """Seconds from the fault until every row was in a batch."""
    resumed: float = 0.0
    """Seconds from the end of the fault until the next batch was committed."""
    sent: Sequence[oracle.Row] = ()
    """The history: rows that went in, requests, rows that were read."""
    journal: Sequence[Entry] = ()
    found: Mapping[str, Counter[str]] = field(default_factory=dict)
    must: Mapping[str, Counter[str]] = field(default_factory=dict)
    """The rows that each output must have."""
    ledger: ranges.Ledger | None = None
    """Of a job: its batches, which must have read each row once."""
    arrived: int = 0
    """Rows that arrived while drivers were waited for."""


def unplayed(case: Case) -> str:
    """Return the verdict of a case that went wrong in another way than its rows.

    It counts against a job. Nothing counts against the control but what its rows show.
    """
    return MISSED if case.variant.is_listing else STALLED


def may_cut_batch(case: Case, point: Point, points: Iterable[Point]) -> bool:
    """Return whether the fault may cut off a batch some of whose rows are written.

    A killed driver has left what the recording had at that request. Of one that lives, other tasks
    may write rows before the failure of one ends the batch.
    """
    own = [other for other in points if other.place == point.place]
    commits = [other.n for other in own if other.method in COMMITS and other.object == "ledger"]
    if point.place in cases.STEPS or not commits:
        return False
    last = commits[-1]
    if case.fault in (*cases.KILLS, cases.OVERTAKEN) and case.driver == cases.THREAD:
        rows = (other.n for other in own if other.method in COMMITS and other.object in OF_ROWS)
        left = point.n - (case.fault == cases.KILLED_BEFORE)
        return case.fault == cases.OVERTAKEN or min(rows, default=last) <= left < last
    return point.n < last or (point.n == last and case.fault not in _APPLIED)


def judged(play: Play) -> Result:
    """Compare the tables with what must come of the rows that were sent."""
    recording, variant = play.recording, play.recording.variant
    columns, times = history.columns_of(variant), history.times_of(variant)
    found = oracle.read(recording.context.client, variant.root, columns, times)
    must = history.expected_of(variant, play.sent)
    tables = oracle.compared(must, found)
    ledger = None if variant.is_listing else _ledger(play)
    problems = ledger.problems(len(play.sent)) if ledger else []
    holds = tables.holds(may_repeat=variant.may_repeat) and not problems
    written = oracle.written_rows(recording.control.journal(), recording.context.settings.output)
    is_keyed = variant.guarantee == "idempotent"
    rewritten = max(0, (play.before or 0) + written - tables.rows["output"]) if is_keyed else 0
    said = "" if holds else "; ".join([*tables.examples, *problems[:2]])
    verdict = HELD if holds else FAILED
    return Result(verdict, tables, said, rewritten=rewritten, found=found, must=must, ledger=ledger)


def _ledger(play: Play) -> ranges.Ledger:
    client, settings = play.recording.context.client, play.recording.context.settings
    return ranges.of_ledger(client, settings.ledger, settings.queues, PARTITIONS)


def explained(result: Result, play: Play) -> Result:
    """Return the result; it does not hold where the fault explains less than what happened."""
    if result.verdict != HELD or play.recording.variant.is_listing:
        return result
    may = protocol.explained(play.case.kind)
    repeated = result.tables.repeated
    cut = may.batches * play.may_cut_batch
    most = cut * _largest_batch(play.recording) if repeated or result.rewritten else 0
    # Production would start another driver after one that has ended by itself at the very end.
    drivers = len(play.drivers) + (play.drivers[-1].error is not None)
    happened = (
        ("drivers", drivers, may.drivers),
        ("failures", sum(driver.failures for driver in play.drivers), may.failures),
        ("rows repeated", repeated, most),
        ("rows written again", result.rewritten, most),
        ("times one row is there", _most_often(result), 1 + cut),
        ("batches with repeated rows", len(_repeated_batches(play, result)), cut),
    )
    more = [f"{count} {what}, not {limit}" for what, count, limit in happened if count > limit]
    return replace(result, verdict=FAILED, said="; ".join(more)) if more else result


def _repeated_batches(play: Play, result: Result) -> set[int]:
    """Return the ledger's batches some of whose rows are in an output too often."""
    context = play.recording.context
    if not result.tables.repeated or result.ledger is None:
        return set()
    queues = context.settings.queues
    return repeats.batches(
        {name: found - result.must[name] for name, found in result.found.items()},
        history.columns_of(play.recording.variant),
        {path: context.client.select_rows(f"* from [{path}]") for path in queues},
        result.ledger.batches,
    )


def _most_often(result: Result) -> int:
    """Return how often a row is there that must be there once, at most."""
    return max(
        (
            math.ceil(count / result.must[output][text])
            for output, rows in result.found.items()
            for text, count in rows.items()
        ),
        default=1,
    )


def _largest_batch(recording: Recording) -> int:
    """Return how many rows a batch can have written.

    Without state, it writes no more rows than it has read. With state, the ledger says how many the
    largest batch has written.
    """
    if not recording.variant.is_stateful:
        return BATCH_ROWS * recording.variant.queues
    query = f'rows_written from [{recording.context.settings.ledger}] where kind = "batch"'
    rows = recording.context.client.select_rows(query)
    return max((sum(row["rows_written"].values()) for row in rows), default=0)


def stopped(verdict: str, result: Result, play: Play, said: str) -> Result:
    """Return the result of a case whose rows stay in the queue: those are not lost."""
    context, tables = play.recording.context, result.tables
    queues = positions.read(context.client, context.settings).queues
    left = sum(
        upper - queue.consumed.get(partition, 0)
        for queue in queues
        for partition, upper in enumerate(queue.upper)
    )
    # An open window is of rows that were read: nothing of it is lost.
    waiting = tables.lost if play.recording.variant.is_stateful else min(left, tables.lost)
    if play.recording.variant.is_listing and not tables.lost:
        return result  # it has stalled only if rows wait
    tables = replace(tables, lost=tables.lost - waiting, waiting=waiting)
    # A total is without the rows that wait, and the newest row may be one of them.
    if play.recording.variant.processing in ("aggregate", TOTALS, MERGE):
        tables = replace(tables, repeated=0, wrong=0)
    return replace(result, verdict=verdict, tables=tables, said=said)


def missed(result: Result, play: Play) -> Result:
    """Return the result; a fault that has not happened at its point shows nothing but failures.

    A failure is one all the same, but not of the control, which has a fault at a request that
    nobody chose.
    """
    if not play.missed or (result.verdict != HELD and not play.recording.variant.is_listing):
        return result
    return replace(result, verdict=MISSED, said=play.missed)


def resumed(play: Play) -> float:
    """Return the seconds from the end of the fault to the next commit that moves the consumer."""
    entries, over = play.recording.control.journal(), play.over
    moved = {entry.args.get("transaction") for entry in entries if entry.method in _MOVES}
    commits = (
        entry.time - over
        for entry in entries
        if over is not None
        and entry.time > over
        and entry.method == "CommitTransaction"
        and entry.error is None
        and entry.args.get("transaction") in moved
    )
    return min(commits, default=0.0)
