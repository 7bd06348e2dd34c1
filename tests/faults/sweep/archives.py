"""Jobs with an archive, killed at every request: of a start, of a batch with pieces, of sealing.

One run is recorded: three batches and more in each of three periods, some of two periods, late rows
in each period, rows of no period. The cluster keeps its state after each request that may change
it: it is what a driver leaves that is killed there, and before the next request. A new driver goes
on from each state; then every row is counted.

When a period is complete is up to the run, as if rows were written at those times: a loaded state
does not turn the cluster's clock back.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests.faults.sweep import archive_oracle, oracle
from tests.faults.sweep.archive_oracle import HOUR
from tests.faults.sweep.driver import Driver, EndedError, end_queries, until
from tests.faults.sweep.lab import Lab
from tests.faults.sweep.points import WRITES
from tests.faults.sweep.points import named as objects
from tests.faults.sweep.recording import Recording
from tests.faults.variants import Variant
from tests.support.static_outputs import static
from ytstream import Hourly, days, minutes
from ytstream.instance.lock import alone
from ytstream.job import JobContext
from ytstream.ledger import archive_rows
from ytstream.outputs import archives
from ytstream.schema.periods import REJECT, begin_of, named
from ytstream.sealing import archive_tables, completeness
from ytstream.sealing.archive_tables import SEALED
from ytstream.settings.job_settings import OWN, SPYT

VARIANTS = (
    *(
        Variant(guarantee, "map", connector=connector)
        for guarantee in ("transactional", "idempotent", "at_least_once")
        for connector in (OWN, SPYT)
    ),
    *(Variant(guarantee, "map", 2) for guarantee in ("transactional", "at_least_once")),
)
"""Those with two queues reject late rows, the others have tables of them."""
_OLD, _AHEAD = -200, 40
"""Hours of rows that belong to no period."""
_EXPIRED_SECONDS = 61
"""After so long the lock of a killed driver is free, and what its transactions have locked."""
_LOOK_SECONDS = 0.1
_SHOWN_EACH = 25


@dataclass
class _Alone(Driver):
    """A driver with the job's lock: the tables of an archive depend on it."""

    def run(self) -> None:
        with alone(self.context):
            super().run()


@dataclass
class ArchiveRun:
    """A job with an archive in a lab; its run, and what drivers make of the states of that run."""

    recording: Recording
    base: int
    """The beginning of the hour in which the run begins; hours count from there."""
    complete: float = 0.0
    """Until when all rows of the archive are there."""
    sent: int = 0
    driver: Driver = field(init=False)
    states: Mapping[int, float] = field(default_factory=dict)
    """Number of a request of the recording whose state was kept -> ``complete`` at that time."""
    names: Mapping[int, str] = field(default_factory=dict)
    """What these requests are about."""
    closed: float = 0.0
    """Until when all tables are shown."""
    bounds: dict[str, tuple[float, float]] = field(default_factory=dict)
    """``closed`` and ``complete`` when a row was sent, by its event."""
    _said: list[tuple[int, float]] = field(default_factory=list)
    """After which request ``complete`` has changed, and to what."""

    # -- a run

    def record(self) -> None:
        """Play the run; keep the state after each request."""
        control = self.recording.control
        control.journal.clear()
        control.record(str(self.recording.folder), sorted(WRITES))
        self._start()
        self._batch(-5, -5)
        self._batch(-5)
        self._batch(-5, -5, -4, _OLD)
        self._close(-4)
        self._batch(-5, -4, -4, _AHEAD)
        self._say(-3)  # it is closed while the next batch is under way, or before
        self._batch(-4, -3)
        self._close(-3)
        self._batch(-4, -3, -3)
        self._batch(-3, -5)
        self._close(-2)
        self._batch(-3)
        self._close(-1)
        self.driver.end()
        control.record(None)
        entries = control.journal()
        about = objects(entries, self.recording.variant.root)
        self.names = {e.n: f"{e.method} {name}" for e, name in zip(entries, about, strict=True)}
        kept = sorted(int(path.stem) for path in self.recording.folder.glob("*.state"))
        self.states = {n: max((c for at, c in self._said if at < n), default=0.0) for n in kept}

    def _start(self) -> None:
        self.driver = _Alone(self.recording.context, self.recording.lab.spark)
        self.driver.start()

    def _batch(self, *hours: int) -> None:
        """Send rows of these hours, and wait until they are in a batch."""
        queues = self.recording.context.settings.queues
        rows = self.recording.sample.make(len(hours), self.sent + 1, None)
        for row, hour in zip(rows, hours, strict=True):
            self.sent += 1
            row["event_id"] = str(self.sent)
            self.bounds[str(self.sent)] = self.closed, self.complete
            row["date_time"] = (self._at(hour) + HOUR // 2) * 1_000_000
        for number, queue in enumerate(queues):
            if part := rows[number :: len(queues)]:
                self.recording.put(queue, part)
        self._wait(self.recording.drained(), "a batch")

    def _close(self, hour: int) -> None:
        """Let all periods before that hour be complete, and wait for their tables."""
        self._say(hour)
        path = f"{self._folder}/@{completeness.COMPLETE_UNTIL}"
        client, wanted = self.recording.context.client, named(self._at(hour))
        self._wait(lambda: client.exists(path) and client.get(path) == wanted, f"tables by {hour}")
        self.closed = self.complete

    def _say(self, hour: int) -> None:
        self.complete = self._at(hour)
        self._said.append((self.recording.control.journal()[-1].n, self.complete))

    def _wait(self, is_over: Callable[[], Any], what: str) -> None:
        until(lambda: self.driver.is_over or is_over(), what, pause=_LOOK_SECONDS)
        if self.driver.is_over:
            raise EndedError(str(self.driver.error))

    def _at(self, hour: int) -> int:
        return self.base + hour * HOUR

    # -- a driver that is killed

    def play(self, every: int = 1) -> list[str]:
        """Let a new driver go on from each state of the run; return what is wrong, by state."""
        states, wrong, begun = [*self.states][::every], list[str](), time.monotonic()
        for number, n in enumerate(states, 1):
            wrong += [f"killed after {self.names[n]} ({n}): {line}" for line in self._killed(n)]
            if number % _SHOWN_EACH == 0 or number == len(states):
                each = (time.monotonic() - begun) / number
                said = f"{number} of {len(states)} kills, {each:.1f} s each, {len(wrong)} wrong"
                print(f"{self.recording.variant.name}: {said}", *wrong[-3:], sep="\n  ", flush=True)
        return wrong

    def _killed(self, n: int) -> list[str]:
        recording = self.recording
        recording.load(str(recording.folder / f"{n}.state"))
        recording.control.clock.advance(_EXPIRED_SECONDS)
        recording.control.journal.clear()
        self.complete, self.closed = self.states[n], self._shown_until()
        before = self._shown()
        try:
            self._start()
            self._wait(recording.drained(), "the rows that waited")
            self._batch(-5, -4, -3, -2)  # late ones, but of the last hour
            self._close(0)
            self.driver.end()
        except Exception as error:  # whatever it is, the next state is played
            return [*before.halves(), f"{type(error).__name__}: {error}"]
        finally:
            self.driver.ask_to_end()
            end_queries(recording.lab.spark)
        return [*before.halves(), *self._problems(before)]

    # -- what is there

    @property
    def _folder(self) -> str:
        return self.recording.context.settings.output

    def _shown(self) -> Shown:
        client: Any = self.recording.context.client
        wanted = ["id", "row_count", SEALED]
        found = client.list(self._folder, attributes=wanted)
        return Shown({str(node): {**node.attributes} for node in found})

    def _shown_until(self) -> float:
        path = f"{self._folder}/@{completeness.COMPLETE_UNTIL}"
        client = self.recording.context.client
        begin = begin_of(str(client.get(path))) if client.exists(path) else None
        return begin[0] if begin else 0.0

    def _problems(self, before: Shown) -> Iterator[str]:
        """Yield what is wrong once all periods are closed."""
        client: Any = self.recording.context.client
        settings, after = self.recording.context.settings, self._shown()
        archive = self.recording.context.job.archives["output"]
        yield from after.halves()
        changed = [n for n, table in before.tables.items() if after.tables.get(n) != table]
        if changed:
            yield f"tables that were shown have changed: {changed}"
        rows = {name: [*client.read_table(f"{self._folder}/{name}")] for name in after.tables}
        yield from archive_oracle.problems(self._rules(), self._sent(), self._found(rows))
        for name, table in rows.items():
            begin = begin_of(name)
            hours = {int(row["date_time"]) // 1_000_000 // HOUR * HOUR for row in table}
            if begin is None or hours != {begin[0]}:
                yield f"{name} has rows of {[*map(named, hours)]}"
            if not name.endswith("Z") and archive.late == REJECT:
                yield f"{name} has late rows, and they are to be rejected"
        known = map(archive_rows.table_of, self._ledger(archive_rows.tables_query))
        if {t.name: (t.rows, t.step) for t in known} != {
            name: (len(table), archive_rows.SEALED) for name, table in rows.items()
        }:
            yield "the ledger has other tables, or other counts"
        batches = client.select_rows(f'rows_written from [{settings.ledger}] where kind = "batch"')
        written = sum(int(batch["rows_written"]["output"]) for batch in batches)
        if written != (total := sum(map(len, rows.values()))):
            yield f"batches of the ledger have written {written} rows, and tables have {total}"
        root = f"{settings.staging}/output"
        left = client.get(root) if client.exists(root) else {}
        if left or [*self._ledger(archive_rows.pieces_query)]:
            yield f"pieces are left: {left}"

    def _rules(self) -> archive_oracle.Rules:
        context, sample = self.recording.context, self.recording.sample
        archive, now = context.job.archives["output"], self.recording.control.clock.now()
        return archive_oracle.Rules(
            [column.name for column in context.job.output_columns["output"]],
            [column.name for column in context.job.queue_columns],
            sample.expected,
            sample.others["rejected"],
            archive.oldest(now),
            archive.newest(now),
            archive.late == REJECT,
        )

    def _sent(self) -> dict[str, archive_oracle.Sent]:
        """Return each row of the queues, with its position as an idempotent output has it."""
        client: Any = self.recording.context.client
        found = {}
        for queue in self.recording.context.settings.queues:
            for row in client.select_rows(f"* from [{queue}]"):
                position = {name: row[f"${name}"] for name in ("tablet_index", "row_index")}
                event = str(row["event_id"])
                found[event] = archive_oracle.Sent({**row, **position}, *self.bounds[event])
        return found

    def _found(self, tables: Mapping[str, Sequence[oracle.Row]]) -> Counter[archive_oracle.Entry]:
        """Return each row of the archive and of `rejected`, with what it is in."""
        rules, found = self._rules(), Counter[archive_oracle.Entry]()
        for name, table in tables.items():
            begin, part = begin_of(name) or (0, 0)
            kind = archive_oracle.MAIN if part == 1 else archive_oracle.LATE
            found.update(rules.entry((kind, begin), row) for row in table)
        columns = {"rejected": ["reason", *rules.queue_columns]}
        client, root = self.recording.context.client, self.recording.variant.root
        for text, count in oracle.read(client, root, columns, {"date_time"})["rejected"].items():
            found[(archive_oracle.REJECTED, 0), text] += count
        return found

    def _ledger(self, query: Callable[[str, str], str]) -> Iterator[Mapping[str, Any]]:
        context = self.recording.context
        found = context.client.select_rows(query(context.settings.ledger, "output"))
        return iter(found)


@dataclass(frozen=True)
class Shown:
    """The tables that a reader finds: id, rows and mark of each."""

    tables: Mapping[str, Mapping[str, Any]]

    def halves(self) -> Iterator[str]:
        """Yield which of them are not whole, or are there twice."""
        for name, table in self.tables.items():
            if table["row_count"] != table[SEALED]["rows"] or not table["row_count"]:
                yield f"{name} was seen with {table['row_count']} of {table[SEALED]['rows']} rows"
        pieces = Counter(id_ for table in self.tables.values() for id_ in table[SEALED]["pieces"])
        if more := [id_ for id_, count in pieces.items() if count > 1]:
            yield f"two tables have the same pieces: {more}"


@contextmanager
def recorded(variant: Variant, lab: Lab, folder: Path) -> Iterator[ArchiveRun]:
    """Give the recorded run of a variant; inside the block its states can be played."""
    context, sample = lab.provisioned(variant, _archived)
    recording = Recording(variant, lab, context, sample, folder)
    run = ArchiveRun(recording, int(recording.control.clock.now()) // HOUR * HOUR)
    # Rows so few that the driver writes all pieces, or those that each task writes.
    handed = archives.HANDED_BYTES if variant.connector == OWN else 0
    with (
        patch.object(archives, "HANDED_BYTES", handed),
        patch.object(completeness, "bound", lambda *_: run.complete),
        patch.object(archive_tables, "PERIOD_SECONDS", _LOOK_SECONDS),
    ):
        run.record()
        yield run


def _archived(context: JobContext) -> JobContext:
    late = REJECT if len(context.settings.queues) > 1 else "table"
    archive = Hourly("date_time", lateness=minutes(0), keep=days(2), late=late)
    job = replace(static(context.job, "output"), static={"output": archive})
    return replace(context, job=job)
