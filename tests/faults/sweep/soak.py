"""`tests.faults.sweep.soak --minutes N`: steady load, and something that goes wrong at random.

A real process runs the job, with two executors, processes as well. Every few seconds rows come in;
now and then the driver or an executor is killed, the RPC proxy goes down and up, rows behind the
consumer are trimmed, or the output is unmounted. At the end the rows are counted as in any case.
Figures of three parts of the run are kept for the page.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean
from subprocess import Popen
from tempfile import TemporaryDirectory
from typing import Any

from yt.common import YtError

from minicluster import testing
from tests.faults.sweep import history, oracle
from tests.faults.sweep.lane import PARTITIONS, context_of
from tests.faults.sweep.twins import process
from tests.faults.sweep.variants import Variant, variant_of
from tests.support.project import ROOT
from tests.support.standalone import Standalone, standalone
from ytstream.job import JobContext
from ytstream.provisioning import job_objects
from ytstream.recovery.lock import LOCK_SECONDS
from ytstream_tools.demo.crash_scenario import drained
from ytstream_tools.demo.demo_tables import fill_reference
from ytstream_tools.demo.job_sample import Sample

FIGURES = ROOT / "docs" / "proof" / "soak.json"
LOG = ROOT / "build" / "proof" / "soak.log"
ROWS, PERIOD_SECONDS, FAULT_SECONDS = 40, 2.0, 25.0
#: Of a partition in a batch at most: what came while no driver ran is one batch.
BATCH_ROWS = 2_000
_DRAIN_SECONDS = 600.0
_PARTS = ("start", "middle", "end")


@dataclass(frozen=True)
class Look:
    """Figures at one moment."""

    second: float
    driver_mib: float
    executors_mib: float
    cluster_mib: float
    nodes: int
    requests: int
    batches: int


@dataclass
class Soak:
    """A run: the job, its driver, and what was done to it."""

    variant: Variant
    context: JobContext
    sample: Sample
    cluster: testing.Running
    machines: Standalone
    drivers: ExitStack
    source: random.Random
    driver: Popen[bytes] | None = None
    sent: list[dict[str, Any]] = field(default_factory=list)
    looks: list[Look] = field(default_factory=list)
    done: dict[str, int] = field(default_factory=dict)
    _rounds: int = 0

    @property
    def batches(self) -> int:
        """How many micro-batches were done at the last look."""
        return self.looks[-1].batches if self.looks else 0

    def start(self) -> None:
        """Start a driver, once the lock of one that was killed is free."""
        self.cluster.client.clock.advance(LOCK_SECONDS + 1)
        self.drivers.close()
        started = process(self.variant.name, self.cluster.http, LOG, BATCH_ROWS)
        self.driver = self.drivers.enter_context(started)

    def put(self) -> None:
        """Append rows to each queue, a second of event time after those before."""
        start_us = self.sample.start_us + self._rounds * 1_000_000
        for position, queue in enumerate(self.context.settings.queues):
            rows = self.sample.make(ROWS, 1_000_000 + self._rounds * 10 + position, start_us)
            self.context.client.insert_rows(
                queue, [{**row, "$tablet_index": n % PARTITIONS} for n, row in enumerate(rows)]
            )
            self.sent += rows
        self._rounds += 1

    def disturb(self) -> None:
        """Let one thing go wrong."""
        faults: dict[str, Callable[[], None]] = {
            "driver killed": self._kill,
            "executor killed": self._kill_executor,
            "proxy down and up": self._proxy,
            "trimmed behind the consumer": self._trim,
            "output unmounted and mounted": self._unmount,
        }
        name = self.source.choice([*faults])
        faults[name]()
        self.done[name] = self.done.get(name, 0) + 1

    def _kill(self) -> None:
        assert self.driver is not None
        with suppress(ProcessLookupError):
            os.killpg(self.driver.pid, signal.SIGKILL)
        self.start()

    def _kill_executor(self) -> None:
        executors = self.machines.executors()
        with suppress(ProcessLookupError, IndexError):  # of a driver that has just been killed
            os.kill(self.source.choice(executors), signal.SIGKILL)

    def _proxy(self) -> None:
        address = self.cluster.rpc[0]
        self.cluster.client.proxies.down(address)
        time.sleep(1)
        self.cluster.client.proxies.up(address)

    def _trim(self) -> None:
        client, settings = self.context.client, self.context.settings
        for row in client.select_rows(f"* from [{settings.consumer}]"):
            client.trim_rows(row["queue_path"], row["partition_index"], int(row["offset"]))

    def _unmount(self) -> None:
        client: Any = self.context.client
        path = self.context.settings.output
        client.unmount_table(path, sync=True)
        time.sleep(2)
        client.mount_table(path, sync=True)

    def look(self, second: float) -> None:
        """Note the figures of this moment."""
        assert self.driver is not None
        client, settings = self.context.client, self.context.settings
        with suppress(YtError):
            nodes = _nodes(client.get(settings.checkpoint))
            query = f'number from [{settings.ledger}] where kind = "batch"'
            batches = [*client.select_rows(f"{query} order by number desc limit 1")]
            self.looks.append(
                Look(
                    second,
                    _mib_of_group(self.driver.pid),
                    sum(map(_mib, self.machines.executors())),
                    _mib(self.cluster.pid),
                    nodes,
                    sum(self.cluster.client.journal.counts().values()),
                    int(batches[0]["number"]) if batches else 0,
                )
            )


def _nodes(tree: Any) -> int:
    """Return how many nodes a folder's tree has."""
    return sum(1 + _nodes(child) for child in tree.values()) if isinstance(tree, dict) else 0


def _mib(pid: int) -> float:
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
    return 0.0


def _mib_of_group(pgid: int) -> float:
    """Return the memory of all processes of a group."""
    found = 0.0
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, ProcessLookupError):
            if os.getpgid(int(folder.name)) == pgid:
                found += _mib(int(folder.name))
    return found


def run(variant: Variant, minutes: float, seed: int) -> dict[str, Any]:
    """Return the figures of a soak."""
    with (
        TemporaryDirectory(prefix="machines-") as folder,
        standalone(Path(folder)) as machines,
        testing.start() as cluster,
        ExitStack() as drivers,
    ):
        os.environ["YTSTREAM_SUBMIT_ARGS"] = machines.submit_args
        context, sample = context_of(variant, cluster.http)
        job_objects.LOCAL_QUEUE_TABLETS = PARTITIONS
        job_objects.provision(context)
        fill_reference(context, sample)
        source = random.Random(seed)
        soak = Soak(variant, context, sample, cluster, machines, drivers, source)
        soak.start()
        began = time.monotonic()
        next_fault, batches = FAULT_SECONDS, 0
        while (second := time.monotonic() - began) < minutes * 60:
            soak.put()
            soak.look(second)
            assert soak.driver is not None
            if soak.driver.poll() is not None:
                raise RuntimeError(f"the driver has ended with {soak.driver.returncode}: {LOG}")
            # Not before a batch is done: a driver that never comes so far shows nothing.
            if second > next_fault and (done := soak.batches) > batches:
                batches = done
                soak.disturb()
                next_fault = second + FAULT_SECONDS * (0.5 + soak.source.random())
            time.sleep(PERIOD_SECONDS)
        is_drained, end = drained(context), time.monotonic() + _DRAIN_SECONDS
        for row in (None, *sample.closing(context.job, soak.sent)):
            if row is not None:
                queue = context.settings.queues[0]
                context.client.insert_rows(queue, [{**row, "$tablet_index": 0}])
                soak.sent.append(row)
            while not is_drained():
                if time.monotonic() > end:
                    raise RuntimeError(f"rows wait since {_DRAIN_SECONDS:.0f} s: {LOG}")
                time.sleep(0.5)
        columns = history.columns_of(variant)
        # Rows that were trimmed cannot be looked up: "rejected" is counted by its number alone.
        verdict = oracle.compared(
            {"output": history.expected_of(variant, soak.sent)["output"]},
            oracle.read(context.client, variant.root, {"output": columns["output"]}),
        )
        return figures(soak, verdict, minutes, seed)


def figures(soak: Soak, verdict: oracle.Verdict, minutes: float, seed: int) -> dict[str, Any]:
    """Return what the page shows."""
    third = max(1, len(soak.looks) // 3)
    parts = [soak.looks[n * third : (n + 1) * third] for n in range(3)]
    body = [[name, *_row(part)] for name, part in zip(_PARTS, parts, strict=True) if part]
    faults = ", ".join(f"{count} × {name}" for name, count in sorted(soak.done.items()))
    told = (
        f"{soak.variant.name}, {minutes:g} minutes, seed {seed}: {len(soak.sent)} rows in, "
        f"{verdict.lost} lost, {verdict.repeated} repeated; {faults or 'no fault'}."
    )
    head = [
        "part", "driver, MiB", "executors, MiB", "minicluster, MiB", "nodes of the checkpoint",
        "requests per batch", "seconds per batch",
    ]  # fmt: skip
    return {"told": told, "head": head, "body": body, "lost": verdict.lost}


def _row(looks: Sequence[Look]) -> list[str]:
    first, last = looks[0], looks[-1]
    batches = max(1, last.batches - first.batches)
    return [
        f"{mean(look.driver_mib for look in looks):.0f}",
        f"{mean(look.executors_mib for look in looks):.0f}",
        f"{mean(look.cluster_mib for look in looks):.0f}",
        f"{mean(look.nodes for look in looks):.0f}",
        f"{(last.requests - first.requests) / batches:.0f}",
        f"{(last.second - first.second) / batches:.2f}",
    ]


def main(words: Sequence[str] | None = None) -> int:
    """Return 0 when no row was lost, else 1."""
    parser = argparse.ArgumentParser("python -m tests.faults.sweep.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--seed", type=int, default=31)
    parser.add_argument("--variant", default="transactional-window-1")
    parser.add_argument("--figures", type=Path, default=FIGURES)
    given = parser.parse_args(words)
    # Ends like Ctrl-C, so that no process outlives it.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    found = run(variant_of(given.variant), given.minutes, given.seed)
    given.figures.parent.mkdir(parents=True, exist_ok=True)
    given.figures.write_text(f"{json.dumps(found, indent=1)}\n", encoding="utf-8")
    print(found["told"])
    return int(found["lost"] > 0)


if __name__ == "__main__":
    raise SystemExit(main())
