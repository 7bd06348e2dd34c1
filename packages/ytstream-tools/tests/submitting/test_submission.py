"""Submit, logs, status and stop against a minicluster that runs operations; no Spark."""

from __future__ import annotations

import ast
import errno
import re
import shlex
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from yt import yson
from yt.wrapper.driver import make_formatted_request

from minicluster import testing as minicluster
from tests.support.helpers import (
    fails_with,
    refusal,
    refusal_code,
    unconnected,
)
from tests.support.operation_steps import (
    ME,
    _of_the_template,
    context,
    ended,
    plan_of,
    running,
)
from tests.support.server_errors import TOKEN_BY_HTTP, UNAVAILABLE_BY_HTTP
from tests.support.waiting import eventually
from ytstream.cluster import abort_own_operation, operation
from ytstream.cluster.client import connect, explained
from ytstream.errors import JobError, SupersededError
from ytstream.errors.error_codes import ErrorCode
from ytstream.instance import stop_request
from ytstream.instance.lock import InstanceLock
from ytstream.job import JobContext
from ytstream.ledger import ledger_rows
from ytstream.ledger.ledger_rows import Head
from ytstream.provisioning import permissions
from ytstream.settings import toml_file
from ytstream.settings.resources import sizes_of
from ytstream.settings.submit_section import SubmitSection
from ytstream_tools.status import operation_logs, status_text
from ytstream_tools.submitting import launch_checks, launch_plan, preflight, spark_submit
from ytstream_tools.submitting import submission as submitting
from ytstream_tools.submitting.first_batch import FirstBatchWait
from ytstream_tools.submitting.launch_plan import LaunchPlan

__all__ = ["_of_the_template", "context", "running"]

MODULE = launch_plan.ATTEMPT.with_name("attempt.py")


def start(context: JobContext, script: str, *, executors: str | None = None, **spec: Any) -> str:
    """Start an operation as SPYT would, with this shell script as the driver."""
    note = {operation.NOTE: {"ledger": context.settings.ledger, "version": "1", "commit": "c"}}
    if executors is not None:
        note["description"] = {"Executors operation ID": executors}
    given = {
        "tasks": {"driver": {"command": script, "job_count": 1}},
        "alias": context.settings.alias,
        "annotations": note,
        "max_failed_job_count": 10_000,
        **spec,
    }
    parameters = {"operation_type": "vanilla", "spec": given}
    answer = make_formatted_request(
        "start_operation", parameters, format=None, client=context.client
    )
    return str(answer["operation_id"])


def waiting(context: JobContext, id_: str, **given: Any) -> tuple[FirstBatchWait, list[str]]:
    """Return a wait for the first batch, and what it says."""
    said: list[str] = []
    wait = FirstBatchWait(context, id_, 0, said.append, **given)
    return wait, said


def problems(context: JobContext, folder: Path) -> str:
    """Return everything that a look finds, except what is of this test's repository."""
    return refusal(lambda: preflight.look(plan_of(context, folder), launch_checks.LOOKS))


# The command


def test_the_command_is_detached_and_holds_no_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("YT_TOKEN", "secret-of-the-shell")
    offline = unconnected("transactional")
    submit = SubmitSection(
        python="python3.12",
        java="/opt/jdk21",
        executors=4,
        acl=({"subjects": ["team"], "permissions": ["read"]},),
        title="bids",
        annotations={"cost": "0.1"},
        image="spark:1",
        stderr_table="//home/e",
    )
    settings = replace(
        offline.settings, proxy="https://cluster.example.net", pool="research", submit=submit
    )
    made = plan_of(replace(offline, settings=settings), tmp_path, "--conf", "a=b")
    line = spark_submit.command(made, tmp_path / "id")
    confs = dict(word.split("=", 1) for word in line[line.index("--conf") :] if "=" in word)
    assert "secret-of-the-shell" not in " ".join(line)
    assert line[1:5] == ["--master", "ytsaurus://cluster.example.net", "--deploy-mode", "cluster"]
    assert confs["spark.ytsaurus.driver.watch"] == "false"
    assert confs["spark.ytsaurus.driver.operation.dump.path"] == str(tmp_path / "id")
    assert confs["spark.ytsaurus.driver.operation.alias"] == "*home/job/ledger"
    assert confs["spark.ytsaurus.remote.temp.files.directory"] == "//home/job/ledger-files"
    assert confs["spark.pyspark.python"] == "python3.12"
    assert confs["spark.ytsaurus.java.home"] == "/opt/jdk21"
    assert confs["spark.ytsaurus.driver.maxFailures"] == "10000"
    assert confs["spark.ytsaurus.executor.maxFailures"] == "2500"  # times four
    assert confs["spark.executor.instances"] == "4"
    assert confs["spark.ytsaurus.redirect.stdout.to.stderr"] == "true"
    assert confs["spark.ytsaurus.rpc.job.proxy.enabled"] == "false"
    assert confs["spark.ytsaurus.driverEnv.BASH_ENV"] == "./attempt.sh"
    drivers = yson.loads(confs["spark.ytsaurus.driver.operation.parameters"].encode())
    assert drivers["annotations"]["cost"] == "0.1"  # a text stays one
    assert drivers["annotations"]["ytstream"]["commit"] == "abc"
    assert drivers["annotations"]["ytstream"]["version"] == "1.2"
    assert drivers["acl"] == [{"action": "allow", "subjects": ["team"], "permissions": ["read"]}]
    assert (drivers["title"], drivers["stderr_table_path"]) == ("bids", "//home/e")
    executors = yson.loads(confs["spark.ytsaurus.executor.operation.parameters"].encode())
    assert "stderr_table_path" not in executors  # two operations cannot write one table
    for task in ("driver", "executor"):
        assert confs[f"spark.ytsaurus.{task}.task.parameters"] == '{"docker_image"="spark:1";}'
    assert line[-5:] == ["--conf", "a=b", str(tmp_path / "main.py"), "--config", "production.toml"]


def test_files_in_a_folder_that_no_list_can_hold_are_given_by_a_link(tmp_path: Path) -> None:
    (folder := tmp_path / "it's 1, #2 %20 + задачи").mkdir()
    made = plan_of(unconnected("transactional"), folder)
    line = spark_submit.command(made, tmp_path / "id")
    given = [*line[line.index("--files") + 1].split(","), line[line.index("--py-files") + 1]]
    given.append(line[-3])
    assert all(re.fullmatch("[A-Za-z0-9_./-]+", path) for path in given)
    wanted = (*made.files, made.package, made.main)
    assert [Path(path).resolve() for path in given] == [file.resolve() for file in wanted]


def test_files_of_a_person_go_beside_the_jobs_own(tmp_path: Path) -> None:
    """spark-submit takes the last of several --files: the configuration would be gone."""
    made = plan_of(unconnected("transactional"), tmp_path, "--files", "more.txt")
    line = spark_submit.command(made, tmp_path / "id")
    assert line.count("--files") == 1
    files = line[line.index("--files") + 1].split(",")
    assert [Path(file).name for file in files] == [
        "production.toml",
        "attempt.sh",
        "more.txt",
    ]


def test_nothing_of_the_shell_leaks_into_the_job(tmp_path: Path) -> None:
    """Row 8: SPYT makes a setting of every SPARK_* of the submitter."""
    made = plan_of(unconnected("transactional"), tmp_path)
    shell = {"SPARK_YT_TOKEN": "x", "SPARK_DRIVER_MEMORY": "9g", "PYSPARK_PYTHON": "/here/python",
             "PATH": "/bin", "YT_PROXY": "other", "YT_TOKEN": "secret"}  # fmt: skip
    found = spark_submit.environment(made, shell)
    assert found.keys() == {"PATH", "YT_TOKEN", "SPARK_CONF_DIR", "SPARK_HOME"}
    assert (Path(found["SPARK_CONF_DIR"]) / "spark-defaults.conf").is_file()
    given = spark_submit.given(made, tmp_path / "id")
    assert given["spark.home"] == given["spark.conf.dir"] == "-"


@pytest.mark.thorough
@pytest.mark.spark
def test_spark_submit_itself_takes_nothing_else_from_the_shell(
    running: minicluster.Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The real one, on a cluster without SPYT's configuration, which `look` would name."""
    monkeypatch.setenv("SPARK_LEAKED_HERE", "secret-of-the-shell")
    monkeypatch.setenv("YT_TOKEN", "token-of-the-shell")
    offline = unconnected("transactional")
    at = replace(offline, settings=replace(offline.settings, proxy=running.http))
    made = plan_of(at, tmp_path, "--conf", "spark.ytsaurus.config.global.path=//none")
    made.package.touch()
    made.config.touch()
    line = spark_submit.command(made, tmp_path / "id")
    done = subprocess.run(
        [line[0], "--verbose", *line[1:]],
        env=spark_submit.environment(made),
        capture_output=True,
        text=True,
        check=False,
    )
    said = done.stdout + done.stderr
    assert done.returncode != 0
    assert "of-the-shell" not in said
    config = said.partition("Spark config:")[2].partition("Classpath elements:")[0]
    found = dict(re.findall(r"^\((spark\.[^,]+),(.*)\)$", config, re.MULTILINE))
    assert found["spark.ytsaurus.driver.operation.alias"] == "*home/job/ledger"
    assert {key for key, value in found.items() if "site-packages" in value} <= {
        "spark.files",
        "spark.redaction.regex",
    }
    assert submitting.reason(said) == "Key not found: environment"


def test_a_rehearsal_needs_no_cluster_and_writes_nothing(
    repository: Path,
) -> None:
    before = sorted(repository.rglob("*"))
    plan_of(unconnected("transactional"), repository)  # the repository itself
    made = sorted(repository.rglob("*"))
    text = submitting.rehearse(unconnected("transactional"), Path("production.toml"), ())
    assert "spark-submit \\\n  --master ytsaurus://" in text
    assert "job.zip" in text
    assert text.endswith("main.py --config production.toml")
    assert sorted(repository.rglob("*")) == made != before


def test_the_shipped_configuration_is_resolved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Row 12: YT_PROXY does not reach the job, and the file that is extended is not shipped."""
    monkeypatch.setattr(launch_plan, "archive", lambda package, folder: folder / "job.zip")
    made = plan_of(unconnected("transactional"), tmp_path)
    base, own = tmp_path / "config" / "production.toml", tmp_path / "config" / "staging.toml"
    base.write_text('proxy = "cluster"\npool = "a"\nqueues = ["//home/a"]\n'
                    'consumer = "//home/j/consumer"\ncheckpoint = "//home/j/checkpoint"\n'
                    'ledger = "//home/j/ledger"\nallow_env_proxy = true\n'
                    '[outputs]\noutput = "//home/j/output"\n[spark]\nspark.sql.x = "1"\n'
                    '[submit]\nexecutors = 3\n'
                    'acl = [{subjects = ["a"], permissions = ["read"]}]\n')  # fmt: skip
    own.write_text('extends = "production.toml"\npool = "b"\n[submit]\nexecutor_memory = "8g"\n')
    assert toml_file.read(own).origins["submit.executors"] == base
    assert toml_file.read(own).origins["pool"] == own
    made = replace(made, context=replace(
        made.context, settings=replace(made.settings, proxy="127.0.0.1:5")))  # fmt: skip
    launch_plan.build(made, own)
    from ytstream.settings.job_settings import load

    shipped = load(made.config, {})
    assert (shipped.proxy, shipped.pool, shipped.allow_env_proxy) == ("127.0.0.1:5", "b", False)
    assert (shipped.submit.executors, shipped.submit.executor_memory) == (3, "8g")
    assert shipped.submit.acl == ({"subjects": ["a"], "permissions": ["read"]},)
    assert shipped.spark_confs == {"spark.sql.x": "1"}
    assert "extends = " not in made.config.read_text()


def test_what_is_started_is_shown_with_its_limits(tmp_path: Path) -> None:
    """Row 10."""
    made = plan_of(unconnected("transactional"), tmp_path, "--num-executors", "5")
    text = launch_plan.shown(made)
    lines = {tuple(line.split()[:5]) for line in text.splitlines()}
    assert {("driver", "1", "1", "2g", "2867"), ("executor", "5", "1", "4g", "4506")} <= lines
    assert "1.2, commit abc" in text
    files = [line.split() for line in text.partition("file  ")[2].splitlines()[2:]]
    assert [(file[0], file[-1]) for file in files] == [
        *(("main.py", "."), ("job.zip", "dist"), ("production.toml", "dist")),
        ("attempt.sh", "ytstream"),
    ]


# The look


def test_imports_are_left_to_the_nodes_where_the_job_brings_packages() -> None:
    given: list[dict[str, Any]] = [{}, {"archive": "a.zip"}, {"image": "spark:1"}]
    assert [SubmitSection(**one).brings_packages for one in given] == [False, True, True]


def test_a_look_finds_nothing_on_a_cluster_that_is_ready(
    context: JobContext, tmp_path: Path
) -> None:
    preflight.look(plan_of(context, tmp_path), launch_checks.LOOKS)


def _remove(path: str) -> Callable[[Any], None]:
    return lambda client: client.remove(path, recursive=True)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_remove(f"{ME}/conf/global"), "//home/spark/conf/global is missing"),
        (_remove(f"{ME}/conf/releases"), "SPYT 2.11.2 is not on the cluster"),
        (_remove(f"{ME}/spyt"), "SPYT 2.11.2 is not complete: no //home/spark/spyt/"),
        (_remove(f"{ME}/distrib"), "is not on the cluster: no .tgz in //home/spark/distrib/"),
    ],
)
def test_what_the_cluster_lacks_is_named_before_anything_is_uploaded(
    context: JobContext, tmp_path: Path, change: Callable[[Any], None], said: str
) -> None:
    """Row 9."""
    change(context.client)
    assert said in problems(context, tmp_path)


def test_all_problems_come_at_once(context: JobContext, tmp_path: Path) -> None:
    client: Any = context.client
    client.remove(f"{ME}/conf/global")
    client.remove(context.settings.output)
    submit = SubmitSection(python="python3.9", archive="gone.tar.gz", stderr_table="//home/none")
    text = problems(replace(context, settings=replace(context.settings, submit=submit)), tmp_path)
    assert "since 5 things must be corrected first" in text
    for said in ("conf/global is missing", "'python3.9' is too old", "gone.tar.gz is not there",
                 "output: missing", "yt create table //home/none"):  # fmt: skip
        assert said in text.replace(context.settings.output, "output") or said in text


def test_each_right_that_is_missing_is_named(context: JobContext, tmp_path: Path) -> None:
    """The list is that of `check --permissions`, and what a submit needs besides."""
    client: Any = context.client
    settings = replace(
        context.settings,
        account="default",
        submit=SubmitSection(stderr_table=f"{context.settings.ledger}-stderr"),
    )
    client.create("table", settings.submit.stderr_table)
    answer = type(client).check_permission

    class Denying:
        """The client, for which one right is denied: root itself may everything."""

        denied = ("", "")

        def __getattr__(self, name: str) -> Any:
            return getattr(client, name)

        def check_permission(self, user: str, permission: str, at: str) -> Any:
            if (permission, at) == self.denied:
                return {"action": "deny"}
            return answer(client, user, permission, at)

    denying: Any = Denying()
    made = plan_of(replace(context, client=denying, settings=settings), tmp_path)
    wanted = permissions.of_submit(context.job, settings)
    assert {*permissions.rights(permissions.JOB, context.job, settings)} < {*wanted}
    assert {"//home/spark/conf/global", settings.submit.stderr_table} <= {
        one.path for one in wanted
    }
    preflight.look(made, [launch_checks._rights])  # none is missing
    for right in wanted:
        denying.denied = (right.permission, right.path)
        said = f"root lacks a right: {right.permission} on {right.object} {right.path}: {right.why}"
        assert said in refusal(lambda: preflight.look(made, [launch_checks._rights]))
    assert said in refusal(lambda: preflight.look(made, launch_checks.LOOKS))


def test_a_token_that_is_refused_is_named_before_anything_is_looked_at(
    context: JobContext, running: minicluster.Running
) -> None:
    running.client.faults.add(method="get", times=None, action="fail", error=TOKEN_BY_HTTP)
    said = f"{context.settings.proxy} refuses the token: Token is missing in Cypress"
    assert refusal(lambda: connect(context.settings)) == f"{said}\n  -> renew YT_TOKEN"


def test_a_pool_is_looked_for(context: JobContext, tmp_path: Path) -> None:
    client: Any = context.client
    client.create("map_node", "//sys/pool_trees/default/team/research", recursive=True,
                  ignore_existing=True)  # fmt: skip
    client.set("//sys/pool_trees/@default_tree", "default")
    client.set("//sys/pool_trees/default/team/research/@resource_limits", {"cpu": 2})
    at = replace(context, settings=replace(context.settings, pool="reserch"))
    assert "there is no pool 'reserch'\n  -> did you mean research?" in problems(at, tmp_path)
    at = replace(context, settings=replace(context.settings, pool="research"))
    assert "'research' has 2 cores, and the job takes 3" in problems(at, tmp_path)


def test_a_full_quota_is_named(context: JobContext, tmp_path: Path) -> None:
    client: Any = context.client
    client.create("account", attributes={
        "name": "full", "resource_limits": {"node_count": 0},
    })  # fmt: skip
    at = replace(context, settings=replace(context.settings, account="full"))
    assert "the quota of the account 'full' is full: 1 of 0 node_count" in problems(at, tmp_path)


def test_a_job_that_runs_is_not_started_again(context: JobContext, tmp_path: Path) -> None:
    id_ = start(context, "sleep 100")
    text = problems(replace(context, config=Path("config/staging.toml")), tmp_path)
    assert f"the job is already running: operation {id_}, version 1, commit c" in text
    # Without it, make would ask the cluster of config/local.toml.
    assert "`make stop CONFIG=config/staging.toml` first; it waits for the end" in text


def test_an_alias_of_another_job_is_named(context: JobContext, tmp_path: Path) -> None:
    id_ = start(context, "sleep 100", annotations={})
    assert f"belongs to operation {id_} of root, which is another job's" in problems(
        context, tmp_path
    )


def test_a_job_that_runs_elsewhere_is_found_by_its_lock(
    context: JobContext, tmp_path: Path
) -> None:
    lock = InstanceLock(context.client, context.settings.consumer)
    lock.acquire(print)
    try:
        assert "the job is already running: process" in problems(context, tmp_path)
    finally:
        lock.release()


def test_the_lock_of_an_operation_that_has_ended_keeps_nothing_from_starting(
    context: JobContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A driver leaves it behind whose executors' operation was completed; it expires."""
    id_ = start(context, "exit 1", max_failed_job_count=1)
    ended(context, id_)
    monkeypatch.setenv("YT_OPERATION_ID", id_)
    lock = InstanceLock(context.client, context.settings.consumer)
    lock.acquire(print)
    try:
        preflight.look(plan_of(context, tmp_path), launch_checks.LOOKS)
    finally:
        lock.release()


# Waiting


def _batch(context: JobContext, kind: str) -> None:
    row = ledger_rows.look_row(1)
    if kind == "batch":
        row = {**row, "kind": "batch", "number": 1, "batch": 0, "rows_read": 7, "started": 1}
    context.client.insert_rows(context.settings.ledger, [row])


def test_a_submit_returns_with_the_first_batch(context: JobContext) -> None:
    id_ = start(context, "sleep 100")
    wait, said = waiting(context, id_, pause=lambda _: _batch(context, "batch"))
    assert wait.first_batch() == "the first batch is in the ledger: 1-0, 7 rows read"
    assert said  # progress


def test_a_batch_of_a_former_epoch_is_none(context: JobContext) -> None:
    _batch(context, "batch")
    wait, _ = waiting(context, start(context, "sleep 100"))
    wait = replace(wait, epoch=1, clock=iter([0.0, *[1e6] * 9]).__next__)
    with fails_with(ErrorCode.FIRST_BATCH_LATE):
        wait.first_batch()


def test_a_first_look_counts_once_an_executor_runs(context: JobContext) -> None:
    _batch(context, "look")
    id_ = start(context, "sleep 100")
    wait, said = waiting(context, id_, clock=iter([0.0, *[1e6] * 9]).__next__)
    with fails_with(ErrorCode.FIRST_BATCH_LATE):
        wait.first_batch()
    context.client.abort_operation(id_, message="next")
    executors = start(context, "sleep 100", alias="*executors")
    id_ = start(context, "sleep 100", executors=executors)
    wait, said = waiting(context, id_)
    assert wait.first_batch() == "the job runs, and there is nothing to read yet"
    assert said == [] or "wait" in said[-1]


def test_nodes_that_have_their_java_elsewhere_are_told_from_other_failures(
    context: JobContext,
) -> None:
    for driver, is_java in (("/opt/jdk99/bin/java Main", True), ("echo code 1 >&2; exit 1", False)):
        id_ = start(context, driver, max_failed_job_count=1)
        ended(context, id_)
        wait, _ = waiting(context, id_)
        assert ("`java` under [submit]" in refusal(wait.first_batch)) == is_java


def test_a_driver_that_fails_first_ends_the_submit_with_its_stderr(context: JobContext) -> None:
    """An import that fails on the node, for example."""
    id_ = start(context, "echo 'ModuleNotFoundError: no rich' >&2; exit 1")
    wait, _ = waiting(context, id_)
    text = refusal(wait.first_batch)
    assert "the driver did not reach its first batch: " in text
    assert "ModuleNotFoundError: no rich" in text


def test_a_job_that_ends_itself_gives_its_reason(context: JobContext) -> None:
    id_ = start(context, "sleep 100")
    token = {"YT_OPERATION_ID": id_, "YTSTREAM_PROXY": context.settings.proxy}
    abort_own_operation.end(JobError("this processing needs pandas"), None, token)
    wait, _ = waiting(context, id_)
    first = refusal(wait.first_batch).splitlines()[0]
    assert first.endswith(
        "its operation is aborted: the job has ended itself: this processing needs pandas"
    )


@pytest.mark.thorough
def test_a_cluster_that_is_away_for_a_moment_is_waited_for(
    context: JobContext, running: minicluster.Running
) -> None:
    id_ = start(context, "sleep 100")
    fault = running.client.faults.add(method="get_operation", times=None, action="fail",
                                      error=UNAVAILABLE_BY_HTTP)  # fmt: skip

    def back(_: float) -> None:
        running.client.faults.remove(fault)
        _batch(context, "batch")

    wait, said = waiting(context, id_, pause=back)
    assert "the first batch" in wait.first_batch()
    assert "does not answer" in said[0]


# The whole submit, with a spark-submit of our own


def _fake(monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Let ``script``, Python, be spark-submit: it finds the file for the id in ``DUMP``."""

    def line(_: LaunchPlan, dump: Path) -> list[str]:
        return [sys.executable, "-c", f"DUMP = {str(dump)!r}\n{script}"]

    monkeypatch.setattr(spark_submit, "command", line)


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let every plan be one of a repository in this folder."""

    def planned(context: JobContext, config: Path, words: Any) -> LaunchPlan:
        return plan_of(context, tmp_path, *words)

    def build(made: LaunchPlan, config: Path) -> None:
        made.config.touch()
        ZipFile(made.package, "w").close()

    monkeypatch.setattr(launch_plan, "plan_of", planned)
    monkeypatch.setattr(launch_plan, "build", build)
    return tmp_path


def test_a_driver_that_fails_leaves_nothing_running(
    context: JobContext, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    executors = start(context, "sleep 100", alias="*executors")
    id_ = start(context, "exit 1", executors=executors, alias="*other")
    _fake(monkeypatch, f"open(DUMP, 'w').write({id_!r})")
    said: list[str] = []
    text = refusal(
        lambda: submitting.submit(context, Path("c.toml"), (), said.append, launch_checks.LOOKS)
    )
    assert f"ended: the driver's operation {id_}" in text
    states = {found["id"]: found["state"]
              for found in context.client.list_operations(limit=100)["operations"]}  # fmt: skip
    assert (states[id_], states[executors]) == ("aborted", "aborted")
    assert any(id_ in line for line in said)


@pytest.mark.thorough
def test_executors_that_never_come_end_the_submit(
    context: JobContext,
    running: minicluster.Running,
    repository: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A pool without resources: the driver got the last of them."""
    client: Any = context.client
    id_ = start(context, "sleep 100", alias="*other", annotations={})
    eventually(lambda: [run.state for run in operation.runs(client, id_)] == ["running"])
    running.client.operations.set_start_delay(1_000)
    try:
        executors = start(context, "sleep 100", alias="*executors", annotations={})
        description = {"Executors operation ID": executors}
        client.update_operation_parameters(id_, {"annotations": {"description": description}})
        _fake(monkeypatch, f"open(DUMP, 'w').write({id_!r})")
        submit = replace(context.settings.submit, wait_seconds=0.2)
        hasty = replace(context, settings=replace(context.settings, submit=submit))
        said: list[str] = []
        text = refusal(
            lambda: submitting.submit(hasty, Path("c.toml"), (), said.append, launch_checks.LOOKS)
        )
    finally:
        running.client.operations.set_start_delay(0)
    first, *others = text.splitlines()
    assert first == (
        "no batch within 0 s; the last seen: the driver runs: waiting for nodes for the executors"
    )
    assert others[:2] == [
        f"ended: the driver's operation {id_}",
        f"ended: the executors's operation {executors}",
    ]
    assert ended(context, id_).is_final
    assert ended(context, executors).is_final


@pytest.mark.thorough
def test_a_cluster_that_goes_away_while_files_are_uploaded_is_one_line(
    context: JobContext,
    running: minicluster.Running,
    repository: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trace = (
        "Exception in thread main java.util.concurrent.CompletionException: "
        "java.io.IOException: Connection refused\n\tat a.b(C.java:1)\n"
    )
    _fake(monkeypatch, f"import sys; sys.stderr.write({trace!r}); sys.exit(1)")
    faults, hand_over = running.client.faults, submitting._hand_over

    def away(*given: Any) -> str:
        faults.add(method=None, times=None, action="hang_up")
        return hand_over(*given)

    monkeypatch.setattr(submitting, "_hand_over", away)
    text = refusal(
        lambda: submitting.submit(context, Path("c.toml"), (), print, launch_checks.LOOKS)
    )
    faults.clear()
    first, second, *_ = text.splitlines()
    assert first == "spark-submit failed: java.io.IOException: Connection refused"
    assert second.startswith("what may have been started could not be ended: cannot reach the ")
    assert "end it by `make stop CONFIG=" in second
    running_now = context.client.list_operations(limit=100)["operations"]
    assert [one["id"] for one in running_now if one["state"] not in operation.FINAL] == []


@pytest.mark.thorough
@pytest.mark.spark
def test_spark_submit_itself_says_that_a_proxy_went_away_while_it_uploads(
    context: JobContext, running: minicluster.Running, repository: Path
) -> None:
    running.client.faults.add(method="WriteFile", times=None, action="hang_up")
    text = refusal(
        lambda: submitting.submit(context, Path("c.toml"), (), print, launch_checks.LOOKS)
    )
    first, second = text.splitlines()
    assert first.startswith("spark-submit failed: ")
    assert "no reason" not in first
    assert "the whole log is" in second
    found = context.client.list_operations(limit=100)["operations"]
    assert [one["id"] for one in found if one["state"] not in operation.FINAL] == []


def test_a_spec_that_the_cluster_refuses_is_one_line(
    context: JobContext, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = (
        "26/11/23 WARN x\nException in thread main java.util.concurrent.CompletionException: "
        "tech.ytsaurus.core.common.YTsaurusError: 'Error parsing operation spec' <== "
        "'Pool \"a\" is forbidden'; full error: {...}\n\tat a.b(C.java:1)\n"
    )
    _fake(monkeypatch, f"import sys; sys.stderr.write({trace!r}); sys.exit(1)")
    text = refusal(
        lambda: submitting.submit(context, Path("c.toml"), (), print, launch_checks.LOOKS)
    )
    assert text.splitlines()[0] == 'spark-submit failed: Pool "a" is forbidden'
    assert not context.client.list_operations(limit=100)["operations"] or "ended" not in text


def test_an_interrupted_submit_says_what_runs(
    context: JobContext, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    id_ = start(context, "sleep 100", alias="*other")
    _fake(monkeypatch, f"open(DUMP, 'w').write({id_!r})")

    def interrupt(_: FirstBatchWait) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr(FirstBatchWait, "first_batch", interrupt)
    said: list[str] = []
    named = replace(context, config=Path("config/production.toml"))
    with pytest.raises(KeyboardInterrupt):
        submitting.submit(named, Path("c.toml"), (), said.append, launch_checks.LOOKS)
    assert said[-1].startswith(f"interrupted: operation {id_} runs on")
    assert "`make stop CONFIG=config/production.toml` ends it" in said[-1]


# Logs, status, stop


def test_logs_show_the_newest_attempt_and_the_executors(context: JobContext) -> None:
    executors = start(context, "echo executed >&2; sleep 100", alias="*executors")
    id_ = start(context, "echo drove >&2; sleep 100", executors=executors)
    text = eventually(
        lambda: (
            (said := "\n".join(operation_logs.logs(context)))
            and "drove" in said
            and "executed" in said
            and said
        )
    )
    assert "=== driver, job " in text
    assert "=== executor 0, job " in text
    context.client.abort_operation(id_, message="enough")
    lines = list(operation_logs.follow(context))
    assert lines[-1] == f"=== operation {id_} is aborted: enough"


def test_followed_logs_are_of_executors_too(context: JobContext) -> None:
    """Also of an executor that came later, and no line twice."""
    executors = start(context, "echo e1 >&2; sleep 100", alias="*executors")
    id_ = start(context, "echo d1 >&2; sleep 100", executors=executors)
    client: Any = context.client
    said: list[str] = []

    def lines_of(*wanted: str) -> bool:
        return all(line in said for line in wanted)

    def pause(_: float) -> None:
        time.sleep(0.1)
        states = [run.state for run in operation.runs(client, executors)]
        if lines_of("d1", "e1") and len(states) == 1:
            client.abort_job(operation.runs(client, executors)[0].id)
        elif said.count("e1") == 2:
            client.abort_operation(id_, message="enough")

    for line in operation_logs.follow(context, pause):
        said.append(line)
    assert [line for line in said if not line.startswith("===")].count("d1") == 1
    assert said.count("e1") == 2
    headers = [line.split(",")[0] for line in said if line.startswith("===")]
    # More on a slow machine: a header is repeated when the other process has said something.
    assert headers.count("=== driver") >= 1
    assert headers.count("=== executor") >= 2
    assert said[-1] == f"=== operation {id_} is aborted: enough"


def test_added_lines_survive_a_cut_in_the_middle() -> None:
    assert operation_logs.added("", "a\nb") == ["a"]
    assert operation_logs.added("a\nb", "a\nbc\n") == ["bc"]
    assert operation_logs.added("a\nb\n", "x\nb\nc\n") == ["c"]  # YTsaurus has dropped lines


def test_the_operation_is_found_by_the_ledgers_owner(context: JobContext) -> None:
    id_ = start(context, "sleep 100", alias="*by hand", annotations={})
    head = Head(1, f"process 1 on node, operation {id_}, abc", None)
    context.client.insert_rows(context.settings.ledger, [ledger_rows.head_row(head)])
    assert operation_logs.job_operation(context).id == id_


def test_without_an_operation_logs_say_so(context: JobContext) -> None:
    assert refusal_code(lambda: operation_logs.job_operation(context)) == ErrorCode.OPERATION_GONE


def test_status_shows_the_operation(context: JobContext) -> None:
    id_ = start(context, "sleep 100")
    text = status_text.status(context)
    assert re.search(
        rf"^operation {id_}: running since \S+ \S+ UTC; 1 attempt, 0 failed$", text, re.M
    )
    assert re.search(r"^alias \*\S+, version 1, commit c$", text, re.M)


def test_stop_ends_an_operation_between_two_attempts(context: JobContext) -> None:
    """No process holds the lock, and YTsaurus would start the next one."""
    id_ = start(context, "sleep 100")
    assert f"ended: the driver's operation {id_}" in stop_request.stop(context, print)
    found = operation.get(context.client, id_)
    assert found is not None
    assert (found.state, found.error) == ("aborted", "`stop` was called")


def test_only_what_runs_is_ended(context: JobContext) -> None:
    """A job that has ended itself is not said to be ended by the submit."""
    found = ended(context, start(context, "exit 1", max_failed_job_count=1))
    assert [*operation.abort(context.client, found, "a test")] == []


# A job that ends its own operation


def _environment(context: JobContext, id_: str) -> dict[str, str]:
    return {"YT_OPERATION_ID": id_, "YTSTREAM_PROXY": context.settings.proxy}


def test_a_superseded_driver_ends_its_own_operation(context: JobContext) -> None:
    """Row 4: its exit code 3 is lost, and YTsaurus would start it again."""
    id_ = start(context, "sleep 100")
    by = "process 2 on b, operation 1-2-3-4, abc"
    abort_own_operation.end(SupersededError("another", "", by), None, _environment(context, id_))
    found = operation.get(context.client, id_)
    assert found is not None
    assert found.is_final


def test_an_attempt_that_a_later_one_has_superseded_leaves_it_alone(context: JobContext) -> None:
    """Of a node that was cut off: the later one is of the same operation."""
    id_ = start(context, "sleep 100")
    by = f"process 2 on b, operation {id_}, abc"
    abort_own_operation.end(SupersededError("another", "", by), None, _environment(context, id_))
    found = operation.get(context.client, id_)
    assert found is not None
    assert not found.is_final


def test_an_attempt_takes_the_lock_from_the_one_before(
    context: JobContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one may live on a node that is cut off, and ping for ever."""
    monkeypatch.setenv("YT_OPERATION_ID", "1-2-3-4")
    first = InstanceLock(context.client, context.settings.consumer)
    second = InstanceLock(context.client, context.settings.consumer)
    first.acquire(print)
    said: list[str] = []
    second.acquire(said.append)
    first.keep()
    ((_, owner, _),) = second.holders()
    assert "operation 1-2-3-4" in owner
    assert "taken from a previous attempt" in said[0]
    second.release()


# The pause before an attempt


def _attempt(context: JobContext, tmp_path: Path, **environment: str) -> str:
    """Return the command of a driver whose first bash reads attempt.sh."""
    (tmp_path / "attempt.sh").write_text(launch_plan.ATTEMPT.read_text())
    with ZipFile(tmp_path / "attempt.zip", "w") as package:
        package.write(MODULE, f"{launch_plan.ATTEMPT_MODULE}/attempt.py")
    given = {"BASH_ENV": "./attempt.sh", "YTSTREAM_PROXY": context.settings.proxy,
             "YTSTREAM_PYTHON": sys.executable, "YT_SECURE_VAULT_YT_TOKEN": "t",
             "YTSTREAM_ATTEMPT": f"./attempt.zip/{launch_plan.ATTEMPT_MODULE}",
             **environment}  # fmt: skip
    words = " ".join(f"{name}={shlex.quote(value)}" for name, value in given.items())
    inner = f"env {words} bash -c 'echo begun; bash -c \"echo inner\"'"
    return f"cp {shlex.quote(str(tmp_path))}/attempt.* . && {inner} >&2"


def _said(context: JobContext, id_: str) -> str:
    ended(context, id_)
    (run,) = operation.runs(context.client, id_)
    return operation.stderr(context.client, id_, run.id)


def test_a_first_attempt_begins_at_once(context: JobContext, tmp_path: Path) -> None:
    id_ = start(context, _attempt(context, tmp_path))
    assert _said(context, id_) == "begun\ninner\n"


def test_a_python_that_is_not_there_ends_the_operation(context: JobContext, tmp_path: Path) -> None:
    path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    driver = _attempt(context, tmp_path, YTSTREAM_PYTHON="python3.99", PATH=path)
    id_ = start(context, driver)
    found = ended(context, id_)
    assert "there is no python3.99 on this node" in found.error


def _module() -> Any:
    """Import attempt.py as a node runs it: a file, not a part of the package."""
    spec = spec_from_file_location("attempt", MODULE)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class _Failed:
    """A client whose operation has failed attempts, some long ago."""

    def __init__(self, recent: int, old: int) -> None:
        now = datetime.now(UTC)
        times = [now] * recent + [now - timedelta(days=1)] * old
        self._jobs = [{"finish_time": f"{time:%Y-%m-%dT%H:%M:%S.%fZ}"} for time in times]
        self.ended: list[str] = []

    def list_jobs(self, **_: Any) -> Any:
        return {"jobs": self._jobs}

    def abort_operation(self, id_: str, message: str) -> None:
        self.ended.append(message)


@pytest.mark.parametrize(
    ("recent", "old", "waits"),
    [(0, 0, []), (1, 0, [5]), (3, 500, [20]), (9, 0, [300]), (0, 9_000, [])],
)
def test_the_pause_grows_and_failures_of_a_year_do_not_add_up(
    recent: int, old: int, waits: list[int]
) -> None:
    """Row 3."""
    client, waited = _Failed(recent, old), list[float]()
    assert _module().begin({"YT_OPERATION_ID": "1"}, client, waited.append) == 0
    assert (waited, client.ended) == (waits, [])


def test_too_many_failures_within_an_hour_end_the_operation() -> None:
    client, waited = _Failed(10, 0), list[float]()
    assert _module().begin({"YT_OPERATION_ID": "1"}, client, waited.append) == 3
    assert client.ended == ["gave up: the driver has failed 10 times within an hour"]
    assert waited == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"NEEDED": (3, 99)}, r"the Python of this node, p, is 3\.\d+, and the job needs 3\.99"),
        ({"PACKAGES": ("packaging", "gone.x")}, "lacks gone: ask the administrators"),
    ],
)
def test_a_python_that_does_not_do_is_named(change: dict[str, Any], said: str) -> None:
    """Row 11."""
    module = _module()
    vars(module).update(change)
    assert re.search(said, module.problem("p", "p"))
    assert module.problem("./environment/bin/python", "python3") is None


def test_the_pause_is_for_any_python_that_a_node_may_have() -> None:
    tree = ast.parse(MODULE.read_text(), feature_version=(3, 7))
    assert isinstance(tree, ast.Module)


# What goes wrong on this machine


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--num-executors", "x"), "--num-executors = 'x': wanted a whole number from 1"),
        (("--executor-cores", "0"), "--executor-cores = '0': wanted a whole number from 1"),
        (("--driver-memory", "4 GB"), "--driver-memory = '4 GB': wanted an amount of memory"),
        (("--verbose", "--conf"), "--conf has no value"),
    ],
)
def test_words_that_cannot_be_are_refused_by_name(
    context: JobContext, tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    def call() -> None:
        spark_submit.command(plan_of(context, tmp_path, *words), tmp_path / "id")

    assert said in refusal(call)


def test_a_size_under_spark_is_looked_at_as_one_under_submit(context: JobContext) -> None:
    settings = replace(context.settings, spark={"spark.executor.instances": "0"})
    said = "[spark] spark.executor.instances = '0': wanted a whole number from 1"
    assert said in refusal(lambda: sizes_of(settings))


def test_a_second_submit_of_a_repository_is_refused(
    context: JobContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = plan_of(context, tmp_path)
    monkeypatch.setattr(launch_plan, "plan_of", lambda *_: made)

    def second() -> None:
        submitting.submit(context, tmp_path / "production.toml", (), print, launch_checks.LOOKS)

    with submitting._alone(made.folder):
        assert refusal_code(second) == ErrorCode.ANOTHER_SUBMIT


def test_an_interrupt_says_when_the_cluster_cannot_be_asked(
    context: JobContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: Any, **__: Any) -> None:
        raise OSError("connection refused")

    made = plan_of(context, tmp_path)
    assert submitting._interrupted(made, None) == "interrupted: nothing was started"
    monkeypatch.setattr(operation, "get", away)
    assert "whether anything was started is not known" in submitting._interrupted(made, None)
    (undone,) = submitting._undo(made, None, "it failed")
    assert undone.startswith("what may have been started could not be ended: ")


def test_a_full_disk_is_not_taken_for_the_cluster(context: JobContext) -> None:
    def full() -> None:
        with explained(context.settings):
            raise OSError(errno.ENOSPC, "No space left on device")

    assert "a file could not be written here: No space left on device" in refusal(full)


@pytest.mark.parametrize(
    "text", ["bids \U0001f680", '\x7f\t\\ "quoted"', "\u0441\u043b\u043e\u0432\u043e"]
)
def test_a_shipped_configuration_holds_any_text(text: str) -> None:
    values = {"submit": {"title": text, text: [text]}}
    assert tomllib.loads(toml_file.dump(values)) == values


# -- what the operation's page links to


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("https://user:secret@git.example.com/bids.git", "https://git.example.com/bids.git"),
        ("https://secret@git.example.com/bids.git", "https://git.example.com/bids.git"),
        ("https://git.example.com/bids.git", "https://git.example.com/bids.git"),
        ("git@git.example.com:team/bids.git", "git@git.example.com:team/bids.git"),
    ],
)
def test_an_address_of_a_repository_is_shown_without_its_secret(address: str, shown: str) -> None:
    assert launch_plan.without_secret(address) == shown


def test_the_operation_links_to_repository_commit_and_runbook(
    context: JobContext, tmp_path: Path
) -> None:
    url = "https://git.example.com/bids/operations.md"
    settings = replace(context.settings, runbook_url=url)
    made = plan_of(replace(context, settings=settings), tmp_path)
    made = replace(made, repository="https://git.example.com/bids")
    given = launch_plan.parameters(made)["spark.ytsaurus.driver.operation.parameters"]
    annotations = yson.loads(given.encode())["annotations"]
    assert {str(key): str(value) for key, value in annotations["description"].items()} == {
        "Repository": "https://git.example.com/bids",
        "Commit": "abc",
        "Runbook": url,
        "Ledger": settings.ledger,
    }
    assert annotations["ytstream"]["repository"] == "https://git.example.com/bids"
