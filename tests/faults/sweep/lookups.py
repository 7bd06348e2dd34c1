"""Jobs that look up keys, killed at every request and met by faults, while references change.

A batch looks up three references: a large one behind a link that `make reference` switches, one
that is written to, and a small one that is built after the batch has begun. One run is recorded,
with a change in the middle of batches. The cluster keeps its state after each request that may
change it, and between lookups. A new driver goes on from each state, and meets one more change.
Then lookup_oracle.py judges what all drivers have left.
"""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

from pyspark.sql import DataFrame
from rich.console import Console
from yt.yson import YsonUint64

from tests.faults.sweep.driver import Driver, EndedError, end_queries, until
from tests.faults.sweep.lab import Lab
from tests.faults.sweep.lookup_oracle import (
    KEYS,
    LARGE,
    REFERENCES,
    SMALL,
    WRITTEN,
    Change,
    Looked,
    text,
)
from tests.faults.sweep.points import WRITES
from tests.faults.sweep.points import named as objects
from tests.faults.sweep.recording import Recording
from tests.faults.variants import Variant
from tests.support.server_errors import UNAVAILABLE
from ytstream import Column, lookup
from ytstream.job import JobContext
from ytstream.provisioning import job_objects
from ytstream.settings.job_settings import OWN, SPYT
from ytstream_tools.reference import building
from ytstream_tools.reference.building import Wanted, build
from ytstream_tools.reference.screen import Screen

OUTPUT = [
    Column("event_id", "utf8"),
    Column("auction", "int64"),
    *(Column(name, "utf8") for name in REFERENCES),
    Column("is_known", "boolean"),
]
BATCH_ROWS = 20
_FIRST_US = 1_704_067_200_000_000
_PROXIES_REMEMBER_SECONDS = 15.0
"""For so long a proxy uses the table that a link has led to (YTsaurus, TAsyncExpiringCacheConfig):
who looks up through the link reads an old table."""
_EXPIRED_SECONDS = 61
_LOOK_SECONDS = 0.02
_SHOWN_EACH = 25
_SLOW_SECONDS = 0.3
HELD: Mapping[str, Any] = {"action": "delay"}
"""Until the rule is removed."""
FAULTS: Mapping[str, Mapping[str, Any]] = {
    "refused": {"action": "fail", "error": UNAVAILABLE},
    "dropped": {"action": "hang_up"},
    "lost": {"action": "lose_reply"},
    "slow": {"action": "delay", "seconds": _SLOW_SECONDS},
}


class Form(NamedTuple):
    """Where a job looks up its references, and whether executors keep what they have looked up."""

    variant: Variant
    is_in_outputs: bool
    cache_mb: int

    @property
    def name(self) -> str:
        """The name of its test."""
        return f"{self.variant.name}-{'outputs' if self.is_in_outputs else 'transform'}"

    @property
    def lookups(self) -> int:
        """LookupRows of a batch in two tasks. A cache may know all keys of the two links."""
        return 2 if self.cache_mb else 2 * len(REFERENCES)

    @property
    def drops_by(self) -> str | None:
        """The reference whose missing keys drop a row."""
        return LARGE if self.is_in_outputs else None

    def transform(self, events: DataFrame) -> DataFrame:
        """Look up what was written and, in one of two forms, everything else."""
        if self.variant.is_stateful:
            events = events.withWatermark("date_time", "1 hour")
            events = events.dropDuplicatesWithinWatermark(["event_id"])
        rows = events.select("event_id", "auction")
        rows = lookup(rows, WRITTEN, on="auction", found="is_known", by="keys")
        if self.is_in_outputs:
            return rows
        rows = lookup(rows, LARGE, on="auction", by="keys")
        return _ordered(lookup(rows, SMALL, on="auction", by="keys"))

    def outputs(self, rows: DataFrame) -> dict[str, DataFrame]:
        """Look up the others, and leave out what the large one does not have."""
        rows = lookup(rows, SMALL, on="auction", by="keys")
        return {"output": _ordered(lookup(rows, LARGE, on="auction", how="inner", by="keys"))}


def _ordered(rows: DataFrame) -> DataFrame:
    return rows.select(*(column.name for column in OUTPUT))


FORMS = (
    *(
        Form(Variant("transactional", "map", connector=connector), is_in_outputs, cache_mb)
        for connector, (is_in_outputs, cache_mb) in product((OWN, SPYT), ((False, 0), (True, 64)))
    ),
    Form(Variant("transactional", "deduplicate"), is_in_outputs=False, cache_mb=0),
)


class Step(NamedTuple):
    """Which references change while a batch is under way, and at which of its requests."""

    changed: tuple[str, ...]
    where: Mapping[str, Any]


class Case(NamedTuple):
    """A state that a driver goes on from, and what happens meanwhile."""

    what: str
    state: int
    step: Step
    fault: Mapping[str, Any] = HELD


@dataclass
class LookupRun:
    """A job with lookups in a lab; its run, and what drivers make of the states of that run."""

    form: Form
    recording: Recording
    changes: list[Change] = field(default_factory=list)
    sent: int = 0
    driver: Driver = field(init=False)
    states: list[int] = field(default_factory=list)
    """Numbers of the requests of the recording whose state was kept."""
    names: Mapping[int, str] = field(default_factory=dict)
    """What these requests are about."""
    wrong: Sequence[str] = ()
    """What is wrong with the rows of the recording."""
    _recorded: tuple[Change, ...] = ()
    _is_recorded: bool = False

    # -- a run

    def record(self) -> None:
        """Play the run; keep the state after each request."""
        control = self.recording.control
        control.journal.clear()
        self._keep_states(True)
        self._start()
        self._send()
        self._drain()
        for step in self._steps():
            self._meanwhile(step)
        self.driver.end()
        self._keep_states(False)
        entries = control.journal()
        about = objects(entries, self.recording.variant.root)
        self.names = {e.n: f"{e.method} {name}" for e, name in zip(entries, about, strict=True)}
        self.states = sorted(int(path.stem) for path in self.recording.folder.glob("*.state"))
        self._recorded = tuple(self.changes)
        self.wrong = [f"the recorded run: {line}" for line in self.looked().problems()]

    def _steps(self) -> Iterator[Step]:
        """Yield changes between two lookups of a batch, and one before its first lookup."""
        yield Step((WRITTEN,), _lookup(1))
        yield Step((LARGE,), _lookup(self.form.lookups // 2))
        yield self._before_lookups
        yield Step((WRITTEN, LARGE), _lookup(0))

    @property
    def _before_lookups(self) -> Step:
        """A batch that has begun its transaction asks which table the link leads to."""
        path = self.recording.context.settings.references[SMALL]
        return Step((SMALL,), {"method": "GetNode", "where": {"path": path}})

    def _keep_states(self, is_on: bool) -> None:
        self._is_recorded = is_on
        folder = str(self.recording.folder) if is_on else None
        self.recording.control.record(folder, sorted({*WRITES, "LookupRows"}))

    def _state(self, n: int) -> Path:
        return self.recording.folder / f"{n}.state"

    def _changes_by(self, n: int) -> Iterator[Change]:
        """Yield the changes that a state has. One that was saved when a held request was over has a
        lower number than the change meanwhile: so by the time of the files."""
        saved = self._state(n).stat().st_mtime_ns
        for change in self._recorded:
            if not change.n or self._state(change.n).stat().st_mtime_ns <= saved:
                yield change

    def _start(self) -> None:
        self.driver = self.recording.driver()
        self.driver.start()

    def _send(self) -> None:
        (queue,) = self.recording.context.settings.queues
        rows = self.recording.sample.make(BATCH_ROWS, self.sent + 1)
        for row in rows:
            self.sent += 1
            row["event_id"] = str(self.sent)
            row["date_time"] = YsonUint64(_FIRST_US + self.sent)  # no row is late
            row["auction"] = KEYS[self.sent * 37 % len(KEYS)]
        self.recording.put(queue, rows)

    def _drain(self) -> None:
        self._wait(self.recording.drained(), "all rows in batches")

    def _meanwhile(self, step: Step, fault: Mapping[str, Any] = HELD) -> None:
        """Send rows; change references when a request of their batch is held, or meets a fault."""
        faults = self.recording.control.faults
        rule = faults.add(**step.where, **fault)
        self._send()
        if self.driver.is_over:
            self._start()
        self._wait(lambda: faults.get(rule).hits, f"a request like {step.where}")
        self._change(*step.changed)
        faults.remove(rule)
        self._drain()

    def _wait(self, is_over: Callable[[], Any], what: str) -> None:
        until(lambda: self.driver.is_over or is_over(), what, pause=_LOOK_SECONDS)
        if self.driver.is_over:
            raise EndedError(str(self.driver.error))

    # -- references

    def make_references(self) -> None:
        """Make the first version of each."""
        client: Any = self.recording.context.client
        path = self.recording.context.settings.references[WRITTEN]
        attributes = {"dynamic": True, "schema": _schema(WRITTEN)}
        client.create("table", path, attributes=attributes)
        client.mount_table(path, sync=True)
        self._change(*REFERENCES)

    def _change(self, *references: str) -> None:
        """Give references their next version; of a recording keep only the state after it."""
        control, is_on = self.recording.control, self._is_recorded
        for reference in references:
            control.record(None)
            self._changed(reference)
            if is_on:
                n = control.journal()[-1].n
                control.save(str(self._state(n)))
                self._keep_states(True)
                self.changes[-1] = replace(self.changes[-1], n=n)

    def _changed(self, reference: str) -> None:
        client: Any = self.recording.context.client
        path = self.recording.context.settings.references[reference]
        version = 1 + sum(one.reference == reference for one in self.changes)
        values = {key: text(reference, key, version) for key in KEYS}
        rows = [{"auction": k, reference: v} for k, v in values.items() if v is not None]
        after = int(client.generate_timestamp())
        if reference == WRITTEN:
            client.insert_rows(path, rows)
        else:
            source = f"{path}-static"
            schema = [{"name": "auction", "type": "int64"}, {"name": reference, "type": "utf8"}]
            client.create("table", source, attributes={"schema": schema}, force=True)
            client.write_table(source, rows)
            tablets = 3 if reference == LARGE else 1
            screen = Screen(Console(file=io.StringIO()))
            build(self.recording.context, Wanted(source, path, ("auction",), tablets), screen)
        table = str(client.get(f"{path}/@id"))
        by = int(client.generate_timestamp())
        self.changes.append(Change(reference, version, table, after, by))

    # -- cases

    def play(self, every: int = 1) -> list[str]:
        """Play each case, or one of so many; return what is wrong, by case."""
        cases = [*self._kills(), *self._faults()][::every]
        wrong, begun = [*self.wrong], time.monotonic()
        for number, case in enumerate(cases, 1):
            wrong += [f"{case.what}: {line}" for line in self._played(case)]
            if number % _SHOWN_EACH == 0 or number == len(cases):
                each = (time.monotonic() - begun) / number
                said = f"{number} of {len(cases)} cases, {each:.1f} s each, {len(wrong)} wrong"
                print(f"{self.form.name}: {said}", *wrong[-3:], sep="\n  ", flush=True)
        return wrong

    def _kills(self) -> Iterator[Case]:
        """Yield a driver that goes on from each state of the run."""
        steps = [*self._steps()]
        for number, n in enumerate(self.states):
            step = steps[number % len(steps)]
            if step != self._before_lookups:
                step = Step(step.changed, _lookup(number % self.form.lookups))
            yield Case(f"killed after {self.names[n]} ({n})", n, step)

    def _faults(self) -> Iterator[Case]:
        """Yield a fault at each lookup of a batch; a reference changes before its next attempt."""
        for name, skip, changed in product(FAULTS, range(self.form.lookups), (LARGE, WRITTEN)):
            what = f"lookup {skip} is {name}, and {changed} changes"
            yield Case(what, self.states[-1], Step((changed,), _lookup(skip)), FAULTS[name])

    def _played(self, case: Case) -> list[str]:
        """Play a case; return what is wrong."""
        recording, n = self.recording, case.state
        recording.load(str(self._state(n)))
        recording.control.clock.advance(_EXPIRED_SECONDS)
        recording.control.journal.clear()
        self.changes = [*self._changes_by(n)]
        try:
            self._meanwhile(case.step, case.fault)
            self.driver.end()
            return [*self.looked().problems()]
        except Exception as error:  # whatever it is, the next case is played
            return [f"{type(error).__name__}: {error}"]
        finally:
            recording.control.faults.clear()
            self.driver.ask_to_end()
            end_queries(recording.lab.spark)

    def looked(self) -> Looked:
        """Return what is on the cluster."""
        context = self.recording.context
        client: Any = context.client
        (queue,) = context.settings.queues
        query = f'number, queues, state from [{context.settings.ledger}] where kind = "batch"'
        return Looked(
            [*client.select_rows(f"* from [{queue}]")],
            [*client.select_rows(f"* from [{context.settings.output}]")],
            [*client.select_rows(query)],
            self.changes,
            self.form.drops_by,
        )


def _lookup(skip: int) -> Mapping[str, Any]:
    """Return what finds a lookup of a batch."""
    return {"method": "LookupRows", "skip": skip}


def _schema(reference: str) -> list[dict[str, Any]]:
    return [
        {"name": "auction", "type": "int64", "sort_order": "ascending"},
        {"name": reference, "type": "utf8"},
    ]


@contextmanager
def recorded(form: Form, lab: Lab, folder: Path) -> Iterator[LookupRun]:
    """Give the recorded run of a job; inside the block its cases can be played."""
    context, sample = lab.provisioned(form.variant, _with_output)
    context = _with_references(context, form)
    run = LookupRun(form, Recording(form.variant, lab, context, sample, folder))
    with patch.object(building, "_POLL_SECONDS", _LOOK_SECONDS):
        run.make_references()
        job_objects.provision(context)
        lab.cluster.client.set_mount_cache(_PROXIES_REMEMBER_SECONDS)
        try:
            run.record()
            yield run
        finally:
            lab.cluster.client.set_mount_cache(0)


def _with_output(context: JobContext) -> JobContext:
    job = replace(context.job, outputs={"output": OUTPUT}, reject={})
    outputs = {"output": context.settings.output}
    return replace(context, job=job, settings=replace(context.settings, outputs=outputs))


def _with_references(context: JobContext, form: Form) -> JobContext:
    paths = {name: f"{form.variant.root}/{name}" for name in REFERENCES}
    columns = {
        name: [Column("auction", "int64", key=True), Column(name, "utf8")] for name in REFERENCES
    }
    job = replace(
        context.job,
        references=columns,
        transform=form.transform,
        split=form.outputs if form.is_in_outputs else None,
    )
    settings = replace(context.settings, references=paths, reference_cache_mb=form.cache_mb)
    return replace(context, job=job, settings=settings)
