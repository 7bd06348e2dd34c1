"""The basics over each client, and row locks over those that have them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from minicluster import testing
from packages.minicluster.tests.support.basics import (
    BACKENDS,
    BASICS,
    KEYED,
    LACKED_BY_JAVA,
    connect,
    refused,
    table,
)


@pytest.fixture(scope="session", params=BACKENDS)
def client(request: pytest.FixtureRequest, running: testing.Running) -> Any:
    return connect(running.http, request.param)


@pytest.mark.parametrize("name", BASICS)
def test_basics(name: str, client: Any) -> None:
    root = f"//tmp/basics/{client.config['backend']}/{name}"
    client.create("map_node", root, recursive=True)
    BASICS[name](client, root)


@pytest.fixture(scope="module")
def java(running: testing.Running) -> Iterator[Any]:
    from packages.minicluster.tests.support import java_client

    with java_client.connect(running.http) as client:
        yield client


@pytest.mark.thorough
@pytest.mark.spark
@pytest.mark.parametrize("name", BASICS)
def test_basics_over_the_java_client(name: str, java: Any) -> None:
    from packages.minicluster.tests.support.java_values import LacksError

    root = f"//tmp/basics/java/{name}"
    java.create("map_node", root, recursive=True)
    if name not in LACKED_BY_JAVA:
        BASICS[name](java, root)
        return
    with pytest.raises(LacksError, match=LACKED_BY_JAVA[name]):
        BASICS[name](java, root)


@pytest.mark.parametrize("type", ["shared_weak", "shared_strong"])
def test_rows_are_locked_by_every_client(client: Any, type: str) -> None:
    root = f"//tmp/locks/{client.config['backend']}/{type}"
    client.create("map_node", root, recursive=True)
    columns = [KEYED[0], {"name": "a", "type": "int64", "lock": "a"}, KEYED[2]]
    path = table(client, f"{root}/t", columns)
    transaction = client.start_transaction(type="tablet", timeout=60_000)
    with client.Transaction(transaction_id=transaction, ping=False):
        client.lock_rows(path, [{"k": 1}], locks=["a"], lock_type=type)
    client.insert_rows(path, [{"k": 1, "a": 1}], update=True)
    refused(lambda: client.commit_transaction(transaction), 1700)
