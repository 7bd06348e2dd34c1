"""Generated jobs on a minicluster with operations, through the unmodified spark-submit.

Driver and executors are processes in sandboxes of their own, on a node with a bare Python.
`make operations` plays everything. `make test-all` has one case of it.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from local_extensions.versions import SPARK, pin
from tests.conftest import Generate
from tests.faults.operations.cases import KILLS
from tests.support.project import ROOT, keep_in_state
from tests.support.sparks import OLDEST, OTHERS, SPARKS
from ytstream.job import PROCESSINGS

pytestmark = [pytest.mark.slow, pytest.mark.spark]
PATIENCE_SECONDS = 1_800
TWO_QUEUES = "//home/east/bids //home/west/bids"

MADE_BY_SPARK = re.compile(r"logs|spark-local|spark-warehouse|artifacts|[0-9a-f]{64}-444")
"""Folders for logs, shuffles and tables, and copies of shipped files for executors. A copy has the
name of the file's target: files are links into the node's cache."""

PROBE = """

import json as _json
import os as _os
import sys as _sys

print("PROBE", _json.dumps({
    "path": _sys.path, "prefix": _sys.prefix, "base": _sys.base_prefix,
    "sandbox": _os.environ["HOME"], "files": sorted(_os.listdir(_os.environ["HOME"])),
    "variables": sorted(_os.environ),
}), file=_sys.stderr, flush=True)


def _same(value):
    return value


_transform = transform


def transform(events):
    return _transform(events).withColumn("channel", F.udf(_same, "string")("channel"))
"""
"""What a job of the package says of itself, in the driver and in each Python worker."""


Play = Callable[..., dict[str, Any]]


@pytest.fixture
def play(tmp_path: Path, record_property: Callable[[str, object], None]) -> Play:
    """Play a case with a project in its environment; its figures are shown at the end."""

    def play(
        project: Path, environment: Path, case: str, former: Path | None = None
    ) -> dict[str, Any]:
        found = _played(project, environment, case, tmp_path / "outcome.json", former)
        record_property("figures", found)
        return found

    return play


def _played(
    project: Path, environment: Path, case: str, outcome: Path, former: Path | None
) -> dict[str, Any]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("SPARK")}
    done = subprocess.run(
        [
            environment / "bin" / "python",
            ROOT / "tests/faults/operations/play.py",
            "bids_stream",
            case,
            outcome,
            *([former / "bin" / "python"] if former is not None else []),
        ],
        cwd=project,
        env={
            **inherited,
            "PYTHONPATH": os.pathsep.join(map(str, (project / "src", project, ROOT))),
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=PATIENCE_SECONDS,
    )
    assert done.returncode == 0, done.stdout[-30_000:]
    found: dict[str, Any] = json.loads(outcome.read_text())
    return found


def smaller(project: Path) -> None:
    """Let a micro-batch be small, so that 4 000 rows are several."""
    file = project / "config" / "local.toml"
    text = file.read_text()
    assert text.count("max_rows_per_partition = 2_000") == 1
    file.write_text(text.replace("max_rows_per_partition = 2_000", "max_rows_per_partition = 250"))


@pytest.mark.thorough
def test_an_executor_is_preempted_in_a_batch_and_jobs_hold_what_was_shipped(
    generate: Generate, installed: dict[str, Path], play: Play
) -> None:
    """The case of `make test-all`: two queues, one transaction, tasks that write when they die."""
    project = generate(queue_paths=TWO_QUEUES)
    smaller(project)
    with (project / "src/bids_stream/transform.py").open("a") as file:
        file.write(PROBE)
    found = play(project, installed[SPARK], "executor_preempted")
    assert (found["lost"], found["repeated"]) == (0, 0)
    assert found["rows_in"] == 8_000
    assert found["batches"] > 2
    assert len(found["probes"]) >= 3  # the driver, and workers of both executors
    assert found["unshipped"] == []
    shipped = {"bids_stream.zip", "main.py", "cluster.toml"}
    # Executors fetch it from the driver (SparkContext.addJar), which may have none for itself.
    connector = {"ytstream-connector.jar"}
    # Bash reads it before the driver's Java and Python (BASH_ENV), and leaves the folder to know
    # that it has. Executors have the driver's files, and do not use it.
    attempt = {"attempt.sh"}
    release = {
        "setup-spyt-env.sh",
        "spyt-package.zip",
        f"spark-{pin('pyspark', SPARK)}-bin-hadoop3.tgz",
    }
    unpacked = {"spark", "spyt-package"}
    for probe in found["probes"]:
        files = {name for name in probe["files"] if not MADE_BY_SPARK.fullmatch(name)}
        assert files - {"attempt.began"} - connector == shipped | attempt | release | unpacked
        assert "YT_TOKEN" not in probe["variables"]
        assert "YT_SECURE_VAULT_YT_TOKEN" in probe["variables"]


@pytest.mark.journey
@pytest.mark.parametrize("spark", SPARKS)
@pytest.mark.parametrize(
    ("guarantee", "processing", "queues", "case"),
    [
        ("transactional", "map", TWO_QUEUES, "undisturbed"),
        ("at_least_once", "map", "//home/ytstream/bids", "undisturbed"),
        ("transactional", "window", "//home/ytstream/bids", "undisturbed"),
        ("transactional", "sessions", "//home/ytstream/bids", "packages_in_an_archive"),
    ],
)
def test_a_job_reads_its_queues_to_the_end(
    generate: Generate,
    installed: dict[str, Path],
    play: Play,
    spark: str,
    guarantee: str,
    processing: str,
    queues: str,
    case: str,
) -> None:
    project = generate(
        guarantee=guarantee, processing=processing, queue_paths=queues, spark_version=spark
    )
    smaller(project)
    found = play(project, installed[spark], case)
    assert (found["lost"], found["repeated"]) == (0, 0)
    # A transaction is on one proxy that all tasks reach; without one, each job has its own.
    assert (found["through_job_proxies"] > 0) == (guarantee == "at_least_once")


@pytest.mark.journey
@pytest.mark.parametrize(
    ("case", "guarantee", "processing", "spark"),
    [
        ("executor_aborted", "transactional", "map", SPARK),
        ("executor_preempted", "transactional", "map", OLDEST),
        ("executor_preempted", "transactional", "window", SPARK),
        ("executor_preempted", "idempotent", "map", SPARK),
        ("executor_preempted", "at_least_once", "map", SPARK),
        ("executor_aborted", "transactional", "aggregate", SPARK),
        ("executor_lost_in_an_upload", "transactional", "aggregate", SPARK),
        ("executor_lost_in_an_upload", "transactional", "deduplicate", OLDEST),
        ("executor_node_lost", "transactional", "map", SPARK),
        ("executor_node_lost", "transactional", "aggregate", SPARK),
        ("driver_preempted", "transactional", "map", SPARK),
        ("driver_preempted", "transactional", "window", OLDEST),
        ("driver_preempted", "transactional", "window", SPARK),
        ("driver_preempted", "at_least_once", "map", SPARK),
        ("driver_node_lost", "transactional", "map", SPARK),
        ("driver_node_lost", "transactional", "window", SPARK),
        ("executors_operation_aborted", "transactional", "window", SPARK),
        ("executors_operation_completed", "transactional", "map", SPARK),
        ("scheduler_away", "transactional", "map", SPARK),
        ("cluster_stumbles", "transactional", "window", SPARK),
        ("driver_killed_twice", "transactional", "map", SPARK),
        ("driver_superseded", "transactional", "map", SPARK),
    ],
)
def test_no_fault_breaks_the_guarantee(
    generate: Generate,
    installed: dict[str, Path],
    play: Play,
    case: str,
    guarantee: str,
    processing: str,
    spark: str,
) -> None:
    project = generate(guarantee=guarantee, processing=processing, spark_version=spark)
    if processing == "aggregate":
        keep_in_state(project)
    smaller(project)
    found = play(project, installed[spark], case)
    assert found["lost"] == 0
    assert found["repeated"] == 0 or guarantee == "at_least_once"
    stores = ["RocksDBStateStoreProvider"] if PROCESSINGS[processing].is_stateful else []
    assert found.get("stores", []) == stores
    if case == "executors_operation_completed":
        assert found["ended"] == "completed"  # a success for YTsaurus: it starts no driver again
    if case == "scheduler_away":
        assert found["attempts"] == 1
    if case == "cluster_stumbles":
        assert (found["attempts"], found["failures"]) == (1, 0), found
        ended = found["ended"]
        assert (ended["state"], ended["attempts"]) == ("aborted", 1), ended  # no other attempt
        assert "Token is missing in Cypress" in ended["error"]
        assert "token" in ended["why"]
        assert "damaged" not in ended["why"]
    if case == "driver_killed_twice":
        assert [re.findall(r"\d+", line) for line in found["pauses"]] == [["1", "5"], ["2", "10"]]
    if case == "driver_superseded":
        assert (found["ended"], found["attempts"]) == ("aborted", 1)  # no other attempt
        assert "the job has ended itself" in found["error"]


@pytest.mark.journey
def test_a_person_on_call_needs_neither_java_nor_spark(
    generate: Generate, installed: dict[str, Path], play: Play
) -> None:
    found = play(generate(), installed[SPARK], "on_call")
    said = {name: one["said"] for name, one in found["light"].items()}
    assert {one["exit"] for one in found["light"].values()} == {0}, said
    assert "=== driver, job " in said["logs"]
    assert "=== executor 0, job " in said["logs"]
    assert "\nidle: " in said["why"]
    assert "all rows that were there have been read" in said["drain"]
    assert "the job has ended" in said["drain"]
    assert found["ended"] == "completed"
    assert (found["rows_in"], found["lost"], found["repeated"]) == (8_000, 0, 0)


@pytest.mark.journey
def test_an_executor_whose_heap_is_full_is_named(
    generate: Generate, installed: dict[str, Path], play: Play
) -> None:
    found = play(generate(), installed[SPARK], "executor_out_of_memory")
    assert found["why"]["exit"] == 0
    assert "memory: 1 executor job ended because the Java heap was full" in found["why"]["said"]
    assert any('"exit_code": 52' in error for error in found["errors"])
    assert "raise executor_memory" in found["why"]["said"]


@pytest.mark.journey
@pytest.mark.parametrize("processing", ["map", "window"])
def test_too_few_cores_and_the_version_that_ran_before_are_named(
    generate: Generate, installed: dict[str, Path], play: Play, processing: str
) -> None:
    """Both remedies are followed: a job that was submitted is replaced, or started again."""
    found = play(generate(processing=processing), installed[SPARK], "few_cores_and_a_wrong_deploy")
    cores, deploy = found["cores"], found["deploy"]
    assert cores["differing"] == []
    assert "raise `executors` under [submit] so that there are 4 cores" in cores["said"]
    assert "submit REPLACE=1" in cores["said"]
    assert cores["after"]["took"] < 0.8 * cores["before"]["took"]
    assert cores["named_after"] != "cores"
    assert "no rate for this price" in deploy["said"]
    assert "make capture failed" in deploy["said"]
    assert deploy["is_former"]
    assert deploy["before"]["waiting"] > 0
    assert deploy["after"]["waiting"] == 0


@pytest.mark.journey
def test_a_driver_whose_import_fails_on_the_node_ends_the_submit_with_its_stderr(
    generate: Generate, installed: dict[str, Path], play: Play
) -> None:
    found = play(generate(), installed[SPARK], "import_fails")
    assert found["exit"] == 1
    assert "libbids.so.1: cannot open shared object file" in found["said"]
    assert "Traceback" not in found["said"]
    assert (found["states"], found["attempts"]) == (["aborted"], 1)


@pytest.mark.journey
@pytest.mark.parametrize("processing", ["map", "window"])
def test_a_replacement_comes_back_from_what_does_not_work(
    generate: Generate, installed: dict[str, Path], play: Play, processing: str
) -> None:
    project = generate(processing=processing)
    smaller(project)
    found = play(project, installed[SPARK], "replacements")
    assert found["same"] == [0, True]
    assert [found[name]["exit"] for name in ("new", "idle")] == [0, 0]
    for name in ("cannot_start", "fails_in_a_batch"):
        assert found[name]["exit"] == 5
        assert found[name]["last"].startswith("rolled back: ")
    assert "libbids.so.1" in found["cannot_start"]["refused"]["why"]
    # It came to a batch, planned it, and an executor failed in it.
    refused = found["fails_in_a_batch"]["refused"]
    named = re.search(r"batch (\d+)-(\d+): ValueError: no rate for this", refused["why"])
    assert named is not None, refused
    assert int(named[1]) == refused["epoch"]
    assert processing == "map" or int(named[2]) in refused["planned"]
    assert found["new"]["parts"]
    assert (found["lost"], found["repeated"]) == (0, 0)


@pytest.mark.journey
@pytest.mark.parametrize("former", OTHERS)
@pytest.mark.parametrize("processing", ["map", "window"])
@pytest.mark.parametrize("case", ["moved_to_this_spark", "back_on_the_other_spark"])
def test_a_replacement_moves_the_job_to_the_default_spark(
    generate: Generate,
    installed: dict[str, Path],
    play: Play,
    case: str,
    processing: str,
    former: str,
) -> None:
    project = generate(processing=processing, spark_version=former)
    smaller(project)
    found = play(project, installed[SPARK], case, installed[former])
    was, now = pin("pyspark", former), pin("pyspark", SPARK)
    if case == "moved_to_this_spark":
        assert (found["exit"], found["sparks"]) == (0, [was, now]), found
    else:
        assert (found["exit"], found["sparks"]) == (5, [was, now, was]), found
        assert found["last"].startswith("rolled back: ")
    assert (found["lost"], found["repeated"]) == (0, 0)


@pytest.mark.journey
@pytest.mark.parametrize("processing", ["map", "window"])
def test_a_replacement_ends_where_it_should_though_its_submitter_was_killed(
    generate: Generate, installed: dict[str, Path], play: Play, processing: str
) -> None:
    project = generate(processing=processing)
    smaller(project)
    found = play(project, installed[SPARK], "submitter_killed")
    assert {name: found[name]["exit"] for name in KILLS} == {
        "former_has_ended": 0,
        "new_one_runs": 0,
        "new_one_has_ended": 5,
    }
    assert found["new_one_has_ended"]["last"].startswith("rolled back: ")
    assert (found["lost"], found["repeated"]) == (0, 0)


@pytest.mark.journey
@pytest.mark.parametrize("ci", ["github", "gitlab"])
def test_the_steps_of_a_workflow_release_the_job(
    generate: Generate, installed: dict[str, Path], play: Play, ci: str
) -> None:
    found = play(generate(ci=ci), installed[SPARK], "released_by_ci")
    assert found["steps"] == [
        "make setup", "make check CONFIG=config/production.toml", "make submit REPLACE=1",
    ]  # fmt: skip
    assert found["drivers"] == ["completed", "running"]
    assert not found["has_token"]
    assert (found["lost"], found["repeated"]) == (0, 0)
