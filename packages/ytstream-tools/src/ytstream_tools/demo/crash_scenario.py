"""The crash: rows wait, the job runs, dies at the worst request, starts again, and is counted."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ytstream.cluster.client import connect
from ytstream.errors import JobError
from ytstream.errors.error_codes import ErrorCode
from ytstream.guarantees import guarantee_of
from ytstream.instance.lock import LOCK_SECONDS
from ytstream.job import Job, JobContext
from ytstream.ledger import positions
from ytstream.ledger.positions import read_head
from ytstream.provisioning import job_objects
from ytstream.settings.job_settings import load
from ytstream.text_table import counted

from ..repository import root_of
from . import demo_batches, demo_tables, kill, row_queue, sample_types
from .job_process import PATIENCE_SECONDS, JobProcess, run_command, running
from .job_sample import Sample, SampleRow

BATCHES = 2.5
"""Full batches that wait when the job starts: the kill comes in the second of them."""
_LONGEST_SECONDS = 5 * PATIENCE_SECONDS
"""The end of a wait, however much the job's log says."""

Watch = Callable[[str, int], AbstractContextManager[Callable[[int, int], None]]]
"""``watch(title, goal)`` gives a function to call with the rows read and the output rows so far."""
Say = Callable[[str], None]


@dataclass(frozen=True)
class DemoResult:
    """Figures counted from the tables."""

    queues: int
    rows_in: int
    outcomes: Mapping[str, demo_tables.OutputCounts]
    kills: int
    restarts: int
    history: demo_batches.BatchHistory

    @property
    def outcome(self) -> demo_tables.OutputCounts:
        """All outputs together."""
        return demo_tables.together(self.outcomes)


@dataclass(frozen=True)
class CrashScenario:
    """A job and its sample, on the cluster of its context, where the crash is played."""

    context: JobContext
    sample: Sample
    root: Path
    """The job's repository."""
    log: Path
    watch: Watch
    words: tuple[str, ...] = ()
    """Words of each command, such as --config and a file."""
    token: str = ""
    """Of a cluster that needs one."""

    @property
    def _proxy(self) -> str:
        return self.context.settings.proxy

    def start(self) -> AbstractContextManager[JobProcess]:
        """Start the job as a process."""
        package = self.context.job.package
        return running(package, self._proxy, self.log, self.root, *self.words, token=self.token)

    def command(self, *words: str) -> str:
        """Run a command of the job; return its output. Raises JobError when it fails."""
        package = self.context.job.package
        return run_command(package, self._proxy, self.root, *words, *self.words, token=self.token)

    @contextmanager
    def growth(self, title: str, goal: int) -> Iterator[Callable[[], None]]:
        """Give a function that looks at ledger and output and shows their rows."""
        client, ledger = self.context.client, self.context.settings.ledger
        with self.watch(title, goal) as show:

            def look() -> None:
                show(demo_batches.rows_read(client, ledger), demo_tables.row_count(self.context))

            yield look
            look()


@contextmanager
def unwatched(_title: str, _goal: int) -> Iterator[Callable[[int, int], None]]:
    """Show no progress: a Watch for tests."""
    yield lambda _read, _written: None


Kill = Callable[[CrashScenario, int], int]
"""Runs the job with these rows in its queues, kills it, says where; returns the number of kills."""


def play(
    job: Job, sample: Sample, cluster: Any, log: Path, say: Say, watch: Watch = unwatched
) -> DemoResult:
    """Play the crash on ``cluster``, a running minicluster. Raises JobError if it cannot be."""
    root = root_of(job.package)
    settings = load(root / "config" / "local.toml", {"YT_PROXY": cluster.http})
    context = JobContext(connect(settings), settings, job, guarantee_of(job))

    def kill_at_the_worst(here: CrashScenario, goal: int) -> int:
        say("starting Spark with SPYT, twice in all: 10 to 20 s until rows come out")
        place, kills = _run_until_killed(here, cluster.client.faults, goal)
        say(f"kill -9 {place}")
        cluster.client.clock.advance(LOCK_SECONDS + 1)
        say(
            f"the cluster's clock goes {LOCK_SECONDS + 1:.0f} s ahead, so the dead driver's lock "
            "expires"
        )
        return kills

    here = CrashScenario(context, sample, root, log, watch)
    return play_with(here, kill_at_the_worst, BATCHES, say)


def play_with(here: CrashScenario, kill: Kill, batches: float, say: Say) -> DemoResult:
    """Play the crash: ``batches`` full batches wait when the job starts, and ``kill`` ends it."""
    context, sample, job = here.context, here.sample, here.context.job
    here.command("provision")
    demo_tables.fill_reference(context, sample)
    sent = _produce(here, int(batches * _batch_rows(context)))
    queues = context.settings.queues
    last = row_queue.of(sample.closing(job, sent), queues[0], queues)
    sample.wanted(job, [*sent, *last])  # a mistake in it is told before Spark starts
    say(f"produced {len(sent)} rows into {counted(len(queues), 'queue')}: a backlog waits")
    if remark := sample.ahead(job, sent):
        say(remark)
    if last:
        say(f"{len(last)} more will follow, to bring out what waits for the watermark")
    kills = kill(here, len(sent))
    _run_until_drained(here, last, len(sent) + len(last))
    return DemoResult(
        queues=len(queues),
        rows_in=sum(demo_tables.rows_in(context.client, queue) for queue in queues),
        outcomes=demo_tables.outcomes(context, sample, [*sent, *last]),
        kills=kills,
        restarts=here.log.read_text(errors="replace").count("starting Spark") - 1,
        history=demo_batches.read(context.client, context.settings.ledger, [*job.outputs]),
    )


def drained(context: JobContext) -> Callable[[], bool]:
    """Return a function that is true once every row is in a batch of the ledger.

    It is asked often: it looks at the queues again only when the ledger has what they had before.
    """
    client, settings = context.client, context.settings
    uppers: dict[tuple[str, int], int] = {}

    def is_drained() -> bool:
        head = read_head(settings.ledger, client.select_rows)
        ends = head.ends if head is not None and head.folder is not None else {}

        def have_ended() -> bool:
            return all(
                ends.get(path, {}).get(at, 0) >= upper for (path, at), upper in uppers.items()
            )

        if not have_ended():
            return False
        for queue in positions.read(client, settings).queues:
            uppers.update({(queue.path, at): upper for at, upper in enumerate(queue.upper)})
        return have_ended()

    return is_drained


def _produce(here: CrashScenario, count: int) -> list[dict[str, Any]]:
    client, queues = here.context.client, here.context.settings.queues
    sent: list[dict[str, Any]] = []
    for number, queue in enumerate(queues):
        share = count // len(queues) + (number < count % len(queues))
        rows = here.sample.make(share, number + 1)
        sample_types.verify("rows() in sample/rows.py", here.context.job.queue_columns, rows)
        demo_tables.produce(client, queue, rows, int(client.get(f"{queue}/@tablet_count")))
        sent += row_queue.of(rows, queue, queues)
    return sent


def _run_until_killed(here: CrashScenario, faults: Any, goal: int) -> tuple[str, int]:
    """Return the place of the kill, and the number of kills that the cluster's rule reports."""
    context = here.context
    with here.start() as process:
        rules = kill.arm(faults, context, pgid=process.pgid)
        with here.growth("until the kill", goal) as look:
            until(lambda: process.exit_code is not None, look, process)
        hits = {place: int(faults.get(rule).hits) for place, rule in rules.items()}
        if sum(hits.values()) != 1 or process.exit_code != -9:
            raise spoilt("the job ended before its kill", process)
    for rule in rules.values():
        faults.remove(rule)
    return max(hits.items(), key=lambda hit: hit[1])


def _run_until_drained(here: CrashScenario, last: Sequence[SampleRow], goal: int) -> None:
    """Run until all rows are through, and then each of ``last``, in a batch of its own."""
    client, queues = here.context.client, here.context.settings.queues
    is_drained = drained(here.context)
    with here.start() as process:
        with here.growth("until drained", goal) as look:
            # What a dead driver left in the logs counts only after recovery has looked at it.
            until(lambda: process.exit_code is not None or process.has_started(), look, process)
            for row in (None, *last):
                if row is not None:
                    plain = row_queue.bare([row], queues)
                    demo_tables.produce(client, queues[0], plain, tablets=1)
                until(lambda: process.exit_code is not None or is_drained(), look, process)
        if process.exit_code is not None:
            raise spoilt("the job ended unexpectedly", process)
        if process.stop() != 0:
            raise spoilt("the job did not stop gracefully", process)


def _batch_rows(context: JobContext) -> int:
    tablets = job_objects.queue_tablets(context.client, context.settings)
    return context.settings.max_rows_per_partition * sum(tablets.values())


def until(is_over: Callable[[], bool], look: Callable[[], None], process: JobProcess) -> None:
    """Wait while the job's log goes on, within a limit: a slow machine needs time for each step."""
    said, latest = -1, time.monotonic()
    end = latest + _LONGEST_SECONDS
    while not is_over():
        look()
        if time.monotonic() > end:  # a job that only tries again says so each time
            raise spoilt(f"the job is not done after {_LONGEST_SECONDS:.0f} s", process)
        if (size := process.log.stat().st_size) != said:
            said, latest = size, time.monotonic()
        elif time.monotonic() > latest + PATIENCE_SECONDS:
            raise spoilt(f"the job has said nothing for {PATIENCE_SECONDS:.0f} s", process)
        time.sleep(0.3)


def spoilt(what: str, process: JobProcess) -> JobError:
    """Return the error that ends the crash, with the end of the job's log."""
    code = f" (code {process.exit_code})" if process.exit_code is not None else ""
    return JobError(
        f"{what}{code}:\n{process.tail()}",
        f"the whole log is in {process.log}",
        code=ErrorCode.COMMAND_FAILED,
    )
