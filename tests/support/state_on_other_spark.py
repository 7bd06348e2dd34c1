"""One half of the lives of jobs with state, on the Spark of this process.

    python -m tests.support.state_on_other_spark PROXY HALF FILE PROCESSING

The first half leaves windows and sessions open, with a snapshot of each partition of the state and
changes after it, and writes what was sent to FILE. The second one continues, closes them, and
prints for each job whether all rows are right, or why it was refused.
"""

from __future__ import annotations

import json
import pickle
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.support.examples import example, settings_of
from tests.support.helpers import adopt
from ytstream import JobError
from ytstream.cluster.client import connect
from ytstream.guarantees import guarantee_of
from ytstream.job import JobContext
from ytstream.provisioning import job_objects
from ytstream.settings.job_settings import ROCKSDB
from ytstream.settings.spark_conf import STATE_STORES
from ytstream.spark import session
from ytstream_tools.demo.crash_scenario import drained
from ytstream_tools.testing.job_stream import Stream, wait

ROWS = 700


def name_of(processing: str, store: str) -> str:
    """Return the name of a job."""
    return f"{processing}-{store}"


def first_half(stream: Stream) -> Any:
    """Run until all rows are in finished batches; return what was sent."""
    job_objects.provision(stream.context)
    _snapshot_after(stream, deltas=0)
    stream.send(ROWS)
    with stream.running() as query:
        wait(drained(stream.context), query)
        wait(lambda: _has_snapshots(stream), query)
    _snapshot_after(stream, deltas=1_000)
    stream.send(ROWS)
    stream.drain()
    return stream.sent, stream._now


def _snapshot_after(stream: Stream, *, deltas: int) -> None:
    """Let the next query snapshot its state at once, or not any more."""
    conf = stream.spark._jsparkSession.sessionState().conf()
    for key, value in {"maintenanceInterval": "500ms", "minDeltasForSnapshot": deltas}.items():
        conf.setConfString(f"spark.sql.streaming.stateStore.{key}", str(value))


def _has_snapshots(stream: Stream) -> bool:
    """Return whether each partition has a snapshot: RocksDB's is a ZIP."""
    state = f"{stream.folder}/state/0"
    partitions = filter(str.isdigit, map(str, stream.client.list(state)))
    return all(
        any(str(name).endswith((".zip", ".snapshot")) for name in stream.client.list(path))
        for path in [f"{state}/{partition}" for partition in partitions]
    )


def second_half(stream: Stream, sent: Any) -> str:
    """Continue, and return "exact", "wrong", or the code of a refusal."""
    stream.sent, stream._now = sent
    stream.send(ROWS)
    try:
        stream.close()
    except JobError as error:
        return f"{error.code}: {error}"
    return "exact" if stream.is_exact() and stream.found() else "wrong"


def main(proxy: str, half: str, file: Path, processing: str) -> None:
    """Play this half of the jobs of one processing type, one for each state store."""
    context = _context(processing, ROCKSDB, proxy)
    spark = session.open_session(context)
    halves = pickle.loads(file.read_bytes()) if half == "second" else {}
    for store in STATE_STORES:
        context = _context(processing, store, proxy)
        adopt(spark, context)
        stream = Stream(context, example("transactional", processing).sample, spark)
        name = name_of(processing, store)
        if half == "first":
            halves[name] = first_half(stream)
        else:
            print(json.dumps([name, second_half(stream, halves[name])]), flush=True)
    if half == "first":
        file.write_bytes(pickle.dumps(halves))
    session.close(spark)


def _context(processing: str, store: str, proxy: str) -> JobContext:
    job = example("transactional", processing).job
    root = f"//home/moved/{name_of(processing, store)}"
    settings = replace(settings_of(job, root, proxy=proxy), state_store=store)
    return JobContext(connect(settings), settings, job, guarantee_of(job))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), sys.argv[4])
