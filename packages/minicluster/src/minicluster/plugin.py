"""The pytest plugin: ``pip install minicluster`` gives every test the fixture ``minicluster``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from . import testing


@pytest.fixture(scope="session")
def minicluster_options() -> dict[str, Any]:
    """Arguments of `testing.start`; a conftest.py that overrides this may ask for operations."""
    return {}


@pytest.fixture(scope="session")
def minicluster_process(
    tmp_path_factory: pytest.TempPathFactory, minicluster_options: dict[str, Any]
) -> Iterator[testing.Running]:
    """One cluster for all tests, in a process of its own; it starts with the first of them."""
    with testing.start(**minicluster_options) as cluster:
        cluster.client.save(str(tmp_path_factory.getbasetemp() / "minicluster-empty"))
        yield cluster


@pytest.fixture
def minicluster(
    minicluster_process: testing.Running, tmp_path_factory: pytest.TempPathFactory
) -> testing.Running:
    """Give the test a clean cluster: the nodes of a new one, no fault, no job, an empty journal.

    ``.http`` is the proxy's address, ``.client`` has faults, journal and clock.
    """
    testing.empty(minicluster_process, str(tmp_path_factory.getbasetemp() / "minicluster-empty"))
    return minicluster_process
