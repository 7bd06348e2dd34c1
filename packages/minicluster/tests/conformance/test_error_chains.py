"""Errors with all that is around them: which stage of a request failed, and where."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import yt.wrapper as yt

from packages.minicluster.tests.conformance.conftest import (
    Row,
    errors_of,
    make_table,
    over_http,
    within,
)

KEYED: list[Row] = [
    {"name": "k", "type": "int64", "sort_order": "ascending"},
    {"name": "v", "type": "int64"},
]
PLAIN: list[Row] = [{"name": "v", "type": "int64"}]


def failure(request_of: Callable[[], Any]) -> list[Row]:
    """Return the errors of a request, each inside the one before."""
    with pytest.raises(yt.YtError) as caught:
        request_of()
    return [*errors_of(caught.value)]


def messages(chain: list[Row]) -> list[str]:
    """Return the messages from the first one that the cluster says to every client."""
    found = [str(error["message"]) for error in chain]
    first = next(i for i, text in enumerate(found) if text.startswith(("Error ", "Failed ")))
    return found[first:]


def start(client: Any) -> str:
    return str(client.start_transaction(type="tablet", sticky=True, timeout=60_000))


@over_http
def test_a_row_that_does_not_fit_fails_the_commit(client: Any, root: str) -> None:
    """Source: server source, ytlib/api/native/transaction.cpp (DoCommit, PrepareRows)"""
    table = make_table(client, f"{root}/t", KEYED)
    chain = failure(lambda: client.insert_rows(table, [{"k": 1, "v": "text"}]))
    said = messages(chain)
    assert said[0].startswith("Error committing transaction ")
    assert said[1:] == [
        f"Error preparing rows for table {table}",
        'Error validating column "v"',
        'Invalid type: expected "int64", actual "string"',
    ]
    assert [error["code"] for error in chain[-4:]] == [1, 1, 307, 307]


@over_http
def test_rows_are_not_judged_before_the_commit(client: Any, root: str) -> None:
    """Source: server source, ytlib/api/native/transaction.cpp (ModifyRows, PrepareRequests)"""
    table = make_table(client, f"{root}/t", KEYED)
    tx = start(client)
    with within(client, tx):
        client.insert_rows(table, [{"k": 1, "v": "text"}])
        client.insert_rows(table, [{"k": 2, "v": 2}])
    said = messages(failure(lambda: client.commit_transaction(tx)))
    assert said[0] == f"Error committing transaction {tx}"
    assert said[1] == f"Error preparing rows for table {table}"
    assert list(client.select_rows(f"* from [{table}]")) == []


@over_http
def test_a_column_that_no_schema_names_is_refused_at_once(client: Any, root: str) -> None:
    """Source: server source, client/table_client/table_consumer.cpp (OnKeyedItem)"""
    table = make_table(client, f"{root}/t", KEYED)
    chain = failure(lambda: client.insert_rows(table, [{"k": 1, "none": 1}]))
    assert "Error committing" not in str(chain)


@over_http
def test_an_unmounted_tablet_fails_the_commit(client: Any, root: str) -> None:
    """Source: server source, ytlib/api/native/transaction.cpp (SubmitRows); tablet_helpers.cpp
    (ValidateTabletMounted)"""
    sorted_table = make_table(client, f"{root}/t", KEYED)
    queue = make_table(client, f"{root}/q", PLAIN)
    for table in (sorted_table, queue):
        client.unmount_table(table, sync=True)
    chain = failure(lambda: client.insert_rows(sorted_table, [{"k": 1, "v": 1}]))
    said = messages(chain)
    assert said[1] == f"Error submitting rows for table {sorted_table}"
    assert said[2].endswith(f'of table {sorted_table} is in "unmounted" state')
    assert chain[-1]["code"] == 1702
    said = messages(failure(lambda: client.insert_rows(queue, [{"v": 1}])))
    assert said[1:] == [
        f"Error submitting rows for table {queue}",
        f"Table {queue} has no mounted tablets",
    ]


@over_http
def test_a_conflict_comes_from_a_tablet(client: Any, root: str) -> None:
    """Source: server source, ytlib/api/native/tablet_commit_session.cpp (OnResponse,
    OnSessionsCommitted); observed, FACTS.md s09b"""
    table = make_table(client, f"{root}/t", KEYED)
    tx = start(client)
    with within(client, tx):
        client.insert_rows(table, [{"k": 1, "v": 1}])
    client.insert_rows(table, [{"k": 1, "v": 2}])
    chain = failure(lambda: client.commit_transaction(tx))
    said = messages(chain)
    assert said == [
        f"Error committing transaction {tx}",
        "Failed to commit tablet sessions",
        "Error sending transaction rows",
        "Row lock conflict due to concurrent write",
    ]
    assert [error["code"] for error in chain[-4:]] == [1, 1, 1, 1700]
    sent = chain[-2]["attributes"]
    assert sent["table_id"] == client.get(f"{table}/@id")
    assert sent["tablet_id"] == client.get(f"{table}/@tablets/0/tablet_id")
    cluster = client.get("//sys/@cluster_name")
    assert chain[-4]["attributes"]["cluster_id"] == f"Native(Name={cluster})"


@pytest.mark.parametrize(
    "request_of",
    [
        lambda client, path: list(client.lookup_rows(path, [{"k": 1}])),
        lambda client, path: list(client.select_rows(f"* from [{path}]")),
        lambda client, path: list(client.pull_queue(path, 0, 0)),
        lambda client, path: client.trim_rows(path, 0, 1),
        lambda client, path: client.get_tablet_infos(path, [0]),
    ],
    ids=["lookup", "select", "pull", "trim", "infos"],
)
def test_a_missing_table_has_no_mount_info(
    client: Any, root: str, request_of: Callable[[Any, str], Any]
) -> None:
    """Source: server source, ytlib/tablet_client/native_table_mount_cache.cpp (TGetSession);
    observed, FACTS.md s20, s21"""
    path = f"{root}/none"
    chain = failure(lambda: request_of(client, path))
    said = [str(error["message"]) for error in chain]
    at = said.index(f"Error getting mount info for {path}")
    assert said[at + 1 : at + 4] == [
        f"Error getting attributes of table {path}",
        "Error communicating with master",
        f"Error resolving path {path}/@",
    ]
    assert chain[at + 3]["code"] == 500


def test_a_static_table_has_no_mount_info(client: Any, root: str) -> None:
    """Source: server source, ytlib/tablet_client/native_table_mount_cache.cpp
    (OnTableAttributesReceived)"""
    path = f"{root}/t"
    client.create("table", path)
    for request_of in (
        lambda: list(client.lookup_rows(path, [{"k": 1}])),
        lambda: list(client.select_rows(f"* from [{path}]")),
    ):
        said = [str(error["message"]) for error in failure(request_of)]
        at = said.index(f"Error getting mount info for {path}")
        assert said[at + 1] == f"Table {path} is not dynamic"


@over_http
def test_only_sorted_tables_lose_rows(client: Any, root: str) -> None:
    """Source: server source, ytlib/api/native/transaction.cpp (GuardedPrepareRows)"""
    queue = make_table(client, f"{root}/q", PLAIN)
    chain = failure(lambda: list(client.lookup_rows(queue, [{"v": 1}])))
    assert chain[-1]["message"] == f"Table {queue} is not sorted"


@over_http
def test_a_master_transaction_changes_no_rows(client: Any, root: str) -> None:
    """Source: server source, client/driver/command-inl.h (GetTransaction)"""
    table = make_table(client, f"{root}/t", KEYED)
    message = "Dynamic table commands can not be performed under master transaction"
    with client.Transaction(), pytest.raises(yt.YtError, match=message):
        client.insert_rows(table, [{"k": 1, "v": 1}])


def test_tablets_say_in_which_state_they_are(client: Any, root: str) -> None:
    """Source: server source, server/master/tablet_server/tablet_base.cpp (ValidateMount,
    ValidateFreeze, ValidateUnfreeze, ValidateReshard); table_server/table_node_proxy.cpp (Alter)"""
    table = make_table(client, f"{root}/t", PLAIN)
    tablet = client.get(f"{table}/@tablets/0/tablet_id")
    with pytest.raises(yt.YtError, match=f'Cannot mount tablet {tablet} in "mounted" state'):
        client.mount_table(table, freeze=True)
    message = f"Cannot reshard table since tablet {tablet} is not unmounted"
    with pytest.raises(yt.YtError, match=message):
        client.reshard_table(table, tablet_count=2, sync=False)
    schema = [*PLAIN, {"name": "other", "type": "string"}]
    message = 'Cannot change table schema since not all of its tablets are in "unmounted" state'
    with pytest.raises(yt.YtError, match=message):
        client.alter_table(table, schema=schema)
    client.unmount_table(table, sync=True)
    refused = {"freeze": client.freeze_table, "unfreeze": client.unfreeze_table}
    for action, request_of in refused.items():
        message = f'Cannot {action} tablet {tablet} in "unmounted" state'
        with pytest.raises(yt.YtError, match=message):
            request_of(table)


def test_a_value_of_another_type_is_refused(client: Any, root: str) -> None:
    """Source: server source, core/ytree/ypath_detail.cpp (TNodeSetterBase)"""
    client.set(f"{root}/text", "a")
    message = 'Cannot update "string" node with "int64" value; types must match'
    with pytest.raises(yt.YtError, match=message):
        client.set(f"{root}/text", 5)
    message = 'Cannot update "map" node with "string" value; types must match'
    with pytest.raises(yt.YtError, match=message):
        client.set(root, "a", force=True)


def test_a_builtin_attribute_names_itself(client: Any, root: str) -> None:
    """Source: server source, core/ytree/ypath_detail.cpp (GuardedSetBuiltinAttribute,
    DoSetAttribute)"""
    message = 'Error setting builtin attribute "account"'
    with pytest.raises(yt.YtError, match=message):
        client.set(f"{root}/@account", "ytstream-no-such-account")
    with pytest.raises(yt.YtError, match='Builtin attribute "id" cannot be set') as caught:
        client.set(f"{root}/@id", "1-2-3-4")
    assert "Error setting" not in str(caught.value)
    with pytest.raises(yt.YtError, match='Custom attribute "mine" is not found'):
        client.set(f"{root}/@mine/deep", 1)


def test_nothing_is_copied_into_itself(client: Any, root: str) -> None:
    """Source: server test, integration/cypress/test_cypress.py (test_copy_move_...); server source,
    server/master/cypress_server/node_proxy_detail.cpp"""
    client.create("map_node", f"{root}/a/b", recursive=True)
    for request_of in (client.copy, client.move):
        with pytest.raises(yt.YtError, match="Cannot copy or move a node to its descendant"):
            request_of(f"{root}/a", f"{root}/a/b", force=True)
        with pytest.raises(yt.YtError, match="Cannot copy or move a node to itself"):
            request_of(f"{root}/a", f"{root}/a", force=True)
