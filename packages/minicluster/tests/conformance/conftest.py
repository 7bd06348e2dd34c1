"""The suite's cluster, and what its tests share. Only the official client is used, over HTTP.

`YT_CONFORMANCE_PROXY` names a cluster (`YT_TOKEN` the token); without it a minicluster is started.
Each test says in its docstring where the behaviour it expects comes from: see `SOURCES`.
"""

from __future__ import annotations

import os
import re
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from importlib.util import find_spec
from typing import Any

import pytest
import yt.wrapper as yt

from minicluster import testing
from packages.minicluster.tests.support.native_client import telling

HERE = "packages/minicluster/tests/conformance/"
GIVEN = os.environ.get("YT_CONFORMANCE_PROXY", "")
HOME = "//tmp/ytstream-conformance"
SOURCES = re.compile(
    r"Source: (documentation, user-guide/|server (test|source), |client, |observed, )\S"
)
TIMEOUT = 60.0
BACKENDS = ("http", "rpc") if find_spec("yt_driver_rpc_bindings") else ("http",)

over_http = pytest.mark.parametrize("backend", ["http"], indirect=True, scope="session")
"""For what the HTTP proxy does itself, and for what the native client does in its own way."""

Row = dict[str, Any]
Register = Callable[..., None]


def connect(proxy: str, backend: str = "http") -> Any:
    """Return an official client; it shows an error of a dynamic table at once, without retries."""
    client = yt.YtClient(proxy, token=os.environ.get("YT_TOKEN", None if GIVEN else "any"))
    client.config["backend"] = backend
    # The bindings 1.0 take a number as the id of a request; the client has a GUID.
    client.config["enable_passing_request_id_to_driver"] = False
    # It asks for IPv6 addresses alone by default, and a server in a container has none.
    client.config["driver_address_resolver_config"] = {"enable_ipv4": True}
    client.config["dynamic_table_retries"]["enable"] = False
    # A table that is written or read has a transaction, whose end waits for the thread of its pings
    # (PingTransaction.stop), by default up to 100 ms.
    client.config["transaction_sleep_period"] = 10
    return telling(client) if backend == "rpc" else client


@pytest.fixture(scope="session")
def proxy() -> Iterator[str]:
    if GIVEN:
        # A host gets a scheme: some tests make their own requests. A cluster's name stays one.
        is_host = "://" not in GIVEN and any(sign in GIVEN for sign in ".:")
        yield f"http://{GIVEN}" if is_host else GIVEN
    else:
        with testing.start(rpc_proxies=1) as cluster:
            yield f"http://{cluster.http}"


@pytest.fixture(scope="session")
def home(proxy: str) -> Iterator[str]:
    """The folder of this run; nothing outside it is touched, and it is removed in the end."""
    path = f"{HOME}/{uuid.uuid4().hex}"
    client = connect(proxy)
    client.create("map_node", path, recursive=True)
    yield path
    client.remove(path, recursive=True, force=True)
    with suppress(yt.YtError):  # another run may be using it
        client.remove(HOME)


@pytest.fixture(scope="session", params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> str:
    """The way to the cluster: HTTP, or the RPC of the native client where it is installed."""
    return str(request.param)


@pytest.fixture
def client(proxy: str, backend: str) -> Any:
    return connect(proxy, backend)


@pytest.fixture
def other(proxy: str, backend: str) -> Any:
    """A second client, which takes part in no transaction of the first."""
    return connect(proxy, backend)


@pytest.fixture
def root(client: Any, home: str, request: pytest.FixtureRequest) -> str:
    """An empty folder for one test."""
    path = f"{home}/{re.sub(r'[^a-z0-9_]+', '-', request.node.name.lower())}"
    client.create("map_node", path)
    return path


@pytest.fixture
def transaction(client: Any) -> Iterator[Callable[..., str]]:
    """Starts master transactions by hand; those still running in the end are aborted."""
    started: list[str] = []

    def start(**options: Any) -> str:
        started.append(client.start_transaction(timeout=60_000, **options))
        return started[-1]

    yield start
    for identifier in reversed(started):
        with suppress(yt.YtError):
            client.abort_transaction(identifier)


@pytest.fixture
def register(client: Any) -> Iterator[Register]:
    """Registers consumers; a registration outlives its queue, so each is taken back."""
    with ExitStack() as stack:

        def one(queue: str, consumer: str, *, vital: bool = False) -> None:
            client.register_queue_consumer(queue, consumer, vital=vital)
            stack.callback(client.unregister_queue_consumer, queue, consumer)

        yield one


def within(client: Any, identifier: str) -> Any:
    """Make requests in a transaction that was started by hand."""
    return client.Transaction(transaction_id=identifier, ping=False)


def errors_of(error: yt.YtError) -> Iterator[Row]:
    """Yield what is in the error of a client: each error, and then those inside of it."""
    for inner in error.inner_errors:
        yield inner
        yield from errors_of(yt.YtError(inner_errors=inner.get("inner_errors") or []))


def make_table(client: Any, path: str, columns: list[Row], **attributes: Any) -> str:
    """Make a mounted dynamic table; a sorted one gets unique keys."""
    schema = yt.yson.to_yson_type(
        columns, attributes={"strict": True, "unique_keys": "sort_order" in columns[0]}
    )
    client.create("table", path, attributes={"dynamic": True, "schema": schema, **attributes})
    client.mount_table(path, sync=True)
    return path


def eventually(observe: Callable[[], Any], expected: Any) -> None:
    """Wait until the cluster has brought about in the background what is expected."""
    deadline = time.monotonic() + TIMEOUT
    while True:
        try:
            found = observe()
        except yt.YtError as error:
            found = error
        if found == expected or time.monotonic() > deadline:
            break
        time.sleep(0.2)  # a cluster has no event to wait for
    assert found == expected


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse a test without a source: such a behaviour is a model and does not belong here.

    Leave all of them out of `make test-quick`: they have a target of their own. Leave those over
    RPC out of `make test`: there rpc/ and the jobs of ytstream have its requests.
    """
    ours = [item for item in items if item.nodeid.startswith(HERE)]
    for item in ours:
        item.add_marker(pytest.mark.slow)
        if hasattr(item, "callspec") and item.callspec.params.get("backend") == "rpc":
            item.add_marker(pytest.mark.thorough)
    nameless = [
        item.nodeid
        for item in ours
        if isinstance(item, pytest.Function)
        and not SOURCES.search(" ".join((item.function.__doc__ or "").split()))
    ]
    if nameless:
        raise pytest.UsageError("these tests name no source: " + ", ".join(nameless))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print a table of the areas, if any of these tests was run."""
    counts: dict[str, Counter[str]] = {}
    for outcome in ("passed", "failed", "error", "skipped"):
        for report in terminalreporter.stats.get(outcome, []):
            found = re.search(
                r"packages/minicluster/tests/conformance/test_(\w+)\.py::",
                getattr(report, "nodeid", ""),
            )
            if found and (report.when == "call" or outcome != "passed"):
                area = found[1].replace("_", " ")
                counts.setdefault(area, Counter())[outcome] += 1
    if not counts:
        return
    terminalreporter.section(f"conformance of {GIVEN or 'the minicluster'}")
    counts["all areas"] = sum(counts.values(), Counter())
    for area, count in counts.items():
        bad = count["failed"] + count["error"]
        line = f"{area:32}{count['passed']:4} passed{bad:4} failed{count['skipped']:4} skipped"
        terminalreporter.write_line(line)
