"""The nodes alone, in this process: what a job inherits, and what an odd job reports."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from minicluster.cypress.files import File
from minicluster.nodes.environment import Tools
from minicluster.nodes.local import LocalNodes
from minicluster.nodes.sandbox import LONGEST_SOCKET_PATH
from minicluster.operations.model import Artifact, Ending, Launch, Task


def no_socket(path: str) -> Coroutine[Any, Any, Any]:
    raise OSError(f"no socket at {path}")


def run(task: Task, *artifacts: Artifact, job_id: str = "1-2-3-4") -> Ending:
    """Run one job and return its end; nothing is left of it."""

    async def scenario() -> Ending:
        ended: asyncio.Future[Ending] = asyncio.get_running_loop().create_future()
        nodes = LocalNodes(Tools(), no_socket, lambda _, ending: ended.set_result(ending))
        try:
            nodes.start(Launch(job_id, task, artifacts, {"YT_JOB_ID": job_id}))
            return await asyncio.wait_for(ended, 20)
        finally:
            await nodes.close()
            assert not nodes.root.exists()

    return asyncio.run(scenario())


def test_a_job_does_not_read_the_clusters_input() -> None:
    reading, writing = os.pipe()
    os.write(writing, b"typed by a person")
    own = os.dup(0)
    os.dup2(reading, 0)
    try:
        ending = run(Task("a", 1, "readlink /proc/$$/fd/0 >&2; timeout 5 cat >&2"))
    finally:
        os.dup2(own, 0)
        for descriptor in (own, reading, writing):
            os.close(descriptor)
    assert ending == Ending(None, b"/dev/null\n")


def words(ending: Ending) -> str:
    return repr(ending.error)


@pytest.mark.parametrize(
    ("task", "reason"),
    [
        (Task("a", 1, "true", {"A": "with \0 inside"}), "null"),
        (Task("a", 1, "x" * 3_000_000), "Argument list too long"),
        (Task("a", 1, "true", rpc_socket=True), "no socket at"),
    ],
)
def test_a_job_that_cannot_start_fails(task: Task, reason: str) -> None:
    ending = run(task)
    assert "Failed to prepare job artifacts" in words(ending)
    assert reason in words(ending)


def test_a_file_in_the_way_of_a_folder_fails_the_job() -> None:
    files = [Artifact(name, File(b"x"), False) for name in ("a", "a/b")]
    assert "Failed to prepare job artifacts" in words(run(Task("t", 1, "true"), *files))


def test_a_kill_before_the_process_starts_keeps_it_from_starting(tmp_path: Path) -> None:
    started = tmp_path / "started"

    async def scenario() -> None:
        ended: asyncio.Future[Ending] = asyncio.get_running_loop().create_future()
        nodes = LocalNodes(Tools(), no_socket, lambda _, ending: ended.set_result(ending))
        # Large enough that the sandbox is not ready when the kill comes.
        files = (Artifact("f", File(b"x" * 30_000_000), False),)
        nodes.start(Launch("5-6-7-8", Task("a", 1, f"touch {started}"), files, {}))
        nodes.kill(["5-6-7-8"])
        await asyncio.wait_for(ended, 20)
        await nodes.close()

    asyncio.run(scenario())
    assert not started.exists()


def test_what_close_has_killed_is_not_started_again() -> None:
    """A scheduler restarts an aborted job, and a killed one looks like that."""
    launch = Launch("5-6-7-8", Task("a", 1, "sleep 100"), (), {})

    async def scenario() -> LocalNodes:
        def report(_: str, __: Ending) -> None:
            nodes.start(replace(launch, job_id="6-7-8-9"))

        nodes = LocalNodes(Tools(), no_socket, report)
        nodes.start(launch)
        await nodes.close()
        return nodes

    assert asyncio.run(scenario())._runs == {}


def test_the_folder_is_short_enough_for_sockets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = tmp_path / ("x" * 100)
    long.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(long))

    async def scenario() -> Path:
        nodes = LocalNodes(Tools(), no_socket, lambda *_: None)
        await nodes.close()
        return nodes.root

    root = asyncio.run(scenario())
    assert len(os.fsencode(root / "slots" / "1000000" / "rpc")) <= LONGEST_SOCKET_PATH
    assert list(long.iterdir()) == []
