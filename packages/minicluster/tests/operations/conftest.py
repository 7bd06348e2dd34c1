"""A cluster that runs operations, and words to start and watch them with."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from minicluster import testing
from minicluster.client.operations import Job, Operation
from packages.minicluster.tests.conftest import connect
from tests.support.waiting import eventually

LEAK = "MINICLUSTER_LEAK_TEST"


def is_alive(pid: int) -> bool:
    """Return whether the process is there and not a zombie."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


@dataclass
class Lab:
    """A clean cluster with nodes, an official client, and a folder that jobs may write to."""

    cluster: testing.Running
    yt: Any
    folder: Path

    def start(self, command: str, *, job: dict[str, Any] | None = None, **spec: Any) -> str:
        """Start an operation with one task of one job; return its id."""
        task = {"command": command, "job_count": 1, **(job or {})}
        return self.start_tasks({"main": task}, **spec)

    def start_tasks(self, tasks: dict[str, Any], **spec: Any) -> str:
        parameters = {"operation_type": "vanilla", "spec": {"tasks": tasks, **spec}}
        client = self.yt
        started: str = client._start(parameters)
        return started

    def operation(self, operation_id: str) -> Operation:
        [found] = [
            each for each in self.cluster.client.operations.list() if each.id == operation_id
        ]
        return found

    def wait(self, operation_id: str, state: str = "completed") -> Operation:
        final = ("completed", "failed", "aborted")
        eventually(lambda: self.operation(operation_id).state in final)
        found = self.operation(operation_id)
        assert found.state == state, (found.error, self.stderr(operation_id))
        return found

    def attempt(self, operation_id: str, number: int) -> Job:
        """Wait for the attempt of that number to run."""

        def look() -> list[Job]:
            jobs = self.operation(operation_id).running()
            return [job for job in jobs if job.attempt == number]

        found: list[Job] = eventually(look)
        [job] = found
        return job

    def stderr(self, operation_id: str, job: int = -1) -> str:
        last = self.operation(operation_id).jobs[job].id
        data: bytes = self.yt.get_job_stderr(operation_id, last).read()
        return data.decode()

    def file(self, name: str) -> str:
        """Wait for a file that a job writes whole, by renaming; return its text."""
        path = self.folder / name
        eventually(path.exists)
        return path.read_text()

    def pid(self, name: str) -> int:
        return int(self.file(name))

    def note(self, expression: str, name: str) -> str:
        """Return a command that writes a value into a file, in one step."""
        place = f"{self.folder}/{name}"
        return f"echo {expression} > {place}.part; mv {place}.part {place}"

    def upload(self, path: str, data: bytes, **attributes: Any) -> str:
        self.yt.create("file", path, recursive=True, attributes=attributes)
        self.yt.write_file(path, data)
        return path


@pytest.fixture(scope="session")
def with_nodes(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[testing.Running, str]]:
    """A cluster that runs operations, with a variable in its environment that is not for jobs."""
    file = str(tmp_path_factory.mktemp("operations") / "empty")
    os.environ[LEAK] = "leaked"
    try:
        with testing.start(operations=True) as cluster:
            cluster.client.save(file)
            yield cluster, file
    finally:
        del os.environ[LEAK]


@pytest.fixture
def lab(with_nodes: tuple[testing.Running, str], tmp_path: Path) -> Lab:
    cluster, file = with_nodes
    testing.empty(cluster, file)
    client = connect(cluster)

    def start(parameters: dict[str, Any]) -> str:
        from yt.wrapper.driver import make_formatted_request

        answer = make_formatted_request("start_operation", parameters, format=None, client=client)
        return str(answer["operation_id"])

    client._start = start
    return Lab(cluster, client, tmp_path)
