"""A running minicluster, the official client on it, and a folder of its own for each test."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yt.wrapper as yt

from minicluster import testing
from minicluster.cluster import Cluster
from minicluster.cypress.commands import Cypress
from packages.minicluster.tests.support import spyt_lab
from tests.support.sparks import SPARKS


@pytest.fixture
def cluster() -> Cluster:
    """The state alone, in this process."""
    return Cluster()


@pytest.fixture
def cypress(cluster: Cluster) -> Cypress:
    return cluster.cypress


@pytest.fixture(scope="session")
def running() -> Iterator[testing.Running]:
    """A cluster in a process of its own, shared by all tests; faults and clock are not for it."""
    with testing.start() as cluster:
        yield cluster


@pytest.fixture(scope="session")
def emptied(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[testing.Running, str]]:
    """A cluster in a process of its own, and the file with its state as it was in the beginning."""
    file = str(tmp_path_factory.mktemp("empty") / "state")
    with testing.start(rpc_proxies=2) as cluster:
        cluster.client.save(file)
        yield cluster, file


@pytest.fixture
def fresh(emptied: tuple[testing.Running, str]) -> testing.Running:
    """A cluster for one test alone: as it was in the beginning, but for its clock."""
    cluster, file = emptied
    testing.empty(cluster, file)
    return cluster


def connect(cluster: testing.Running, *, retries: bool = False) -> Any:
    """Return a ytsaurus-client without retries, which shows each error at once."""
    client = yt.YtClient(f"http://{cluster.http}", token="any")
    # The end of a transaction waits for the thread of its pings, by default up to 100 ms.
    client.config["transaction_sleep_period"] = 10
    backoff = {"policy": "constant_time", "constant_time": 10}
    for group in ("proxy/retries", "write_retries", "read_retries", "dynamic_table_retries"):
        config = client.config
        for part in group.split("/"):
            config = config[part]
        config["enable"] = retries
        config["backoff"] = backoff
    return client


@pytest.fixture
def client(running: testing.Running) -> Any:
    return connect(running)


@pytest.fixture
def root(client: Any, request: pytest.FixtureRequest) -> str:
    """An empty folder on the shared cluster."""
    path = "//tmp/tests/" + re.sub(r"\W+", "-", request.node.nodeid)
    client.remove(path, recursive=True, force=True)
    client.create("map_node", path, recursive=True)
    return path


@pytest.fixture(scope="session", params=SPARKS)
def lab(
    request: pytest.FixtureRequest,
    environments: dict[str, Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[spyt_lab.Lab]:
    """A cluster and a Spark session on it, for all tests with one version of Spark."""
    environment = environments[request.param]
    if not environment.exists():
        pytest.skip(f"no environment for Spark {request.param}: `make setup-all` makes it")
    with spyt_lab.start(environment, tmp_path_factory.mktemp("spyt")) as started:
        assert started.worker.ask("version").startswith(request.param)
        yield started
