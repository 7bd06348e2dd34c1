"""The crash: rows wait, the job runs, dies at the worst request, starts again, and is counted."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from . import bids, kill, tables
from .expected import COLUMNS, closing, expected, prepare, published
from .job import PACKAGE, PATIENCE_SECONDS, ROOT, Job, run_command, running

#: Full batches that wait when the job starts: the kill comes in the second of them.
BATCHES = 2.5

#: ``watch(title, goal)`` gives a function to call with the number of output rows so far.
Watch = Callable[[str, int], AbstractContextManager[Callable[[int], None]]]
Say = Callable[[str], None]
#: The same of the output table: ``growth(title)`` gives a function that looks and shows.
Growth = Callable[[str], AbstractContextManager[Callable[[], None]]]


class ScenarioError(Exception):
    """The scenario could not be played; the message holds the end of the job's log."""


@dataclass(frozen=True)
class Result:
    """Figures counted from the tables."""

    queues: int
    rows_in: int
    outcome: tables.Outcome
    kills: int
    restarts: int


def play(cluster: Any, log: Path, say: Say, watch: Watch) -> Result:
    """Play the crash on ``cluster``, a running minicluster. Raises ScenarioError."""
    load = import_module(f"{PACKAGE}.settings").load
    settings = load(ROOT / "config" / "local.toml", {"YT_PROXY": cluster.http})
    client = import_module(f"{PACKAGE}.cluster").connect(settings)
    run_command(cluster.http, "provision")
    prepare(client, settings)
    sent = _produce(client, settings, int(BATCHES * _batch_rows(client, settings)))
    last = closing(sent)
    wanted = expected([*sent, *last])
    say(f"produced {len(sent)} rows into {len(settings.queues)} queue(s): a backlog waits")
    if last:
        say(f"{len(last)} more will follow, to bring out what waits for the watermark")

    growth = partial(_growth, client, settings, watch, wanted.total())
    kills = _run_until_killed(cluster, settings, log, growth)
    say(f"kill -9 {kill.PLACE}")
    say(_pass_time(cluster))
    _run_until_drained(cluster, client, settings, log, growth, last)

    return Result(
        queues=len(settings.queues),
        rows_in=sum(tables.rows_in(client, queue) for queue in settings.queues),
        outcome=tables.compare(wanted, tables.read(client, settings.output, COLUMNS)),
        kills=kills,
        restarts=log.read_text(errors="replace").count("starting Spark") - 1,
    )


def _produce(client: Any, settings: Any, count: int) -> list[dict[str, Any]]:
    sent: list[dict[str, Any]] = []
    for number, queue in enumerate(settings.queues):
        share = count // len(settings.queues) + (number < count % len(settings.queues))
        rows = published(list(bids.bids(share, seed=number + 1)))
        tables.produce(client, queue, rows, int(client.get(f"{queue}/@tablet_count")))
        sent += rows
    return sent


def _run_until_killed(cluster: Any, settings: Any, log: Path, growth: Growth) -> int:
    """The number of kills that the cluster's fault rule reports."""
    with running(cluster.http, log) as job:
        rule = kill.arm(cluster.client.faults, settings, pgid=job.pgid)
        with growth("until the kill") as look:
            _until(lambda: job.exit_code is not None, look, job)
        hits = int(cluster.client.faults.get(rule).hits)
        if hits != 1 or job.exit_code != -9:
            raise ScenarioError(f"ended (code {job.exit_code}) before its kill\n{job.tail()}")
    return hits


def _run_until_drained(
    cluster: Any,
    client: Any,
    settings: Any,
    log: Path,
    growth: Growth,
    last: Sequence[Mapping[str, Any]],
) -> None:
    """Until all rows are through, and then each of ``last``, in a batch of its own."""
    is_drained = drained(client, settings)
    with running(cluster.http, log) as job:
        with growth("until drained") as look:
            # What a dead driver left in the logs counts only once recovery has looked at it.
            _until(lambda: job.exit_code is not None or job.has_started(), look, job)
            for row in (None, *last):
                if row is not None:
                    tables.produce(client, settings.queues[0], [row], tablets=1)
                _until(lambda: job.exit_code is not None or is_drained(), look, job)
        if job.exit_code is not None:
            raise ScenarioError(f"ended by itself (code {job.exit_code})\n{job.tail()}")
        if job.stop() != 0:
            raise ScenarioError(f"no graceful stop (code {job.exit_code})\n{job.tail()}")


def drained(client: Any, settings: Any) -> Callable[[], bool]:
    """A function that is true once every row is in a batch that Spark counts as done."""
    positions = import_module(f"{PACKAGE}.positions")

    def is_drained() -> bool:
        now = positions.read(client, settings)
        done = now.checkpoint.done
        return now.checkpoint.is_last_committed and all(
            done.ends[index].get(partition, 0) >= upper
            for index, queue in enumerate(now.queues)
            for partition, upper in enumerate(queue.upper)
        )

    return is_drained


def _batch_rows(client: Any, settings: Any) -> int:
    tablets = import_module(f"{PACKAGE}.provision").queue_tablets(client, settings)
    return int(settings.max_rows_per_partition) * sum(map(int, tablets.values()))


def _pass_time(cluster: Any) -> str:
    seconds = import_module(f"{PACKAGE}.lock").LOCK_SECONDS + 1
    cluster.client.clock.advance(seconds)
    return f"the cluster's clock goes {seconds:.0f} s ahead, so the dead driver's lock expires"


@contextmanager
def _growth(
    client: Any, settings: Any, watch: Watch, goal: int, title: str
) -> Iterator[Callable[[], None]]:
    with watch(title, goal) as show:

        def look() -> None:
            show(int(client.get(f"{settings.output}/@row_count")))

        yield look
        look()


def _until(is_over: Callable[[], bool], look: Callable[[], None], job: Job) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not is_over():
        look()
        if time.monotonic() > deadline:
            raise ScenarioError(f"not over after {PATIENCE_SECONDS:.0f} s\n{job.tail()}")
        time.sleep(0.3)
