"""Jobs with late rows, killed or disturbed in a start and in batches that have some.

One run is recorded. A watermark is far ahead when rows arrive: some late for all windows, some for
a few, some to be rejected, some repeats, and others in time. A driver reads them in two batches. A
case is a point of that run. A driver is killed there, and a new one goes on from the state that it
has left. Or a fault meets a living driver there. More late rows follow. Then the oracle accounts
for each row of each batch.

A sequence is random: rows of all kinds, batches, kills, faults, restarts, a second driver.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import cycle, product
from pathlib import Path
from typing import Any, NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tests.faults.sweep import late_oracle
from tests.faults.sweep.driver import Driver, EndedError, end_queries, is_final, until
from tests.faults.sweep.lab import Lab
from tests.faults.sweep.late_oracle import FROM_THE_FUTURE, FUTURE_US, Account, Batch, Tables
from tests.faults.sweep.points import WRITES, Point, classified, places
from tests.faults.sweep.recording import Recording
from tests.faults.variants import Variant
from tests.support import server_errors
from ytstream.errors import SupersededError
from ytstream.job import LATE, REJECT, REJECTED, JobContext
from ytstream.settings.job_settings import OWN, SPYT

_PROCESSING = {"tumbling": "window", "sliding": "window"}
_START_US = 1_704_067_200_000_000 + 12 * 3_600_000_000
_LOOK_SECONDS = 0.1
_KEPT_BATCHES = "spark.sql.streaming.minBatchesToRetain"
"""The oracle reads the watermark of each batch in the offset log."""
KILLED, REFUSED, DROPPED, LOST_REPLY = "killed", "refused", "dropped", "lost-reply"
_ACTIONS = {REFUSED: "fail", DROPPED: "hang_up", LOST_REPLY: "lose_reply"}
_FIRST = "first"
"""The place of the first batch of the recorded run."""
_FAULT_EACH = 3
"""At every third point a fault meets a living driver, too."""

_NEWER, _PARTLY, _LATE, _FUTURE, _REPEAT, _JUMP = (
    "newer", "late for some", "late", "from the future", "repeat", "jump",
)  # fmt: skip
_BEHIND = {_NEWER: (-2, 8), _PARTLY: (21, 39), _LATE: (41, 90), _JUMP: (-60, -60)}
"""How far behind the newest row a row is: in seconds, for sessions in minutes. The watermark is
ten behind it."""
_REPEATED = 40
"""A repeat is of one of so many rows that were sent last."""
_MIXED = (_NEWER, _LATE, _PARTLY, _NEWER, _LATE, _REPEAT, _PARTLY, _FUTURE, _NEWER, _LATE)
_CLOSING = (_NEWER, _LATE, _PARTLY, _FUTURE, _REPEAT, _JUMP)


class Play(NamedTuple):
    """A job, and what it promises on which connector."""

    job: str
    guarantee: str
    connector: str

    @property
    def variant(self) -> Variant:
        """The job's variant; those of the two kinds of windows are equal."""
        processing = _PROCESSING.get(self.job, self.job)
        return Variant(self.guarantee, processing, connector=self.connector)

    @property
    def name(self) -> str:
        """The name in reports."""
        return "-".join(self)


PLAYS = tuple(
    Play(job, guarantee, connector)
    for guarantee, job, connector in product(
        ("transactional", "at_least_once"), late_oracle.JOBS, (OWN, SPYT)
    )
)


class Case(NamedTuple):
    """A point of the recorded run, and what happens there."""

    point: Point
    fault: str
    write: int
    """Which one of the run's requests that may change the cluster it is."""

    @property
    def name(self) -> str:
        """The name in reports."""
        return f"{self.point.name}:{self.fault}"


@dataclass
class LateSite:
    """A job in a lab, its drivers, and its rows."""

    play: Play
    recording: Recording
    source: random.Random = field(default_factory=partial(random.Random, 1))
    newest: int = _START_US
    """The newest event time that was sent, but for those from the future."""
    sent: list[dict[str, Any]] = field(default_factory=list)
    drivers: list[Driver] = field(default_factory=list)
    faults: int = 0
    """How many there were: at least once, each one explains a batch that is written twice."""

    # -- rows

    def send(self, kinds: Sequence[str]) -> None:
        """Send a row of each kind."""
        rows = [self._row(kind) for kind in kinds]
        self.sent += rows
        self.recording.put(self.recording.context.settings.queues[0], rows)

    def _row(self, kind: str) -> dict[str, Any]:
        if kind == _REPEAT and self.sent:
            return {**self.source.choice(self.sent[-_REPEATED:])}
        return {
            "event_id": f"{len(self.sent)}-{self.source.randrange(10**9)}",
            "auction": self.source.randrange(3),
            "bidder": self.source.randrange(3),
            "price": self.source.randrange(10**9),
            "date_time": self._time_us(kind),
        }

    def _time_us(self, kind: str) -> int:
        if kind == _FUTURE:
            return FUTURE_US + self.source.randrange(1, 10**9)
        behind = self.source.uniform(*_BEHIND.get(kind, _BEHIND[_NEWER]))
        time_us = self.newest - int(behind * self._unit_us)
        self.newest = max(self.newest, time_us)
        return time_us

    @property
    def _unit_us(self) -> int:
        return 60_000_000 if self.play.job == "sessions" else 1_000_000

    # -- drivers

    def start(self) -> None:
        """Start another driver."""
        self.drivers.append(self.recording.driver())
        self.drivers[-1].start()

    def drain(self) -> None:
        """Wait until each row is in a batch; start a driver whenever production would.

        Raises EndedError for a job that has ended for good.
        """
        is_drained = self.recording.drained()

        def look() -> bool:
            self._verify_goes_on()
            if all(driver.is_over for driver in self.drivers):
                self.start()
            return is_drained()

        until(look, "each row in a batch", pause=_LOOK_SECONDS)

    def _verify_goes_on(self) -> None:
        """Raise EndedError if a driver has ended for good, but for one that another one followed.

        Of two that start at the same time, either may be the one that goes on.
        """
        for error in (driver.error for driver in self.drivers):
            if is_final(error) and not isinstance(error, SupersededError):
                raise EndedError(str(error))

    def end(self) -> None:
        """End all drivers between two batches."""
        for driver in self.drivers:
            driver.ask_to_end()
        for driver in self.drivers:
            driver.end()
        self.drivers.clear()

    def abandon(self) -> None:
        """End all drivers, whatever they do; the site can be loaded afterwards."""
        self.recording.control.faults.clear()
        for driver in self.drivers:
            driver.ask_to_end()
        end_queries(self.recording.lab.spark)
        self.end()

    def finish(self) -> Account:
        """Let late rows follow and all windows close; return the account of everything."""
        self.send(_CLOSING)
        self.drain()
        self.rest()
        self.end()
        tables = self.tables()
        found = self.account(tables)
        if unread := late_oracle.unread(tables):
            found.problems.append(f"no batch has read {unread}")
        if tables.batches[-1].watermark < self.newest - 11 * self._unit_us:
            found.problems.append("the last batch has closed too little")
        return found

    def rest(self, is_over: Callable[[], Any] = lambda: False) -> None:
        """Wait for the batch without rows that follows when the watermark has moved."""
        until(lambda: is_over() or self._is_idle(), "a batch without rows", pause=_LOOK_SECONDS)

    def _is_idle(self) -> bool:
        client, ledger = self.recording.context.client, self.recording.context.settings.ledger
        query = f'rows_read from [{ledger}] where kind = "batch" order by number desc limit 1'
        return [row["rows_read"] for row in client.select_rows(query)] == [0]

    # -- what is there

    def account(self, tables: Tables) -> Account:
        """Hold the tables against the oracle."""
        repeats = self.faults if self.play.variant.may_repeat else 0
        return late_oracle.account(late_oracle.JOBS[self.play.job](), tables, repeats=repeats)

    def tables(self) -> Tables:
        """Read all tables, and the watermarks in the checkpoint."""
        client, settings = self.recording.context.client, self.recording.context.settings
        ledger = [*client.select_rows(f"* from [{settings.ledger}]")]
        head = next(row for row in ledger if row["kind"] == "head")
        watermarks = self._watermarks(head["state"]["folder"])
        done = sorted((row for row in ledger if row["kind"] == "batch"), key=lambda r: r["number"])
        queue = client.select_rows(f"* from [{settings.queues[0]}]")
        return Tables(
            {(row["$tablet_index"], row["$row_index"]): row for row in queue},
            [_batch(row, watermarks) for row in done],
            [*client.select_rows(f"* from [{settings.outputs[REJECTED]}]")],
            [*client.select_rows(f"* from [{settings.output}]")],
            int(head["state"].get("totals", {}).get("late", 0)),
        )

    def _watermarks(self, folder: int | None) -> dict[int, int]:
        """Return the watermark of each batch, in microseconds."""
        client, context = self.recording.context.client, self.recording.context
        log = f"{context.settings.checkpoint}/{folder}/offsets"
        names = [str(name) for name in client.list(log)] if client.exists(log) else []
        found = {}
        for name in filter(str.isdigit, names):
            _, metadata, *_ = client.read_file(f"{log}/{name}").read().decode().split("\n")
            found[int(name)] = 1_000 * int(json.loads(metadata)["batchWatermarkMs"])
        return found


def _batch(row: Mapping[str, Any], watermarks: Mapping[int, int]) -> Batch:
    """Return a batch's row of the ledger as the oracle knows it."""
    state, written, ranges = row["state"] or {}, row["rows_written"], dict[int, tuple[int, int]]()
    for queue in row["queues"]:
        ranges |= {int(p): (int(first), int(end)) for p, (first, end) in queue["rows"].items()}
    rejected = state.get("rejected", {})
    figures = {
        "read": row["rows_read"],
        LATE: state.get("late", 0),
        FROM_THE_FUTURE: sum(rejected.values()),
        **{name: written.get(name, 0) for name in (REJECTED, "output")},
    }
    # Without an entry of the log nobody knows which rows were late.
    before = watermarks[row["batch"] - 1] if row["batch"] else 0
    return Batch(
        ranges,
        before,
        watermarks[row["batch"]],
        {name: int(count) for name, count in figures.items()},
    )


@contextmanager
def site(play: Play, lab: Lab, folder: Path) -> Iterator[LateSite]:
    """Provision a play's job."""
    context, sample = lab.provisioned(play.variant, partial(_with_late_rows, play.job))
    lab.spark.conf.set(_KEPT_BATCHES, "100")
    made = LateSite(play, Recording(play.variant, lab, context, sample, folder))
    try:
        yield made
    finally:
        made.abandon()


def _with_late_rows(job: str, context: JobContext) -> JobContext:
    changed = replace(context.job, late=REJECT)
    if job == "sliding":
        changed = replace(changed, transform=_sliding)
    settings = replace(context.settings, reject_limit=1.0)  # some batches are of few rows
    return replace(context, job=changed, settings=settings)


def _sliding(rows: DataFrame) -> DataFrame:
    window = F.window("date_time", "30 seconds", "10 seconds")
    grouped = rows.withWatermark("date_time", "10 seconds").groupBy(window, "auction")
    totals = grouped.agg(F.count(F.lit(1)).alias("bids"), F.sum("price").alias("total"))
    start, end = (F.col(f"window.{name}").alias(f"window_{name}") for name in ("start", "end"))
    return totals.select("auction", start, end, "bids", "total")


# -- cases


@dataclass
class LateRun:
    """A recorded run of a site, and the cases that it has."""

    site: LateSite
    base: str = ""
    """The state in which late rows wait, and a driver is about to start."""
    cases: Sequence[Case] = ()
    total: Account = field(default_factory=Account)

    def record(self) -> None:
        """Record the run."""
        here, recording = self.site, self.site.recording
        control, folder = recording.control, recording.folder
        for rows in ([_NEWER] * 12 + [_FUTURE], [_NEWER] * 6, [_JUMP]):
            here.send(rows)
            here.drain()
        here.rest()  # else the next start has this batch to run again, before it looks at the queue
        here.end()
        here.send([*_MIXED * 6, _NEWER])
        self.base = str(folder / "base.state")
        control.save(self.base)
        control.journal.clear()
        control.record(str(folder), sorted(WRITES))
        here.drain()
        here.rest()
        here.end()
        control.record(None)
        entries, root = control.journal(), recording.variant.root
        names = places((_FIRST, "last", "rowless"), start="restart", is_listing=False)
        points = [point for point in classified(entries, root, names) if point.is_write]
        writes = [entry.n for entry in entries if entry.method in WRITES]
        self.cases = [*_cases(points, writes)]

    def spread(self, count: int) -> list[Case]:
        """Return so many of the cases, at equal distances.

        Those of another play begin at another point, so that together they are at more points.
        """
        each, share = len(self.cases) / count, PLAYS.index(self.site.play) / len(PLAYS)
        return [self.cases[int((number + share) * each)] for number in range(count)]

    def commit(self, count: int) -> list[Case]:
        """Return the last cases before and at the commit of the first batch with late rows."""
        return [case for case in self.cases if case.point.place == _FIRST][-count:]

    def play(self, cases: Sequence[Case]) -> list[str]:
        """Play cases; return what is wrong, by case."""
        wrong, begun = list[str](), time.monotonic()
        for case in cases:
            found = self._played(case)
            self.total.add(found)
            wrong += [f"{case.name}: {problem}" for problem in found.problems]
        disturbed = sum(case.fault != KILLED for case in cases)
        said = f"{len(cases) - disturbed} kills and {disturbed} faults of {len(self.cases)} cases"
        said += f", {(time.monotonic() - begun) / len(cases):.1f} s each"
        _tell(self.site.play, said, self.total, wrong)
        return wrong

    def _played(self, case: Case) -> Account:
        here, recording = self.site, self.site.recording
        sent, newest, here.source = len(here.sent), here.newest, random.Random(case.write)
        here.faults = 1
        try:
            if case.fault == KILLED:
                recording.load_killed(str(recording.folder / f"{case.point.n}.state"))
                problems = self._left()
                here.drain()
            else:
                recording.load(self.base)
                problems = self._disturbed(case)
            found = here.finish()
        except Exception as error:  # whatever it is, the next case is played
            found, problems = Account(), [f"{type(error).__name__}: {error}"]
        finally:
            here.abandon()
            del here.sent[sent:]
            here.newest = newest
        found.problems += problems
        return found

    def _left(self) -> list[str]:
        """Return what is wrong in what a killed driver has left; at least once it may be ahead."""
        here = self.site
        return [] if here.play.variant.may_repeat else here.account(here.tables()).problems

    def _disturbed(self, case: Case) -> list[str]:
        faults = self.site.recording.control.faults
        error = server_errors.unavailable(case.point.method) if case.fault == REFUSED else None
        rule = faults.add(
            method=sorted(WRITES), skip=case.write, action=_ACTIONS[case.fault], error=error
        )
        self.site.drain()
        self.site.rest(lambda: faults.get(rule).hits)
        return [] if faults.get(rule).hits else ["the fault did not happen"]


def _cases(points: Sequence[Point], writes: Sequence[int]) -> Iterator[Case]:
    """Yield a kill at each point, and at some the next one of the faults."""
    faults = cycle(_ACTIONS)
    for number, point in enumerate(points):
        write = writes.index(point.n)
        yield Case(point, KILLED, write)
        if number % _FAULT_EACH == 0:
            yield Case(point, next(faults), write)


# -- sequences

_SHORTEST, _LONGEST = 4, 7
_LAST_WRITE = 60
"""A fault comes at one of so many requests of a start and its batches."""
_KINDS = (_NEWER, _PARTLY, _LATE, _FUTURE, _REPEAT, _JUMP)
_WEIGHTS = (10, 5, 6, 1, 2, 0.2)


def play_sequence(here: LateSite, seed: int) -> Account:
    """Play the sequence of a seed; return the account of all its rows."""
    here.source = random.Random(seed)
    done: list[str] = []
    try:
        here.send([_NEWER] * 10)
        for _ in range(here.source.randint(_SHORTEST, _LONGEST)):
            (name,) = here.source.choices([*_OPERATIONS], [w for w, _ in _OPERATIONS.values()])
            done.append(name)
            _OPERATIONS[name][1](here)
        found = here.finish()
    except Exception as error:
        found = Account(problems=[f"{type(error).__name__}: {error}"])
    if found.problems:
        found.problems.append(f"seed {seed}: {', '.join(done)}")
    _tell(here.play, f"seed {seed}: {', '.join(done)}", found, found.problems)
    return found


def _send(here: LateSite) -> None:
    here.send(here.source.choices(_KINDS, _WEIGHTS, k=here.source.randint(5, 50)))


def _batch_of(here: LateSite) -> None:
    _send(here)
    here.drain()


def _kill(here: LateSite) -> None:
    """Let batches run; take the state after one of their requests for what a kill has left."""
    control, folder = here.recording.control, here.recording.folder
    for former in folder.glob("*.state"):
        former.unlink()
    _send(here)
    here.faults += 1
    control.record(str(folder), sorted(WRITES))
    here.drain()
    here.end()
    control.record(None)
    states = sorted(folder.glob("*.state"), key=lambda path: int(path.stem))
    here.recording.load_killed(str(here.source.choice(states)))


def _disturb(here: LateSite) -> None:
    """Let a request of the next batches fail, if there are so many."""
    faults, action = here.recording.control.faults, here.source.choice([*_ACTIONS.values()])
    error = server_errors.UNAVAILABLE if action == "fail" else None
    skip = here.source.randrange(_LAST_WRITE)
    _send(here)
    here.faults += 1
    faults.add(method=sorted(WRITES), skip=skip, action=action, error=error)
    here.drain()
    faults.clear()


def _restart(here: LateSite) -> None:
    here.end()
    _send(here)
    here.start()


def _second(here: LateSite) -> None:
    """Start a driver while another one runs."""
    _send(here)
    here.faults += 1
    here.start()


_OPERATIONS: Mapping[str, tuple[float, Callable[[LateSite], None]]] = {
    "send": (1, _send),
    "batch": (2, _batch_of),
    "kill": (3, _kill),
    "fault": (2, _disturb),
    "restart": (1, _restart),
    "second": (1, _second),
}
"""How often each operation comes, and what it does."""


def _tell(play: Play, what: str, found: Account, wrong: Sequence[str]) -> None:
    print(f"{play.name}: {what}; {found}; {len(wrong)} wrong", *wrong[-3:], sep="\n  ", flush=True)
