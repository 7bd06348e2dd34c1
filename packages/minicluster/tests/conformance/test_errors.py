"""Errors as clients match them: by code and by class."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import pytest
import yt.wrapper as yt
from yt.wrapper.errors import (
    YtCypressTransactionLockConflict,
    YtNoSuchTransaction,
    YtResolveError,
    YtResponseError,
)

from packages.minicluster.tests.conformance.conftest import (
    Row,
    eventually,
    make_table,
    over_http,
    within,
)
from tests.support import codes

PLAIN: list[Row] = [{"name": "a", "type": "int64"}]


@pytest.mark.parametrize(
    "request_of",
    [
        lambda client, path: client.get(path),
        lambda client, path: client.list(path),
        lambda client, path: client.get(f"{path}/@type"),
        lambda client, path: client.copy(path, f"{path}-copy"),
        lambda client, path: client.mount_table(path),
        lambda client, path: client.insert_rows(path, [{"a": 1}]),
        lambda client, path: client.read_file(path).read(),
    ],
    ids=["get", "list", "attribute", "copy", "mount", "insert", "read"],
)
def test_what_is_missing_is_not_resolved(
    client: Any, root: str, request_of: Callable[[Any, str], Any]
) -> None:
    """Source: client, yt/wrapper/errors.py (YtResolveError, code 500)"""
    with pytest.raises(yt.YtError) as caught:
        request_of(client, f"{root}/none")
    assert caught.value.contains_code(codes.RESOLVE)


def test_the_message_names_the_path(client: Any, root: str) -> None:
    """Source: client, yt/wrapper/errors.py (is_resolve_error); the Java client of SPYT looks for
    this beginning"""
    with pytest.raises(YtResolveError) as caught:
        client.get(f"{root}/none")
    assert caught.value.is_resolve_error()
    assert f"Error resolving path {root}/none" in str(caught.value)


def test_existing_tells_without_an_error(client: Any, root: str) -> None:
    """Source: client, yt/wrapper/cypress_commands.py (exists)"""
    assert client.exists(root)
    assert not client.exists(f"{root}/none")
    assert not client.exists(f"{root}/none/deep")
    assert not client.exists(f"{root}/@none")


def test_a_lock_conflict_names_its_winner(client: Any, other: Any, root: str) -> None:
    """Source: client, yt/wrapper/errors.py (YtCypressTransactionLockConflict, code 402)"""
    with client.Transaction() as winner:
        client.lock(root)
        with pytest.raises(YtCypressTransactionLockConflict) as caught:
            other.set(f"{root}/@mine", 1)
    assert caught.value.is_concurrent_transaction_lock_conflict()
    assert winner.transaction_id in str(caught.value)


def test_an_unknown_transaction(client: Any, root: str) -> None:
    """Source: client, yt/wrapper/errors.py (YtNoSuchTransaction, code 11000)"""
    tx = client.start_transaction()
    client.abort_transaction(tx)
    with pytest.raises(YtNoSuchTransaction), within(client, tx):
        client.get(root)


@pytest.mark.parametrize("path", ["nonsense", "", "/tmp", "//tmp//x", "//tmp/"])
def test_what_is_no_path_is_refused(client: Any, path: str) -> None:
    """Source: documentation, user-guide/storage/ypath (syntax and semantics)"""
    client.config["prefix"] = None
    with pytest.raises(yt.YtError):
        client.get(path)


def test_an_unknown_type_is_refused(client: Any, root: str) -> None:
    """Source: server test, integration/cypress/test_cypress_locks.py (enums: "Error parsing")"""
    with pytest.raises(YtResponseError):
        client.create("nonsense", f"{root}/a")
    assert client.list(root) == []


def test_tables_commands_want_tables(client: Any, root: str) -> None:
    """Source: documentation, user-guide/dynamic-tables/overview"""
    with pytest.raises(yt.YtError):
        client.mount_table(root)
    client.write_table(f"{root}/static", [{"a": 1}])
    with pytest.raises(yt.YtError):
        client.insert_rows(f"{root}/static", [{"a": 1}])
    with pytest.raises(yt.YtError):
        client.mount_table(f"{root}/static")


def test_dynamic_tables_are_not_written_as_static_ones(client: Any, root: str) -> None:
    """Source: documentation, user-guide/dynamic-tables/mapreduce"""
    table = make_table(client, f"{root}/t", PLAIN)
    with pytest.raises(yt.YtError):
        client.write_table(table, [{"a": 1}])
    assert list(client.select_rows(f"* from [{table}]")) == []


def test_a_failed_request_leaves_nothing_behind(client: Any, root: str) -> None:
    """Source: documentation, user-guide/storage/transactions (atomicity)"""
    with pytest.raises(YtResponseError):
        client.create("map_node", f"{root}/a/b/c", recursive=True, attributes={"id": "mine"})
    assert client.list(root) == []


@over_http
def test_whoever_asks_may_write_to_the_own_folder(client: Any, root: str) -> None:
    """Source: documentation, user-guide/storage/access-control (check_permission)"""
    user = client.get_user_name()
    for permission in ("read", "write", "remove"):
        assert client.check_permission(user, permission, root)["action"] == "allow"


def test_unknown_users_have_no_permissions(client: Any, root: str) -> None:
    """Source: documentation, user-guide/storage/access-control (check_permission)"""
    with pytest.raises(YtResponseError):
        client.check_permission("ytstream-nobody", "read", root)


def test_nobody_may_what_no_list_allows(client: Any, root: str) -> None:
    """Source: documentation, user-guide/storage/access-control (permission verification)"""
    client.set(f"{root}/@inherit_acl", False)
    assert client.check_permission("guest", "write", root)["action"] == "deny"
    client.set(
        f"{root}/@acl", [{"action": "allow", "subjects": ["guest"], "permissions": ["read"]}]
    )
    assert client.check_permission("guest", "read", root)["action"] == "allow"
    assert client.check_permission("guest", "write", root)["action"] == "deny"


def test_members_of_a_group_may_what_it_may(client: Any, root: str) -> None:
    """Source: server test, integration/test_users.py (test_membership2)"""
    group = f"ytstream-conformance-{uuid.uuid4().hex}"
    try:
        client.create("group", attributes={"name": group})
    except YtResponseError as error:
        if not error.is_access_denied():
            raise
        pytest.skip("only an administrator makes groups")
    try:
        client.set(
            f"{root}/@acl", [{"action": "allow", "subjects": [group], "permissions": ["write"]}]
        )
        assert client.check_permission("guest", "write", root)["action"] == "deny"
        client.add_member("guest", group)
        assert client.get(f"//sys/groups/{group}/@members") == ["guest"]
        assert group in client.get("//sys/users/guest/@member_of")
        with pytest.raises(YtResponseError) as caught:
            client.add_member("guest", group)
        assert caught.value.is_already_present_in_group()
        eventually(lambda: client.check_permission("guest", "write", root)["action"], "allow")
        client.remove_member("guest", group)
        assert client.get(f"//sys/groups/{group}/@members") == []
        with pytest.raises(YtResponseError):
            client.remove_member("guest", group)
    finally:
        client.remove(f"//sys/groups/{group}")
