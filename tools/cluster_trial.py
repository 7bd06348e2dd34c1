"""Try a whole submit on a cluster, and say where it differs from the minicluster.

    make test-cluster PROXY=cluster.example.com [FOLDER=//home/me] [SETTINGS=keys.toml]

A generated job is provisioned, submitted, loses its driver's job and is stopped, its rows are
counted, and the conformance suite runs. Everything is in a folder of its own, which is removed in
the end. SETTINGS has keys of a job's configuration that the cluster needs, such as `pool`,
`account`, or `python` under [submit]. The token comes from YT_TOKEN.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from yt.common import YtError

from tools import conformance as suite
from tools.example import generated
from ytstream.cluster import operation
from ytstream.cluster.client import connect, first_line
from ytstream.errors import JobError
from ytstream.guarantees import guarantee_of
from ytstream.job import JobContext
from ytstream.settings.job_settings import load
from ytstream_tools.demo import demo_tables
from ytstream_tools.demo.crash_scenario import drained

PACKAGE = "bids_stream"
ROWS = 4_000
PATIENCE_SECONDS = 600.0
SHOWN_LINES = 40
"""What one command of the job says is of interest only when it fails."""


class NotDoneError(Exception):
    """A step did not come to its end; what it said is shown, and later ones are left out."""


@dataclass
class Trial:
    """A project, its configuration for the cluster, and the rows that were sent."""

    root: Path
    config: Path
    context: JobContext
    sample: Any
    sent: list[dict[str, Any]] = field(default_factory=list)

    @property
    def client(self) -> Any:
        """The client, with the calls that the job itself has no use for."""
        return self.context.client

    def command(self, *words: str) -> str:
        """Call a command as `make` does; return what it says. Raises NotDoneError."""
        path = os.pathsep.join(map(str, (self.root / "src", self.root, *sys.path[1:])))
        done = subprocess.run(
            [sys.executable, "-m", PACKAGE, *words, "--config", str(self.config)],
            cwd=self.root,
            env={**os.environ, "PYTHONPATH": path},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if done.returncode:
            last = "\n".join(done.stdout.splitlines()[-SHOWN_LINES:])
            raise NotDoneError(f"`{words[0]}` ended with {done.returncode}:\n{last}")
        return done.stdout

    def send(self) -> None:
        """Put new rows into the queue."""
        [queue] = self.context.settings.queues
        rows = self.sample.make(ROWS, len(self.sent) + 1, None)
        demo_tables.produce(
            self.client, queue, rows, int(self.client.get(f"{queue}/@tablet_count"))
        )
        self.sent += rows

    def driver(self) -> operation.Operation:
        """Return the job's operation. Raises NotDoneError."""
        found = operation.get(self.client, alias=self.context.settings.alias)
        if found is None:
            raise NotDoneError("the alias finds no operation")
        return found

    def states(self) -> str:
        """Return the states of the driver's attempts, the first one first."""
        runs = operation.runs(self.client, self.driver().id)
        return ", ".join(run.state for run in reversed(runs))

    def wait(self, is_so: Callable[[], bool]) -> None:
        """Wait until it is so. Raises NotDoneError."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not is_so():
            if time.monotonic() > deadline:
                raise NotDoneError(f"not within {PATIENCE_SECONDS:.0f} s")
            time.sleep(1)


# What is tried, each returning what was seen


def _provision(trial: Trial) -> str:
    trial.command("provision")
    trial.send()
    return "done"


def _submit(trial: Trial) -> str:
    said = trial.command("submit")
    return "first batch" if "the first batch is in the ledger" in said else said.splitlines()[-1]


def _drain(trial: Trial) -> str:
    trial.wait(drained(trial.context))
    return f"{trial.states()}, epoch {_epoch(trial)}"


def _abort(trial: Trial) -> str:
    [running] = operation.runs(trial.client, trial.driver().id, "running")
    trial.client.abort_job(running.id)
    trial.send()
    trial.wait(drained(trial.context))
    return f"{trial.states()}, epoch {_epoch(trial)}"


def _logs(trial: Trial) -> str:
    headers = re.findall(r"^=== (driver|executor), job|^=== (executor) \d", trial.command("logs"),
                         re.MULTILINE)  # fmt: skip
    return ", ".join(sorted({one or other for one, other in headers}))


def _status(trial: Trial) -> str:
    found = re.search(r"^operation \S+: (\w+) ", trial.command("status"), re.MULTILINE)
    return found[1] if found else "no operation"


def _stop(trial: Trial) -> str:
    executors = trial.driver().executors
    trial.command("stop")
    other = operation.get(trial.client, executors)
    return f"{trial.driver().state}, executors {other.state if other is not None else 'gone'}"


def _count(trial: Trial) -> str:
    found = demo_tables.together(demo_tables.outcomes(trial.context, trial.sample, trial.sent))
    return f"{found.lost} lost, {found.duplicated} repeated"


def _epoch(trial: Trial) -> int:
    path = trial.context.settings.ledger
    rows = trial.client.select_rows(
        f'max(epoch) as last from [{path}] where kind = "batch" group by 1'
    )
    return int(next(iter(rows))["last"])


class Step(NamedTuple):
    """What is tried, and what the minicluster gives."""

    name: str
    function: Callable[[Trial], str]
    expected: str


STEPS = (
    Step("provision", _provision, "done"),
    Step("submit", _submit, "first batch"),
    Step("attempts at the end of the queue", _drain, "running, epoch 1"),
    Step("attempts after an abort of the driver's job", _abort, "aborted, running, epoch 2"),
    Step("logs", _logs, "driver, executor"),
    Step("status", _status, "running"),
    Step("stop", _stop, "completed, executors completed"),
    Step("rows", _count, "0 lost, 0 repeated"),
)


class Seen(NamedTuple):
    """What a step has given on this cluster."""

    step: Step
    found: str
    seconds: float


def tried(trial: Trial) -> Iterator[Seen]:
    """Yield each step when it is over; after one that fails no other is tried."""
    for step in STEPS:
        began = time.monotonic()
        try:
            found, is_done = step.function(trial), True
        except (NotDoneError, JobError, YtError, OSError, ValueError) as error:
            text = str(error) if isinstance(error, NotDoneError) else first_line(error)
            found, is_done = f"failed: {text}", False
        yield Seen(step, found, time.monotonic() - began)
        if not is_done:
            return


def differences(seen: list[Seen], refused: list[str]) -> list[str]:
    """Return where the cluster differs from the minicluster, a paragraph each."""
    left = [step.name for step in STEPS[len(seen) :]]
    return [
        *(
            f"{one.step.name}: {one.found}\n  the minicluster: {one.step.expected}"
            for one in seen
            if one.found != one.step.expected
        ),
        *([f"not tried after that: {', '.join(left)}"] if left else []),
        *(f"conformance: {line}" for line in refused),
    ]


def conformance(proxy: str) -> list[str]:
    """Run the conformance suite on the cluster; return its failures, a line each."""
    found = suite.asked(proxy, os.environ.get("YT_TOKEN", ""))
    lines = [f"{case}: {answer}" for case, answer in found.differing.items()]
    return [*lines, *([found.problem] if found.problem else [])]


@contextmanager
def trial_of(proxy: str, parent: str, settings: Path | None, folder: Path) -> Iterator[Trial]:
    """Generate a project for the cluster in ``folder``; remove all that it leaves there."""
    home = f"{parent}/ytstream-trial-{uuid.uuid4().hex[:8]}"
    answers = {"yt_proxy": proxy, "queue_paths": f"{home}/bids", "cypress_root": f"{home}/job"}
    root = generated(folder / "project", answers)
    given, config = root / "config" / "given.toml", root / "config" / "trial.toml"
    given.write_text(settings.read_text(encoding="utf-8") if settings else "", encoding="utf-8")
    production = (root / "config" / "production.toml").read_text(encoding="utf-8")
    config.write_text(
        f'extends = "given.toml"\ncreate_queues = true\n{production}', encoding="utf-8"
    )
    sys.path[1:1] = [str(root / "src"), str(root)]
    job, sample = import_module(f"{PACKAGE}.job").JOB, import_module("sample").SAMPLE
    found = load(config)
    trial = Trial(root, config, JobContext(connect(found), found, job, guarantee_of(job)), sample)
    trial.client.create("map_node", home, recursive=True)
    try:
        yield trial
    finally:
        _remove(trial, home)


def _remove(trial: Trial, home: str) -> None:
    """End what still runs, take the consumer's registration back, and remove the folder."""
    settings = trial.context.settings
    with suppress(NotDoneError, YtError):
        if not (driver := trial.driver()).is_final:
            print(*operation.abort(trial.client, driver, "the trial is over"), sep="\n")
    for queue in settings.queues:
        with suppress(YtError):
            trial.client.unregister_queue_consumer(queue, settings.consumer)
    try:
        trial.client.remove(home, recursive=True, force=True)
    except YtError as error:
        print(f"{home} is still there: {first_line(error)}; remove it by hand", file=sys.stderr)


def main(proxy: str, parent: str, settings: Path | None, *, with_conformance: bool = True) -> int:
    """Try everything on the cluster; return 1 where it differs from the minicluster."""
    seen: list[Seen] = []
    with (
        tempfile.TemporaryDirectory() as folder,
        trial_of(proxy, parent, settings, Path(folder)) as trial,
    ):
        print(f"{trial.context.settings.ledger.rpartition('/')[0]} on {proxy}", flush=True)
        for one in tried(trial):
            seen.append(one)
            print(f"{one.seconds:6.0f} s  {one.step.name}: {one.found}", flush=True)
    refused = []
    if with_conformance:
        print(f"the conformance suite ({suite.SUITE})", flush=True)
        refused = conformance(proxy)
    found = differences(seen, refused)
    print(f"\n{len(found)} differences from the minicluster", *found, sep="\n")
    return 1 if found else 0


def run(words: Sequence[str]) -> None:
    """Do what the words of the command line say."""
    parser = argparse.ArgumentParser(prog="python -m tools.cluster_trial", description=__doc__)
    parser.add_argument("proxy", help="the cluster's name, host or URL")
    parser.add_argument("--folder", default="//tmp", help="where the trial makes its own folder")
    parser.add_argument(
        "--settings", type=Path, help="a TOML file with keys that the cluster needs"
    )
    parser.add_argument("--without-conformance", action="store_true", help="the submit alone")
    given = parser.parse_args(words)
    alone = given.without_conformance
    try:
        sys.exit(main(given.proxy, given.folder, given.settings, with_conformance=not alone))
    except JobError as error:
        sys.exit(f"error [{error.code}]: {error}")
    except (YtError, OSError) as error:
        sys.exit(f"error: {first_line(error)}")


if __name__ == "__main__":
    run(sys.argv[1:])
