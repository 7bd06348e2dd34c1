"""One half of the lives of jobs with state, on the Spark of this process.

    python -m tests.support.moved_state PROXY HALF FILE

The first half leaves windows and sessions open, and writes what was sent to FILE. The second one
continues, closes them, and prints for each job whether all rows are right, or why it was refused.
"""

from __future__ import annotations

import json
import pickle
import sys
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

from tests.support.examples import STATEFUL, example, settings_of
from tests.support.helpers import adopt
from ytstream import JobError
from ytstream.cluster.client import connect
from ytstream.guarantees import guarantee_of
from ytstream.job import JobContext
from ytstream.provisioning import job_objects
from ytstream.settings.spark_conf import STATE_STORES
from ytstream.spark import session
from ytstream_tools.testing.job_stream import Stream

#: Processing and state store.
JOBS = [*product(STATEFUL, STATE_STORES)]
ROWS = 700


def name_of(processing: str, store: str) -> str:
    """Return the name of a job."""
    return f"{processing}-{store}"


def first_half(stream: Stream) -> Any:
    """Run until all rows are in finished batches; return what was sent."""
    job_objects.provision(stream.context)
    stream.send(ROWS)
    stream.drain()
    return stream.sent, stream._now


def second_half(stream: Stream, sent: Any) -> str:
    """Continue, and return "exact", "wrong", or the code of a refusal."""
    stream.sent, stream._now = sent
    stream.send(ROWS)
    try:
        stream.close()
    except JobError as error:
        return f"{error.code}: {error}"
    return "exact" if stream.is_exact() and stream.found() else "wrong"


def main(proxy: str, half: str, file: Path) -> None:
    """Play this half of every job."""
    context = _context("aggregate", "rocksdb", proxy)
    spark = session.open_session(context)
    halves = pickle.loads(file.read_bytes()) if half == "second" else {}
    for processing, store in JOBS:
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
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
