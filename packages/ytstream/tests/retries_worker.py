"""Transactional streams in a session of their own, with a task that Spark has to start again.

    python -m packages.ytstream.tests.retries_worker FAULT CURE ...

FAULT is ``write`` (one write fails) or
``executor`` (the executors are killed while they write), CURE is ``fence`` or ``none``, or ``all``,
whose settings the session then has. Prints a line of JSON for each cure: the failure that ended the
query, and the rows counted after recovery and a second run.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from minicluster import testing
from minicluster.client import Fault
from packages.ytstream.tests.examples import example, settings_of
from packages.ytstream.tests.helpers import ON_STRIKE
from ytstream import confs, provision
from ytstream.cluster import connect
from ytstream.demo.scenario import drained
from ytstream.guarantees.transactional import Transactional
from ytstream.job import Connection
from ytstream.query import session
from ytstream.testing.stream import Stream, wait

RETRIES = {"spark.task.maxFailures": "4", "spark.stage.maxConsecutiveAttempts": "4"}


class Unfenced(Transactional):
    """The guarantee without its fence."""

    def fenced(self, rows: DataFrame) -> DataFrame:
        """Return the rows as they are."""
        return rows


def allow_retries() -> None:
    """Remove the cure from the settings."""
    transactional = [
        conf._replace(value=RETRIES.get(conf.key, conf.value))
        for conf in confs.GUARANTEES["transactional"]
    ]
    confs.GUARANTEES = {**confs.GUARANTEES, "transactional": transactional}


def kill_executors(cluster: testing.Running, rule: Fault) -> None:
    """Kill all executors of this process once a write is under way, then let the write finish."""
    cluster.client.faults.wait(rule, timeout=120)
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes()
            group = int((folder / "stat").read_text().rpartition(")")[2].split()[3])
        except (OSError, ValueError):
            continue
        if b"CoarseGrainedExecutorBackend" in command and group == os.getsid(0):
            os.kill(int(folder.name), signal.SIGKILL)
    cluster.client.faults.remove(rule)


def main(fault: str, *cures: str) -> None:
    """Play the fault with each cure and print the results."""
    if "all" not in cures:
        allow_retries()
    with testing.start() as cluster:
        for cure in cures:
            print(json.dumps(play(cluster, fault, cure)))
        SparkSession.active().stop()


def play(cluster: testing.Running, fault: str, cure: str) -> dict[str, Any]:
    """Return how the job ends; the first one opens the session."""
    made = example("transactional", "map")
    settings = replace(
        settings_of(made.job, f"//home/{cure}", proxy=cluster.http),
        max_rows_per_partition=1_000,
        dyn_batch_size=100,
    )
    guarantee = Unfenced() if cure == "none" else Transactional()
    connection = Connection(connect(settings), settings, made.job, guarantee)
    provision.provision(connection)
    stream = Stream(connection, made.sample, session.open_session(connection))
    stream.send(2_000)
    stream.recover()
    where = {"path": settings.output}
    faults = cluster.client.faults
    if fault == "write":
        faults.add(method="ModifyRows", where=where, skip=5, action="fail", error=ON_STRIKE)
    else:
        rule = faults.add(method="ModifyRows", where=where, skip=5, action="delay", seconds=60)
        threading.Thread(target=kill_executors, args=(cluster, rule), daemon=True).start()
    failure = first_run(stream)
    stream.recover()
    stream.drain()
    outcome = stream.outcome()
    return {"failure": failure, "lost": outcome.lost, "duplicated": outcome.duplicated}


def first_run(stream: Stream) -> str:
    """Return the failure that ended the query, or nothing when it went through."""
    is_drained = drained(stream.connection)
    with stream.running() as query:
        try:
            wait(is_drained, query)
        except StreamingQueryException as error:
            return str(error)
    return ""


if __name__ == "__main__":
    main(*sys.argv[1:])
