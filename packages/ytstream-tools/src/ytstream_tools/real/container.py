"""A YTsaurus server in a container, which is removed however the work with it ends.

The arguments are those that YTsaurus' own script gives its image (yt/docker/local of
ytsaurus/ytsaurus). They follow the ones of the image's start.sh, so that the last port counts.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from ytstream.errors import JobError
from ytstream.errors.error_codes import ErrorCode

Say = Callable[[str], None]

LABEL = "ytstream-real"
"""Of all containers that are started here: `docker ps --filter label=...` finds one that is left.
"""
PLATFORM = "linux/amd64"
"""The image is built for this machine alone; Docker emulates it on others."""
ENVIRONMENT = {"YT_FORCE_IPV4": "1", "YT_FORCE_IPV6": "0", "YT_USE_HOSTS": "0"}
JOBS_CPU = 8
"""yt_local's default is one core for all jobs, and a driver and its executor need two."""
SHOWN_LINES = 20
"""Lines of the server's log that an error shows."""


@dataclass(frozen=True)
class Server:
    """A server that runs: its address, and the image with its digest ("" if it was named)."""

    proxy: str
    image: str
    verify: Callable[[], None]
    """Raises JobError if the container has ended."""


@contextmanager
def started(image: str, say: Say) -> Iterator[Server]:
    """Start a container of the image; remove it in the end.

    Raises JobError without Docker, and for an image that does not start.
    """
    docker = _docker()
    name = f"{LABEL}-{uuid.uuid4().hex[:8]}"
    say(f"pulling {image} ...")
    # Without a registry an image that is here does as well: `docker run` says if there is none.
    subprocess.run([docker, "pull", "--platform", PLATFORM, image], check=False)
    proxy_port, rpc_port = _free_ports(2)
    with ExitStack() as stack:
        stack.callback(_remove, docker, name)
        _run(docker, name, image, proxy_port, rpc_port)
        digests = _said(docker, "image", "inspect", "--format", '{{join .RepoDigests " "}}', image)
        say(f"container {name}: HTTP localhost:{proxy_port}, RPC localhost:{rpc_port}")
        yield Server(
            f"localhost:{proxy_port}", digests.strip() or image, lambda: _verify(docker, name)
        )


def arguments(name: str, proxy_port: int, rpc_port: int) -> list[str]:
    """Return the arguments of `yt_local start` in the image.

    The proxies have the same ports inside, so that an address does for this machine and for the
    jobs of the server's operations.
    """
    return [
        "--proxy-port", str(proxy_port),
        "--proxy-config", f'{{coordinator={{public_fqdn="localhost:{proxy_port}"}}}}',
        "--rpc-proxy-count", "1",
        "--rpc-proxy-port", str(rpc_port),
        "--node-count", "1",
        "--queue-agent-count", "1",
        "--jobs-cpu-limit", str(JOBS_CPU),
        "--address-resolver-config", "{enable_ipv4=%true;enable_ipv6=%false;}",
        "--id", name,
    ]  # fmt: skip


def _docker() -> str:
    docker = shutil.which("docker")
    if docker is None:
        raise JobError(
            "Docker is not installed here: there is no `docker` on the PATH",
            "install it, or name a cluster: make real PROXY=HOST, with its token in YT_TOKEN",
            code=ErrorCode.NOT_INSTALLED,
        )
    return docker


def _run(docker: str, name: str, image: str, proxy_port: int, rpc_port: int) -> None:
    """Start the container. An interrupt waits for Docker, which would start it in any case."""
    ports = [f"--publish=127.0.0.1:{port}:{port}" for port in (proxy_port, rpc_port)]
    given = [f"--env={key}={value}" for key, value in ENVIRONMENT.items()]
    words = [docker, "run", "--detach", "--name", name, "--label", LABEL, "--platform", PLATFORM]
    process = subprocess.Popen(
        [*words, *ports, *given, image, *arguments(name, proxy_port, rpc_port)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # Ctrl-C in the terminal is not meant for it
    )
    try:
        error = process.communicate()[1]
    except KeyboardInterrupt:
        process.communicate()
        raise
    if process.returncode:
        reason = (error.strip().splitlines() or ["no reason given"])[-1]
        raise JobError(
            f"`docker run` ended with {process.returncode}: {reason}",
            "start Docker, or name another image: make real IMAGE=NAME:TAG",
            code=ErrorCode.COMMAND_FAILED,
        )


def _remove(docker: str, name: str) -> None:
    """Remove the container with its volumes; one that was not made is no error."""
    subprocess.run(
        [docker, "rm", "--force", "--volumes", name],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
        start_new_session=True,  # a second Ctrl-C would leave it behind
    )


def _verify(docker: str, name: str) -> None:
    if _said(docker, "inspect", "--format", "{{.State.Running}}", name).strip() != "true":
        log = _said(docker, "logs", "--tail", str(SHOWN_LINES), name)
        raise JobError(
            f"the container {name} has ended:\n{log.strip()}",
            "give Docker more memory, or name another image: make real IMAGE=NAME:TAG",
            code=ErrorCode.COMMAND_FAILED,
        )


def _said(*words: str) -> str:
    """Return what a command says, on both streams; "" if it fails."""
    done = subprocess.run(
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return "" if done.returncode else done.stdout


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [int(one.getsockname()[1]) for one in sockets]
