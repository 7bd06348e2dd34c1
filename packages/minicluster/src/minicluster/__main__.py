"""`python -m minicluster`: serves a cluster on the loopback until it is stopped."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import errno
import gc
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
from collections.abc import Coroutine
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from . import persist
from .cluster import Cluster
from .control.gate import Gate
from .control.log import log_requests
from .core.errors import ProtosUnavailableError, YtError
from .http.server import HttpServer
from .nodes.environment import Tools
from .nodes.local import LocalNodes
from .release import node, publish

HOST = "127.0.0.1"
DEFAULT_HTTP_PORT = 18080
BEAT = 0.1
"""Seconds between two looks of the scheduler at the clock; requests make it look as well."""

BANNER = """\
minicluster: in-memory YTsaurus for development; Ctrl-C stops it and discards all data.

  HTTP   http://{http}
  RPC    {rpc}

  yt       export YT_PROXY=http://{http} YT_TOKEN=any; yt list /
  Python   yt.wrapper.YtClient("http://{http}", token="any")
  Spark    spark.hadoop.yt.proxy=http://{http}
  faults   minicluster.client.Client("{http}").faults.add(...)
"""
OPERATIONS = """\

  Vanilla operations are enabled: their jobs run on this machine, as processes of your user.
  Not enforced: limits of memory and CPU, pools, users, networks and hosts of their own.
  Folders of the jobs: {folder}
  Python for the jobs: {python}
  Java for the jobs:   {java}
  {published}
"""


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    _allow_many_connections()
    _collect_rarely()
    with contextlib.suppress(KeyboardInterrupt):
        try:
            asyncio.run(_serve(options))
        except (YtError, OSError, ProtosUnavailableError) as error:
            print(f"minicluster: {_reason(error, options)}", file=sys.stderr)
            return 1
    return 0


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m minicluster", description="An in-memory YTsaurus cluster on the loopback."
    )
    parser.add_argument(
        "--ready-file", type=Path, help="write the addresses to this file, as JSON, once it serves"
    )
    port = "default: %(default)s; 0 takes a free one"
    parser.add_argument("--http-port", type=int, default=DEFAULT_HTTP_PORT, help=port)
    proxies = "default: %(default)s; 0 where minicluster[rpc] is not installed"
    default = 0 if _rpc_needs() else 1
    parser.add_argument("--rpc-proxies", type=int, default=default, help=proxies)
    parser.add_argument("--log", action="store_true", help="print each request")
    parser.add_argument(
        "--operations",
        action="store_true",
        help="run vanilla operations, and publish Spark and SPYT",
    )
    python = "the Python of the nodes, a program; default: one with what SPYT needs alone"
    parser.add_argument("--node-python", type=Path, help=python)
    java = "the Java of the nodes, its home folder; default: JAVA_HOME, or the java of the PATH"
    parser.add_argument("--node-java", type=Path, help=java)
    spark = "publish the Spark in this folder of a pyspark instead of the installed one; repeatable"
    parser.add_argument(
        "--spark-home", type=Path, action="append", default=[], metavar="FOLDER", help=spark
    )
    parser.add_argument("--load", type=Path, help="load a saved state")
    owned = "end, and remove this folder, when standard input closes: its owner has died"
    parser.add_argument("--owned", type=Path, metavar="FOLDER", help=owned)
    options = parser.parse_args(arguments)
    if not 0 <= options.http_port <= 65535:
        parser.error("--http-port must be between 0 and 65535")
    if not 0 <= options.rpc_proxies <= 64:
        parser.error("--rpc-proxies must be between 0 and 64")
    if options.rpc_proxies and (missing := _rpc_needs()):
        parser.error(f"RPC needs {', '.join(missing)}: pip install 'minicluster[rpc]'")
    _check_nodes(parser, options)
    return options


def _check_nodes(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """End the program if the options of the nodes ask for what cannot be."""
    given = {
        "--node-python": options.node_python,
        "--node-java": options.node_java,
        "--spark-home": options.spark_home,
    }
    for name, value in given.items():
        if value and not options.operations:
            parser.error(f"{name} needs --operations")
    if options.spark_home and (missing := publish.missing()):
        parser.error(f"--spark-home: {_lacking(missing)}")
    if options.operations and not Path("/proc/self/environ").exists():
        parser.error("--operations needs /proc of Linux: a job's processes are found there")
    program = {"--node-python": options.node_python}
    if options.node_java is not None:
        program["--node-java"] = options.node_java / "bin" / "java"
    for name, path in program.items():
        if path is not None and not os.access(path, os.X_OK):
            parser.error(f"{name}: {path} is not a program")


def _lacking(missing: list[str]) -> str:
    return (
        f"spark-submit needs {', '.join(missing)} here: programs come with the system's packages, "
        "the others with pip install 'minicluster[operations]'"
    )


def _rpc_needs() -> list[str]:
    """Return the packages that RPC needs and that are not installed."""
    modules = {"google.protobuf": "protobuf", "grpc_tools": "grpcio-tools", "spyt": "ytsaurus-spyt"}
    return [package for module, package in modules.items() if not _is_there(module)]


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # of the package above it
        return False


def _reason(error: Exception, options: argparse.Namespace) -> str:
    if isinstance(error, YtError):
        return error.message
    if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
        return f"port {options.http_port} is taken: stop what listens there, or use --http-port"
    return str(error)


def _allow_many_connections() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = min(hard, 65536) if hard != resource.RLIM_INFINITY else 65536
    if soft < wanted:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _collect_rarely() -> None:
    """Collect garbage rarely: rows form no cycles, and walking millions of them takes long."""
    gc.freeze()
    gc.set_threshold(100_000, 20, 50)


async def _serve(options: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory(prefix="minicluster-") as folder:
        await _serve_in(options, Path(folder))


async def _serve_in(options: argparse.Namespace, folder: Path) -> None:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopping.set)
    if options.owned is not None:
        _end_with_owner(options.owned, stopping)
    cluster = Cluster()
    if options.load is not None:
        persist.load(cluster, str(options.load))
    gate = Gate(cluster.tick, cluster.committing)
    if options.log:
        gate.journal.listeners.append(log_requests(sys.stdout))
    nodes, operations = None, ""
    if options.operations:
        tools, published = _release(cluster, options, folder)
        nodes = _run_operations(cluster, gate, tools)
        operations = OPERATIONS.format(
            folder=nodes.root, python=tools.python, java=tools.java, published=published
        )
    http = HttpServer(cluster, gate)
    await http.start(HOST, options.http_port)
    proxies = await _serve_rpc(cluster, gate, options.rpc_proxies)
    addresses = {"http": http.address, "rpc": [proxy.address for proxy in proxies]}
    if options.ready_file is not None:
        _write_whole(options.ready_file, json.dumps({**addresses, "pid": os.getpid()}))
    print(BANNER.format(http=http.address, rpc=", ".join(addresses["rpc"]) or "none"), flush=True)
    print(operations, end="", flush=True)
    await stopping.wait()
    if nodes is not None:
        await nodes.close()
    await http.stop()
    for proxy in proxies:
        await proxy.down()


def _end_with_owner(folder: Path, stopping: asyncio.Event) -> None:
    """Stop when standard input closes, which a process keeps open for as long as it lives."""
    loop = asyncio.get_running_loop()

    def look() -> None:
        if not os.read(sys.stdin.fileno(), 1):
            loop.remove_reader(sys.stdin)
            shutil.rmtree(folder, ignore_errors=True)
            stopping.set()

    loop.add_reader(sys.stdin, look)


def _release(cluster: Cluster, options: argparse.Namespace, folder: Path) -> tuple[Tools, str]:
    """Publish Spark and SPYT, if they are here; return what nodes have, and what was published."""

    def absolute(path: Path | None) -> Path | None:
        return None if path is None else Path(os.path.abspath(path))

    python, java = absolute(options.node_python), absolute(options.node_java)
    if missing := publish.missing():
        return Tools(python, java), f"Nothing is published: {_lacking(missing)}."
    files = publish.publish(cluster.cypress, options.spark_home)
    tools = Tools(
        python or node.make(folder / "python") / "python3",
        java or node.java_home(),
    )
    return tools, "\n  ".join(["Published for spark-submit:", *files])


def _run_operations(cluster: Cluster, gate: Gate, tools: Tools) -> LocalNodes:
    """Give the cluster nodes that run the jobs of its operations."""

    def serve_socket(path: str) -> Coroutine[Any, Any, Any]:
        from .rpc.server import serve_job  # protobuf is an extra

        return serve_job(cluster, gate, path)

    nodes = LocalNodes(tools, serve_socket, cluster.scheduler.job_ended)
    cluster.run_jobs_on(nodes)

    def beat() -> None:
        cluster.scheduler.tick()
        asyncio.get_running_loop().call_later(BEAT, beat)

    beat()
    return nodes


async def _serve_rpc(cluster: Cluster, gate: Gate, count: int) -> list[Any]:
    if not count:
        return []
    from .rpc.server import serve  # protobuf is an extra

    return [await serve(cluster, gate, HOST) for _ in range(count)]


def _write_whole(path: Path, text: str) -> None:
    """Write the file in one step, so that its readers never see a part of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    temporary.write_text(text)
    temporary.replace(path)


if __name__ == "__main__":
    sys.exit(main())
