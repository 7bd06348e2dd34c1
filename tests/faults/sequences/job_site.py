"""A job on a cluster of its own, and every operation that a sequence may hold."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

from yt.common import YtError

from minicluster.cluster import Cluster
from tests.faults.sequences.driver import Driver
from tests.faults.sequences.inside import DeathError, InsideClient, InsideTablets, Process
from tests.faults.sequences.oracle import Oracle
from ytstream import Column, Job
from ytstream.errors import JobError, RestartableError, SupersededError
from ytstream.errors.error_codes import ErrorCode
from ytstream.guarantees import guarantee_of
from ytstream.job import JobContext
from ytstream.ledger.positions import MARKER
from ytstream.provisioning import job_objects
from ytstream.recovery import migration, repositioning
from ytstream.schema.columns import rejected_columns
from ytstream.settings.job_settings import OWN, SPYT, Settings

ROOT = "//home/job"
QUEUES = (f"{ROOT}/queue-0", f"{ROOT}/queue-1")
MOST_OTHERS = 2
"""Processes beside the newest one that are paused, or went on."""
LONGEST_TRANSACTION = 16.0
"""Seconds after which the master transaction of a process that is gone has expired."""
MOST_STARTS = 12
"""A process starts again so often at the end of a sequence before it counts as stuck."""


UNFIXED: Mapping[str, str] = {
    "recreate beside an older driver": "a driver that was paused before it read writes rows of the "
    "recreated queue over those of its successor, before the audit ends its batch",
}
"""What is known to break a promise, and left out of random sequences until it is fixed."""


class Form(NamedTuple):
    """A kind of job."""

    guarantee: str
    processing: str = "map"
    is_static: bool = False
    start_from: str = "earliest"
    on_data_loss: str = "fail"
    queues: int = 2
    most_rows: int = 3
    """Rows of one partition that a batch reads at most."""
    connector: str | None = SPYT
    """What its processes run on; None: each one takes the other connector than the one before."""

    @property
    def name(self) -> str:
        """Name the kind for people."""
        return "-".join([self.guarantee, self.processing, *["static"][: self.is_static]])


class WrongError(AssertionError):
    """The runtime has broken its promise."""


class Op(NamedTuple):
    """One operation of a sequence: the name of a method of Site, and its argument."""

    name: str
    n: int = 0

    def __repr__(self) -> str:
        return f"Op({self.name!r}, {self.n})" if self.n else f"Op({self.name!r})"


def job_of(form: Form, guarantee: str) -> Job:
    """Return the declaration of such a job under a guarantee."""
    keyed = [
        *[Column("queue_id", "utf8", key=True)][: form.queues - 1],
        Column("tablet_index", "int64", key=True),
        Column("row_index", "int64", key=True),
    ]
    plain = [Column("id", "int64", required=True)]
    outputs: dict[str, Any] = {"output": plain}
    if form.processing == "aggregate":
        outputs["output"] = [
            Column("k", "int64", key=True),
            Column("total", "int64", required=True),
        ]
        outputs["read"] = plain
    elif guarantee == "idempotent" and not form.is_static:
        outputs["output"] = [*keyed, *plain]
    reject = {}
    if form.processing == "map":
        outputs["rejected"], reject = rejected_columns(form.queues), {"bad": "true"}
    return Job(
        name="job",
        processing=form.processing,
        guarantee=guarantee,
        queue=plain,
        outputs=outputs,
        static=("output",) if form.is_static else (),
        reject=reject,
        transform=lambda events: events,
        shuffle_partitions=2,
    )


@dataclass
class Site:
    """The cluster, the job as it is declared now, its processes, and what must come of it."""

    form: Form
    without: Collection[str] = ()
    """Parts of operations that are left out."""
    cluster: Cluster = field(default_factory=Cluster)
    driver: Driver | None = None
    others: list[Driver] = field(default_factory=list)
    guarantee: str = ""
    queues: tuple[str, ...] = ()
    on_data_loss: str = "fail"
    oracle: Oracle = field(init=False)
    is_disturbed: bool = False
    """Whether the newest process was disturbed since its start: only then may it fail."""
    told: list[str] = field(default_factory=list)
    """What happened, a line for each operation."""
    _refused: ErrorCode | None = None
    """Why the last start or command was refused."""
    _generation: str = ""
    """Ends the paths of outputs: new ones keep the rows of a queue that was recreated."""
    _ids: int = 0
    _processes: int = 0

    def __post_init__(self) -> None:
        self.guarantee = self.form.guarantee
        self.on_data_loss = self.form.on_data_loss
        self.queues = QUEUES[: self.form.queues]
        self.client = InsideClient(self.cluster, Process())
        self._provision()
        self.oracle = Oracle(self.client, self.form.is_static)
        self._look()

    # -- the job as it is declared ---------------------------------------------------------------

    @property
    def job(self) -> Job:
        """The declaration, as it is now."""
        return job_of(self.form, self.guarantee)

    @property
    def settings(self) -> Settings:
        """The configuration, as it is now."""
        outputs = {name: f"{ROOT}/{name}{self._generation}" for name in self.job.outputs}
        outputs["output"] = f"{ROOT}/output-{self.guarantee}{self._generation}"
        if self.form.is_static:
            outputs["output"] = f"{ROOT}/output"
        return Settings(
            proxy="127.0.0.1:1",
            queues=self.queues,
            consumer=f"{ROOT}/consumer",
            checkpoint=f"{ROOT}/checkpoint",
            ledger=f"{ROOT}/ledger",
            outputs=outputs,
            create_queues=True,
            start_from=self.form.start_from,
            on_data_loss=self.on_data_loss,
            max_rows_per_partition=self.form.most_rows,
            connector=self.form.connector or (OWN, SPYT)[self._processes % 2],
        )

    def connected(self, client: Any) -> JobContext:
        """Return the job as a process that starts now sees it."""
        job = self.job
        return JobContext(client, self.settings, job, guarantee_of(job))

    # -- operations ------------------------------------------------------------------------------

    def play(self, op: Op) -> None:
        """Do one operation, and see what it has left. Raises WrongError."""
        self.told.append(repr(op))
        getattr(self, op.name)(op.n)
        self._look()

    def send(self, n: int) -> None:
        """Append up to four rows to each partition of each queue, more to later ones."""
        for queue in QUEUES[: self.form.queues]:
            if not self.client.exists(queue):
                continue
            tablets = int(self.client.get(f"{queue}/@tablet_count"))
            rows = []
            for partition in range(tablets):
                for _ in range(1 + (n + partition) % 4):
                    self._ids += 1
                    rows.append({"id": self._ids, "$tablet_index": partition})
            self.client.insert_rows(queue, rows)
            self.oracle.sent(queue, [(row["$tablet_index"], row["id"]) for row in rows])

    def batch(self, n: int) -> None:
        """Run a batch; every other time its tables are published."""
        driver = self._batch()
        if driver is not None and n % 2 and driver.has_begun:
            self._run(driver, driver.publish)

    def die_in_batch(self, n: int) -> None:
        """Kill the process at a request of a batch."""
        self._batch(dies=n + 1)

    def lose_reply(self, n: int) -> None:
        """Run a batch, whose transaction commits without an answer to the driver."""
        self._batch(loses=True)

    def pause_in_batch(self, n: int) -> None:
        """Pause the process at a request of a batch: the next one is another process."""
        self._batch(pauses=n + 1)

    def restart(self, n: int) -> None:
        """Start again: in the same process, or in another one."""
        if n % 2:
            self._end()
        driver = self.driver or self._new()
        self._start(driver)

    def die_in_start(self, n: int) -> None:
        """Kill a new process at a request of its start."""
        self._end()
        self._start(self._new(), dies=n + 1)

    def pause_in_start(self, n: int) -> None:
        """Pause a new process at a request of its start."""
        self._end()
        self._start(self._new(), pauses=n + 1)

    def older(self, n: int) -> None:
        """Let another process go on: from where it was paused, or with its next batch or start."""
        if not self.others:
            return
        driver = self.others[n % len(self.others)]
        process = driver.client.inside.process
        self.is_disturbed = True
        if process.is_paused:
            step: Callable[[], object] = process.wake
        elif driver.has_begun:
            step = driver.batch
        else:
            step = driver.start
        try:
            step()
        except SupersededError:
            self._verify_superseded(driver)
            self.others.remove(driver)
        except (RestartableError, YtError, RuntimeError):
            driver.query, driver.has_begun = None, False
        except JobError:
            self.others.remove(driver)

    def partition(self, n: int) -> None:
        """Add a partition to a queue."""
        queue = self._queue(n)
        count = int(self.client.get(f"{queue}/@tablet_count"))
        if count < 4:
            self.client.unmount_table(queue)
            self.client.reshard_table(queue, tablet_count=count + 1)
            self.client.mount_table(queue)
            self.oracle.partitioned(queue, count)

    def trim(self, n: int) -> None:
        """Trim a partition up to any row of it."""
        queue = self._queue(n)
        partition = n // 2 % int(self.client.get(f"{queue}/@tablet_count"))
        (info,) = self.client.get_tablet_infos(queue, [partition])["tablets"]
        lower, upper = int(info["trimmed_row_count"]), int(info["total_row_count"])
        row = lower + n * 7 % (upper - lower + 1)
        if row > lower:
            self.is_disturbed = True
            self.client.trim_rows(queue, partition, row)
            self.oracle.trimmed(queue, partition, row)

    def moved_by_hand(self, n: int) -> None:
        """Move the consumer back by hand."""
        rows = [*self.client.select_rows(f"* from [{self.settings.consumer}]")]
        moved = [row for row in rows if row["offset"]]
        if moved:
            row = moved[n % len(moved)]
            self.is_disturbed = True
            self.client.advance_queue_consumer(
                self.settings.consumer,
                row["queue_path"],
                int(row["partition_index"]),
                None,
                n * 5 % int(row["offset"]),
            )

    def data_loss(self, n: int) -> None:
        """Edit on_data_loss; the next process reads it."""
        self.on_data_loss = ("fail", "skip")[n % 2]
        self._end()

    def queue_out(self, n: int) -> None:
        """Take a queue out of the configuration."""
        if len(self.queues) > 1:
            self.queues = (self.queues[n % 2],)
            self._end()

    def queue_in(self, n: int) -> None:
        """Name all queues again."""
        if self.queues != QUEUES[: self.form.queues]:
            self.queues = QUEUES[: self.form.queues]
            self._end()

    def guarantee_changed(self, n: int) -> None:
        """Change the guarantee in job.py, and call `migrate`; now and then die in it."""
        offered = ["transactional", "at_least_once"]
        if self.form.processing == "aggregate":
            return
        if self.form.processing == "map":
            offered.append("idempotent")
        wanted = offered[n % len(offered)]
        if wanted != self.guarantee:
            self._end()
            self.guarantee = wanted
            self._provision()
            self.migrate(n // 3)

    def migrate(self, n: int) -> None:
        """Call `migrate` with the job stopped; for a large ``n`` it dies at a request first."""
        self._end()
        self._command(lambda driver: migration.migrate(driver.context, driver.tablets), n)

    def rewind(self, n: int) -> None:
        """Call `rewind` with the job stopped; for a large ``n`` it dies at a request first."""
        self._end()
        if not (self.oracle.has_begun or self.oracle.is_lost):
            return
        to = ("earliest", "latest", "rows")[n % 3]
        rows: list[str] = []
        if to == "rows":
            rows = self._any_rows(n // 3)
            if not rows:
                return
        options: dict[str, Any] = {}

        def rewound(driver: Driver) -> None:
            repositioning.rewind(driver.context, driver.tablets, to, rows, **options)

        self.oracle.rewinds(to, rows)
        self._command(rewound, n // 3)
        if self._refused is ErrorCode.OUTPUT_FILLED:
            if self._ids % 2:
                self.oracle.give_up()
                options["overwrite"] = True
            else:
                self.new_outputs(0)
            self.oracle.rewinds(to, rows)
            self._command(rewound, 0)
        if self.oracle.is_rewound:
            self.oracle.look(self.settings, self.guarantee)
            if problem := self.oracle.rewound(self.connected(self.client)):
                raise WrongError(problem)

    def recreate(self, n: int) -> None:
        """Drop a queue and recreate it under its path."""
        if "recreate beside an older driver" in self.without:
            self._kill_others()
        queue = self._queue(n)
        tablets = int(self.client.get(f"{queue}/@tablet_count"))
        self.client.remove(queue)
        self._provision()
        self.client.unmount_table(queue)
        self.client.reshard_table(queue, tablet_count=tablets)
        self.client.mount_table(queue)
        self.oracle.dropped(queue)
        self.is_disturbed = True

    def forget(self, n: int) -> None:
        """Remove the ledger's batch rows by hand."""
        path = self.settings.ledger
        rows = [*self.client.select_rows(f'kind, number from [{path}] where kind = "batch"')]
        if rows:
            self.client.delete_rows(path, rows)
            self.oracle.forgotten(ledger=False)

    def lose(self, n: int) -> None:
        """Remove ledger and consumer while no process runs, and provision them again.

        Once a start has left its marks: a job without them is new to the cluster.
        """
        if not self.client.exists(f"{self.settings.checkpoint}/@{MARKER}"):
            return
        self._end()
        self._kill_others()
        for path in (self.settings.ledger, self.settings.consumer):
            self.client.remove(path)
        self.oracle.forgotten(ledger=True)
        self._provision()
        self.is_disturbed = True

    def new_outputs(self, n: int) -> None:
        """Give the outputs new paths."""
        self._generation += "-x"
        self._provision()

    # -- the end ---------------------------------------------------------------------------------

    def finish(self, n: int) -> None:
        """Let the others go on or end, then run until all is read; compare everything."""
        self.told.append(f"finish({n})")
        for _ in range(len(self.others) if n % 2 else 0):
            self.older(0)
            self._look()
        self._kill_others()
        self._end()
        self.is_disturbed = True  # an older process may have moved the consumer
        for _ in range(MOST_STARTS):
            driver = self.driver or self._new()
            if not driver.has_begun and not self._start(driver):
                self._remedy()
                continue
            while driver.has_begun and driver.batch():
                driver.publish()
                self._look()
            if driver.has_begun:
                driver.publish()
                break
        else:
            raise WrongError("the job does not come to its end")
        self._look()
        self.oracle.compare(self.connected(self.client))

    def close(self) -> None:
        """End all threads."""
        self._kill_others()
        self._end()

    def _provision(self) -> None:
        """Make what is missing; a new output is split by the positions in all queues."""
        context = self.connected(self.client)
        settings = replace(context.settings, queues=QUEUES[: self.form.queues])
        job_objects.LOCAL_QUEUE_TABLETS, before = 2, job_objects.LOCAL_QUEUE_TABLETS
        job_objects.provision(replace(context, settings=settings))
        job_objects.LOCAL_QUEUE_TABLETS = before

    # -- processes -------------------------------------------------------------------------------

    def _new(self) -> Driver:
        client = InsideClient(self.cluster, Process())
        self._processes += 1
        made = Driver(self.connected(client), InsideTablets(client.inside))
        self.driver = made
        return made

    def _end(self) -> None:
        """End the newest process, as a stop between two batches does."""
        if self.driver is not None:
            self.driver.client.inside.process.kill()
            self.driver = None

    def _kill_others(self) -> None:
        for driver in self.others:
            driver.client.inside.process.kill()
        self.others.clear()

    def _started(self) -> Driver | None:
        """Return the newest process with its start committed; None when that is refused."""
        driver = self.driver or self._new()
        return driver if driver.has_begun or self._start(driver) else None

    def _start(self, driver: Driver, **ends: int) -> bool:
        """Start; return whether a query may follow. Raises WrongError for a wrong refusal."""
        expected = self.oracle.refusals(self.connected(self.client))
        try:
            self._stepped(driver, driver.start, **ends)
        except JobError as error:
            if isinstance(error, SupersededError):
                self._verify_superseded(driver)
                self._end()
                return False
            self._end()
            self._refused = error.code
            if error.code not in [*expected, *self.oracle.perhaps()]:
                raise WrongError(f"refused without cause: {error}; expected: {expected}") from error
            return False
        except (RestartableError, YtError) as error:
            if not self.is_disturbed:
                raise WrongError(f"the start failed without cause: {error}") from error
            self._wait(error)
            return False
        if driver.has_begun and expected:
            raise WrongError(f"not refused: {expected}")
        self.is_disturbed &= not driver.has_begun
        self._look()
        return driver.has_begun

    def _batch(self, *, loses: bool = False, **ends: int) -> Driver | None:
        """Run a batch of the newest process; return that if its start was not refused."""
        driver = self._started()
        if driver is not None:
            driver.client.inside.process.loses = loses
            self.is_disturbed |= loses
            self._run(driver, driver.batch, **ends)
            driver.client.inside.process.loses = False
        return driver

    def _run(self, driver: Driver, step: Callable[[], object], **ends: int) -> None:
        """Run a step of the newest process' query."""
        try:
            self._stepped(driver, step, **ends)
        except JobError as error:
            if not isinstance(error, SupersededError):
                raise WrongError(f"refused in a batch: {error}") from error
            self._verify_superseded(driver)
            self._end()
        except (RestartableError, YtError, RuntimeError) as error:
            driver.query, driver.has_begun = None, False
            if not self.is_disturbed:
                raise WrongError(f"failed without cause: {error}") from error
            self.told[-1] += f"  [{str(error)[:90]}]"

    def _stepped(
        self,
        driver: Driver,
        step: Callable[[], object],
        dies: int | None = None,
        pauses: int | None = None,
    ) -> None:
        try:
            if driver.client.inside.process.run(step, dies=dies, pauses=pauses):
                return
        except DeathError:
            self.told[-1] += "  [dies]"
            self.driver, self.is_disturbed = None, True
            return
        self.told[-1] += "  [paused]"
        self.driver, self.is_disturbed = None, True
        self.others.append(driver)
        if len(self.others) > MOST_OTHERS:
            self.others.pop(0).client.inside.process.kill()

    def _verify_superseded(self, driver: Driver) -> None:
        if self.oracle.owner == driver.epoch.owner:
            raise WrongError("superseded, though no other process has raised the epoch")

    def _command(self, command: Callable[[Driver], object], n: int) -> None:
        """Run a command of an operator; one that died is called again."""
        expected = self.oracle.refusals(self.connected(self.client), is_command=True)
        expected += self.oracle.perhaps()
        self._refused = None
        for dies in [n, None, None] if n > 3 else [None, None]:
            driver = self._new()
            try:
                driver.client.inside.process.run(partial(command, driver), dies=dies)
            except DeathError:
                self.told[-1] += "  [dies]"
                self._look()
                continue
            except SupersededError as error:
                raise WrongError("a command was superseded") from error
            except JobError as error:
                if error.code not in expected:
                    raise WrongError(f"refused without cause: {error}") from error
                self.told[-1] += "  [refused]"
                self._refused = error.code
                self.oracle.is_rewound = None
            except (RestartableError, YtError) as error:
                self._wait(error)
                continue
            finally:
                self._end()
            break
        else:
            raise WrongError("a command fails again and again")
        self.is_disturbed = True

    def _wait(self, error: Exception) -> None:
        """Wait until the master transactions of processes that are gone have expired."""
        self.told[-1] += f"  [{str(error)[:90]}]"
        self.cluster.pass_time(LONGEST_TRANSACTION)

    def _remedy(self) -> None:
        """Do what an operator does after a refusal."""
        found = self.oracle.refusals(self.connected(self.client))
        if self._refused is ErrorCode.OUTPUT_FILLED and not found:
            self.play(Op("new_outputs"))
            self.play(Op("migrate"))
        if not found:
            return
        name, n = REMEDIES[found[0]]
        self.play(Op(name, n))

    # -- what is there ---------------------------------------------------------------------------

    def _queue(self, n: int) -> str:
        return QUEUES[: self.form.queues][n % self.form.queues]

    def _any_rows(self, n: int) -> list[str]:
        """Return arguments of `rewind rows` for one partition."""
        queue = self.queues[n % len(self.queues)]
        partition = n // 2 % int(self.client.get(f"{queue}/@tablet_count"))
        (info,) = self.client.get_tablet_infos(queue, [partition])["tablets"]
        lower, upper = int(info["trimmed_row_count"]), int(info["total_row_count"])
        return [f"{queue}:{partition}={lower + n % (upper - lower + 1)}"]

    def _look(self) -> None:
        problem = self.oracle.look(self.settings, self.guarantee)
        if problem:
            raise WrongError(problem)


REMEDIES: dict[ErrorCode, tuple[str, int]] = {
    ErrorCode.JOB_CHANGED: ("migrate", 0),
    ErrorCode.QUEUE_REMOVED: ("migrate", 0),
    ErrorCode.QUEUE_RECREATED: ("rewind", 0),
    ErrorCode.HEAD_LOST: ("rewind", 0),
    ErrorCode.ROWS_TRIMMED: ("data_loss", 1),
}
"""A refusal, and the operation by which an operator goes on."""
