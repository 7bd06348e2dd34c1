"""Jobs as processes: their sandbox, their environment, their end; started over HTTP."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yt.wrapper as yt
from yt.wrapper.file_commands import upload_file_to_cache

from minicluster import testing
from minicluster.__main__ import main
from packages.minicluster.tests.conftest import connect
from packages.minicluster.tests.operations.conftest import LEAK, Lab, is_alive
from tests.support.waiting import eventually

ENVIRONMENT = "tr '\\0' '\\n' < /proc/$$/environ >&2"


def variables(text: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in text.splitlines())


def test_the_official_client_runs_an_operation(lab: Lab) -> None:
    spec = yt.VanillaSpecBuilder().begin_task("main").command("echo hello >&2").job_count(2)
    operation = lab.yt.run_operation(spec.end_task())
    assert operation.get_state() == "completed"
    assert operation.get_progress()["completed"] == 2
    assert {job["stderr"] for job in operation.get_jobs_with_error_or_stderr()} == {"hello\n"}
    [listed] = lab.yt.list_operations()["operations"]
    assert (listed["id"], listed["state"], listed["type"]) == (operation.id, "completed", "vanilla")
    jobs = lab.yt.list_jobs(operation.id)["jobs"]
    assert [(job["state"], job["task_name"], job["type"]) for job in jobs] == [
        ("completed", "main", "vanilla")
    ] * 2
    assert lab.yt.get_job(operation.id, jobs[0]["id"])["state"] == "completed"


def test_the_official_client_shows_why_an_operation_failed(lab: Lab) -> None:
    spec = (
        yt.VanillaSpecBuilder()
        .begin_task("main")
        .command("echo because >&2; exit 7")
        .job_count(1)
        .end_task()
        .max_failed_job_count(2)
    )
    with pytest.raises(yt.YtOperationFailedError) as failed:
        lab.yt.run_operation(spec)
    text = str(failed.value)
    for words in ("Failed jobs limit exceeded", "User job failed", "Process exited with code 7"):
        assert words in text
    error = failed.value.attributes["stderrs"][0]["error"]
    assert error["code"] == 1205
    assert error["inner_errors"][0]["attributes"]["exit_code"] == 7
    assert failed.value.attributes["stderrs"][0]["stderr"] == "because\n"


def test_a_signal_is_told_from_an_exit(lab: Lab) -> None:
    operation = lab.start("kill -9 $$", max_failed_job_count=1)
    [job] = lab.wait(operation, "failed").jobs
    assert job.error is not None
    [inner] = job.error["inner_errors"]
    assert (inner["code"], inner["message"]) == (10001, "Process terminated by signal 9")


def test_the_environment_is_the_specs_and_the_nodes_and_nothing_else(lab: Lab) -> None:
    operation = lab.start(
        ENVIRONMENT,
        job={"environment": {"WHERE": "in $(SandboxPath)/x", "OTHER": "$(Other)"}},
        secure_vault={"YT_TOKEN": "sesame"},
    )
    [job] = lab.wait(operation).jobs
    found = variables(lab.stderr(operation))
    home = found["HOME"]
    assert Path(home).name == "sandbox"
    path, java = found.pop("PATH"), found.pop("JAVA_HOME")
    python, *more = path.split(":", 2)
    assert more == [f"{java}/bin", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"]
    assert Path(python, "python3").exists()
    assert found == {
        "HOME": home,
        "TMPDIR": str(Path(home).with_name("tmp")),
        "HOSTNAME": "localhost",
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_HOSTNAME": "localhost",
        "YT_SPARK_LOCAL_DIRS": f"{home}/spark-local",
        "WHERE": f"in {home}/x",
        "OTHER": "$(Other)",
        "YT_OPERATION_ID": operation,
        "YT_JOB_ID": job.id,
        "YT_JOB_COOKIE": "0",
        "YT_JOB_INDEX": "0",
        "YT_TASK_JOB_INDEX": "0",
        "YT_SECURE_VAULT": '{"YT_TOKEN"="sesame";}',
        "YT_SECURE_VAULT_YT_TOKEN": "sesame",
    }


def test_an_operation_that_asks_for_a_token_of_its_own_gets_one(lab: Lab) -> None:
    asked: dict[str, Any] = {"issue_temporary_token": True}
    operation = lab.start(ENVIRONMENT, **asked, temporary_token_environment_variable_name="OWN")
    lab.wait(operation)
    token = variables(lab.stderr(operation))["YT_SECURE_VAULT_OWN"]
    assert token not in repr(lab.yt.get_operation(operation))
    operation = lab.start(ENVIRONMENT, **asked, secure_vault={"YT_TOKEN": "sesame"})
    lab.wait(operation)
    assert variables(lab.stderr(operation))["YT_SECURE_VAULT_YT_TOKEN"] == "sesame"


def test_nothing_of_the_clusters_own_environment_leaks(lab: Lab) -> None:
    own = Path(f"/proc/{lab.cluster.pid}/environ").read_bytes()
    assert f"{LEAK}=leaked".encode() in own.split(b"\0")
    operation = lab.start(ENVIRONMENT)
    lab.wait(operation)
    assert LEAK not in lab.stderr(operation)


def test_the_vault_is_in_no_answer(lab: Lab) -> None:
    operation = lab.start("true", alias="*v", secure_vault={"YT_TOKEN": "sesame"})
    lab.wait(operation)
    shown = lab.yt.get_operation(operation)
    assert "secure_vault" not in shown["provided_spec"]
    everything = [shown, lab.yt.list_operations(), lab.yt.list_jobs(operation)]
    everything += [lab.cluster.client.journal(), lab.cluster.client.operations.list()]
    assert "sesame" not in repr(everything)
    lab.cluster.client.save(str(lab.folder / "state"))
    assert b"sesame" not in (lab.folder / "state").read_bytes()


def test_the_sandbox_holds_the_files_of_the_spec_and_nothing_else(lab: Lab) -> None:
    lab.upload("//tmp/files/plain", b"plain")
    lab.upload("//tmp/files/tool", b"#!/bin/sh\necho tool ran >&2\n", executable=True)
    rich = yt.YPath("//tmp/files/plain", attributes={"file_name": "sub/named.txt"})
    operation = lab.start(
        "find . -printf '%P %y %m\\n' | sort >&2; find . -mindepth 1 -type l | sort |"
        " xargs stat -L -c '%n %a' >&2; ./tool; cat sub/named.txt >&2",
        job={"file_paths": ["//tmp/files/plain", "//tmp/files/tool", rich]},
    )
    lab.wait(operation)
    assert lab.stderr(operation).splitlines() == [
        " d 755",
        "plain l 777",
        "sub d 755",
        "sub/named.txt l 777",
        "tool l 777",
        "./plain 444",
        "./sub/named.txt 444",
        "./tool 555",
        "tool ran",
        "plain",
    ]


def test_copied_files_belong_to_the_job(lab: Lab) -> None:
    lab.upload("//tmp/files/a", b"one")
    job = {"file_paths": ["//tmp/files/a"], "copy_files": True}
    operation = lab.start("test ! -L a && echo two >> a && cat a >&2", job=job)
    lab.wait(operation)
    assert lab.stderr(operation) == "onetwo\n"


def test_stdin_and_stdout_are_null(lab: Lab) -> None:
    operation = lab.start("echo lost; for fd in 0 1; do readlink /proc/$$/fd/$fd >&2; done; cat")
    lab.wait(operation)
    assert lab.stderr(operation) == "/dev/null\n/dev/null\n"
    operation = lab.start("echo kept", job={"redirect_stdout_to_stderr": True})
    lab.wait(operation)
    assert lab.stderr(operation) == "kept\n"


def test_no_file_of_the_cluster_is_open_in_a_job(lab: Lab) -> None:
    operation = lab.start("ls /proc/$$/fd > found; xargs < found >&2")  # a pipe would be one
    lab.wait(operation)
    assert lab.stderr(operation) == "0 1 2\n"


def test_stderr_is_kept_first_and_last(lab: Lab) -> None:
    operation = lab.start("seq 100000 >&2", job={"max_stderr_size": 40})
    lab.wait(operation)
    head, tail = lab.stderr(operation).split("\n...skipped...\n")
    whole = "".join(f"{number}\n" for number in range(1, 100_001))
    assert (head, tail) == (whole[:20], whole[-20:])


def test_the_stderr_of_a_running_job_can_be_read(lab: Lab) -> None:
    operation = lab.start("echo now >&2; sleep 1000")
    lab.attempt(operation, 0)
    assert eventually(lambda: lab.stderr(operation)) == "now\n"


def test_the_command_runs_with_bash(lab: Lab) -> None:
    operation = lab.start('[[ a == a ]] && echo "$0 ${BASH_VERSION:+bash} $PWD" >&2')
    lab.wait(operation)
    shell, name, place = lab.stderr(operation).split()
    assert (shell, name) == ("/bin/bash", "bash")
    assert place.endswith("/sandbox")


def test_a_job_over_its_time_limit_fails(lab: Lab) -> None:
    operation = lab.start("sleep 1000", job={"job_time_limit": 200}, max_failed_job_count=1)
    [job] = lab.wait(operation, "failed").jobs
    assert job.error is not None
    assert job.error["inner_errors"][0]["message"] == "Job time limit exceeded"


def test_each_attempt_has_a_sandbox_and_indices_of_its_own(lab: Lab) -> None:
    command = "echo $YT_JOB_COOKIE $YT_JOB_INDEX $YT_TASK_JOB_INDEX $(ls | xargs) >&2; touch mine"
    operation = lab.start(f"{command}; exit $(( YT_TASK_JOB_INDEX < 2 ))")
    lab.wait(operation)
    assert [lab.stderr(operation, job) for job in range(3)] == ["0 0 0\n", "0 1 1\n", "0 2 2\n"]


# Ends

STUBBORN = "trap '' TERM INT HUP; {note}; while :; do sleep 1000; done"


def family(lab: Lab) -> str:
    """Return a command with a child, a grandchild in a session of its own, and an orphan."""
    grandchild = lab.note("$$", "grandchild")
    orphan = lab.note("$$", "orphan")
    return (
        f"setsid bash -c '{grandchild}; exec sleep 1000' & "
        f"(bash -c '{orphan}; exec sleep 1000' &) ; "
        f"{STUBBORN.format(note=lab.note('$$', 'main'))}"
    )


def pids(lab: Lab) -> list[int]:
    return [lab.pid(name) for name in ("main", "grandchild", "orphan")]


@pytest.mark.parametrize("way", ["abort", "complete", "abort_job", "reset"])
def test_every_process_of_a_job_is_killed(
    lab: Lab, with_nodes: tuple[testing.Running, str], way: str
) -> None:
    operation = lab.start(family(lab))
    job = lab.attempt(operation, 0)
    found = pids(lab)
    assert all(map(is_alive, found))
    match way:
        case "abort":
            lab.yt.abort_operation(operation, "enough")
        case "complete":
            lab.yt.complete_operation(operation)
        case "abort_job":
            lab.cluster.client.operations.abort_job(job.id)
        case "reset":
            testing.empty(*with_nodes)
    assert not any(map(is_alive, found))


def test_what_a_job_leaves_behind_is_killed_when_it_ends(lab: Lab) -> None:
    note = lab.note("$$", "orphan")
    wait = f"until test -e {lab.folder}/orphan; do sleep 0.02; done"
    operation = lab.start(f"setsid bash -c '{note}; exec sleep 1000' & {wait}")
    lab.wait(operation)
    assert not is_alive(lab.pid("orphan"))


def test_a_process_that_hides_its_job_id_is_killed_with_its_session(lab: Lab) -> None:
    note = lab.note("$$", "hidden")
    operation = lab.start(f"env -i bash -c '{note}; exec sleep 1000' & sleep 1000")
    hidden = lab.pid("hidden")
    lab.yt.abort_operation(operation)
    assert not is_alive(hidden)


@pytest.mark.thorough
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_no_job_and_no_folder_outlives_the_cluster(tmp_path: Path, number: int) -> None:
    with testing.start(operations=True, rpc_proxies=0) as cluster:
        client = connect(cluster)
        lab = Lab(cluster, client, tmp_path)
        spec = yt.VanillaSpecBuilder().begin_task("a").command(family(lab)).job_count(1).end_task()
        client.run_operation(spec, sync=False)
        found = pids(lab)
        sandbox = Path(os.readlink(f"/proc/{found[0]}/cwd"))
        assert sandbox.is_dir()
        os.kill(cluster.pid, number)
        eventually(lambda: not any(map(is_alive, found)))
        eventually(lambda: not sandbox.parents[2].exists())


# Faults


def test_a_lost_node_and_its_successor_overlap(lab: Lab) -> None:
    operation = lab.start(STUBBORN.format(note=lab.note("$$", "$YT_TASK_JOB_INDEX")))
    job = lab.attempt(operation, 0)
    old = lab.pid("0")
    control = lab.cluster.client
    control.operations.lose_node(job.id, processes="continue", declared_after=30)
    assert [each.id for each in lab.operation(operation).running()] == [job.id]
    control.clock.advance(31)
    new = lab.attempt(operation, 1)
    assert new.address != job.address
    fresh = lab.pid("1")
    assert is_alive(old)
    assert is_alive(fresh)
    lost = lab.operation(operation).jobs[0]
    assert (lost.state, lost.abort_reason) == ("aborted", "node_offline")


def test_a_lost_node_takes_its_processes_with_it(lab: Lab) -> None:
    operation = lab.start(STUBBORN.format(note=lab.note("$$", "$YT_TASK_JOB_INDEX")))
    job = lab.attempt(operation, 0)
    old = lab.pid("0")
    lab.cluster.client.operations.lose_node(job.id, declared_after=0.5)
    assert not is_alive(old)
    # Nobody asks the cluster for anything meanwhile: its clock goes by itself.
    assert is_alive(lab.pid("1"))


def test_the_scheduler_is_away_and_jobs_continue(lab: Lab) -> None:
    note = lab.note("done", "end-$YT_TASK_JOB_INDEX")
    operation = lab.start(f"until test -e {lab.folder}/go; do sleep 0.02; done; {note}")
    job = lab.attempt(operation, 0)
    control = lab.cluster.client
    control.operations.scheduler_away(120)
    for refused in (
        lambda: lab.start("true"),
        lambda: lab.yt.abort_job(job.id),
        lambda: lab.yt.update_operation_parameters(operation, {"annotations": {}}),
        lambda: lab.yt.abort_operation(operation),
    ):
        with pytest.raises(yt.YtError, match="No scheduler is configured"):
            refused()
    (lab.folder / "go").touch()
    assert lab.file("end-0") == "done\n"
    assert lab.yt.get_operation(operation)["state"] == "running"
    control.clock.advance(121)
    lab.wait(operation)


def test_a_job_starts_late(lab: Lab) -> None:
    control = lab.cluster.client
    control.operations.set_start_delay(60)
    operation = lab.start(lab.note("started", "late"))
    assert lab.yt.list_jobs(operation)["state_counts"] == {"waiting": 1}
    control.clock.advance(61)
    lab.wait(operation)
    assert lab.file("late") == "started\n"


def test_an_operation_is_ended_by_somebody(lab: Lab) -> None:
    control = lab.cluster.client.operations
    for state in ("completed", "aborted", "failed"):
        operation = lab.start("sleep 1000", alias="*same")
        control.end(operation, state, "the reason")
        found = lab.yt.get_operation(operation_alias="*same", include_runtime=True)
        assert (found["id"], found["state"]) == (operation, state)
        assert ("the reason" in json.dumps(found["result"])) == (state != "completed")


def test_a_file_of_the_cache_is_gone(lab: Lab) -> None:
    path = lab.folder / "shipped.txt"
    path.write_text("shipped")
    cached = upload_file_to_cache(str(path), client=lab.yt)
    digest = hashlib.md5(b"shipped").hexdigest()
    cache = "//tmp/yt_wrapper/file_storage/new_cache"
    assert cached == f"{cache}/{digest[-2:]}/{digest}"
    assert lab.yt.get_file_from_cache(digest) == cached
    with pytest.raises(yt.YtError, match="MD5 mismatch"):
        lab.yt.put_file_to_cache(cached, "0" * 32)
    job = {"file_paths": [yt.YPath(cached, attributes={"file_name": "x"})]}
    first = lab.start("sleep 0.3; cat x >&2; exit $(( YT_JOB_INDEX < 1 ))", job=job)
    lab.cluster.client.operations.lose_file(cached)
    assert not lab.yt.get_file_from_cache(digest)
    lab.wait(first)
    assert lab.stderr(first) == "shipped"
    second = lab.start("true", job=job)
    found = lab.wait(second, "failed")
    assert found.jobs == []
    assert "has no child with key" in json.dumps(found.error)


# The command line


def test_without_the_switch_operations_are_refused(running: testing.Running) -> None:
    spec = yt.VanillaSpecBuilder().begin_task("a").command("true").job_count(1).end_task()
    words = "not supported by minicluster: .*, start it with --operations"
    with pytest.raises(yt.YtError, match=words):
        connect(running).run_operation(spec)


def test_a_node_has_the_tools_that_are_handed_in_and_the_banner_says_what_it_lacks(
    tmp_path: Path,
) -> None:
    java, python = tmp_path / "jdk", tmp_path / "env" / "bin" / "python3"
    for program in (python, java / "bin" / "java"):
        program.parent.mkdir(parents=True)
        program.write_text(f"#!/bin/sh\necho {program.name} of the node >&2\n")
        program.chmod(0o755)
    options: dict[str, Any] = {"node_python": python, "node_java": java}
    log = tmp_path / "log"
    with testing.start(operations=True, rpc_proxies=0, log=str(log), **options) as cluster:
        eventually(lambda: "Not enforced: limits of memory and CPU" in log.read_text())
        # A submit names this Java in spark.ytsaurus.java.home.
        assert f"Python for the jobs: {python}\n  Java for the jobs:   {java}\n" in log.read_text()
        client = connect(cluster)
        command = 'python3; java; echo "$JAVA_HOME" >&2'
        spec = yt.VanillaSpecBuilder().begin_task("a").command(command).job_count(1).end_task()
        operation = client.run_operation(spec)
        [job] = operation.get_jobs_with_error_or_stderr()
    assert job["stderr"] == f"python3 of the node\njava of the node\n{java}\n"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--node-python", sys.executable], "--node-python needs --operations"),
        (["--operations", "--node-python", "/nowhere"], "/nowhere is not a program"),
        (["--operations", "--node-java", "/nowhere"], "/nowhere/bin/java is not a program"),
    ],
)
def test_wrong_options_are_one_clear_line(
    options: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--http-port", "0", *options])
    assert ended.value.code == 2
    assert words in capsys.readouterr().err.splitlines()[-1]


CONFTEST = """
import pytest

@pytest.fixture(scope="session")
def minicluster_options():
    return {"operations": True, "rpc_proxies": 0}
"""
TWO_TESTS = """
import os, pathlib, time
import yt.wrapper as yt

PID = pathlib.Path(__file__).with_name("pid")

def test_a_job_runs(minicluster):
    command = f"echo $$ > {PID}.part; mv {PID}.part {PID}; sleep 1000"
    spec = yt.VanillaSpecBuilder().begin_task("a").command(command).job_count(1).end_task()
    yt.YtClient(f"http://{minicluster.http}", token="any").run_operation(spec, sync=False)
    while not PID.exists():
        time.sleep(0.02)
    os.kill(int(PID.read_text()), 0)

def test_it_runs_no_more(minicluster):
    assert minicluster.client.operations.list() == []
    stat = pathlib.Path("/proc", PID.read_text().strip(), "stat")
    assert not stat.exists() or ") Z " in stat.read_text()
"""


@pytest.mark.thorough
def test_the_fixture_kills_the_jobs_of_the_test_before(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_two.py").write_text(TWO_TESTS)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly"]
    done = subprocess.run(
        [*command, str(tmp_path)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert "2 passed" in done.stdout, done.stdout


def test_a_loaded_state_shows_what_ran_as_aborted(lab: Lab) -> None:
    lab.upload("//tmp/f", b"file")
    path = yt.YPath("//tmp/f", attributes={"file_name": "named"})
    operation = lab.start(
        f"{lab.note('$$', 'main')}; sleep 1000", job={"file_paths": [path]}, alias="*kept"
    )
    main_pid = lab.pid("main")
    state = str(lab.folder / "state")
    lab.cluster.client.save(state)
    assert is_alive(main_pid)
    lab.cluster.client.load(state)
    assert not is_alive(main_pid)
    found = lab.yt.get_operation(operation_alias="*kept")
    assert (found["id"], found["state"]) == (operation, "aborted")
    shown = found["provided_spec"]["tasks"]["main"]["file_paths"]
    assert [(str(each), each.attributes["file_name"]) for each in shown] == [("//tmp/f", "named")]
