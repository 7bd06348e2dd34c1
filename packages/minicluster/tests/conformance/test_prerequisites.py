"""Conditions of a request: it is refused, and changes nothing, unless they hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import yt.wrapper as yt

Start = Callable[..., str]

CHANGES: dict[str, Callable[[Any, str], Any]] = {
    "set": lambda client, root: client.set(f"{root}/made", 1),
    "create": lambda client, root: client.create("map_node", f"{root}/made"),
    "remove": lambda client, root: client.remove(f"{root}/there"),
    "copy": lambda client, root: client.copy(
        f"{root}/there", f"{root}/made", enable_cross_cell_copying=True
    ),
    "move": lambda client, root: client.move(
        f"{root}/there", f"{root}/made", enable_cross_cell_copying=True
    ),
    "link": lambda client, root: client.link(f"{root}/there", f"{root}/made"),
}


def depending(client: Any, **conditions: Any) -> Any:
    """Return a client whose every request depends on the conditions."""
    return yt.create_client_with_command_params(client, **conditions)


@pytest.fixture
def there(client: Any, root: str) -> str:
    client.create("document", f"{root}/there", attributes={"value": 1})
    return f"{root}/there"


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_waits_on_no_ended_transaction(
    client: Any, root: str, there: str, transaction: Start, name: str
) -> None:
    """Source: server test, integration/cypress/test_cypress.py (test_prerequisite_transactions)"""
    needed = transaction()
    client.abort_transaction(needed)
    with pytest.raises(yt.YtError) as caught:
        CHANGES[name](depending(client, prerequisite_transaction_ids=[needed]), root)
    assert caught.value.is_prerequisite_check_failed()
    assert client.list(root) == ["there"]


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_may_depend_on_a_running_transaction(
    client: Any, root: str, there: str, transaction: Start, name: str
) -> None:
    """Source: server test, integration/cypress/test_cypress.py (test_prerequisite_transactions)"""
    CHANGES[name](depending(client, prerequisite_transaction_ids=[transaction()]), root)
    assert client.list(root) != ["there"]


def test_reads_depend_on_transactions_too(client: Any, root: str, transaction: Start) -> None:
    """Source: server test, integration/sequoia/test_sequoia_objects.py
    (test_read_with_prerequisite_tx)"""
    needed = transaction()
    reader = depending(client, prerequisite_transaction_ids=[needed])
    assert reader.get(f"{root}/@type") == "map_node"
    client.commit_transaction(needed)
    with pytest.raises(yt.YtError):
        reader.get(f"{root}/@type")


def test_a_commit_depends_on_transactions(client: Any, root: str, transaction: Start) -> None:
    """Source: server test, integration/sequoia/test_sequoia_objects.py
    (test_commited_prerequisite_tx)"""
    needed, ended = transaction(), transaction()
    client.commit_transaction(ended)
    depending(client, prerequisite_transaction_ids=[needed]).commit_transaction(transaction())
    with pytest.raises(yt.YtError):
        depending(client, prerequisite_transaction_ids=[ended]).commit_transaction(transaction())


def test_all_transactions_have_to_run(client: Any, root: str, transaction: Start) -> None:
    """Source: client, yt/wrapper/tests/test_command_params.py (test_prerequisite_transaction)"""
    first, second = transaction(), transaction()
    both = depending(client, prerequisite_transaction_ids=[first, second])
    both.create("map_node", f"{root}/a")
    client.abort_transaction(second)
    with pytest.raises(yt.YtError):
        both.create("map_node", f"{root}/b")
    assert client.list(root) == ["a"]


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_depends_on_a_revision(client: Any, root: str, there: str, name: str) -> None:
    """Source: server test, integration/cypress/test_cypress.py (test_prerequisite_revisions)"""
    revision = client.get(f"{there}/@revision")
    stale = depending(
        client, prerequisite_revisions=[{"path": there, "revision": int(revision) + 1}]
    )
    with pytest.raises(yt.YtError, match="revision mismatch"):
        CHANGES[name](stale, root)
    assert client.list(root) == ["there"]
    fresh = depending(client, prerequisite_revisions=[{"path": there, "revision": int(revision)}])
    CHANGES[name](fresh, root)
    assert client.list(root) != ["there"]


def test_the_first_change_makes_the_revision_stale(client: Any, root: str, there: str) -> None:
    """Source: client, yt/wrapper/tests/test_command_params.py (test_prerequisite_revision)"""
    seen = client.create_revision_parameter(there)
    depending(client, prerequisite_revisions=[seen]).set(there, 2)
    with pytest.raises(yt.YtError):
        depending(client, prerequisite_revisions=[seen]).set(there, 3)
    assert client.get(there) == 2


def test_a_revision_of_nothing_never_holds(client: Any, root: str) -> None:
    """Source: documentation, user-guide/storage/cypress (prerequisites)"""
    condition = {"path": f"{root}/none", "revision": 1}
    with pytest.raises(yt.YtError) as caught:
        depending(client, prerequisite_revisions=[condition]).create("map_node", f"{root}/a")
    assert caught.value.is_prerequisite_check_failed()
    assert client.list(root) == []
