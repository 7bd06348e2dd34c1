"""The pytest plugin: ``pip install minicluster`` gives every test the fixture ``minicluster``."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from . import testing


@pytest.fixture(scope="session")
def minicluster_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[testing.Running]:
    """One cluster for all tests, in a process of its own; it starts with the first of them."""
    with testing.start() as cluster:
        cluster.client.save(str(tmp_path_factory.getbasetemp() / "minicluster-empty"))
        yield cluster


@pytest.fixture
def minicluster(
    minicluster_process: testing.Running, tmp_path_factory: pytest.TempPathFactory
) -> testing.Running:
    """Give the test a clean cluster: the nodes of a new one, no fault, an empty journal.

    ``.http`` is the proxy's address, ``.client`` has faults, journal and clock.
    """
    testing.empty(minicluster_process, str(tmp_path_factory.getbasetemp() / "minicluster-empty"))
    return minicluster_process
