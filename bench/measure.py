"""One case measured: a minicluster, a driver for each way, rounds in which the ways take turns."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from unittest.mock import patch

from yt.wrapper import YtClient

from bench import filled, jobs, large_reference, state
from bench.cases import JOB, NOOP, TINY, Case, Size
from bench.driver import FAILED
from bench.processor import Readings, Tree, machine, one, reading
from bench.request_kinds import kinds
from minicluster import testing
from tests.support.project import ROOT
from ytstream.provisioning import job_objects
from ytstream.settings import spark_conf
from ytstream_tools.demo import demo_tables

Say = Callable[[str], None]
_STOP_SECONDS = 90.0
_ROWS_PER_TABLET = 10_000_000
_HUGE_PAGES = {"PYTHONMALLOC": "malloc", "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
"""For a minicluster in whose table a lookup hits anywhere. In small pages, half of its time goes
into finding Python's objects in memory. Where they are not known, they change nothing."""


@dataclass(frozen=True)
class Driver:
    """A process that runs one way of the case; see driver.py."""

    name: str
    process: subprocess.Popen[str]
    answers: IO[str]
    log: Path
    tree: Tree

    def run(self, root: str, idle: float = 0.0) -> dict[str, Any]:
        """Run the case once. Raises RuntimeError, with the end of the driver's log, if it fails."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{root} {idle}\n")
        self.process.stdin.flush()
        if not (line := self.answers.readline()):
            raise RuntimeError(self._failure("has ended"))
        answer: dict[str, Any] = json.loads(line)
        if FAILED in answer:
            raise RuntimeError(self._failure(f"has failed: {answer[FAILED]}"))
        return answer

    def _failure(self, how: str) -> str:
        log = self.log.read_text(encoding="utf-8", errors="replace")
        return f"the driver of `{self.name}` {how}\nThe end of its log:\n{log[-6_000:]}"


def measured(case: Case, size: Size, say: Say) -> dict[str, Any]:
    """Return what the runs of a case gave, round by round; see figures.py for what it means."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        with patch.dict(os.environ, _HUGE_PAGES if case.reference or case.has_full_table else {}):
            cluster = stack.enter_context(testing.start())
        ways = [way for way in case.ways if way != NOOP or not case.keys]
        # The listing's writes of up to 50,000 rows would now and then be too many for one tablet.
        cluster.client.set_rows_per_tablet(_ROWS_PER_TABLET)
        say("filling the queues")
        rows = fill(case, size, cluster.http)
        if case.reference:
            say("filling the reference")
            large_reference.make(cluster, jobs.AUCTIONS, case.reference_rows(size))
        if case.delay_ms:
            seconds = case.delay_ms / 1000
            cluster.client.faults.add(action="delay", seconds=seconds, times=None)
        drivers = {
            way: stack.enter_context(started(case, way, size, cluster.http, folder)) for way in ways
        }
        trees = [_named(way, driver.tree.seconds) for way, driver in drivers.items()]
        sources = [*trees, one("minicluster", cluster.pid), one("bench", os.getpid()), machine]
        readings = stack.enter_context(reading(*sources))
        found: dict[str, Any] = {"rows": rows, "idle": {}, "rounds": []}
        for number in range(min(size.rounds, case.most_rounds) + 1):
            order = deque(ways)
            order.rotate(-number)
            figures: dict[str, Any] = {}
            for way in order:
                # Round 0 warms the drivers up.
                idle = 0.0 if number or way == NOOP else size.idle_seconds
                root = f"//home/{way}-{number}"
                if case.has_full_table and way == JOB:
                    context = jobs.context_of(case, way, size, cluster.http, root)
                    filled.output(cluster, context, case.state_keys(size))
                since = cluster.client.status()["requests"]
                answer = drivers[way].run(root, idle)
                time.sleep(0.2)  # a reading behind the end of the last batch
                journal = cluster.client.journal(since=since)
                figures[way] = _run(answer, readings, way, journal)
                if case.keys:
                    figures[way]["state"] = state.figures(answer, journal)
                if case.reference:
                    figures[way]["heap"] = answer["heap"] / state.MIB
                if period := answer.get("idle"):
                    found["idle"][way] = {
                        "seconds": period["end"] - period["begin"],
                        "behind": period["behind"],
                        "requests": kinds(journal, period["begin"], period["end"]),
                    }
                _remove(case, way, size, cluster.http, root)
                seconds = sum(figures[way]["seconds"])
                say(f"round {number} {way}: {figures[way]['rows'] / seconds:.0f} rows/s")
            if number:
                found["rounds"].append({"order": list(order), "ways": figures})
        return found


def _named(way: str, source: Callable[[], Mapping[str, float]]) -> Callable[[], dict[str, float]]:
    return lambda: {f"{way} {part}": seconds for part, seconds in source().items()}


def _run(
    answer: Mapping[str, Any], readings: Readings, way: str, journal: list[Any]
) -> dict[str, Any]:
    """Return the figures of a run from the end of its last unmeasured batch on."""
    before, batches = answer["batches"][answer["first"] - 1], answer["batches"][answer["first"] :]
    begin = before["begin"] + before["seconds"]
    end = batches[-1]["begin"] + batches[-1]["seconds"]
    used = readings.between(begin, end)
    parts = ("python", "jvm", "workers")
    ours = sum(seconds for name, seconds in used.items() if name not in ("idle", "stolen", "all"))
    return {
        "rows": sum(batch["rows"] for batch in batches),
        "written": answer["written"],
        "keys": batches[-1]["keys"],
        "seconds": [batch["seconds"] for batch in batches],
        "milliseconds": [batch["milliseconds"] for batch in batches],
        "processor": {
            **{part: used[f"{way} {part}"] for part in parts},
            "minicluster": used["minicluster"],
        },
        "requests": kinds(journal, begin, end),
        "machine": {
            "all": used["all"],
            "idle": used["idle"],
            "stolen": used["stolen"],
            "others": max(0.0, used["all"] - used["idle"] - used["stolen"] - ours),
        },
    }


def fill(case: Case, size: Size, proxy: str) -> int:
    """Make the queues, and the reference of a join, with the rows of one run; return their number.

    All runs read the same rows, each with a consumer of its own.
    """
    context = jobs.context_of(case, case.ways[0], size, proxy, "//home/first")
    client, queues = context.client, context.settings.queues
    job_objects.provision(context)
    whole = YtClient(proxy, token="any")
    for queue in queues:
        whole.unmount_table(queue, sync=True)
        whole.reshard_table(queue, tablet_count=case.tablets // len(queues), sync=True)
        whole.mount_table(queue, sync=True)
    count = case.batch_rows(size) * (case.known_batches(size) + size.batches - 1)
    sent = 0
    for piece in jobs.rows_of(case, size, count):
        share = len(piece) // len(queues)
        for number, queue in enumerate(queues):
            part = piece[number * share : (number + 1) * share]
            demo_tables.produce(
                client, queue, part, case.tablets // len(queues), sent // len(queues)
            )
        sent += share * len(queues)
    if context.settings.reference is not None:
        client.insert_rows(context.settings.reference, jobs.reference_of(case))
    client.remove("//home/first", recursive=True)
    return sent


def _remove(case: Case, way: str, size: Size, proxy: str, root: str) -> None:
    """Remove what a run has written: rows that stay would slow the minicluster down."""
    if way != NOOP:
        client = jobs.context_of(case, way, size, proxy, root).client
        client.remove(root, recursive=True, force=True)


@contextmanager
def started(case: Case, way: str, size: Size, proxy: str, folder: Path) -> Iterator[Driver]:
    """Start a driver; it has ended when the block is left."""
    reader, writer = os.pipe()
    log = folder / f"{way}.log"
    # The same for all ways: a difference in the JVM's flags is none of the code.
    submitted = (
        f"--driver-java-options {spark_conf.COLLECTOR} --driver-memory {case.memory} "
        f"--master local[{case.cores}] pyspark-shell"
    )
    words = [json.dumps(case.written()), way, "tiny" if size is TINY else "full", proxy, writer]
    with log.open("w") as out, os.fdopen(reader, encoding="utf-8") as answers:
        process = subprocess.Popen(
            [interpreter(case.spark), "-m", "bench.driver", *map(str, words)],
            cwd=ROOT,
            env={**os.environ, "YTSTREAM_SUBMIT_ARGS": submitted},
            stdin=subprocess.PIPE,
            stdout=out,
            stderr=subprocess.STDOUT,
            pass_fds=[writer],
            text=True,
            start_new_session=True,
        )
        os.close(writer)
        try:
            yield Driver(way, process, answers, log, Tree(process.pid))
        finally:
            _end(process)


def interpreter(spark: str | None) -> str:
    """Return the Python of the environment that has this Spark; `make setup-all` makes it."""
    return str(ROOT / f".venv-{spark}/bin/python") if spark else sys.executable


def _end(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.close()
    with suppress(subprocess.TimeoutExpired):
        process.wait(_STOP_SECONDS)
    with suppress(ProcessLookupError):  # its JVM and Python workers, too
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
