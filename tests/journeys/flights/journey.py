"""Run by the interpreter inside a generated project, as a script of its user's would be.

    python journey.py ROWS OUTCOME

Starts the project's minicluster, provisions, produces the pickled ROWS into the one queue, runs the
job until it has read them all, stops it, and pickles what it found into OUTCOME.
"""

from __future__ import annotations

import pickle
import sys
from pathlib import Path

from flights.job import JOB

from minicluster import testing
from tests.journeys.flights.reference import TABLETS
from tests.journeys.usage import Usage, wait
from ytstream.cluster import connect
from ytstream.config import load
from ytstream.demo import tables
from ytstream.demo.process import run_command, running
from ytstream.demo.scenario import drained
from ytstream.guarantees import guarantee_of
from ytstream.job import Connection


def main(rows_file: Path, outcome_file: Path) -> None:
    rows = pickle.loads(rows_file.read_bytes())
    log = Path.cwd() / "build" / "job.log"
    log.parent.mkdir(exist_ok=True)
    with testing.start() as cluster:
        settings = load(Path.cwd() / "config/local.toml", {"YT_PROXY": cluster.http})
        client = connect(settings)
        connection = Connection(client, settings, JOB, guarantee_of(JOB))
        print(run_command(JOB.package, cluster.http, Path.cwd(), "provision"))
        (queue,) = settings.queues
        tables.produce(client, queue, rows, TABLETS)
        before = Usage.now(cluster.pid)
        with running(JOB.package, cluster.http, log, Path.cwd()) as job:
            wait(drained(connection), job)
            after = Usage.now(cluster.pid, job.pgid)
            exit_code = job.stop()
        print(job.tail(), after.since(before, len(rows)), sep="\n")
        written = client.select_rows(f'rows_written from [{settings.ledger}] where kind = "batch"')
        outcome = {
            "exit_code": exit_code,
            "rows_in": tables.rows_in(client, queue),
            "queue_tablets": int(client.get(f"{queue}/@tablet_count")),
            "batches": [row["rows_written"] for row in written],
            "outputs": {
                name: [
                    {column: row[column] for column in row if not column.startswith("$")}
                    for row in client.select_rows(f"* from [{path}]")
                ]
                for name, path in settings.outputs.items()
            },
        }
    outcome_file.write_bytes(pickle.dumps(outcome))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
