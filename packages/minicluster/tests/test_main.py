"""The two command lines: the official `yt`, and `python -m minicluster`."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import minicluster
from minicluster import testing
from packages.minicluster.tests.support.yt_process import Shell, environment, running_shell

PARENT = str(Path(minicluster.__file__).parents[1])
YT = str(Path(sys.executable).with_name("yt"))


@pytest.fixture(scope="module")
def shell(running: testing.Running, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    with running_shell(running.http, tmp_path_factory.mktemp("shell")) as shell:
        yield shell


SCHEMA = "<unique_keys=%true>[{name=k;type=int64;sort_order=ascending};{name=v;type=utf8}]"
QUEUE_SCHEMA = "[{name=data;type=string}]"


def rows(text: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.thorough
def test_nodes(shell: Shell, root: str) -> None:
    shell("create", "map_node", f"{root}/a/b", "--recursive")
    shell("set", f"{root}/a/@x", "{y=1}")
    assert shell("get", f"{root}/a/@x/y", "--format", "json").strip() == "1"
    assert shell("list", root) == "a\n"
    assert shell("exists", f"{root}/nope").strip() == "false"
    shell("copy", f"{root}/a", f"{root}/c")
    shell("move", f"{root}/c", f"{root}/d")
    shell("link", f"{root}/d", f"{root}/l")
    assert shell("list", f"{root}/l") == "b\n"
    shell("remove", f"{root}/a", "--recursive")
    assert f"{root}/d/b" in shell("find", root)
    failed = shell.run("get", f"{root}/nope")
    assert failed.returncode != 0
    assert b'has no child with key "nope"' in failed.stderr


@pytest.mark.thorough
def test_sorted_table(shell: Shell, root: str) -> None:
    table = f"{root}/t"
    shell("create", "table", table, "--attributes", f"{{dynamic=%true;schema={SCHEMA}}}")
    shell("mount-table", table, "--sync")
    given = '{"k":1,"v":"one"}\n{"k":2,"v":"two"}\n{"k":3,"v":"three"}\n'
    shell("insert-rows", table, "--format", "json", given=given)
    found = shell("select-rows", f"k, v from [{table}] where k > 1", "--format", "json")
    assert rows(found) == [{"k": 2, "v": "two"}, {"k": 3, "v": "three"}]
    found = shell("lookup-rows", table, "--format", "json", given='{"k":3}')
    assert rows(found) == [{"k": 3, "v": "three"}]
    shell("delete-rows", table, "--format", "json", given='{"k":1}')
    assert len(rows(shell("select-rows", f"* from [{table}]", "--format", "json"))) == 2
    shell("unmount-table", table, "--sync")
    no_retries = ["--config", "{dynamic_table_retries={enable=%false}}"]
    failed = shell.run(*no_retries, "select-rows", f"* from [{table}]", "--format", "json")
    assert failed.returncode != 0
    assert b"unmounted" in failed.stderr


def test_queue(shell: Shell, root: str) -> None:
    queue, consumer = f"{root}/q", f"{root}/c"
    shell("create", "table", queue, "--attributes", f"{{dynamic=%true;schema={QUEUE_SCHEMA}}}")
    shell("mount-table", queue, "--sync")
    shell("create", "queue_consumer", consumer)
    shell("mount-table", consumer, "--sync")
    shell("register-queue-consumer", queue, consumer, "--vital")
    assert consumer in shell("list-queue-consumer-registrations", "--queue-path", queue)
    shell("insert-rows", queue, "--format", "json", given='{"data":"a"}\n{"data":"b"}\n')
    arguments = ["--partition-index", "0", "--offset", "1", "--format", "json"]
    found = rows(shell("pull-queue-consumer", consumer, queue, *arguments))
    assert [row["data"] for row in found] == ["b"]
    shell(
        "advance-queue-consumer",
        *[consumer, queue, "--partition-index", "0", "--old-offset", "0", "--new-offset", "2"],
    )
    assert "total_row_count" in shell("get-tablet-infos", queue, "--tablet-indexes", "0")
    shell("trim-rows", queue, "0", "1")
    shell("unregister-queue-consumer", queue, consumer)


def test_files_and_static_tables(shell: Shell, root: str) -> None:
    data = bytes(range(256)) * 100
    shell("write-file", f"{root}/f", given=data)
    assert shell.run("read-file", f"{root}/f").stdout == data
    shell("write-table", f"{root}/s", "--format", "json", given='{"a":1}\n{"a":2}\n')
    assert rows(shell("read-table", f"{root}/s[#1:]", "--format", "json")) == [{"a": 2}]


def test_transactions_and_locks(shell: Shell, root: str) -> None:
    transaction = shell("start-tx", "--timeout", "60000").strip()
    shell("--tx", transaction, "set", f"{root}/x", "1")
    shell("--tx", transaction, "lock", root, "--mode", "shared")
    assert shell("exists", f"{root}/x").strip() == "false"
    shell("ping-tx", transaction)
    shell("commit-tx", transaction)
    assert shell("get", f"{root}/x").strip() == "1"


# python -m minicluster


def minicluster_process(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "minicluster", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": PARENT},
    )


@pytest.mark.thorough
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_says_where_it_listens_and_stops(tmp_path: Path, number: int) -> None:
    ready = tmp_path / "ready.json"
    with minicluster_process(
        "--ready-file", str(ready), "--http-port", "0", "--rpc-proxies", "2", "--log"
    ) as process:
        assert process.stdout is not None
        banner = ""
        while "faults" not in banner:
            banner += process.stdout.readline()
        addresses = json.loads(ready.read_text())
        assert addresses["http"] in banner
        assert all(address in banner for address in addresses["rpc"])
        assert len(addresses["rpc"]) == 2
        words = [sys.executable, YT, "set", "//tmp/x", "1"]
        subprocess.run(words, env=environment(addresses["http"]), check=True, timeout=120)
        process.send_signal(number)
        rest, errors = process.communicate(timeout=30)
    assert process.returncode == 0
    assert errors == ""
    assert "set" in rest
    assert "path=//tmp/x" in rest


def test_a_taken_port_is_one_clear_line() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with minicluster_process("--http-port", str(port)) as process:
            _, errors = process.communicate(timeout=30)
    assert process.returncode == 1
    assert errors.count("\n") == 1
    assert f"port {port} is taken" in errors


def test_a_state_that_cannot_be_loaded(tmp_path: Path) -> None:
    with minicluster_process("--http-port", "0", "--load", str(tmp_path / "nope")) as process:
        _, errors = process.communicate(timeout=30)
    assert process.returncode == 1
    assert errors.count("\n") == 1
    assert "Cannot load the state" in errors


@pytest.mark.slow
def test_a_failed_start_shows_why(tmp_path: Path) -> None:
    with (
        pytest.raises(testing.StartError, match="Cannot load the state"),
        testing.start(load=str(tmp_path / "nope")),
    ):
        pass


@pytest.mark.slow
def test_a_start_that_takes_too_long_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(testing, "START_TIMEOUT", 0)
    with pytest.raises(testing.StartError, match="not ready after 0 s"), testing.start():
        pass
