"""Operations over RPC, as SPYT's submit and driver ask for them, and the socket of a job."""

from __future__ import annotations

import asyncio
import hashlib
import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from yt import yson

from minicluster.cluster import Cluster
from minicluster.control.gate import Gate
from minicluster.core.errors import YtError
from minicluster.rpc.server import serve_job
from packages.minicluster.tests.operations.conftest import Lab
from packages.minicluster.tests.support.rpc_client import RpcClient, RpcError, build, text_id

VANILLA, MAP, FILE, MAP_NODE = 8, 0, 400, 303
CACHE = "//tmp/yt_wrapper/file_storage/new_cache"

Scenario = Callable[[RpcClient], Awaitable[Any]]


def over_rpc(lab: Lab, scenario: Scenario) -> Any:
    async def run() -> Any:
        client = await RpcClient.connect(lab.cluster.rpc[0])
        try:
            return await asyncio.wait_for(scenario(client), 30)
        finally:
            await client.close()

    return asyncio.run(run())


def spec(command: str, *, task: dict[str, Any] | None = None, **fields: Any) -> bytes:
    whole = {"tasks": {"driver": {"command": command, "job_count": 1, **(task or {})}}, **fields}
    data: bytes = yson.dumps(whole)
    return data


async def start(client: RpcClient, given: bytes, type: int = VANILLA) -> str:
    reply, _ = await client.call("StartOperation", type=type, spec=given)
    return text_id(reply.operation_id)


async def get(client: RpcClient, **named: Any) -> dict[str, Any]:
    reply, _ = await client.call("GetOperation", **named)
    found: dict[str, Any] = yson.loads(reply.meta)
    return found


def test_the_requests_of_spyts_submit_and_driver(lab: Lab) -> None:
    async def scenario(client: RpcClient) -> None:
        vault = {"YT_TOKEN": "sesame"}
        given = spec("sleep 1000", alias="*job", secure_vault=vault, description={"by": "me"})
        operation = await start(client, given)
        for key in ("Web UI", "Executors"):
            parameters = yson.dumps({"annotations": {"description": {key: "x"}}})
            await client.call(
                "UpdateOperationParameters", operation_id=operation, parameters=parameters
            )
        found = await get(client, operation_id=operation)
        assert found["state"] == "running"
        assert found["runtime_parameters"]["annotations"]["description"].keys() == {
            "by",
            "Web UI",
            "Executors",
        }
        assert "secure_vault" not in found["provided_spec"]
        assert "sesame" not in repr(found)
        message = build("TReqGetOperation", operation_alias="*job")
        message.attributes.keys.append("state")
        client.send("GetOperation", message)
        reply, _ = client.open_response(
            await client.read_message(), "NYT.NApi.NRpcProxy.NProto.TRspGetOperation"
        )
        assert yson.loads(reply.meta) == {"state": "running"}
        await client.call("CompleteOperation", operation_alias="*job")
        assert (await get(client, operation_alias="*job"))["state"] == "completed"
        with pytest.raises(RpcError, match="No such operation"):
            await client.call("CompleteOperation", operation_id=operation)

    over_rpc(lab, scenario)


def test_an_abort_with_a_message(lab: Lab) -> None:
    async def scenario(client: RpcClient) -> None:
        operation = await start(client, spec("sleep 1000"))
        await client.call("AbortOperation", operation_id=operation, abort_message="superseded")
        found = await get(client, operation_id=operation)
        assert found["state"] == "aborted"
        error = found["result"]["error"]
        assert error["message"] == "Operation aborted by user request"
        assert error["inner_errors"][0]["message"] == "superseded"

    over_rpc(lab, scenario)


def test_a_job_is_aborted_and_its_stderr_read(lab: Lab) -> None:
    async def scenario(client: RpcClient) -> None:
        ready = lab.note("$$", "ready")
        operation = await start(client, spec(f"echo words >&2; {ready}; sleep 1000"))
        await asyncio.to_thread(lab.file, "ready")
        [job] = lab.operation(operation).jobs
        await client.call("AbortJob", job_id=job.id)
        _, [data] = await client.call("GetJobStderr", operation_id=operation, job_id=job.id)
        assert data == b"words\n"
        _, [part] = await client.call(
            "GetJobStderr", operation_id=operation, job_id=job.id, offset=1, limit=3
        )
        assert part == b"ord"
        assert lab.operation(operation).jobs[0].abort_reason == "user_request"

    over_rpc(lab, scenario)


def test_other_types_of_operations_are_refused(lab: Lab) -> None:
    async def scenario(client: RpcClient) -> None:
        with pytest.raises(RpcError, match="not supported by minicluster: operations of type 0"):
            await start(client, b"{}", MAP)

    over_rpc(lab, scenario)


def test_files_go_through_the_cache(lab: Lab) -> None:
    digest = hashlib.md5(b"content").hexdigest()

    async def scenario(client: RpcClient) -> None:
        await client.create(CACHE, MAP_NODE)
        reply, _ = await client.call("GetFileFromCache", md5=digest, cache_path=CACHE)
        assert reply.result.path == b""
        await client.create("//tmp/upload", FILE)
        lab.yt.write_file("//tmp/upload", b"content", compute_md5=True)
        reply, _ = await client.call(
            "PutFileToCache", path="//tmp/upload", md5=digest, cache_path=CACHE
        )
        assert reply.result.path.decode() == f"{CACHE}/{digest[-2:]}/{digest}"
        await client.call("RemoveNode", path="//tmp/upload")
        found, _ = await client.call("GetFileFromCache", md5=digest, cache_path=CACHE)
        assert found.result.path == reply.result.path
        path = yson.to_yson_type(found.result.path.decode(), attributes={"file_name": "main.py"})
        given = spec("cat main.py >&2", task={"file_paths": [path]})
        operation = await start(client, given)
        # SPYT copies these paths for the executors.
        provided = (await get(client, operation_id=operation))["provided_spec"]
        [shown] = provided["tasks"]["driver"]["file_paths"]
        assert (str(shown), shown.attributes) == (str(path), {"file_name": "main.py"})
        lab.wait(operation)

    over_rpc(lab, scenario)
    assert lab.stderr(lab.cluster.client.operations.list()[0].id) == "content"


ASK = """
import asyncio, json, os, sys
sys.path[:0] = json.loads(os.environ["PATHS"])
from packages.minicluster.tests.support.rpc_client import RpcClient

async def ask():
    pair = await asyncio.open_unix_connection(os.environ["YT_JOB_PROXY_SOCKET_PATH"])
    client = RpcClient(*pair)
    print(await client.get("//sys/@cluster_name"), file=sys.stderr)

asyncio.run(ask())
"""


def test_a_job_asks_the_cluster_through_its_socket(lab: Lab) -> None:
    lab.upload("//tmp/ask.py", ASK.encode())
    task = {
        "file_paths": ["//tmp/ask.py"],
        "enable_rpc_proxy_in_job_proxy": True,
        "environment": {"PATHS": json.dumps([path for path in sys.path if path])},
    }
    operation = lab.start(f"{sys.executable} ask.py; echo $YT_JOB_PROXY_SOCKET_PATH >&2", job=task)
    lab.wait(operation)
    answer, path = lab.stderr(operation).splitlines()
    assert answer == "minicluster"
    assert len(path.encode()) <= 107
    assert not Path(path).exists()
    asked = lab.cluster.client.journal("GetNode")
    assert [entry.proxy for entry in asked] == [path]


def test_a_job_has_a_socket_only_if_its_spec_asks_for_it(lab: Lab) -> None:
    operation = lab.start("echo ${YT_JOB_PROXY_SOCKET_PATH-none} $(ls .. | xargs) >&2")
    lab.wait(operation)
    assert lab.stderr(operation) == "none sandbox tmp\n"


def test_a_transaction_of_a_socket_ends_with_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        cluster = Cluster()
        path = str(tmp_path / "rpc")
        proxy = await serve_job(cluster, Gate(cluster.tick), path)
        client = RpcClient(*await asyncio.open_unix_connection(path))
        reply, _ = await client.call("StartTransaction", type=1, timeout=60_000_000)
        transaction = text_id(reply.id)
        assert cluster.tablet_transactions.get(transaction, path).id == transaction
        await proxy.down()
        with pytest.raises(YtError, match=transaction):
            cluster.tablet_transactions.get(transaction, path)
        await client.close()

    asyncio.run(scenario())
