"""One minicluster and one Spark session for all tests; objects of its own for each test."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from demo.expected import prepare
from minicluster import testing

PACKAGE = "{{ cookiecutter.__package }}"
OBJECTS = ("consumer", "output", "checkpoint", "reference")
CONFIG = Path(__file__).parents[1] / "config" / "local.toml"

Module = Callable[[str], ModuleType]


@pytest.fixture(scope="session")
def module() -> Module:
    """A module of the job by its name: ``module("settings")``."""
    return lambda name: import_module(f"{PACKAGE}.{name}")


@pytest.fixture(scope="session")
def cluster() -> Iterator[Any]:
    """A minicluster; ``.client`` holds its faults, journal and clock."""
    with testing.start() as running:
        yield running


@pytest.fixture(scope="session")
def base_settings(module: Module, cluster: Any) -> Any:
    """config/local.toml on the minicluster of the tests."""
    return module("settings").load(CONFIG, {"YT_PROXY": cluster.http})


@pytest.fixture
def settings(base_settings: Any, request: pytest.FixtureRequest) -> Any:
    """The job's settings with a folder of its own on the cluster for each test."""
    name = re.sub(r"[^A-Za-z0-9_]+", "-", request.node.name).strip("-")
    root = f"//home/tests/{name}"
    return replace(
        base_settings,
        trigger_seconds=0.2,
        queues=tuple(f"{root}/queue-{n}" for n in range(len(base_settings.queues))),
        **{name: f"{root}/{name}" for name in OBJECTS if hasattr(base_settings, name)},
    )


@pytest.fixture(scope="session")
def client(module: Module, base_settings: Any) -> Any:
    """A ytsaurus-client on the minicluster."""
    return module("cluster").connect(base_settings)


@pytest.fixture(scope="session")
def spark(module: Module, base_settings: Any) -> Iterator[Any]:
    """The job's own Spark session, with SPYT in it."""
    session = module("session").open_session(base_settings)
    yield session
    session.stop()


@pytest.fixture
def stream(module: Module, client: Any, settings: Any, spark: Any, cluster: Any) -> Iterator[Any]:
    """A provisioned job of its own for the test; no fault outlives it."""
    from stream import Stream

    module("provision").provision(client, settings)
    prepare(client, settings)
    yield Stream(module, client, settings, spark)
    cluster.client.faults.clear()
