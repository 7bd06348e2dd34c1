"""The basics over each client, and what the native one alone sends."""

from __future__ import annotations

from typing import Any

import pytest

from minicluster import testing
from packages.minicluster.tests.basics import BACKENDS, BASICS, connect


@pytest.fixture(scope="session", params=BACKENDS)
def client(request: pytest.FixtureRequest, running: testing.Running) -> Any:
    return connect(running.http, request.param)


@pytest.mark.parametrize("name", BASICS)
def test_basics(name: str, client: Any) -> None:
    root = f"//tmp/basics/{client.config['backend']}/{name}"
    client.create("map_node", root, recursive=True)
    BASICS[name](client, root)
