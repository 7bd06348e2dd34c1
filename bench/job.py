"""Bids through the real job of the project that this runs in.

    python job.py OUTCOME ROWS

Starts the project's minicluster, provisions, produces ROWS bids into the one queue, runs the job
until all of them are in finished batches, and writes the figures to OUTCOME as JSON.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from itertools import islice
from pathlib import Path

from bids_stream.job import JOB

from minicluster import testing
from minicluster.client import Entry
from sample.rows import rows as bids
from tests.journeys.usage import Usage, wait
from ytstream.cluster.client import connect
from ytstream.guarantees import guarantee_of
from ytstream.job import JobContext
from ytstream.settings.job_settings import load
from ytstream_tools.demo import demo_tables
from ytstream_tools.demo.crash_scenario import drained
from ytstream_tools.demo.job_process import run_command, running

CHUNK = 50_000


def main(outcome: Path, rows: int) -> None:
    with testing.start() as cluster:
        settings = load(Path.cwd() / "config/local.toml", {"YT_PROXY": cluster.http})
        client = connect(settings)
        context = JobContext(client, settings, JOB, guarantee_of(JOB))
        run_command(JOB.package, cluster.http, Path.cwd(), "provision")
        (queue,) = settings.queues
        tablets = int(client.get(f"{queue}/@tablet_count"))
        source = bids(rows)
        while chunk := list(islice(source, CHUNK)):
            demo_tables.produce(client, queue, chunk, tablets)
        with running(JOB.package, cluster.http, outcome.with_name("job.log"), Path.cwd()) as job:
            wait(job.has_started, job)
            before = Usage.now(cluster.pid, job.pgid)
            wait(drained(context), job)
            after = Usage.now(cluster.pid, job.pgid)
            job.stop()
        asked = cluster.client.journal()
        written = int(client.get(f"{settings.output}/@row_count"))
    figures = {
        "written": written,
        "start": before.job,
        "spark": after.job - before.job,
        "minicluster": after.minicluster - before.minicluster,
        "clock": after.clock - before.clock,
        "requests": per_batch(asked, settings.ledger),
    }
    outcome.write_text(json.dumps(figures))


def per_batch(journal: list[Entry], ledger: str) -> dict[str, float]:
    """Return the connector's requests per batch, by method, from the first head on.

    Its entries are the RPC ones: Spark and Python ask over HTTP only when they start and to watch.
    """
    asked = [entry for entry in journal if entry.protocol == "rpc"]
    ends = [number for number, entry in enumerate(asked) if writes_the_head(entry, ledger)]
    counts = Counter(entry.method for entry in asked[ends[0] + 1 : ends[-1] + 1])
    return {method: count / (len(ends) - 1) for method, count in counts.items()}


def writes_the_head(entry: Entry, ledger: str) -> bool:
    """Return whether the request writes into the ledger, as each batch does once."""
    return entry.method == "ModifyRows" and entry.args.get("path") == ledger


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
