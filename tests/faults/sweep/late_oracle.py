"""Where each row of a batch has to be if some rows are late, without a line of the runtime.

The ledger says which rows a batch has read, and Spark's offset log under which watermarks it ran.
The rest is plain Python: which rows were rejected, what each row could be in, what of it was closed
when the row came, and what the batch writes.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any, Protocol

from tests.faults.sweep.oracle import Row, counted, difference, is_source

Place = tuple[int, ...]
"""What a row is in: a window, from its first moment to the one after its last, or its own time.
Microseconds since 1970. A row is late for it if its last moment is not after the watermark."""
Placed = tuple[Row, Sequence[Place]]
Position = tuple[int, int]
"""Partition and row of the queue."""
LATE, REJECTED, OUTPUT = "late", "rejected", "output"
TIMES = frozenset({"date_time"})
"""The columns of the queue that hold times."""
FROM_THE_FUTURE = "from the future"
FUTURE_US = 4_102_444_800_000_000
"""2100-01-01: the rows of a play are either long past, or behind it."""
_SECOND, _MINUTE = 1_000_000, 60_000_000


class Rules(Protocol):
    """What a job makes of its rows; it keeps what is still open."""

    @property
    def columns(self) -> Sequence[str]:
        """Of the output."""
        ...

    def places(self, time: int) -> Sequence[Place]:
        """Return what a row of this time could be in."""
        ...

    def take(self, rows: Sequence[Placed], watermark: int) -> Iterator[Row]:
        """Add rows, each to its places; yield what a batch under this watermark writes."""
        ...


class Windows:
    """Bids and their sum, by auction and window."""

    columns = ("auction", "window_start", "window_end", "bids", "total")

    def __init__(self, length: int, step: int) -> None:
        self._length, self._step = length * _SECOND, step * _SECOND
        self._open = defaultdict[Place, list[int]](list)

    def places(self, time: int) -> list[Place]:
        """Return the windows of this time."""
        last = time // self._step * self._step
        starts = range(last, time - self._length, -self._step)
        return [(start, start + self._length) for start in starts]

    def take(self, rows: Sequence[Placed], watermark: int) -> Iterator[Row]:
        """Yield each window that the watermark has passed."""
        for row, places in rows:
            for place in places:
                self._open[row["auction"], *place].append(row["price"])
        for key in [key for key in self._open if key[-1] <= watermark]:
            prices = self._open.pop(key)
            values = (*key, len(prices), sum(prices))
            yield dict(zip(self.columns, values, strict=True))


class FirstOfEach:
    """Each event once; a repeat is known for ten seconds of event time."""

    columns = ("event_id", "auction", "bidder", "price", "date_time")

    def __init__(self) -> None:
        self._known: dict[str, int] = {}

    def places(self, time: int) -> list[Place]:
        """Return the row's own time."""
        return [(time,)]

    def take(self, rows: Sequence[Placed], watermark: int) -> Iterator[Row]:
        """Yield each row whose id is not known."""
        for row, _ in rows:
            if row["event_id"] not in self._known:
                self._known[row["event_id"]] = int(row["date_time"]) + 10 * _SECOND
                yield row
        self._known = {id: until for id, until in self._known.items() if until > watermark}


class Sessions:
    """Bids of a bidder without a pause of half an hour; none goes on over a fourth hour's end."""

    columns = ("bidder", "first_bid", "last_bid", "bids", "total")
    _pause, _longest = 30 * _MINUTE, 240 * _MINUTE

    def __init__(self) -> None:
        self._open = defaultdict[int, list[Place]](list)

    def places(self, time: int) -> list[Place]:
        """Return the row's own time."""
        return [(time,)]

    def take(self, rows: Sequence[Placed], watermark: int) -> Iterator[Row]:
        """Yield each session whose end the watermark has passed."""
        for row, ((time,),) in rows:
            self._open[row["bidder"]].append((time, time, 1, row["price"]))
        for bidder, parts in self._open.items():
            found = self._joined(parts)
            self._open[bidder] = [one for one in found if self._end(one) >= watermark]
            for session in found:
                if self._end(session) < watermark:
                    yield dict(zip(self.columns, (bidder, *session), strict=True))

    def _joined(self, parts: Sequence[Place]) -> list[Place]:
        found: list[Place] = []
        for first, last, bids, total in sorted(parts):
            if found and first <= self._end(found[-1]):
                begun, before, more, sum_ = found.pop()
                found.append((begun, max(before, last), more + bids, sum_ + total))
            else:
                found.append((first, last, bids, total))
        return found

    def _end(self, session: Place) -> int:
        first, last, *_ = session
        return min(last + self._pause, first // self._longest * self._longest + self._longest - 1)


JOBS: Mapping[str, Callable[[], Rules]] = {
    "tumbling": lambda: Windows(10, 10),
    "sliding": lambda: Windows(30, 10),
    "deduplicate": FirstOfEach,
    "sessions": Sessions,
}


@dataclass(frozen=True)
class Batch:
    """A batch that has happened."""

    ranges: Mapping[int, tuple[int, int]]
    """Partition -> the first row, and the one after the last."""
    late_until: int
    """The watermark of the batch before: rows behind it are late. Microseconds."""
    watermark: int
    """What is behind it is closed after the batch."""
    figures: Mapping[str, int]
    """What the ledger counts: rows read, late, rejected by reason, and written by output."""


@dataclass(frozen=True)
class Tables:
    """What is in the tables."""

    queue: Mapping[Position, Row]
    batches: Sequence[Batch]
    rejected: Sequence[Row]
    output: Sequence[Row]
    late: int
    """The late rows of all batches, by the ledger's head."""


@dataclass
class Account:
    """What became of rows: each one is used, rejected or lost."""

    read: int = 0
    used: int = 0
    """Rows that are in at least one of their windows; with `deduplicate` also repeats."""
    rejected: int = 0
    lost: int = 0
    """Late for all that they could be in."""
    partly: int = 0
    """Of those that are used: late for some windows."""
    late_batches: int = 0
    problems: list[str] = field(default_factory=list)

    def add(self, other: Account) -> None:
        """Add the figures and problems of another account."""
        for one in fields(self):
            setattr(self, one.name, getattr(self, one.name) + getattr(other, one.name))

    def __str__(self) -> str:
        kept_out = f"{self.rejected} rejected, {self.lost} late for all"
        late = f"{self.partly} late for some, late rows in {self.late_batches} batches"
        return f"{self.read} rows in = {self.used} used + {kept_out}; {late}"


def account(rules: Rules, tables: Tables, *, repeats: int = 0) -> Account:
    """Hold each batch against the tables: is each row that it has read in its one place?

    So many batches may have written their rows twice.
    """
    found, must = Account(), Counter[str]()
    kept = {_at(row): _said(row) for row in tables.rejected}
    found.problems += _problems_of_kept(tables, repeats * _largest(tables, REJECTED))
    read = Counter[Position]()
    for number, batch in enumerate(tables.batches):
        rows = {at: tables.queue[at] for at in _positions(batch) if at in tables.queue}
        read.update([*rows])
        mine = {at: kept.pop(at) for at in rows if at in kept}
        emitted = _entered(found, rules, batch, rows, mine, f"batch {number}")
        must += counted(emitted, rules.columns)
    if more := [at for at, count in read.items() if count > 1]:
        found.problems.append(f"rows were read twice: {more}")
    if tables.late != (late := found.lost + found.partly):
        found.problems.append(f"the ledger's head has {tables.late} late rows, not {late}")
    if kept:
        found.problems.append(f"kept out, and not of a batch that has happened: {kept}")
    missing, extra = difference(must, counted(tables.output, rules.columns))
    wrong = [text for text in extra if text not in must or not repeats]
    if missing or wrong:
        found.problems.append(f"output lacks {[*missing]}, and has too many {wrong}")
    if extra.total() > (most := repeats * _largest(tables, OUTPUT)):
        found.problems.append(f"output repeats {extra.total()} rows, not {most}")
    return found


def unread(tables: Tables) -> list[Position]:
    """Return which rows of the queue no batch has read."""
    read = {at for batch in tables.batches for at in _positions(batch)}
    return sorted(tables.queue.keys() - read)


def _at(row: Row) -> Position:
    return row["tablet_index"], row["row_index"]


def _largest(tables: Tables, output: str) -> int:
    return max((batch.figures[output] for batch in tables.batches), default=0)


def _problems_of_kept(tables: Tables, repeats: int) -> Iterator[str]:
    """Yield which rows of `rejected` are not those of the queue, and are there too often."""
    for row in tables.rejected:
        if not is_source(row["row"], tables.queue.get(_at(row), {}), TIMES):
            yield f"`rejected` has other values than the queue at {_at(row)}: {row['row']}"
    more = len(tables.rejected) - len({*map(_at, tables.rejected)})
    if more > repeats:
        yield f"`rejected` repeats {more} rows, not {repeats}"


def _positions(batch: Batch) -> Iterator[Position]:
    for partition, (first, end) in batch.ranges.items():
        yield from ((partition, index) for index in range(first, end))


def _entered(
    found: Account,
    rules: Rules,
    batch: Batch,
    rows: Mapping[Position, Row],
    mine: Mapping[Position, Any],
    name: str,
) -> list[Row]:
    """Enter a batch, of whose rows ``mine`` are in `rejected`; return the rows that it writes."""
    kept, used = _judged(rules, batch, rows)
    if mine != kept:
        pairs = {at: (kept.get(at), mine.get(at)) for at in {*kept, *mine}}
        wrong = {at: pair for at, pair in pairs.items() if pair[0] != pair[1]}
        found.problems.append(f"{name}: in `rejected` must be, and is: {wrong}")
    late = [one for one in mine.values() if one[0] == LATE]
    rejected, lost = len(mine) - len(late), sum(len(one[2]) == one[3] for one in late)
    if len(rows) != len(used) + rejected + lost:
        accounted = f"{len(used)} used + {rejected} rejected + {lost} late"
        found.problems.append(f"{name}: {len(rows)} rows in are not {accounted}")
    emitted = [*rules.take(used, batch.watermark)]
    figures = {
        "read": len(rows), LATE: len(late), FROM_THE_FUTURE: rejected, REJECTED: len(mine),
        OUTPUT: len(emitted),
    }  # fmt: skip
    if batch.figures != figures:
        found.problems.append(f"{name}: the ledger has {batch.figures}, and must have {figures}")
    partly = len(late) - lost
    found.add(Account(len(rows), len(used), rejected, lost, partly, int(bool(late))))
    return emitted


def _judged(
    rules: Rules, batch: Batch, rows: Mapping[Position, Row]
) -> tuple[dict[Position, Any], list[Placed]]:
    """Return what `rejected` has to say of each row in it, and the rows that are used."""
    kept, used = dict[Position, Any](), list[Placed]()
    for at, row in rows.items():
        time = int(row["date_time"])
        if time > FUTURE_US:
            kept[at] = (FROM_THE_FUTURE,)
            continue
        places = rules.places(time)
        missed = [place for place in places if place[-1] <= batch.late_until]
        if missed:
            kept[at] = (LATE, batch.late_until, sorted(missed), len(places))
        if len(missed) < len(places):
            used.append((row, [place for place in places if place not in missed]))
    return kept, used


def _said(row: Row) -> tuple[Any, ...]:
    """Return what a row of `rejected` says: the reason and, of a late row, what it has missed."""
    note = json.loads(row["row"]).get("$late")
    if note is None:
        return (row["reason"],)
    missed = sorted(tuple(map(_microseconds, place.split("/"))) for place in note["missed"])
    return (row["reason"], _microseconds(note["watermark"]), missed, note["of"])


def _microseconds(text: str) -> int:
    found = datetime.fromisoformat(text)
    return int(found.timestamp()) * _SECOND + found.microsecond
