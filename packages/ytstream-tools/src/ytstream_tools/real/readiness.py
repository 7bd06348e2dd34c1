"""Wait until a server can do all that a job asks of it, by doing it once in a folder of its own."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple
from urllib.request import urlopen

from yt.common import YtError
from yt.wrapper.driver import make_formatted_request

from ytstream.cluster.client import client_of, first_line
from ytstream.errors import JobError
from ytstream.errors.error_codes import ErrorCode

Say = Callable[[str], None]

PATIENCE_SECONDS = 600.0
"""A server in a container took a minute in others' notes; an emulated one takes longer."""
_POLL_SECONDS = 1.0
_QUEUE = {
    "dynamic": True,
    "schema": [
        {"name": "data", "type": "string"},
        {"name": "$timestamp", "type": "uint64"},
        {"name": "$cumulative_data_weight", "type": "int64"},
    ],
}


class NotReadyError(Exception):
    """What the server does not do yet."""


class _Probe(NamedTuple):
    client: Any
    folder: str

    @property
    def queue(self) -> str:
        return f"{self.folder}/queue"

    @property
    def consumer(self) -> str:
        return f"{self.folder}/consumer"


def _http_proxy(probe: _Probe) -> None:
    probe.client.get("//sys/@cluster_name")


def _rpc_proxy(probe: _Probe) -> None:
    # yt.wrapper has no call for it; SPYT's Java client sends the same request.
    answer = make_formatted_request(
        "discover_proxies", {"type": "rpc"}, format=None, client=probe.client
    )
    if not (answer["proxies"] if isinstance(answer, Mapping) else answer):
        raise NotReadyError("no RPC proxy is there")


def _tablet_cells(probe: _Probe) -> None:
    client, queue = probe.client, probe.queue
    client.create("table", queue, recursive=True, ignore_existing=True, attributes=_QUEUE)
    client.mount_table(queue, sync=True)
    client.insert_rows(queue, [{"data": "ready?"}])


def _queue_agent(probe: _Probe) -> None:
    status = probe.client.get(f"{probe.queue}/@queue_status")
    if "error" in status or "partition_count" not in status:
        raise NotReadyError(f"@queue_status is {dict(status)}")


def _registrations(probe: _Probe) -> None:
    client, queue, consumer = probe.client, probe.queue, probe.consumer
    client.create("queue_consumer", consumer, ignore_existing=True)
    client.mount_table(consumer, sync=True)
    client.register_queue_consumer(queue, consumer, vital=False)
    if not list(client.pull_queue_consumer(consumer, queue, 0, 0)):
        raise NotReadyError("a consumer that is registered pulls no row")


CHECKS: Mapping[str, Callable[[_Probe], None]] = {
    "the HTTP proxy": _http_proxy,
    "an RPC proxy": _rpc_proxy,
    "tablet cells": _tablet_cells,
    "the queue agent": _queue_agent,
    "registrations of consumers": _registrations,
}


def wait(
    proxy: str,
    token: str,
    folder: str,
    say: Say,
    verify: Callable[[], None] = lambda: None,
    patience: float = PATIENCE_SECONDS,
) -> None:
    """Wait for everything in CHECKS; what is made for it, below ``folder``, is removed.

    ``verify`` raises once there is no use in waiting. Raises JobError when it takes too long.
    """
    client: Any = client_of(proxy, token, patient=False)
    probe = _Probe(client, f"{folder}/ytstream-ready-{uuid.uuid4().hex[:8]}")
    began = time.monotonic()
    try:
        for name, check in CHECKS.items():
            _until(name, lambda check=check: check(probe), began + patience, verify)  # type: ignore[misc]
            say(f"{time.monotonic() - began:4.0f} s  {name}")
    finally:
        with suppress(Exception):  # a server that never came up
            client.unregister_queue_consumer(probe.queue, probe.consumer)
        with suppress(Exception):
            client.remove(probe.folder, recursive=True, force=True)


def _until(
    name: str, check: Callable[[], None], deadline: float, verify: Callable[[], None]
) -> None:
    while True:
        try:
            check()
            return
        except (YtError, NotReadyError, OSError) as error:
            reason = str(error) if isinstance(error, NotReadyError) else first_line(error)
        verify()
        if time.monotonic() > deadline:
            raise JobError(
                f"the server is not ready, it lacks {name}: {reason}",
                "look at its log; a slow machine needs longer",
                code=ErrorCode.COMMAND_FAILED,
            )
        time.sleep(_POLL_SECONDS)


def raise_limits(proxy: str, token: str) -> None:
    """Let the account of //tmp have many tablets: the conformance suite makes some hundred.

    Only for a server of one's own. One without that account has no such limit.
    """
    client: Any = client_of(proxy, token, patient=True)
    with suppress(YtError):
        client.set("//sys/accounts/tmp/@resource_limits/tablet_count", 10_000)


def version(proxy: str) -> str:
    """Return the version of the server; "unknown" if it does not tell."""
    url = proxy if "://" in proxy else f"http://{proxy}"
    try:
        with urlopen(f"{url}/version", timeout=20) as answer:
            return str(answer.read().decode(errors="replace").strip()) or "unknown"
    except (OSError, ValueError):
        return "unknown"
