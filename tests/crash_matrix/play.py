"""Plays one case: two live drivers, real processes with the real SPYT, on one minicluster."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from minicluster import testing
from minicluster.client import Fault
from minicluster.testing import Running
from tests.crash_matrix.cases import LATE, Case, Place, Variant
from tests.project import QUEUES, generate
from tests.ytstream.examples import example
from ytstream import provision
from ytstream.cluster import connect
from ytstream.config import load
from ytstream.demo import tables
from ytstream.demo.process import Process, running
from ytstream.demo.sample import Row, Sample, compared
from ytstream.demo.scenario import drained
from ytstream.guarantees import guarantee_of
from ytstream.job import Connection
from ytstream.recovery.lock import LOCK_SECONDS

PACKAGE = "bids_stream"
#: Two drivers start on a machine that may have other work.
PATIENCE_SECONDS = 300.0

#: A batch holds fewer rows than in the demonstration: what counts here is where it is cut.
SMALLER = {
    "max_rows_per_partition = 2_000": "max_rows_per_partition = 500",
    "dyn_batch_size = 1_000": "dyn_batch_size = 250",
}
#: Rows of each queue: two batches and a half wait, some follow when the older driver has ended.
BACKLOG, FOLLOWING = 5_000, 200

#: Exit codes of a driver that finds out that it is not alone: superseded, or the lock is lost.
ENDED = {3: "superseded", 1: "refused"}


class SpoiltError(Exception):
    """A case that did not go as its name says, or a driver that did not end as it has to."""


@dataclass(frozen=True)
class Result:
    """Figures counted from the tables, and how the older driver ended."""

    case: Case
    lost: int
    duplicated: int
    ended: str

    @property
    def holds(self) -> bool:
        """Whether every row is counted as often as the guarantee says."""
        return not self.lost and (self.case.may_repeat or not self.duplicated)


def project_of(variant: Variant, folder: Path) -> Path:
    """Generate the project of ``variant`` in ``folder``; return its root."""
    guarantee, processing, queues = variant
    paths = QUEUES["single" if queues == 1 else "multi"]
    root = generate(folder, guarantee=guarantee, processing=processing, queue_paths=paths)
    config = root / "config" / "local.toml"
    text = config.read_text(encoding="utf-8")
    for line, smaller in SMALLER.items():
        assert text.count(line) == 1
        text = text.replace(line, smaller)
    config.write_text(text, encoding="utf-8")
    return root


def play(case: Case, project: Path, logs: Path) -> Result:
    """Play ``case`` with the job of ``project``. Raises SpoiltError."""
    with testing.start() as cluster:
        stage = _stage(case, project, logs, cluster)
        ended = (_paused if case.kind == "paused" else _late)(stage)
        found = tables.read(
            stage.connection.client,
            stage.connection.settings.output,
            compared(stage.connection.job),
        )
        wanted = stage.sample.wanted(stage.connection.job, stage.sent)
        outcome = tables.compare(wanted, found)
    return Result(case, outcome.lost, outcome.duplicated, ended)


def _paused(stage: Stage) -> str:
    """Pause the older driver, let a newer one drain the queues, continue the older one."""
    with stage.driver("older") as older:
        rule = stage.arm(stage.case.place, action="stop", pgid=older.pgid)
        stage.wait_hit(rule, older)
        stage.expire_the_lock()
        with stage.driver("newer") as newer:
            stage.drain(newer)
            os.killpg(older.pgid, signal.SIGCONT)
            stage.wait(lambda: older.exit_code is not None, newer)
            code = older.wait()
            if code not in ENDED:
                raise SpoiltError(f"the older driver ended with {code}:\n{older.tail()}")
            stage.follow(newer)
    return ENDED[code]


def _late(stage: Stage) -> str:
    """Kill the older driver at its commit, which is applied at a moment of a newer one's life."""
    moment = stage.case.place
    with stage.driver("older") as older:
        late = stage.arm(LATE, action="hold")
        stage.wait_hit(late, older)
    stage.expire_the_lock()
    barrier = stage.arm(moment, action="delay")
    with stage.driver("newer") as newer:
        stage.wait_hit(barrier, newer)
        (entry,) = stage.cluster.client.faults.release(late)
        stage.cluster.client.faults.remove(barrier)
        if (entry.error is not None) != moment.late_is_refused:
            raise SpoiltError(f"the late commit was answered {entry.error}")
        stage.drain(newer)
        stage.follow(newer)
    return "killed, its commit " + ("refused" if moment.late_is_refused else "applied")


@dataclass(frozen=True)
class Stage:
    """A provisioned job with a backlog, on a cluster of its own."""

    case: Case
    connection: Connection
    sample: Sample
    cluster: Running
    project: Path
    logs: Path
    #: Rows by queue that are put in after the older driver has ended.
    following: Sequence[Sequence[Row]]
    #: Every row that was put in.
    sent: list[Row]

    @contextmanager
    def driver(self, name: str) -> Iterator[Process]:
        """Start the job as a process, which is dead at the end."""
        log = self.logs / f"{self.case.name}.{name}.log"
        log.unlink(missing_ok=True)
        with running(PACKAGE, self.cluster.http, log, self.project) as process:
            yield process

    def arm(self, place: Place, *, action: str, pgid: int | None = None) -> Fault:
        """Make the cluster act at ``place``; return the rule that acts."""
        settings, faults = self.connection.settings, self.cluster.client.faults
        paths = {
            "ledger": settings.ledger,
            "output": settings.output,
            "queue": settings.queues[0],
        }
        rule: Fault | None = None
        for number, step in enumerate(place.steps, start=1):
            acts = {"action": action, "pgid": pgid}
            rule = faults.add(
                method=step.method,
                where={name: _filled(value, paths) for name, value in step.where.items()},
                when=step.when,
                skip=step.skip,
                armed_by=rule,
                **(acts if number == len(place.steps) else {"action": "delay", "seconds": 0}),
            )
        assert rule is not None
        return rule

    def wait_hit(self, rule: Fault, process: Process) -> None:
        """Wait until the rule has acted."""
        self.wait(lambda: self.cluster.client.faults.get(rule).hits == 1, process)

    def expire_the_lock(self) -> None:
        """Let the cluster's clock go on until the older driver's lock is free."""
        self.cluster.client.clock.advance(LOCK_SECONDS + 1)

    def drain(self, process: Process) -> None:
        """Wait until every row is in a batch of the ledger."""
        self.wait(process.has_started, process)
        self.wait(drained(self.connection), process)

    def follow(self, process: Process) -> None:
        """Put in the rest, see that the driver still works, and stop it."""
        queues = self.connection.settings.queues
        for queue, rows in zip(queues, self.following, strict=True):
            self._put(queue, rows)
        self.drain(process)
        # Each in a batch of its own, to bring out what waits for the watermark.
        for row in self.sample.closing(self.connection.job, self.sent):
            self._put(queues[0], [row])
            self.drain(process)
        if process.stop() != 0:
            raise SpoiltError(f"the newer driver did not stop gracefully:\n{process.tail()}")

    def wait(self, is_over: Callable[[], bool], process: Process) -> None:
        """Wait for something that happens while ``process`` runs."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not is_over():
            if process.exit_code is not None:
                raise SpoiltError(f"it ended with {process.exit_code}:\n{process.tail()}")
            if time.monotonic() > deadline:
                raise SpoiltError(f"not done in {PATIENCE_SECONDS:.0f} s:\n{process.tail()}")
            time.sleep(0.3)

    def _put(self, queue: str, rows: Sequence[Row]) -> None:
        client = self.connection.client
        tables.produce(client, queue, rows, int(client.get(f"{queue}/@tablet_count")))
        self.sent.extend(rows)


def _stage(case: Case, project: Path, logs: Path, cluster: Running) -> Stage:
    settings = load(project / "config" / "local.toml", {"YT_PROXY": cluster.http})
    found = example(*case.variant)
    connection = Connection(connect(settings), settings, found.job, guarantee_of(found.job))
    provision.provision(connection)
    rows = [
        found.sample.make(BACKLOG + FOLLOWING, number + 1) for number in range(len(settings.queues))
    ]
    following = [made[-FOLLOWING:] for made in rows]
    stage = Stage(case, connection, found.sample, cluster, project, logs, following, [])
    for queue, made in zip(settings.queues, rows, strict=True):
        stage._put(queue, made[:-FOLLOWING])
    return stage


def _filled(value: Any, paths: dict[str, str]) -> Any:
    return value.format(**paths) if isinstance(value, str) else value
