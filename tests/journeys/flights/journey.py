"""Run by the interpreter inside a generated project, as a script of its user's would be.

    python journey.py ROWS OUTCOME

Starts the project's minicluster, provisions, produces the pickled ROWS into the one queue, runs the
job until it has read them all, stops it, and pickles what it found into OUTCOME.
"""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from typing import Any

from flights.job import JOB

from minicluster import testing
from tests.journeys.usage import Usage, wait
from ytstream.cluster import Client, connect
from ytstream.config import load
from ytstream.demo import tables
from ytstream.demo.process import ROOT, run_command, running
from ytstream.demo.scenario import drained
from ytstream.guarantees import guarantee_of
from ytstream.job import Connection

CHUNK = 5_000


def main(rows_file: Path, outcome_file: Path) -> None:
    rows = pickle.loads(rows_file.read_bytes())
    log = ROOT / "build" / "job.log"
    log.parent.mkdir(exist_ok=True)
    with testing.start() as cluster:
        settings = load(ROOT / "config/local.toml", {"YT_PROXY": cluster.http})
        client = connect(settings)
        connection = Connection(client, settings, JOB, guarantee_of(JOB))
        print(run_command(JOB.package, cluster.http, "provision"))
        (queue,) = settings.queues
        produce(client, queue, rows)
        before = Usage.now(cluster.pid)
        with running(JOB.package, cluster.http, log) as job:
            wait(drained(connection), job)
            after = Usage.now(cluster.pid, job.pgid)
            exit_code = job.stop()
        print(job.tail(), after.since(before, len(rows)), sep="\n")
        columns = JOB.output_columns["output"]
        outcome = {
            "exit_code": exit_code,
            "rows_in": tables.rows_in(client, queue),
            "queue_tablets": int(client.get(f"{queue}/@tablet_count")),
            "columns": [column.name for column in columns],
            "rows": tables.read(client, settings.output, columns),
        }
    outcome_file.write_bytes(pickle.dumps(outcome))


def produce(client: Client, queue: str, rows: list[dict[str, Any]]) -> None:
    for start in range(0, len(rows), CHUNK):
        client.insert_rows(queue, rows[start : start + CHUNK])


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
