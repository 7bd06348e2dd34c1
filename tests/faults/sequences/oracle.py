"""What must come of a sequence, told without the runtime: from what was sent and what was ordered.

The rows of a partition are read in stretches. A stretch begins where the first start or an operator
has put the job, and ends where the ledger stood at the next such order; stretches follow each other
without a gap, unless an order says so. Each stretch has to be in the outputs, in the ledger's batch
rows and in the state exactly once, or at least once where no more is promised. Rows that were
trimmed before they were read may be missing.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.faults.sequences.driver import BAD, BAD_REST, KEYS
from tests.faults.sequences.inside import InsideClient
from tests.faults.sweep.oracle import difference
from ytstream.errors.error_codes import ErrorCode

if TYPE_CHECKING:
    from ytstream.job import Job, JobContext
    from ytstream.settings.job_settings import Settings


@dataclass
class Stretch:
    """Rows of one partition that follow each other, read under one guarantee."""

    begin: int
    guarantee: str
    after: int
    """The ledger's number of batches before it, and with it."""
    end: int = 0
    upto: int = 0
    is_counted: bool = True
    """Whether the ledger's batch rows of it are all there."""


@dataclass
class Part:
    """One partition: its rows, and what was ordered."""

    ids: list[int] = field(default_factory=list)
    lower: int = 0
    lowers: set[int] = field(default_factory=lambda: {0})
    """Where it may begin by start_from: every first row, and every end, that it had."""
    uppers: set[int] = field(default_factory=lambda: {0})
    excused: set[int] = field(default_factory=set)
    """Trimmed before they were read."""
    stretches: list[Stretch] = field(default_factory=list)
    at: int = 0
    """Where the ledger was when it last named the queue."""
    state_begin: int = 0
    """The row that the state begins with."""
    is_given_up: bool = False
    """Whether an operator has agreed that a later queue's rows take the place of these."""


@dataclass
class Oracle:
    """Follows a job from outside; ``look`` after each operation."""

    client: InsideClient
    is_static: bool
    parts: dict[tuple[str, int], Part] = field(default_factory=dict)
    is_rewound: tuple[str, dict[tuple[str, int], int]] | None = None
    owner: str = ""
    head: Mapping[str, Any] = field(default_factory=dict)
    """The head row as it is in the table."""
    former: list[tuple[tuple[str, int], Part]] = field(default_factory=list)
    """The partitions of queues that were dropped, with their places."""
    recreated: set[str] = field(default_factory=set)
    """Queues that were recreated, and that no `rewind` has taken on since."""
    is_lost: bool = False
    """Whether the ledger was removed, and no `rewind` has made a new one."""
    is_forgotten: bool = False
    """Whether batch rows of the ledger were removed: tables may stay aside."""
    _totals: dict[int, int] = field(default_factory=dict)
    """Of an aggregate: its totals, and the rows that it had read, when its state began."""
    _read: Counter[int] = field(default_factory=Counter)

    @property
    def has_begun(self) -> bool:
        """Whether a start was ever committed."""
        return bool(self.head) and self.head["state"]["folder"] is not None

    # -- what is done ----------------------------------------------------------------------------

    def part(self, queue: str, partition: int) -> Part:
        """Return a partition, new ones too."""
        return self.parts.setdefault((queue, partition), Part())

    def sent(self, queue: str, rows: Sequence[tuple[int, int]]) -> None:
        """Note rows that were appended, as (partition, id)."""
        for partition, id in rows:
            self.part(queue, partition).ids.append(id)
        for partition in {partition for partition, _ in rows}:
            part = self.part(queue, partition)
            part.uppers.add(len(part.ids))

    def partitioned(self, queue: str, partition: int) -> None:
        """Note a new partition: a queue that the job knows is read from its row 0."""
        self.part(queue, partition)

    def trimmed(self, queue: str, partition: int, row: int) -> None:
        """Note that rows were trimmed; those that were not read yet may be missing."""
        part = self.part(queue, partition)
        part.lower = row
        part.lowers.add(row)
        if part.stretches:
            part.excused |= set(range(part.at, row))

    def dropped(self, queue: str) -> None:
        """Note that a queue was recreated under its path: its rows are others."""
        if self.has_begun and queue in self._ends():
            self.recreated.add(queue)
        for place in [place for place in self.parts if place[0] == queue]:
            part = self.parts.pop(place)
            if part.stretches:
                # A batch that has read further rows already may still commit.
                part.excused |= set(range(part.at, len(part.ids)))
                part.at = len(part.ids)
                part.stretches[-1].end, part.stretches[-1].upto = part.at, sys.maxsize
                self.former.append((place, part))
                self.recreated.add(queue)

    def forgotten(self, *, ledger: bool) -> None:
        """Note that batch rows of the ledger were removed, or the whole table."""
        if ledger:
            self.is_lost |= self.has_begun
            self.head, self.owner = {}, ""
        self.is_forgotten = True
        for part in self._every():
            for stretch in part.stretches:
                stretch.is_counted = False

    def _every(self) -> list[Part]:
        return [*self.parts.values(), *(part for _, part in self.former)]

    def rewinds(self, to: str, rows: Sequence[str]) -> None:
        """Note an order to rewind."""
        named = {}
        for text in rows:
            place, _, row = text.rpartition("=")
            queue, _, partition = place.rpartition(":")
            named[queue, int(partition)] = int(row)
        self.is_rewound = (to, named)

    # -- what is seen ----------------------------------------------------------------------------

    def look(self, settings: Settings, guarantee: str) -> str:
        """Read the head; return what is wrong with it, or nothing."""
        rows = [*self.client.select_rows(f'* from [{settings.ledger}] where kind = "head"')]
        before, self.head = self.head, rows[0] if rows else {}
        if not self.head:
            if self.is_lost:
                return ""
            return "the ledger's head is gone" if before else ""
        self.owner = self.head["state"]["owner"]
        if not self.has_begun or self.is_rewound or self.is_lost:
            return ""
        ends = self._ends()
        number, marked = int(self.head["state"]["number"]), self.head["state"]["marker"]
        for (queue, partition), part in sorted(self.parts.items()):
            if queue not in ends or queue in self.recreated:
                continue
            at = ends[queue].get(partition, 0)
            if not part.stretches:
                problem = self._first(settings, queue, partition, part, at)
                if problem:
                    return problem
                part.stretches.append(Stretch(at, marked["guarantee"], number))
                part.at = part.state_begin = at
                part.excused |= set(range(at, part.lower))
            elif at < part.at:
                return f"the head went back on {queue}:{partition}, from row {part.at} to row {at}"
            elif at > len(part.ids):
                return f"the head is beyond the end of {queue}:{partition}"
            part.at = at
            if part.stretches[-1].guarantee != marked["guarantee"]:
                self._close(part, marked["guarantee"])
        return ""

    def _first(self, settings: Settings, queue: str, partition: int, part: Part, at: int) -> str:
        """Return why a partition may not begin with that row, or nothing."""
        is_known = any(other.stretches for (q, _), other in self.parts.items() if q == queue)
        wanted = part.lowers if settings.start_from == "earliest" else part.uppers
        if at in wanted or (is_known and at == 0):
            return ""
        return f"{queue}:{partition} begins with row {at}, not with one of {sorted(wanted)}"

    def _ends(self) -> dict[str, dict[int, int]]:
        return {
            str(queue["path"]): {int(p): int(row) for p, row in queue["ends"].items()}
            for queue in self.head["queues"]
        }

    def _named(self) -> set[str]:
        """Return the queues that the job reads by its head."""
        queues = self.head["queues"]
        return {str(queue["path"]) for queue in queues if not queue.get("removed")}

    def _close(self, part: Part, guarantee: str, begin: int | None = None) -> None:
        # Without a head its rows are not counted.
        number, last = int(self.head["state"]["number"]) if self.head else 0, part.stretches[-1]
        last.end, last.upto = part.at, number
        part.at = part.at if begin is None else begin
        part.stretches.append(Stretch(part.at, guarantee, number))

    def rewound(self, context: JobContext) -> str:
        """Begin new stretches where `rewind` was told to; return what is wrong, or nothing."""
        assert self.is_rewound is not None
        (to, named), self.is_rewound = self.is_rewound, None
        ends = self._ends()
        self.is_lost = False
        self.recreated -= set(context.settings.queues)
        if context.job.processing == "aggregate":
            self._totals, self._read = self._totals_of(context), self._ids_of(context, "read")
        for _, part in self.former:
            part.state_begin = part.at
            for stretch in part.stretches:
                stretch.upto = min(stretch.upto, int(self.head["state"]["number"]))
        for (queue, partition), part in sorted(self.parts.items()):
            part.state_begin = part.at
            if queue not in context.settings.queues:
                continue
            wanted = named.get((queue, partition), part.at)
            if to != "rows":
                wanted = part.lower if to == "earliest" else len(part.ids)
            at = ends[queue].get(partition, 0)
            if at != wanted:
                return f"rewound {queue}:{partition} to row {at} instead of {wanted}"
            if part.stretches:
                self._close(part, context.guarantee.name, wanted)
            else:
                number = int(self.head["state"]["number"])
                part.stretches.append(Stretch(wanted, context.guarantee.name, number))
            part.at = part.state_begin = wanted
            # What was trimmed unread is behind the job now, or named as lost by the next start.
            part.excused |= set(range(wanted, part.lower))
        return ""

    def refusals(self, context: JobContext, *, is_command: bool = False) -> list[ErrorCode]:
        """Return the codes with which a start may fail now; it has to fail, if there is one."""
        if self.is_lost:
            return [ErrorCode.HEAD_LOST]
        if not self.has_begun:
            return []
        marker, settings = self.head["state"]["marker"], context.settings
        known, named = self._named(), set(settings.queues)
        found = []
        is_other = marker["guarantee"] != context.guarantee.name
        if not is_command and (is_other or marker["outputs"] != dict(settings.outputs)):
            found.append(ErrorCode.JOB_CHANGED)
        if known - named and not is_command:
            found.append(ErrorCode.QUEUE_REMOVED)
        is_behind = any(
            part.at < part.lower
            for (queue, _), part in self.parts.items()
            if queue in named and self._is_known(queue)
        )
        if is_behind and settings.on_data_loss == "fail":
            found.insert(0, ErrorCode.ROWS_TRIMMED)
        if self.recreated & named:
            found.insert(0, ErrorCode.QUEUE_RECREATED)
        return found

    def perhaps(self) -> list[ErrorCode]:
        """Return the further codes with which a start or a command may fail."""
        may = {
            ErrorCode.PARTITIONS_CHANGED: self.recreated,
            ErrorCode.OUTPUT_FILLED: self.former,
            ErrorCode.POSITION_UNKNOWN: self.is_lost,
        }
        return [code for code, does in may.items() if does]

    def give_up(self) -> None:
        """Note that rows of a recreated queue may take the place of its former ones."""
        for _, part in self.former:
            part.is_given_up = True

    def _is_known(self, queue: str) -> bool:
        return any(part.stretches for (q, _), part in self.parts.items() if q == queue)

    # -- the comparison --------------------------------------------------------------------------

    def compare(self, context: JobContext) -> None:
        """Compare all that is on the cluster with what must be there. Raises AssertionError."""
        for part in self.parts.values():
            if part.stretches:
                self._close(part, context.guarantee.name)
                part.stretches.pop()
        problems = [
            *self._unread(context),
            *self._in_ledger(context),
            *self._in_outputs(context),
            *self._in_state(context),
            *self._in_totals(context),
        ]
        assert not problems, "\n".join(problems)

    def _unread(self, context: JobContext) -> Iterator[str]:
        for (queue, partition), part in sorted(self.parts.items()):
            if queue in context.settings.queues and part.at != len(part.ids):
                yield f"{queue}:{partition} was read up to row {part.at} of {len(part.ids)}"

    def _in_ledger(self, context: JobContext) -> Iterator[str]:
        """Yield what the ledger's batch rows leave out or have twice, and skips that it lacks."""
        path, skips = context.settings.ledger, self._skips(context)
        rows = sorted(
            self.client.select_rows(
                f'number, queues, rows_read, rows_written from [{path}] where kind = "batch"'
            ),
            key=lambda row: int(row["number"]),
        )
        for row in rows:
            if (wrote := row["rows_written"]["output"]) != row["rows_read"]:
                yield f"ledger: batch row {row['number']}: {row['rows_read']} read, {wrote} written"
        for (queue, partition), part in [*sorted(self.parts.items()), *self.former]:
            for stretch in [one for one in part.stretches if one.is_counted]:
                at = stretch.begin
                spans = [
                    found["rows"][str(partition)]
                    for row in rows
                    if stretch.after < int(row["number"]) <= stretch.upto
                    for found in row["queues"]
                    if found["path"] == queue and str(partition) in found["rows"]
                ]
                for first, end in [*spans, (stretch.end, stretch.end)]:
                    if first < at:
                        yield f"ledger: {queue}:{partition}, rows {first} to {at - 1} repeated"
                    lost = [row for row in range(at, first) if row not in part.excused]
                    if lost:
                        yield f"ledger: {queue}:{partition}, rows {lost} lost"
                    is_there = self.parts.get((queue, partition)) is part  # not recreated since
                    if is_there and first > at and at not in skips(queue, partition, first):
                        yield f"ledger: {queue}:{partition}, no row of a skip {at} to {first}"
                    at = end

    def _skips(self, context: JobContext) -> Callable[[str, int, int], set[int]]:
        """Return a function: queue, partition and row -> the rows that skips lead from to it."""
        query = f'queues from [{context.settings.ledger}] where kind = "skip"'
        moves = [
            (str(queue["path"]), int(partition), int(first), int(after))
            for row in self.client.select_rows(query)
            for queue in row["queues"]
            for partition, (first, after) in queue["moved"].items()
        ]

        def leading(queue: str, partition: int, row: int) -> set[int]:
            found = {row}
            for path, p, first, after in sorted(moves, key=lambda move: -move[3]):
                if (path, p) == (queue, partition) and after in found:
                    found.add(first)
            return found

        return leading

    def _in_outputs(self, context: JobContext) -> Iterator[str]:
        job, settings = context.job, context.settings
        must: dict[str, Counter[int]] = {}
        may: dict[str, Counter[int]] = {}
        keyed: dict[tuple[tuple[str, int, int], int], bool] = {}
        for (queue, partition), part in [*self.former, *self.parts.items()]:
            for stretch in part.stretches:
                for index in range(stretch.begin, stretch.end):
                    id, is_excused = part.ids[index], index in part.excused
                    is_bad = _is_bad(job, id)
                    place = (queue, partition, index)
                    if is_bad or stretch.guarantee == "idempotent":
                        is_free = is_excused or part.is_given_up
                        keyed[place, id] = keyed.get((place, id), True) and is_free
                    if is_bad:
                        continue
                    counts = may if is_excused else must
                    counts.setdefault(stretch.guarantee, Counter())[id] += 1
        yield from self._ordered(context, must, may)
        is_keyed = not self.is_static
        for name, is_bad in (("rejected", True), ("output", False)):
            if name == "rejected" and not job.reject:
                continue
            paths = self._paths(settings, "rejected" if is_bad else "output-idempotent")
            if paths and (is_bad or is_keyed):
                of_table = {
                    (place, id): is_free
                    for (place, id), is_free in keyed.items()
                    if _is_bad(job, id) == is_bad
                }
                yield from self._positions(paths, of_table, is_bad)
                yield from self._foreign(paths, job, is_bad)

    def _positions(
        self,
        paths: Sequence[str],
        keyed: Mapping[tuple[tuple[str, int, int], int], bool],
        is_bad: bool,
    ) -> Iterator[str]:
        """Yield what is wrong in a table whose key is the row's position."""
        found = self._by_position(paths, is_bad)
        for (place, id), is_excused in sorted(keyed.items()):
            if not is_excused and id not in found.get(place, ()):
                yield f"{paths[0]}: row {id} of {place} lost, there is {found.get(place)}"
        for place, id in sorted((place, id) for place, ids in found.items() for id in ids):
            if not any(
                index < len(part.ids) and part.ids[index] == id
                for (q, p), part in [*self.parts.items(), *self.former]
                for index in [place[2]]
                if (q, p) == place[:2]
            ):
                yield f"{paths[0]}: {place} is {id}, which is no row of that place"

    def _foreign(self, paths: Sequence[str], job: Job, is_bad: bool) -> Iterator[str]:
        """Yield the rows of a table that belong into the other one."""
        for place, ids in sorted(self._by_position(paths, is_bad).items()):
            if wrong := [id for id in ids if _is_bad(job, id) != is_bad]:
                yield f"{paths[0]}: {place} has rows {wrong} of the other table"

    def _by_position(
        self, paths: Sequence[str], is_bad: bool
    ) -> dict[tuple[str, int, int], set[int]]:
        """Return the ids at each position, in all tables that an output ever was."""
        every = [*self.parts, *(place for place, _ in self.former)]
        first = min((queue for queue, _ in every), default="")
        found: dict[tuple[str, int, int], set[int]] = {}
        for path in paths:
            for row in self.client.select_rows(f"* from [{path}]"):
                queue = str(row.get("queue_id", first))
                place = queue, int(row["tablet_index"]), int(row["row_index"])
                found.setdefault(place, set()).add(int(row["row" if is_bad else "id"]))
        return found

    def _ordered(
        self,
        context: JobContext,
        must: Mapping[str, Counter[int]],
        may: Mapping[str, Counter[int]],
    ) -> Iterator[str]:
        """Yield what is missing, or too much, in outputs without a key."""
        job, settings = context.job, context.settings
        name = "read" if job.processing == "aggregate" else "output"
        if self.is_static:
            every = sum(must.values(), Counter[int]())
            perhaps = sum(may.values(), Counter[int]())
            found = self._ids_below(settings.outputs["output"])
            if self.is_forgotten:  # what the ledger cannot judge stays aside
                perhaps += every
                aside = self._ids_below(f"{settings.staging}/output")
                every = Counter({id: count for id, count in every.items() if id not in aside})
            yield from _differences(f"static {name}", found, every, perhaps, exactly=True)
            return
        for guarantee in ("transactional", "at_least_once"):
            if name != "output" and guarantee != "transactional":
                continue
            paths = self._paths(settings, name if name != "output" else f"output-{guarantee}")
            if paths:
                found = sum((self._ids_in(path) for path in paths), Counter[int]())
                yield from _differences(
                    paths[0],
                    found,
                    must.get(guarantee, Counter()),
                    may.get(guarantee, Counter()),
                    exactly=guarantee == "transactional",
                )

    def _ids_below(self, folder: str) -> Counter[int]:
        """Count the ids in all tables of a folder."""
        names = self.client.list(folder) if self.client.exists(folder) else []
        tables = (self.client.read_table(f"{folder}/{name}") for name in names)
        return Counter(int(row["id"]) for table in tables for row in table)

    def _paths(self, settings: Settings, prefix: str) -> list[str]:
        """Return the tables that an output ever was."""
        root = settings.ledger.rpartition("/")[0]
        names = sorted(self.client.list(root))
        return [f"{root}/{n}" for n in names if n == prefix or n.startswith(f"{prefix}-")]

    def _ids_of(self, context: JobContext, name: str) -> Counter[int]:
        return self._ids_in(context.settings.outputs[name])

    def _ids_in(self, path: str) -> Counter[int]:
        return Counter(int(row["id"]) for row in self.client.select_rows(f"id from [{path}]"))

    def _totals_of(self, context: JobContext) -> dict[int, int]:
        path = context.settings.outputs["output"]
        return {
            int(row["k"]): int(row["total"]) for row in self.client.select_rows(f"* from [{path}]")
        }

    def _in_totals(self, context: JobContext) -> Iterator[str]:
        """Yield the totals that differ from the sums of the rows that were read."""
        if context.job.processing != "aggregate":
            return
        read = self._ids_of(context, "read") - self._read
        wanted = dict(self._totals)
        for k in range(KEYS):
            if of_key := [id * count for id, count in read.items() if id % KEYS == k]:
                wanted[k] = sum(of_key)
        found = self._totals_of(context)
        if found != wanted:
            yield f"totals are {found} instead of {wanted}"

    def _in_state(self, context: JobContext) -> Iterator[str]:
        """Yield what the state has not counted, or more than once."""
        if not context.job.kind.is_stateful:
            return
        batch, folder = int(self.head["batch"]), self.head["state"]["folder"]
        must, may = Counter[int](), Counter[int]()
        for part in self._every():
            for index in range(part.state_begin, part.at if part.stretches else 0):
                (may if index in part.excused else must)[part.ids[index]] += 1
        found = Counter[int]()
        if batch >= 0:
            path = f"{context.settings.checkpoint}/{folder}/state/0/0/{batch + 1}.delta"
            found = Counter(json.loads(self.client.read_file(path).read()))
        yield from _differences("state", found, must, may, exactly=True)


def _is_bad(job: Job, id: int) -> bool:
    """Return whether the job rejects the row."""
    return bool(job.reject) and id % BAD == BAD_REST


def _differences(
    where: str, found: Counter[int], must: Counter[int], may: Counter[int], *, exactly: bool
) -> Iterator[str]:
    lost, more = difference(must, found, may)
    if lost:
        yield f"{where}: rows {sorted(lost.elements())} lost"
    if exactly and more:
        yield f"{where}: rows {sorted(more.elements())} repeated"
