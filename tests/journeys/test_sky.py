"""Positions of aircraft out of two queues: what changes, what goes, and flights; killed each time.

Two projects, as a user makes them out of the template. The driver is a process. It is killed with
an open transaction that has rows of some outputs, before the commit of a batch, and after it.
"""

from __future__ import annotations

import random
import shutil
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from yt.yson import YsonUint64

from minicluster import testing as minicluster
from tests.conftest import Generate
from tests.faults import protocol
from tests.faults.after_requests import Request, add_fault
from tests.faults.sweep.oracle import plain
from tests.journeys.make_commands import edit
from tests.journeys.usage import PATIENCE_SECONDS, wait
from tests.support.jvm import submit_args
from tests.support.project import ROOT
from ytstream.cluster.client import connect
from ytstream.guarantees import guarantee_of
from ytstream.instance.lock import LOCK_SECONDS
from ytstream.job import JobContext
from ytstream.settings.job_settings import load
from ytstream_tools.demo import demo_tables
from ytstream_tools.demo.crash_scenario import drained
from ytstream_tools.demo.job_process import JobProcess, run_command, running

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.journey]

FOLDER = ROOT / "tests" / "journeys" / "sky"
ROOT_PATH = "//home/sky"
ROWS, AIRCRAFT, PHASES = 50_000, 400, 4
START_US = 1_704_067_200_000_000
MINUTE_US = 60_000_000
SILENCE = timedelta(minutes=30)
Row = dict[str, Any]


def positions() -> list[Row]:
    """Return what aircraft send, in the order in which it arrives: up to five minutes late.

    Between two flights there are 30 minutes, or a microsecond more, or hours. Some positions are
    there twice, and some times have two.
    """
    chance, sent = random.Random(64), list[tuple[int, Row]]()
    now = [START_US + chance.randrange(60 * MINUTE_US) for _ in range(AIRCRAFT)]
    while len(sent) < ROWS:
        number = chance.randrange(AIRCRAFT)
        for _ in range(chance.randrange(5, 30)):
            now[number] += chance.randrange(30_000_000, 4 * MINUTE_US)
            row = {
                "icao24": f"{number * 33:06x}",
                "at": YsonUint64(now[number]),
                "altitude": chance.choice((None, chance.randrange(12_000))),
                "on_ground": chance.random() < 0.3,
            }
            more = [row] if chance.random() < 0.02 else []
            if chance.random() < 0.05:
                more.append({**row, "altitude": 7, "on_ground": not row["on_ground"]})
            sent += [(now[number] + chance.randrange(5 * MINUTE_US), one) for one in (row, *more)]
        pause = (30 * MINUTE_US, 30 * MINUTE_US + 1, chance.randrange(31, 300) * MINUTE_US)
        now[number] += chance.choice(pause)
    sent.sort(key=lambda one: one[0])
    return [row for _, row in sent[:ROWS]]


def wanted_positions(rows: Sequence[Row]) -> dict[str, list[tuple[Any, ...]]]:
    """Return what pandas makes of positions, in whatever order they have come."""
    every = pd.DataFrame(rows).astype({"at": "int64", "altitude": "Int64"})
    # Of one time the greater column wins, and null is the least. A delete wins over all.
    every["rank"] = every["altitude"].fillna(-1)
    current = every.sort_values(["at", "rank", "on_ground"]).groupby("icao24").tail(1)
    every["is_flying"] = ~every["on_ground"]
    last = every.sort_values(["at", "is_flying", "rank"]).groupby("icao24").tail(1)
    columns = ["icao24", "at", "altitude"]
    return {
        "output": _tuples(every[[*columns, "on_ground"]]),
        "current": _tuples(current[[*columns, "on_ground"]]),
        "on_ground_now": _tuples(last[last["on_ground"]][columns]),
    }


def wanted_flights(rows: Sequence[Row]) -> dict[str, list[tuple[Any, ...]]]:
    """Return what pandas makes of them: a silence of more than 30 minutes ends a flight."""
    every = pd.DataFrame(rows).astype({"at": "int64"}).sort_values(["icao24", "at"])
    every["altitude"] = every["altitude"].fillna(0).astype("int64")
    silent = every.groupby("icao24")["at"].diff() > SILENCE // timedelta(microseconds=1)
    found = every.groupby(["icao24", silent.cumsum()]).agg(
        first_seen=("at", "min"),
        last_seen=("at", "max"),
        positions=("at", "size"),
        highest=("altitude", "max"),
    )
    return {"output": _tuples(found.reset_index("icao24")), "rejected": []}


def _tuples(frame: pd.DataFrame) -> list[tuple[Any, ...]]:
    rows = frame.astype(object).where(frame.notna(), None).itertuples(index=False, name=None)
    return sorted(rows, key=repr)


@dataclass(frozen=True)
class Project:
    """What a user makes of the template."""

    processing: str
    edits: Mapping[str, str]
    """Of job.py."""
    tables: Mapping[str, str]
    """The table of each output. A driver is killed when it has written into the last one."""
    wanted: Callable[[Sequence[Row]], dict[str, list[tuple[Any, ...]]]]
    closing: Sequence[Row] = ()
    """Rows that bring out what waits for the watermark."""


PROJECTS = {
    "positions": Project(
        "merge",
        {
            "import MERGE, REJECT, transform": "import MERGE, outputs, transform",
            "    reject=REJECT,\n": "    split=outputs,\n",
        },
        {
            "output": "positions_history",
            "current": "positions_current",
            "on_ground_now": "on_ground_now",
        },
        wanted_positions,
    ),
    "flights": Project(
        "sessions",
        {},
        {"rejected": "rejected", "output": "flights"},
        wanted_flights,
        [
            {
                "icao24": "closing",
                "at": YsonUint64(START_US + 365 * 24 * 60 * MINUTE_US),
                "altitude": None,
                "on_ground": True,
            }
        ],
    ),
}
SMALLER = {
    "max_rows_per_partition = 2_000": "max_rows_per_partition = 500",
    "dyn_batch_size = 1_000": "dyn_batch_size = 250",
}
COMMIT = protocol.request("commit T")


@dataclass
class Site:
    """A job on a cluster of its own."""

    name: str
    project: Path
    cluster: minicluster.Running
    log: Path
    context: JobContext
    sent: int = 0

    def places(self, table: str) -> list[list[Request]]:
        """Return where its drivers are killed, each in the second batch from then on."""
        settings = self.context.settings
        head = Request("ModifyRows", {"path": settings.ledger})
        written = Request("ModifyRows", {"path": f"{ROOT_PATH}/{table}"}, "after")
        second = replace(head, skip=1)
        return [[head, written], [second, COMMIT], [second, replace(COMMIT, when="after")]]

    @contextmanager
    def job(self) -> Iterator[JobProcess]:
        """Start a driver, and let it read what is there."""
        with running(self.name, self.cluster.http, self.log, self.project) as process:
            wait(process.has_started, process)
            wait(drained(self.context), process)
            yield process

    def send(self, rows: Sequence[Row]) -> None:
        """Put rows into the queues: they take turns."""
        queues = self.context.settings.queues
        for number, queue in enumerate(queues):
            mine = rows[(number + self.sent) % len(queues) :: len(queues)]
            tablets = int(self.context.client.get(f"{queue}/@tablet_count"))
            demo_tables.produce(self.context.client, queue, mine, tablets)
        self.sent += len(rows)

    def kill(self, process: JobProcess, place: Sequence[Request], rows: Sequence[Row]) -> None:
        """Let the cluster kill the driver at the place, while it reads these rows."""
        faults = self.cluster.client.faults
        rule = add_fault(faults, place, action="kill", pgid=process.pgid)
        self.send(rows)
        assert process.wait(PATIENCE_SECONDS) == -signal.SIGKILL, process.tail(60)
        assert faults.get(rule).hits == 1
        faults.clear()
        self.cluster.client.clock.advance(LOCK_SECONDS + 1)

    def found(self, output: str) -> list[tuple[Any, ...]]:
        """Return the rows of a table."""
        columns = [column.name for column in self.context.job.output_columns[output]]
        path = self.context.settings.outputs[output]
        rows = self.context.client.select_rows(f"* from [{path}]")
        return sorted((tuple(plain(row[name]) for name in columns) for row in rows), key=repr)


@pytest.mark.parametrize("name", PROJECTS)
def test_a_job_that_is_killed_three_times_makes_what_pandas_makes(
    generate: Generate, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("YTSTREAM_SUBMIT_ARGS", submit_args())
    made, rows = PROJECTS[name], positions()
    wanted = made.wanted(rows)
    with _site(generate, name, tmp_path, monkeypatch) as site:
        count = len(rows) // PHASES
        first, *later = (rows[at : at + count] for at in range(0, len(rows), count))
        site.send(first)
        for place, phase in zip(site.places([*made.tables.values()][-1]), later, strict=True):
            with site.job() as process:
                site.kill(process, place, phase)
        with site.job() as process:
            site.send(made.closing)
            wait(lambda: len(site.found("output")) >= len(wanted["output"]), process)
            wait(drained(site.context), process)
            assert process.stop() == 0
        for output, expected in wanted.items():
            found = site.found(output)
            print(f"{output}: {len(found)} rows", flush=True)
            assert found == expected
    assert all(wanted[output] for output in made.tables if output != "rejected")


@contextmanager
def _site(
    generate: Generate, name: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Site]:
    """Generate the project, with the user's files in place, and provision its job."""
    made, root = PROJECTS[name], f"{ROOT_PATH}/job"
    project = generate(
        project_name=name,
        processing=made.processing,
        guarantee="transactional",
        queue_paths=f"{ROOT_PATH}/east {ROOT_PATH}/west",
        cypress_root=root,
    )
    for file in ("tables.py", "transform.py"):
        shutil.copy(FOLDER / name / file, project / "src" / name / file)
    edit(project / "src" / name / "job.py", made.edits)
    config = project / "config" / "local.toml"
    outputs = "".join(f'{key} = "{ROOT_PATH}/{table}"\n' for key, table in made.tables.items())
    generated = f'output = "{root}/output"\nrejected = "{root}/rejected"\n'
    edit(config, {**SMALLER, generated: outputs})
    monkeypatch.syspath_prepend(str(project / "src"))
    job = import_module(f"{name}.job").JOB
    with minicluster.start() as cluster:
        settings = load(config, {"YT_PROXY": cluster.http})
        context = JobContext(connect(settings), settings, job, guarantee_of(job))
        run_command(name, cluster.http, project, "provision")
        yield Site(name, project, cluster, folder / "job.log", context)
