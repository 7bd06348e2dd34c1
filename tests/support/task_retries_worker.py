"""Transactional streams in a session of their own, with a task that Spark has to start again.

    python -m tests.support.task_retries_worker FAULT FIX ...

FAULT is one of

    write       one write fails; executors are threads
    executor    all executors are killed while they write
    worker      a worker and its executor are killed while they write
    fetch       the rows that one task has prepared for others are gone

FIX is ``fence`` or ``none``, or ``all``, whose settings the session then has. Prints a line of
JSON for each fix: the failure that ended the query, and the rows counted after recovery and a
second run.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from minicluster import testing
from minicluster.client import Fault
from tests.support.examples import example, settings_of
from tests.support.jvm import submit_args
from tests.support.server_errors import UNAVAILABLE
from tests.support.standalone import Standalone, standalone
from tests.support.waiting import eventually
from ytstream.cluster.client import connect
from ytstream.guarantees.transactional import Transactional
from ytstream.job import JobContext
from ytstream.provisioning import job_objects
from ytstream.query.batch_outcome import failed_of
from ytstream.settings import spark_conf
from ytstream.spark import session
from ytstream.spark.spark_errors import cause
from ytstream_tools.demo.crash_scenario import drained
from ytstream_tools.testing.job_stream import Stream, wait

RETRIES = {"spark.task.maxFailures": "4", "spark.stage.maxConsecutiveAttempts": "4"}


class Unfenced(Transactional):
    """The guarantee without its fence."""

    def fenced(self, rows: DataFrame) -> DataFrame:
        """Return the rows as they are."""
        return rows


def allow_retries() -> None:
    """Remove the fix from the settings."""
    transactional = [
        conf._replace(value=RETRIES.get(conf.key, conf.value))
        for conf in spark_conf.GUARANTEES["transactional"]
    ]
    spark_conf.GUARANTEES = {**spark_conf.GUARANTEES, "transactional": transactional}


def kill_executors(machines: Standalone) -> None:
    """Kill all executors."""
    for executor in machines.executors():
        with suppress(ProcessLookupError):
            os.kill(executor, signal.SIGKILL)


def drop_shuffles(machines: Standalone) -> None:
    """Remove what a task has prepared for others, once there is some."""
    eventually(machines.drop_shuffles, what="rows that a task has prepared for others")


FAULTS: dict[str, tuple[str, int, Callable[[Standalone], None]]] = {
    "executor": ("ModifyRows", 5, kill_executors),
    "worker": ("ModifyRows", 5, Standalone.kill_worker),
    "fetch": ("PullConsumer", 3, drop_shuffles),
}
"""What happens in the middle of a request, by fault: the request, how many of its kind are before
it, and what is done meanwhile."""


def meanwhile(
    cluster: testing.Running, rule: Fault, act: Callable[[Standalone], None], machines: Standalone
) -> None:
    """Act once the request is under way, then let it finish."""
    cluster.client.faults.wait(rule, timeout=120)
    act(machines)
    cluster.client.faults.remove(rule)


def main(fault: str, *fixes: str) -> None:
    """Play the fault with each fix and print the results."""
    if "all" not in fixes:
        allow_retries()
    with ExitStack() as stack:
        cluster = stack.enter_context(testing.start())
        machines = None
        if fault in FAULTS:
            folder = Path(stack.enter_context(TemporaryDirectory(prefix="machines-")))
            machines = stack.enter_context(standalone(folder))
        # ``local[2,4]`` retries as a cluster does.
        os.environ["YTSTREAM_SUBMIT_ARGS"] = (
            machines.submit_args if machines else submit_args("local[2,4]")
        )
        for fix in fixes:
            print(json.dumps(play(cluster, fault, fix, machines)))
        SparkSession.active().stop()


def play(
    cluster: testing.Running, fault: str, fix: str, machines: Standalone | None
) -> dict[str, Any]:
    """Return how the job ends; the first one opens the session."""
    made = example("transactional", "deduplicate" if fault == "fetch" else "map")
    settings = replace(
        settings_of(made.job, f"//home/{fix}", proxy=cluster.http),
        max_rows_per_partition=1_000,
        dyn_batch_size=100,
    )
    guarantee = Unfenced() if fix == "none" else Transactional()
    context = JobContext(connect(settings), settings, made.job, guarantee)
    job_objects.provision(context)
    stream = Stream(context, made.sample, session.open_session(context))
    stream.send(2_000)
    stream.recover()
    faults = cluster.client.faults
    if machines is None:
        where = {"path": settings.output}
        faults.add(method="ModifyRows", where=where, skip=5, action="fail", error=UNAVAILABLE)
    else:
        method, skip, act = FAULTS[fault]
        where = {"path": settings.output} if method == "ModifyRows" else {}
        rule = faults.add(method=method, where=where, skip=skip, action="delay", seconds=60)
        given = (cluster, rule, act, machines)
        threading.Thread(target=meanwhile, args=given, daemon=True).start()
    failure = first_run(stream)
    stream.recover()
    stream.close()
    outcome = stream.outcome()
    return {"failure": failure, "lost": outcome.lost, "duplicated": outcome.duplicated}


def first_run(stream: Stream) -> str:
    """Return what failed the batch and so ended the query, or nothing when it went through."""
    is_drained = drained(stream.context)
    with stream.running() as query:
        try:
            wait(is_drained, query)
        except StreamingQueryException as error:
            # Around it are lines of Python's code, and a plan that names the fence.
            failed = failed_of(stream.batch.outcomes)
            return cause(str(failed.failure if failed is not None else error))
    return ""


if __name__ == "__main__":
    main(*sys.argv[1:])
