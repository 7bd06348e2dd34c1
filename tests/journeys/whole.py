"""Run by the interpreter inside a generated project, as a script of its user's would be.

    python whole.py PACKAGE ROWS OUTCOME

Starts the project's minicluster, provisions, produces the pickled ROWS, runs the job until it has
read them all, stops it, and pickles all rows of all tables that the job wrote into OUTCOME. ROWS is
a list of phases: a dict of queue and rows, each sent when those before it are in the ledger.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from minicluster import testing
from tests.journeys.usage import Usage, wait
from ytstream.cluster.client import connect
from ytstream.guarantees import guarantee_of
from ytstream.job import JobContext
from ytstream.settings.job_settings import load
from ytstream_tools.demo import demo_tables
from ytstream_tools.demo.crash_scenario import drained
from ytstream_tools.demo.job_process import run_command, running


def main(package: str, rows_file: Path, outcome_file: Path) -> None:
    job = import_module(f"{package}.job").JOB
    first, *later = pickle.loads(rows_file.read_bytes())
    log = Path.cwd() / "build" / "job.log"
    log.parent.mkdir(exist_ok=True)
    with testing.start() as cluster:
        settings = load(Path.cwd() / "config/local.toml", {"YT_PROXY": cluster.http})
        context = JobContext(connect(settings), settings, job, guarantee_of(job))
        print(run_command(package, cluster.http, Path.cwd(), "provision"))
        produce(context, first)
        before = Usage.now(cluster.pid)
        with running(package, cluster.http, log, Path.cwd()) as process:
            wait(drained(context), process)
            for rows in later:
                produce(context, rows)
                wait(drained(context), process)
            after = Usage.now(cluster.pid, process.pgid)
            exit_code = process.stop()
        sent = sum(len(rows) for phase in (first, *later) for rows in phase.values())
        print(process.tail(), after.since(before, sent), sep="\n")
        written = context.client.select_rows(
            f'rows_written from [{settings.ledger}] where kind = "batch"'
        )
        outcome = {
            "exit_code": exit_code,
            "rows_in": sum(demo_tables.rows_in(context.client, path) for path in settings.queues),
            "batches": [row["rows_written"] for row in written],
            "outputs": {name: read(context, name) for name in settings.outputs},
            "tables": {
                name: len(demo_tables.snapshots(context.client, settings.outputs[name]))
                for name in job.static
            },
        }
    outcome_file.write_bytes(pickle.dumps(outcome))


def produce(context: JobContext, phase: Mapping[str, list[dict[str, Any]]]) -> None:
    for queue, rows in phase.items():
        tablets = int(context.client.get(f"{queue}/@tablet_count"))
        assert tablets == TABLETS
        demo_tables.produce(context.client, queue, rows, tablets)


def read(context: JobContext, output: str) -> list[dict[str, Any]]:
    """Return the rows of an output; of a static one those of all its tables."""
    client, path = context.client, context.settings.outputs[output]
    if output in context.job.static:
        paths = demo_tables.snapshots(client, path)
        return [{**row} for table in paths for row in client.read_table(table)]
    rows = client.select_rows(f"* from [{path}]")
    return [{name: row[name] for name in row if not name.startswith("$")} for row in rows]


TABLETS = 4
"""Of each queue, as `make provision` creates it here."""

if __name__ == "__main__":
    main(sys.argv[1], *map(Path, sys.argv[2:]))
