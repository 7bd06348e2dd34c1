"""One transactional stream in a session of its own, with a task that Spark has to start again.

Run inside a generated project: ``retries_worker.py FAULT CURE``. FAULT is ``write`` (one write
fails) or ``executor`` (the executors are killed while they write), CURE is ``all``, ``fence`` or
``none``. Prints one line of JSON: what ended the query, and the rows counted after recovery and a
second run.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path.cwd()
sys.path[:0] = [str(ROOT / "src"), str(ROOT), str(ROOT / "tests")]

conftest: Any = import_module("conftest")
stream: Any = import_module("stream")
testing: Any = import_module("minicluster.testing")

RETRIES = {"spark.task.maxFailures": "4", "spark.stage.maxConsecutiveAttempts": "4"}


def module(name: str) -> Any:
    """A module of the job."""
    return import_module(f"{conftest.PACKAGE}.{name}")


def uncure(cure: str) -> None:
    """Take cures out of the job's modules: its settings, or its settings and the fence."""
    if cure == "all":
        return
    session, pipeline = module("session"), module("pipeline")
    session.GUARANTEE_CONFS = {**session.GUARANTEE_CONFS, **RETRIES}
    if cure == "none":
        pipeline.admit = lambda rows, settings: rows


def kill_executors(cluster: Any, rule: Any) -> None:
    """kill -9 all executors of this process once a write is under way, then let the write go."""
    cluster.client.faults.wait(rule, timeout=120)
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes()
            session = int((folder / "stat").read_text().rpartition(")")[2].split()[3])
        except (OSError, ValueError):
            continue
        if b"CoarseGrainedExecutorBackend" in command and session == os.getsid(0):
            os.kill(int(folder.name), signal.SIGKILL)
    cluster.client.faults.remove(rule)


def main(fault: str, cure: str) -> None:
    uncure(cure)
    with testing.start() as cluster:
        settings = replace(
            module("settings").load(ROOT / "config" / "local.toml", {"YT_PROXY": cluster.http}),
            max_rows_per_partition=1_000,
            dyn_batch_size=100,
        )
        client = module("cluster").connect(settings)
        module("provision").provision(client, settings)
        spark = module("session").open_session(settings)
        job = stream.Stream(module, client, settings, spark)
        job.send(4_000)
        job.recover()
        where = {"path": settings.output}
        if fault == "write":
            error = {"code": 1, "message": "the tablet is on strike"}
            cluster.client.faults.add(
                method="ModifyRows", where=where, skip=5, action="fail", error=error
            )
        else:
            rule = cluster.client.faults.add(
                method="ModifyRows", where=where, skip=5, action="delay", seconds=60
            )
            threading.Thread(target=kill_executors, args=(cluster, rule), daemon=True).start()
        failure = first_run(job)
        job.recover()
        job.drain()
        outcome = job.outcome()
        print(
            json.dumps(
                {
                    "failure": failure,
                    "lost": outcome.lost,
                    "duplicated": outcome.duplicated,
                }
            )
        )
        spark.stop()


def first_run(job: Any) -> str:
    """What ended the query, or nothing when it went through."""
    is_drained = stream.drained(job.client, job.settings)
    with job.running() as query:
        try:
            stream.wait(is_drained, query)
        except AssertionError:
            return str(query.exception())
    return ""


if __name__ == "__main__":
    main(*sys.argv[1:])
