"""The light commands know a job by its ledger, and run where neither Spark nor SPYT is; no JVM."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from importlib.metadata import requires

import pytest

from minicluster import testing as minicluster
from tests.support.fixtures import connected_to
from tests.support.helpers import ContextOf
from tests.support.project import ROOT
from tests.support.status_steps import head_of_batch, send, write_batches, write_rows
from tests.support.without_spark import WITHOUT_SPARK
from ytstream.cluster.client import Client
from ytstream.instance.lock import InstanceLock
from ytstream.instance.stop_request import tell_end
from ytstream.job import LIGHT, JobContext
from ytstream.ledger import positions
from ytstream.ledger.ledger_rows import head_row
from ytstream.ownership import job_record
from ytstream.recovery.epoch import Epoch
from ytstream.settings.submit_section import SubmitSection
from ytstream_tools import __main__ as light

MARK = "MARKED-VALUE"


@pytest.fixture(scope="module")
def cluster() -> Iterator[minicluster.Running]:
    """Start a minicluster with the clock of this machine: other tests move that of theirs."""
    with minicluster.start() as running:
        yield running


@pytest.fixture(scope="module")
def client(cluster: minicluster.Running) -> Client:
    """Connect to it."""
    return connected_to(cluster)


@pytest.fixture
def job(provisioned_of: ContextOf) -> JobContext:
    """A job that has run."""
    context = provisioned_of("transactional", rejects=True)
    send(context, 80)
    write_batches(context, range(1, 13), rejected={"too old": 2})
    head = replace(head_of_batch(context, 12), owner="process 1 on host, operation 1-2-3-4, abc")
    write_rows(context, head_row(head))
    job_record.write(context)
    return context


def _call(job: JobContext, *words: str) -> subprocess.CompletedProcess[str]:
    where = ["--proxy", job.settings.proxy, "--ledger", job.settings.ledger]
    line = [sys.executable, "-c", WITHOUT_SPARK, words[0], *where, *words[1:]]
    return subprocess.run(line, capture_output=True, text=True, check=False, timeout=120)


@pytest.mark.thorough
def test_commands_run_without_spark_and_without_the_repository(job: JobContext) -> None:
    said = _call(job, "status")
    assert said.returncode == 0, said.stderr
    assert "rejected in the last 12 batches: 24 too old" in said.stdout
    said = _call(job, "why")
    assert said.returncode == 0, said.stderr
    assert said.stdout.startswith("killed: ")
    assert f"python -m ytstream_tools logs --proxy {job.settings.proxy}" in said.stdout
    said = _call(job, "metrics", "--once")
    assert "ytstream_lag_rows{" in said.stdout, said.stderr
    said = _call(job, "logs")
    assert said.returncode == 1
    assert "no operation of this job" in said.stderr
    for command in ("stop", "drain"):
        said = _call(job, command)
        assert "the job does not run" in said.stdout + said.stderr


@pytest.mark.thorough
def test_a_running_job_is_stopped(job: JobContext, capsys: pytest.CaptureFixture[str]) -> None:
    lock = InstanceLock(job.client, job.settings.consumer)
    lock.acquire(print)
    head = head_of_batch(job, 12)

    def run() -> None:
        """Do as a job does: look for the request, say how it ends, give up the lock."""
        for _ in range(200):
            found = positions.read_head(job.settings.ledger, job.client.select_rows)
            if found is not None and found.stopped == found.epoch:
                tell_end(job, Epoch(head.epoch, head.owner), "stopped by its test")
                break
            time.sleep(0.05)
        lock.release()

    process = threading.Thread(target=run)
    process.start()
    words = ["--proxy", job.settings.proxy, "--ledger", job.settings.ledger]
    assert light.main(["stop", *words]) == 0
    process.join()
    assert "the job has ended: stopped by its test" in capsys.readouterr().out


def test_the_record_has_what_is_needed_and_no_secret(job: JobContext) -> None:
    secret = replace(
        job.settings,
        spark={"spark.hadoop.fs.s3a.secret.key": MARK},
        submit=SubmitSection(annotations={"password": MARK}, executors=3),
        runbook_url="https://git.example.com/bids",
        late_limit=0.1,
    )
    job_record.write(replace(job, settings=secret))
    record = job_record.read(job.client, job.settings.ledger)
    assert MARK not in str(record)
    found = job_record.settings_of(record, job.settings.proxy)
    assert (found.submit.executors, found.submit.executor_cores) == (3, 1)
    for name in (
        "queues", "consumer", "checkpoint", "ledger", "outputs", "alias", "runbook_url",
        "trigger_seconds", "late_limit",
    ):  # fmt: skip
        assert getattr(found, name) == getattr(secret, name), name
    declared = job_record.job_of(record)
    assert {*declared.reject} == {*job.job.reject}
    assert len(record["starts"]) == 2
    links = str(job.client.get(f"{job.settings.consumer}/@annotation"))
    assert "Runbook: https://git.example.com/bids" in links


def test_an_annotation_of_a_person_stays(job: JobContext) -> None:
    path = f"{job.settings.output}/@annotation"
    job.client.set(path, "Ask the bids team")
    job_record.write(job)
    assert job.client.get(path) == "Ask the bids team"


def test_a_ledger_without_a_record_is_an_error(
    provisioned_of: ContextOf, capsys: pytest.CaptureFixture[str]
) -> None:
    context = provisioned_of("transactional")
    words = ["--proxy", context.settings.proxy, "--ledger", context.settings.ledger]
    assert light.main(["status", *words]) == 1
    assert "does not say whose ledger it is" in capsys.readouterr().err
    assert light.main(["status", "--proxy", context.settings.proxy]) == 1
    assert "nothing says which job it is" in capsys.readouterr().err


def test_the_small_environment_has_every_package_that_the_commands_need() -> None:
    text = (ROOT / "templates/make/ops.mk").read_text(encoding="utf-8").replace("\\\n", " ")
    listed = re.search(r"OPS_PACKAGES := (.*)", text)
    assert listed is not None
    names = set(listed[1].split())
    for name in names - {"ytstream", "ytstream-tools", "colorama"}:
        for required in requires(name) or ():
            if "extra" not in required:
                match = re.match(r"[\w.-]+", required)
                assert match is not None
                assert match[0].lower() in names, f"{name} needs {required}"
    assert {*LIGHT} == {one.name for one in light.COMMANDS}
