"""What happens to a submitted job, case by case; each returns figures counted from the tables."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from minicluster.client.operations import Job, Operation
from minicluster.release import node
from tests.faults.operations.job_site import ALIAS, FINAL, PATIENCE_SECONDS, NotDoneError, Site
from tests.support import server_errors
from tests.support.without_spark import WITHOUT_SPARK
from ytstream.ledger import positions
from ytstream.log import Event, events_in
from ytstream.recovery import spark_logs
from ytstream.recovery.checkpoint_repair import path_of
from ytstream_tools.demo.crash_scenario import drained
from ytstream_tools.demo.job_process import running
from ytstream_tools.submitting.version_history import StartState, VersionHistory

ROWS = 4_000
UNNOTICED_SECONDS = 20.0
"""How long the cluster takes to declare a lost node, and the scheduler is away."""
AWAY_SECONDS = 120.0
FAILS_ON_A_NODE = """

import os

if "YT_OPERATION_ID" in os.environ:
    raise ImportError("libbids.so.1: cannot open shared object file")
"""
"""As of a package whose library the nodes lack."""
FAILS_IN_A_BATCH = """

def _failing(value):
    raise ValueError("no rate for this currency")


_transform = transform


def transform(events):
    return _transform(events.withColumn("price", F.udf(_failing, "bigint")("price")))
"""
"""A Python function that no row survives, in each task of the first batch. It is called before
transform(), on a column of the queue: every kind of job reads it and uses it."""
BEFORE, BETWEEN = "before", "between"
"""When rows are sent: while the former version runs, or once it has ended. Then the new version
plans a batch of them by itself."""
VERSIONS = {
    "new": ("\nVERSION = 2\n", BEFORE),
    "cannot_start": (FAILS_ON_A_NODE, BEFORE),
    "fails_in_a_batch": (FAILS_IN_A_BATCH, BETWEEN),
    "idle": ("\nVERSION = 3\n", None),
}
"""What is put at the end of transform.py, one after the other, and when rows are sent."""
FILLS_THE_HEAP = """

_transform = transform


def transform(events):
    filled = F.expr("IF(extra = 'boom', string(length(repeat(url, 50000000))), extra)")
    return _transform(events.withColumn("extra", filled))
"""
"""A text that no heap holds, made of a row with the text "boom" in its column."""
Case = Callable[[Site], dict[str, Any]]


def undisturbed(here: Site) -> dict[str, Any]:
    """Read the queues to their end, and stop."""
    _start(here)
    return _end(here)


def on_call(here: Site) -> dict[str, Any]:
    """Call the light commands for the job, on a machine without Java and Spark. `drain` ends it."""
    _start(here)
    found = {words[0]: _light(here, *words) for words in (["logs"], ["why"], ["status"])}
    here.send(ROWS)
    found["drain"] = _light(here, "drain")
    return {"light": found, "ended": here.driver().state, **here.counted()}


def executor_out_of_memory(here: Site) -> dict[str, Any]:
    """A row fills the heap of the executor that reads it; `why` is asked by a person on call."""
    with (here.root / "src" / here.package / "transform.py").open("a") as file:
        file.write(FILLS_THE_HEAP)
    _start(here)
    [row] = here.sample.make(1, 77)
    valid = {"price": 99, "url": f"https://auction.example/{row['auction']}?c=Apple"}
    here.produce(here.context.settings.queues[0], [{**row, **valid, "extra": "boom"}], 1)
    here.wait(
        "the end of an executor",
        lambda: [job for job in here.executors().jobs if job.state == "failed"],
    )
    return {
        "why": _light(here, "why"),
        "errors": [json.dumps(job.error) for job in here.executors().jobs if job.error],
    }


def _light(here: Site, *words: str) -> dict[str, Any]:
    """Call a light command for the job, known by its ledger; no PATH leads to Java."""
    where = ["--proxy", here.cluster.http, "--ledger", here.context.settings.ledger]
    kept = ("HOME", "PYTHONPATH", "TMPDIR", "NO_PROXY", "no_proxy")
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_SPARK, words[0], *where, *words[1:]],
        env={name: os.environ[name] for name in kept if name in os.environ} | {"PATH": ""},
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    seconds = round(time.monotonic() - began, 1)
    return {"exit": done.returncode, "said": done.stdout, "seconds": seconds}


def executor_preempted(here: Site) -> dict[str, Any]:
    """The scheduler takes an executor away while its tasks write."""
    _start(here)
    writing = _held(here, "ModifyRows", "before", path=here.context.settings.output)
    fault = _preempted(here, here.executors())
    here.cluster.client.faults.remove(writing)
    return _recovered(here, fault)


def executor_aborted(here: Site) -> dict[str, Any]:
    """An executor ends while the job waits for rows."""
    _start(here)
    fault = _preempted(here, here.executors(), "user_request")
    here.send(ROWS)
    return _recovered(here, fault)


def executor_lost_in_an_upload(here: Site) -> dict[str, Any]:
    """An executor ends while it uploads state: its sandbox goes, and its last request comes late.

    The next executor has no file of the state but those in Cypress.
    """
    _start(here)
    changes = f"{here.context.settings.checkpoint}/*/state/*.changelog"
    uploading = _held(here, "MoveNode", "before", destination_path=changes)
    fault = _preempted(here, here.executors())
    here.wait("another executor", lambda: len(here.executors().jobs) == 2)
    here.cluster.client.faults.remove(uploading)
    here.send(ROWS)
    return _recovered(here, fault)


def executor_node_lost(here: Site) -> dict[str, Any]:
    """The scheduler loses an executor's node: the old executor works on beside the new one."""
    _start(here)
    [job] = here.executors().running()
    fault = Fault.now(here)
    here.cluster.client.operations.lose_node(
        job.id, processes="continue", declared_after=UNNOTICED_SECONDS
    )
    here.send(ROWS)
    here.wait("a second executor", lambda: len(here.executors().jobs) == 2)
    here.send(ROWS)
    return _recovered(here, fault)


def driver_preempted(here: Site) -> dict[str, Any]:
    """The driver is taken away where Spark says that a batch is done and its rows are not there."""
    _start(here)
    logged = _held(here, "AdvanceConsumer", "after")
    fault = _preempted(here, here.driver())
    here.cluster.client.faults.remove(logged)
    return _recovered(here, fault, new_process=True)


def driver_node_lost(here: Site) -> dict[str, Any]:
    """The driver's node hangs in the same place; it wakes when another driver has written."""
    _start(here)
    logged = _held(here, "AdvanceConsumer", "after")
    client = here.cluster.client
    [job] = here.driver().running()
    fault = Fault.now(here)
    here.signal(job, signal.SIGSTOP)
    client.faults.remove(logged)
    client.operations.lose_node(job.id, processes="continue", declared_after=UNNOTICED_SECONDS)
    here.wait("a batch of the second driver", lambda: fault.is_over(here, new_process=True))
    seconds = fault.seconds()
    here.signal(job, signal.SIGCONT)
    here.send(ROWS)
    here.wait("the end of the first driver", lambda: not here.processes(job))
    here.wait_drained()
    return {"seconds": seconds, **_end(here)}


def executors_operation_aborted(here: Site) -> dict[str, Any]:
    """Somebody aborts the executors' operation: the driver is started again, with a new one."""
    _start(here)
    first = here.executors()
    fault = Fault.now(here)
    here.cluster.client.operations.end(first.id, "aborted")
    here.send(ROWS)
    here.wait("new executors", lambda: here.executors().id != first.id)
    return _recovered(here, fault, new_process=True)


def executors_operation_completed(here: Site) -> dict[str, Any]:
    """Somebody completes the executors' operation: the driver ends as a success, rows wait."""
    _start(here)
    fault = Fault.now(here)
    here.cluster.client.operations.end(here.executors().id, "completed")
    here.send(ROWS)
    here.wait("the driver's end", lambda: here.driver().state in FINAL)
    ended = here.driver().state
    here.submit()
    return {"ended": ended, **_recovered(here, fault, new_process=True)}


def scheduler_away(here: Site) -> dict[str, Any]:
    """No request about operations is answered for two minutes; the job goes on."""
    _start(here)
    fault = Fault.now(here)
    here.cluster.client.operations.scheduler_away(AWAY_SECONDS)
    here.send(ROWS)
    here.wait("a batch", lambda: fault.is_over(here))
    seconds = fault.seconds()
    here.wait_drained()
    time.sleep(max(0.0, AWAY_SECONDS - fault.seconds()))  # SPYT's driver asks every 20 s
    attempts = len(here.driver().jobs)
    here.send(ROWS)
    here.wait_drained()
    return {"seconds": seconds, "attempts": attempts, **_end(here)}


def cluster_stumbles(here: Site) -> dict[str, Any]:
    """The cluster stumbles while an executor uploads state, again and again. The job waits.

    Then the token expires, which ends the job.
    """
    _start(here)
    seconds = {name: _stumbled(here, *stumble) for name, stumble in STUMBLES.items()}
    driver = here.driver()
    found = {"each": seconds, "seconds": max(seconds.values()), "attempts": len(driver.jobs)}
    said = "\n".join(here.stderr(driver, job) for job in driver.jobs)
    ended = _expired(here)
    return {**found, "failures": events_in(said, Event.FAILURE), "ended": ended, **_end(here)}


def _expired(here: Site) -> dict[str, Any]:
    """Let the token expire at a write of state; return how the job ends. Submit it again."""
    here.cluster.client.faults.add(
        method="WriteFile",
        where=_state_of(here),
        action="fail",
        error=server_errors.TOKEN,
        times=None,
    )
    here.send(ROWS)
    here.wait("the driver's end", lambda: here.driver().state in FINAL)
    here.cluster.client.faults.clear()
    driver = here.driver()
    ended = {
        "state": driver.state,
        "attempts": len(driver.jobs),
        "error": json.dumps(driver.error),
        "why": _light(here, "why")["said"],
    }
    here.submit()
    return ended


def _state_of(here: Site) -> dict[str, str]:
    return {"path": f"{here.context.settings.checkpoint}/*/state/*"}


_SETTLED_SECONDS = 10.0
"""By then a batch without rows has followed the one before, if it does."""

STUMBLES: dict[str, tuple[dict[str, Any], Sequence[dict[str, Any]], float]] = {
    "refused": ({"action": "fail", "error": server_errors.UNAVAILABLE}, (), 0),
    "dropped": ({"action": "hang_up"}, (), 0),
    "lost reply": ({"action": "lose_reply"}, (), 0),
    "away": ({"action": "hang_up"}, ({"action": "hang_up"},), 5),
    "full": (
        {"action": "fail", "error": server_errors.FULL_CHUNKS},
        tuple(
            {"action": "fail", "method": method, "error": error}
            for method, error in server_errors.FULL.items()
        ),
        60,
    ),
    "away for long": ({"action": "hang_up"}, ({"action": "hang_up"},), AWAY_SECONDS),
}
"""What happens to the first file of a batch's state, what lasts from then on, and for how long."""


def _stumbled(
    here: Site, first: dict[str, Any], lasting: Sequence[dict[str, Any]], length: float
) -> int:
    """Let a fault begin with a write of state; return the seconds from its end to a batch."""
    _settle(here)
    faults = here.cluster.client.faults
    rule = faults.add(method="WriteFile", where=_state_of(here), **first)
    rules = [rule, *(faults.add(times=None, armed_by=rule, **order) for order in lasting)]
    here.send(ROWS)
    faults.wait(rule, timeout=PATIENCE_SECONDS)
    time.sleep(length)
    for one in rules:
        faults.remove(one)
    fault = Fault.now(here)
    here.wait("a batch", lambda: fault.is_over(here) or here.driver().state in FINAL)
    seconds = fault.seconds()
    here.wait_drained()
    return seconds


def _settle(here: Site) -> None:
    """Wait until no batch without rows follows: its state would meet the fault too early."""
    before = None
    while (now := here.newest()) != before:
        before = now
        time.sleep(_SETTLED_SECONDS)


def driver_killed_twice(here: Site) -> dict[str, Any]:
    """The driver's process dies in a batch, and its second attempt while it waits to begin."""
    _start(here)
    logged = _held(here, "AdvanceConsumer", "after")
    [first] = here.driver().running()
    fault = Fault.now(here)
    here.signal(first, signal.SIGKILL)
    here.cluster.client.faults.remove(logged)
    second = here.wait("a second attempt that waits", lambda: _waiting(here, first))
    here.signal(second, signal.SIGKILL)
    found = _recovered(here, fault, new_process=True)
    driver = here.driver()
    said = [line for job in driver.jobs for line in here.stderr(driver, job).splitlines()]
    return {"pauses": [line for line in said if line.startswith("attempt: ")], **found}


def _waiting(here: Site, former: Job) -> Job | None:
    driver = here.driver()
    for job in driver.running():
        if job.id != former.id and "waiting" in here.stderr(driver, job):
            return job
    return None


def driver_superseded(here: Site) -> dict[str, Any]:
    """The driver hangs until its lock expires; when it wakes, a process elsewhere has its place."""
    _start(here)
    [job] = here.driver().running()
    fault = Fault.now(here)
    here.signal(job, signal.SIGSTOP)
    here.send(ROWS)
    log = here.root / "elsewhere.log"
    with running(here.package, here.cluster.http, log, here.root) as elsewhere:
        here.wait("a batch of the other process", lambda: fault.is_over(here, new_process=True))
        seconds = fault.seconds()
        here.signal(job, signal.SIGCONT)
        here.wait("the driver's end", lambda: here.driver().state in FINAL)
        here.wait("the executors' end", lambda: here.executors().state in FINAL)
        here.send(ROWS)
        here.wait("the end of the queues", drained(here.context))
        elsewhere.stop()
    return {
        "seconds": seconds,
        "ended": here.driver().state,
        "error": json.dumps(here.driver().error),
        "attempts": len(here.driver().jobs),
        **here.counted(),
    }


def import_fails(here: Site) -> dict[str, Any]:
    """The package can be imported here, and on no node: the submit says why, and leaves nothing."""
    with (here.root / "src" / here.package / "transform.py").open("a") as file:
        file.write(FAILS_ON_A_NODE)
    here.provision()
    here.send(ROWS)
    done = here.command("submit")
    return {
        "exit": done.returncode,
        "said": done.stdout,
        "states": [operation.state for operation in here.operations()],
        "attempts": len(here.driver().jobs),
    }


def packages_in_an_archive(here: Site) -> dict[str, Any]:
    """A Python with pandas and pyarrow comes with the job: that of the nodes has neither."""
    build = here.root / "build"
    made = node.make(build / "environment", more=["pandas", "pyarrow"])
    with tarfile.open(build / "environment.tar.gz", "w:gz") as tar:
        tar.add(made.parent, ".")  # its packages are links: they are 200 MB
    here.configure('archive = "build/environment.tar.gz"\npython = "./environment/bin/python"')
    _start(here)
    return _end(here)


def replacements(here: Site) -> dict[str, Any]:
    """Replace the job by itself, by versions that work, and by others; count all rows."""
    here.configure("replace_seconds = 420")
    _start(here)
    source = here.root / "src" / here.package / "transform.py"
    text, first = source.read_text(), here.driver().id
    found: dict[str, Any] = {"same": [here.command("submit", "--replace").returncode]}
    found["same"].append(here.driver().id == first)
    for name, (more, when) in VERSIONS.items():
        source.write_text(text + more)
        if when == BEFORE:
            here.send(ROWS)
        done = _replaced(here, sends=when == BETWEEN)
        here.wait_drained()
        lines = [line for line in done.stdout.splitlines() if not line.startswith("cluster: ")]
        found[name] = {
            "exit": done.returncode,
            "last": lines[-1],
            "parts": [line for line in lines if "by part: " in line],
            "refused": _refused(here),
        }
    return {**found, **_end(here)}


def _replaced(here: Site, *, sends: bool) -> subprocess.CompletedProcess[str]:
    """Replace the version that runs; with ``sends``, rows come when it has ended."""
    former = here.driver().id

    def send() -> None:
        here.wait("the previous version's end", partial(_former_has_ended, here, former))
        here.send(ROWS)

    with ThreadPoolExecutor(1) as pool:
        sent = pool.submit(send) if sends else None
        done = here.command("submit", "--replace")
        if sent is not None:
            sent.result()
    return done


def moved_to_this_spark(here: Site) -> dict[str, Any]:
    """Replace a job on another Spark by the same files on this one."""
    return _moved(here, "")


def back_on_the_other_spark(here: Site) -> dict[str, Any]:
    """Replace a job on another Spark by a version on this one that fails in its first batch."""
    return _moved(here, FAILS_IN_A_BATCH)


def _moved(here: Site, more: str) -> dict[str, Any]:
    assert here.former is not None
    here.configure("replace_seconds = 420")
    here.python = here.former
    _start(here)
    here.python = sys.executable
    with (here.root / "src" / here.package / "transform.py").open("a") as file:
        file.write(more)
    done = _replaced(here, sends=True)
    here.wait_drained()
    sparks = [_spark_of(here, one) for one in here.operations() if one.alias == ALIAS]
    said = {"exit": done.returncode, "last": done.stdout.splitlines()[-1]}
    return {**said, "sparks": sparks, **_end(here)}


def _spark_of(here: Site, driver: Operation) -> str:
    """Return the version of the distribution that a driver was started with."""
    spec = here.client.get_operation(operation_id=driver.id, attributes=["provided_spec"])
    found = re.search(r"spark-([\d.]+)-bin-hadoop3\.tgz", str(spec["provided_spec"]))
    assert found is not None
    return found[1]


def submitter_killed(here: Site) -> dict[str, Any]:
    """Kill the submitting machine's processes in the middle of replacements; call it again."""
    here.configure("replace_seconds = 420")
    _start(here)
    source = here.root / "src" / here.package / "transform.py"
    text = source.read_text()
    found: dict[str, Any] = {}
    for name, (more, moment) in KILLS.items():
        former = here.driver().id
        source.write_text(text + more)
        here.send(ROWS)
        here.kill("submit", "--replace", once=partial(moment, here, former))
        here.send(ROWS)
        done = here.command("submit", "--replace")
        here.wait_drained()
        found[name] = {"exit": done.returncode, "last": done.stdout.splitlines()[-1]}
    return {**found, **_end(here)}


def _former_has_ended(here: Site, former: str) -> bool:
    return any(one.id == former and one.state in FINAL for one in here.operations())


def _new_one_runs(here: Site, former: str) -> bool:
    return here.driver().id != former and here.driver().state == "running"


def _new_one_has_ended(here: Site, former: str) -> bool:
    """Return whether the version after the former has ended; a roll-back starts a third driver."""
    drivers = [one for one in here.operations() if one.alias == ALIAS]
    after = [one.id for one in drivers].index(former) + 1
    return any(one.state in FINAL for one in drivers[after : after + 1])


KILLS: dict[str, tuple[str, Callable[[Site, str], bool]]] = {
    "former_has_ended": ("\nVERSION = 2\n", _former_has_ended),
    "new_one_runs": ("\nVERSION = 3\n", _new_one_runs),
    "new_one_has_ended": (FAILS_ON_A_NODE, _new_one_has_ended),
}
"""What is put at the end of transform.py, and when the submitter is killed."""


def _refused(here: Site) -> dict[str, Any] | None:
    """Return why the last refused version was, its epoch, and the batches that it has planned.

    A job without state plans them on its own disk.
    """
    settings = here.context.settings
    for version in VersionHistory(here.client, settings).all():
        if version.state == StartState.REFUSED:
            epoch = int(version.note["epoch"]) + 1
            written = [
                str(entry.args.get("destination_path", ""))
                for entry in here.cluster.client.journal("MoveNode")
            ]
            log = re.compile(rf"{settings.checkpoint}/{epoch}/offsets/(\d+)")
            planned = [int(entry[1]) for path in written if (entry := log.fullmatch(path))]
            return {"why": version.how, "epoch": epoch, "planned": planned}
    return None


def released_by_ci(here: Site) -> dict[str, Any]:
    """Call the steps of the project's own workflow, one by one: a first release, and a second."""
    (here.root / "config" / "production.toml").write_text(here.config.read_text())
    here.provision()
    here.send(ROWS)
    environment = {**os.environ, "VENV": sys.prefix, "YT_TOKEN": "of-the-ci"}
    for name in ("PYTHONPATH", "MAKEFLAGS"):
        environment.pop(name, None)
    asked = ["make", "-s", "--eval", "stamp: ; @echo $(STAMP)", "stamp"]
    stamp = subprocess.run(asked, env=environment, capture_output=True, text=True, check=True)
    Path(stamp.stdout.strip()).touch()  # the environment has all packages
    said = []
    for force in ("", "1"):
        for step in _steps(here.root):
            done = subprocess.run(
                ["bash", "-c", step],
                env={**environment, "FORCE": force},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )
            if done.returncode:
                raise NotDoneError(f"{step} ended with {done.returncode}:\n{done.stdout}")
            said.append(done.stdout)
        here.send(ROWS)
        here.wait_drained()
    drivers = [one.state for one in here.operations() if one.alias == ALIAS]
    return {
        "steps": _steps(here.root),
        "drivers": drivers,
        "has_token": any("of-the-ci" in text for text in said),
        **_end(here),
    }


def _steps(root: Path) -> list[str]:
    """Return the commands of the workflow that releases, as the file has them."""
    github = root / ".github" / "workflows" / "release.yml"
    if github.is_file():
        return re.findall(r"^ +- run: (.+)$", github.read_text(), re.MULTILINE)
    job = (root / ".gitlab-ci.yml").read_text().partition("\nrelease:\n")[2]
    return re.findall(r"^ +- (.+)$", job.partition("  script:\n")[2], re.MULTILINE)


def _start(here: Site) -> None:
    """Submit the job, and wait until it has read all rows."""
    here.provision()
    here.send(ROWS)
    here.submit()
    here.wait_drained()


def _held(here: Site, method: str, when: str, **where: str) -> Any:
    """Send rows, wait until their batch comes to such a request, and hold it there."""
    faults = here.cluster.client.faults
    rule = faults.add(method=method, when=when, where=where, action="delay", times=1)
    here.send(ROWS)
    faults.wait(rule, timeout=120)
    return rule


@dataclass(frozen=True)
class Fault:
    """When it was, and the epoch and the number of the last batch before it."""

    time: float
    epoch: int
    number: int

    @classmethod
    def now(cls, here: Site) -> Fault:
        return cls(time.monotonic(), *here.newest())

    def is_over(self, here: Site, *, new_process: bool = False) -> bool:
        """Return whether there is a newer batch; with ``new_process`` it is of another driver."""
        epoch, number = here.newest()
        return number > self.number and (epoch > self.epoch or not new_process)

    def seconds(self) -> int:
        return round(time.monotonic() - self.time)


def _preempted(here: Site, operation: Operation, reason: str = "preemption") -> Fault:
    """Take the one job of an operation away."""
    [job] = operation.running()
    fault = Fault.now(here)
    here.cluster.client.operations.abort_job(job.id, reason)
    return fault


def _recovered(here: Site, fault: Fault, *, new_process: bool = False) -> dict[str, Any]:
    """Wait for the next batch and the end of the queues; say when the batch was there."""
    here.wait("the next batch", lambda: fault.is_over(here, new_process=new_process))
    seconds = fault.seconds()
    here.wait_drained()
    return {"seconds": seconds, **_end(here)}


def _end(here: Site) -> dict[str, Any]:
    here.send_closing()
    held = [json.loads(text) for text in here.probes()]
    here.stop()
    stores = _state_stores(here)
    return {**here.counted(), "probes": held, "unshipped": _unshipped(held), "stores": stores}


def _state_stores(here: Site) -> list[str]:
    """Return the state stores that the checkpoint names; none for a job without state."""
    context = here.context
    if not context.job.kind.is_stateful:
        return []
    head = positions.read_head(context.settings.ledger, context.client.select_rows)
    assert head is not None
    assert head.folder is not None
    folder = path_of(context.settings, head.folder)
    metadata = spark_logs.planned(context.client, folder, head.batch).metadata
    return [metadata["conf"]["spark.sql.streaming.stateStore.providerClass"].rpartition(".")[2]]


def _unshipped(probes: list[dict[str, Any]]) -> list[str]:
    """Return places that a job could import from and that nobody shipped to it."""
    found = []
    for probe in probes:
        sandbox = Path(probe["sandbox"])
        shipped = (
            sandbox,
            Path(probe["prefix"]),
            Path(probe["base"]),
            # Python resolves the link main.py; what lies beside its target is named by checksums.
            sandbox.parents[2] / "cache",
        )
        for path in probe["path"]:
            # Spark gives its own jar, which is a link here, by the name of its target.
            is_spark = Path(path).name.startswith("spark-core_")
            if not is_spark and not any(map((sandbox / path).is_relative_to, shipped)):
                found.append(path)
    return found


CASES: dict[str, Case] = {
    case.__name__: case
    for case in (
        undisturbed,
        on_call,
        executor_out_of_memory,
        executor_preempted,
        executor_aborted,
        executor_lost_in_an_upload,
        executor_node_lost,
        driver_preempted,
        driver_node_lost,
        executors_operation_aborted,
        executors_operation_completed,
        scheduler_away,
        cluster_stumbles,
        driver_killed_twice,
        driver_superseded,
        import_fails,
        packages_in_an_archive,
        replacements,
        moved_to_this_spark,
        back_on_the_other_spark,
        submitter_killed,
        released_by_ci,
    )
}
