"""The scheduler alone: operations, tasks and jobs in their states, with nodes that run nothing."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from minicluster import persist
from minicluster.cluster import Cluster
from minicluster.core.errors import YtError
from minicluster.operations import reports
from minicluster.operations.model import Ending, Job, Launch, Operation
from minicluster.rows import wire
from minicluster.tables.ranges import read_table

EXIT_1 = {"code": 1205, "message": "User job failed", "attributes": {}, "inner_errors": []}


class PaperNodes:
    """Nodes that note what they are told."""

    available = True

    def __init__(self) -> None:
        self.started: list[Launch] = []
        self.killed: list[str] = []
        self.cleared = 0

    def start(self, launch: Launch) -> None:
        self.started.append(launch)

    def kill(self, job_ids: Iterable[str]) -> None:
        self.killed += job_ids

    def stderr(self, job_id: str) -> bytes:
        return b"so far"

    def clear(self) -> None:
        self.cleared += 1


@pytest.fixture
def nodes(cluster: Cluster) -> PaperNodes:
    nodes = PaperNodes()
    cluster.run_jobs_on(nodes)
    return nodes


def task(**fields: Any) -> dict[str, Any]:
    return {"command": "true", "job_count": 1, **fields}


def start(cluster: Cluster, *, tasks: dict[str, Any] | None = None, **fields: Any) -> Operation:
    spec = {"tasks": tasks or {"driver": task()}, **fields}
    return cluster.scheduler.find(cluster.scheduler.start("vanilla", spec), None)


def running(operation: Operation) -> list[Job]:
    return operation.running()


def end(cluster: Cluster, job: Job, error: dict[str, Any] | None = None) -> None:
    cluster.scheduler.job_ended(job.id, Ending(error, b"words"))


def shown(cluster: Cluster, operation: Operation) -> dict[str, Any]:
    return reports.operation_shown(operation, None, cluster.clock.now())


def messages(error: dict[str, Any] | None) -> list[str]:
    """Return the messages of an error and of its inner ones, from the outside in."""
    if error is None:
        return []
    return [error["message"], *(m for inner in error["inner_errors"] for m in messages(inner))]


def test_an_operation_runs_its_jobs_and_completes(cluster: Cluster, nodes: PaperNodes) -> None:
    operation = start(cluster, tasks={"a": task(job_count=2), "b": task()})
    assert operation.state == "running"
    assert [(job.task, job.cookie, job.index, job.task_index) for job in running(operation)] == [
        ("a", 0, 0, 0),
        ("a", 1, 1, 1),
        ("b", 0, 2, 0),
    ]
    for job in running(operation)[:2]:
        end(cluster, job)
    assert operation.state == "running"
    end(cluster, running(operation)[0])
    found = shown(cluster, operation)
    assert found["state"] == "completed"
    assert found["result"] == {"error": reports.OK}
    assert found["brief_progress"]["jobs"]["completed"] == 3
    assert [event["state"] for event in found["events"]] == [
        "starting",
        "initializing",
        "preparing",
        "materializing",
        "running",
        "completing",
        "completed",
    ]
    assert found["finish_time"] >= found["start_time"]


def test_a_failed_job_runs_again_with_indices_of_its_own(
    cluster: Cluster, nodes: PaperNodes
) -> None:
    operation = start(cluster, tasks={"a": task(job_count=2)}, max_failed_job_count=5)
    first = running(operation)[0]
    end(cluster, first, EXIT_1)
    again = running(operation)[-1]
    assert (again.cookie, again.index, again.task_index) == (first.cookie, 2, 2)
    variables = nodes.started[-1].environment
    assert variables["YT_JOB_COOKIE"] == "0"
    assert variables["YT_TASK_JOB_INDEX"] == "2"
    assert variables["YT_JOB_ID"] == again.id != first.id
    assert first.stderr == b"words"


def test_failures_count_over_the_whole_operation(cluster: Cluster, nodes: PaperNodes) -> None:
    operation = start(cluster, tasks={"a": task(job_count=2)}, max_failed_job_count=3)
    for _ in range(2):
        end(cluster, running(operation)[0], EXIT_1)
    assert operation.state == "running"
    left = running(operation)[0]
    end(cluster, running(operation)[-1], {**EXIT_1, "message": "the last one"})
    assert operation.state == "failed"
    assert operation.error is not None
    assert operation.error["attributes"] == {"max_failed_job_count": 3}
    assert operation.error["code"] == 215
    assert messages(operation.error) == ["Failed jobs limit exceeded", "the last one"]
    assert left.state == "aborted"
    assert nodes.killed == [left.id]
    assert len(nodes.started) == 4


@pytest.mark.parametrize("limit", [0, 1])
def test_aborts_do_not_count(cluster: Cluster, nodes: PaperNodes, limit: int) -> None:
    operation = start(cluster, max_failed_job_count=limit)
    for _ in range(5):
        job = running(operation)[0]
        cluster.scheduler.abort_job(job.id)
        assert job.state == "aborted"
        assert job.abort_reason == "user_request"
        assert job.stderr == b"so far"
    assert nodes.killed == [job.id for job in operation.jobs.values()][:5]
    assert operation.state == "running"
    assert running(operation)[0].task_index == 5
    end(cluster, running(operation)[0], EXIT_1)
    assert operation.state == "failed"


def test_an_end_that_comes_after_the_abort_changes_nothing(
    cluster: Cluster, nodes: PaperNodes
) -> None:
    operation = start(cluster, max_failed_job_count=1)
    job = running(operation)[0]
    cluster.scheduler.abort_job(job.id)
    end(cluster, job, EXIT_1)
    assert operation.state == "running"
    assert job.state == "aborted"


@pytest.mark.parametrize("said", [True, "true"])
def test_completed_jobs_restart_if_the_spec_says_so(
    cluster: Cluster, nodes: PaperNodes, said: Any
) -> None:
    operation = start(cluster, tasks={"a": task(restart_completed_jobs=said)})
    end(cluster, running(operation)[0])
    assert operation.state == "running"
    assert running(operation)[0].task_index == 1


def test_spyt_says_false_as_text(cluster: Cluster, nodes: PaperNodes) -> None:
    operation = start(cluster, tasks={"a": task(restart_completed_jobs="false")})
    end(cluster, running(operation)[0])
    assert operation.state == "completed"


@pytest.mark.parametrize("how", ["failed", "aborted"])
def test_fail_on_job_restart(cluster: Cluster, nodes: PaperNodes, how: str) -> None:
    operation = start(cluster, fail_on_job_restart=True)
    job = running(operation)[0]
    if how == "failed":
        end(cluster, job, EXIT_1)
    else:
        cluster.scheduler.abort_job(job.id)
    assert operation.state == "failed"
    assert operation.error is not None
    assert operation.error["code"] == 210


@pytest.mark.parametrize(
    ("way", "state", "words"),
    [
        ("complete", "completed", []),
        ("abort", "aborted", ["Operation aborted by user request", "enough"]),
    ],
)
def test_an_operation_is_ended_by_a_user(
    cluster: Cluster, nodes: PaperNodes, way: str, state: str, words: list[str]
) -> None:
    operation = start(cluster, alias="*job")
    found = cluster.scheduler.manage(None, "*job")
    if way == "complete":
        cluster.scheduler.complete(found)
    else:
        cluster.scheduler.abort(found, "enough")
    assert operation.state == state
    assert messages(operation.error) == words
    [job] = operation.jobs.values()
    assert job.state == "aborted"
    assert nodes.killed == [job.id]
    with pytest.raises(YtError, match="No such operation") as refused:
        cluster.scheduler.manage(operation.id, None)
    assert refused.value.code == 200


def test_an_alias_is_unique_while_its_operation_runs(cluster: Cluster, nodes: PaperNodes) -> None:
    first = start(cluster, alias="*bids")
    with pytest.raises(YtError, match="Operation alias is already used by an operation") as taken:
        start(cluster, alias="*bids")
    assert taken.value.attributes == {"operation_alias": "*bids", "operation_id": first.id}
    assert len(cluster.scheduler.operations) == 1
    cluster.scheduler.abort(first)
    assert cluster.scheduler.find(None, "*bids") is first
    second = start(cluster, alias="*bids")
    assert cluster.scheduler.find(None, "*bids") is second
    with pytest.raises(YtError, match="Operation alias is unknown"):
        cluster.scheduler.find(None, "*other")
    with pytest.raises(YtError, match="No such operation 1-2-3-4") as missing:
        cluster.scheduler.find("1-2-3-4", None)
    assert missing.value.code == 1915


def test_annotations_merge(cluster: Cluster, nodes: PaperNodes) -> None:
    operation = start(cluster, annotations={"description": {"a": 1}, "kept": True})
    for update in ({"Web UI": "x"}, {"Executors": "y"}, {"Web UI": "z"}):
        given = {"annotations": {"description": update}}
        cluster.scheduler.update_parameters(operation, given)
    assert shown(cluster, operation)["runtime_parameters"]["annotations"] == {
        "description": {"a": 1, "Web UI": "z", "Executors": "y"},
        "kept": True,
    }
    with pytest.raises(YtError, match="not supported by minicluster: colour"):
        cluster.scheduler.update_parameters(operation, {"colour": 1})


def test_the_vault_never_comes_back(cluster: Cluster, nodes: PaperNodes, tmp_path: Path) -> None:
    operation = start(cluster, secure_vault={"YT_TOKEN": "sesame", "N": 7, "M": {"k": "deep"}})
    variables = nodes.started[0].environment
    assert variables["YT_SECURE_VAULT_YT_TOKEN"] == "sesame"
    assert variables["YT_SECURE_VAULT_N"] == "7"
    assert "YT_SECURE_VAULT_M" not in variables
    assert "deep" in variables["YT_SECURE_VAULT"]
    for text in (repr(shown(cluster, operation)), repr(operation)):
        assert "sesame" not in text
        assert "deep" not in text
    persist.save(cluster, str(tmp_path / "state"))
    assert b"sesame" not in (tmp_path / "state").read_bytes()
    cluster.scheduler.abort(operation)
    assert operation.vault == {}


REFUSED = [
    {"layer_paths": ["//layer"]},
    {"docker_image": "python"},
    {"squashfs_layer_paths": ["//layer"]},
    {"network_project": "n"},
    {"gpu_limit": 1},
    {"tmpfs_size": 1},
    {"tmpfs_volumes": [{"size": 1, "path": "."}]},
    {"disk_request": {"disk_space": 1}},
    {"port_count": 1},
    {"enable_shuffle_service_in_job_proxy": True},
]


@pytest.mark.parametrize("fields", REFUSED, ids=lambda fields: next(iter(fields)))
def test_what_no_job_gets_is_refused_by_name(
    cluster: Cluster, nodes: PaperNodes, fields: dict[str, Any]
) -> None:
    name = next(iter(fields))
    with pytest.raises(YtError, match=f"not supported by minicluster: tasks/driver/{name}"):
        start(cluster, tasks={"driver": task(**fields)})
    assert cluster.scheduler.operations == {}
    empty = {name: type(value)() for name, value in fields.items()}
    assert start(cluster, tasks={"driver": task(**empty)}).state == "running"


@pytest.mark.parametrize("name", ["stderr_table_path", "core_table_path", "time_limit"])
def test_what_no_operation_does_is_refused_by_name(
    cluster: Cluster, nodes: PaperNodes, name: str
) -> None:
    with pytest.raises(YtError, match=f"not supported by minicluster: {name}"):
        cluster.scheduler.start("vanilla", {"tasks": {"a": task()}, name: "//x"})


def test_fields_without_a_meaning_are_accepted(cluster: Cluster, nodes: PaperNodes) -> None:
    operation = start(
        cluster,
        tasks={"a": task(cpu_limit=1.0, memory_limit=1 << 30, nonsense=1)},
        title="t",
        preemption_mode="normal",
        started_by={"a": 1},
        other=2,
    )
    found = shown(cluster, operation)
    assert found["unrecognized_spec"] == {"other": 2, "tasks": {"a": {"nonsense": 1}}}
    assert found["brief_spec"] == {"title": "t"}
    assert found["provided_spec"]["tasks"]["a"]["memory_limit"] == 1 << 30


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({}, 'Error reading parameter /tasks: expected "map"'),
        ({"tasks": {}}, "non-empty"),
        ({"tasks": {"a": {"job_count": 1}}}, "/tasks/a/command"),
        ({"tasks": {"a": {"command": "true"}}}, "/tasks/a/job_count"),
        ({"tasks": {"a": task(job_count=0)}}, "expected >= 1, found 0"),
        ({"tasks": {"a": task(environment={"A": 1})}}, "/tasks/a/environment/A"),
        ({"tasks": {"a": task()}, "alias": "bids"}, 'start with "\\*"'),
        ({"tasks": {"a": task()}, "max_failed_job_count": "many"}, "/max_failed_job_count"),
        ("tasks", 'Error reading parameter /spec: expected "map"'),
    ],
)
def test_a_wrong_spec_is_refused(
    cluster: Cluster, nodes: PaperNodes, spec: Any, words: str
) -> None:
    with pytest.raises(YtError, match=words):
        cluster.scheduler.start("vanilla", spec)
    assert nodes.started == []


def test_other_types_and_clusters_without_nodes_refuse(cluster: Cluster) -> None:
    words = "^not supported by minicluster: .*, start it with --operations$"
    with pytest.raises(YtError, match=words):
        start(cluster)
    cluster.run_jobs_on(PaperNodes())
    with pytest.raises(YtError, match='not supported by minicluster: operations of type "map"'):
        cluster.scheduler.start("map", {})


def test_files_are_those_of_the_start(cluster: Cluster, nodes: PaperNodes) -> None:
    cluster.cypress.create("file", "//tmp/f", attributes={"file_name": "by_node"})
    cluster.cypress.write_file("//tmp/f", b"one")
    operation = start(
        cluster,
        tasks={
            "a": task(
                file_paths=["//tmp/f", '<file_name="sub/x";executable=%true>//tmp/f'],
            )
        },
    )
    cluster.cypress.remove("//tmp/f")
    end(cluster, running(operation)[0], EXIT_1)
    again = nodes.started[1].artifacts
    assert [(file.name, file.content.data, file.executable) for file in again] == [
        ("by_node", b"one", False),
        ("sub/x", b"one", True),
    ]


@pytest.mark.parametrize(
    ("paths", "words"),
    [
        (["//tmp/gone"], 'has no child with key "gone"'),
        (["//tmp/f", "//tmp/f"], 'Duplicate user file name "f"'),
        (["<file_name='../x'>//tmp/f".replace("'", '"')], "leads out of the sandbox"),
        (["//tmp"], "Invalid type of //tmp"),
    ],
)
def test_an_operation_without_its_files_fails(
    cluster: Cluster, nodes: PaperNodes, paths: list[str], words: str
) -> None:
    cluster.cypress.create("file", "//tmp/f")
    operation = start(cluster, tasks={"a": task(file_paths=paths)}, alias="*a")
    assert operation.state == "failed"
    assert nodes.started == []
    first, *inner = messages(operation.error)
    assert first == "Operation has failed to prepare"
    assert words in " ".join(inner)


def test_a_node_is_lost_and_its_jobs_go_on(cluster: Cluster, nodes: PaperNodes) -> None:
    operation = start(cluster, max_failed_job_count=1)
    old = running(operation)[0]
    cluster.scheduler.lose_node(old.id, stop=False, declared_after=30)
    assert old.state == "running"
    end(cluster, old, EXIT_1)  # nobody hears of it
    cluster.pass_time(29)
    assert running(operation) == [old]
    cluster.pass_time(2)
    assert old.state == "aborted"
    assert old.abort_reason == "node_offline"
    assert nodes.killed == []
    assert running(operation)[0].task_index == 1
    assert running(operation)[0].address != old.address


def test_a_node_is_lost_and_its_jobs_stop(cluster: Cluster, nodes: PaperNodes) -> None:
    operation = start(cluster)
    old = running(operation)[0]
    cluster.scheduler.lose_node(old.id, stop=True, declared_after=30)
    assert nodes.killed == [old.id]
    assert old.state == "running"
    with pytest.raises(YtError, match="runs on no node"):
        cluster.scheduler.lose_node(old.id, stop=True, declared_after=0)
    cluster.scheduler.complete(operation)
    cluster.pass_time(60)
    assert len(nodes.started) == 1


def test_the_scheduler_is_away(cluster: Cluster, nodes: PaperNodes) -> None:
    operation = start(cluster, alias="*a")
    job = running(operation)[0]
    cluster.scheduler.go_away(120)
    for refused in (
        lambda: start(cluster),
        lambda: cluster.scheduler.manage(operation.id, None),
        lambda: cluster.scheduler.abort_job(job.id),
    ):
        with pytest.raises(YtError, match="No scheduler is configured"):
            refused()
    with pytest.raises(YtError, match="Error while resolving alias"):
        cluster.scheduler.find(None, "*a")
    end(cluster, job, EXIT_1)
    assert cluster.scheduler.find(operation.id, None).jobs[job.id].state == "running"
    assert len(nodes.started) == 1
    cluster.pass_time(121)
    assert job.state == "failed"
    assert len(nodes.started) == 2


def test_a_slow_start(cluster: Cluster, nodes: PaperNodes) -> None:
    cluster.scheduler.start_delay = 20
    operation = start(cluster)
    [job] = running(operation)
    assert (operation.state, job.state) == ("running", "waiting")
    assert shown(cluster, operation)["brief_progress"]["jobs"]["pending"] == 1
    cluster.pass_time(21)
    assert job.state == "running"
    assert [launch.job_id for launch in nodes.started] == [job.id]


def test_a_loaded_state_has_aborted_what_ran(
    cluster: Cluster, nodes: PaperNodes, tmp_path: Path
) -> None:
    done = start(cluster)
    end(cluster, running(done)[0])
    ran = start(cluster, alias="*a")
    persist.save(cluster, str(tmp_path / "state"))
    assert ran.state == "running"
    later = start(cluster)
    persist.load(cluster, str(tmp_path / "state"))
    assert nodes.cleared == 1
    assert later.id not in cluster.scheduler.operations
    states = [operation.state for operation in cluster.scheduler.operations.values()]
    assert states == ["completed", "aborted"]
    found = cluster.scheduler.find(None, "*a")
    assert found.id == ran.id
    assert [job.state for job in found.jobs.values()] == ["aborted"]
    assert "loaded from a file" in messages(found.error)[0]
    assert start(cluster, alias="*a").state == "running"


def test_a_merge_locks_its_output_until_it_ends(cluster: Cluster) -> None:
    """Of two that write one table, the second fails to prepare; an abort leaves the table."""
    for name in ("in", "out"):
        cluster.cypress.create("table", f"//tmp/{name}")
    cluster.tables.write("//tmp/in", [{"a": 1}])
    cluster.scheduler.start_delay = 10
    spec = {"input_table_paths": ["//tmp/in"], "output_table_path": "//tmp/out"}
    first, second = (cluster.scheduler.start("merge", spec) for _ in range(2))
    cluster.tables.write("//tmp/in", [{"a": 2}])
    states = [cluster.scheduler.operations[one].state for one in (first, second)]
    assert states == ["running", "failed"]
    error = cluster.scheduler.operations[second].error
    assert error is not None
    assert error["code"] == 216
    cluster.pass_time(11)
    assert cluster.scheduler.operations[first].state == "completed"
    assert rows_of(cluster) == [1]
    third = cluster.scheduler.start("merge", spec)
    cluster.scheduler.abort(cluster.scheduler.find(third, None))
    cluster.pass_time(11)
    assert rows_of(cluster) == [1]
    assert cluster.cypress.get("//tmp/out/@locks") == []


def rows_of(cluster: Cluster) -> list[int]:
    reading = read_table(cluster.tables, "//tmp/out")
    return [wire.to_dict(row, ["a"])["a"] for row in reading.rows]
