"""The tree of nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import yt.wrapper as yt
from yt.wrapper.driver import make_request
from yt.wrapper.errors import YtResolveError, YtResponseError

from packages.minicluster.tests.conformance.conftest import eventually, over_http, within
from tests.support import codes


def test_a_value_comes_back_as_it_was_set(client: Any, root: str) -> None:
    """Source: documentation, user-guide/storage/yson"""
    value = {"s": "ж", "i": -1, "u": yt.yson.YsonUint64(2**63), "d": 0.5, "b": True, "l": [1, {}]}
    client.create("document", f"{root}/x", attributes={"value": value})
    assert client.get(f"{root}/x") == value
    assert isinstance(client.get(f"{root}/x/u"), yt.yson.YsonUint64)


def test_strings_need_not_be_text(client: Any, root: str) -> None:
    """Source: documentation, user-guide/storage/yson"""
    client.set(f"{root}/x", b"\xff\x00")
    assert yt.yson.get_bytes(client.get(f"{root}/x")) == b"\xff\x00"


def test_the_parents_are_made_when_asked_for(client: Any, root: str) -> None:
    """Source: client, yt/wrapper/cypress_commands.py (create, recursive)"""
    with pytest.raises(YtResolveError):
        client.create("map_node", f"{root}/a/b")
    client.create("map_node", f"{root}/a/b", recursive=True)
    assert client.get(f"{root}/a/@type") == "map_node"


def test_an_existing_node_is_not_made_again(client: Any, root: str) -> None:
    """Source: client, yt/wrapper/cypress_commands.py (create, ignore_existing and force)"""
    made = client.create("map_node", f"{root}/a")
    with pytest.raises(YtResponseError) as caught:
        client.create("map_node", f"{root}/a")
    assert caught.value.contains_code(codes.ALREADY_EXISTS)
    assert client.create("map_node", f"{root}/a", ignore_existing=True) == made
    assert client.create("map_node", f"{root}/a", force=True) != made


def test_ignore_existing_wants_the_same_type(client: Any, root: str) -> None:
    """Source: client, yt/wrapper/cypress_commands.py (create, ignore_type_mismatch)"""
    client.create("map_node", f"{root}/a")
    with pytest.raises(YtResponseError) as caught:
        client.create("file", f"{root}/a", ignore_existing=True)
    assert caught.value.contains_code(codes.ALREADY_EXISTS)


def test_a_list_is_addressed_by_position(client: Any, root: str) -> None:
    """Source: documentation, user-guide/storage/ypath (transition to descendant)"""
    client.set(f"{root}/x", [1, 2, 3])
    assert [client.get(f"{root}/x/{index}") for index in (0, -1)] == [1, 3]


def test_a_list_grows_where_the_path_says(client: Any, root: str) -> None:
    """Source: documentation, user-guide/storage/ypath (insertion position in the list)"""
    client.set(f"{root}/x", [1])
    client.set(f"{root}/x/end", 4)
    client.set(f"{root}/x/begin", 0)
    client.set(f"{root}/x/before:2", 3)
    client.set(f"{root}/x/after:1", 2)
    assert client.get(f"{root}/x") == [0, 1, 2, 3, 4]


def test_a_folder_is_emptied_by_an_asterisk(client: Any, root: str) -> None:
    """Source: documentation, user-guide/storage/ypath (specify all descendants)"""
    for name in "ab":
        client.set(f"{root}/{name}", 1)
    client.remove(f"{root}/*")
    assert client.list(root) == []


def test_names_are_escaped(client: Any, root: str) -> None:
    """Source: documentation, user-guide/storage/ypath (lexis)"""
    client.set(f"{root}/a\\/b\\@\\x41", 1)
    assert client.list(root) == ["a/b@A"]


def test_objects_are_addressed_by_id(client: Any, root: str) -> None:
    """Source: documentation, user-guide/storage/ypath (object root)"""
    made = client.create("map_node", f"{root}/a")
    client.set(f"#{made}/x", 1)
    assert client.get(f"{root}/a/x") == 1
    assert client.get(f"#{made}/@path") == f"{root}/a"


def test_a_folder_is_removed_with_its_contents_only_when_asked(client: Any, root: str) -> None:
    """Source: client, yt/wrapper/cypress_commands.py (remove, recursive)"""
    client.create("map_node", f"{root}/a/b", recursive=True)
    with pytest.raises(YtResponseError):
        client.remove(f"{root}/a")
    assert client.exists(f"{root}/a/b")
    client.remove(f"{root}/a", recursive=True)
    assert not client.exists(f"{root}/a")


def test_a_missing_node_is_removed_only_by_force(client: Any, root: str) -> None:
    """Source: client, yt/wrapper/cypress_commands.py (remove, force)"""
    with pytest.raises(YtResolveError):
        client.remove(f"{root}/a")
    client.remove(f"{root}/a", force=True)


def test_a_copy_is_another_node(client: Any, root: str) -> None:
    """Source: client, yt/wrapper/cypress_commands.py (copy)"""
    client.set(f"{root}/a", {"x": 1})
    client.set(f"{root}/a/@note", "kept")
    client.copy(f"{root}/a", f"{root}/b")
    client.set(f"{root}/b/x", 2)
    assert client.get(f"{root}/a/x") == 1
    assert client.get(f"{root}/b/@note") == "kept"
    assert client.get(f"{root}/a/@id") != client.get(f"{root}/b/@id")


def test_a_move_replaces_only_by_force(client: Any, root: str) -> None:
    """Source: client, yt/wrapper/cypress_commands.py (move, force)"""
    client.set(f"{root}/a", 1)
    client.set(f"{root}/b", 2)
    with pytest.raises(YtResponseError) as caught:
        client.move(f"{root}/a", f"{root}/b")
    assert caught.value.contains_code(codes.ALREADY_EXISTS)
    assert client.get(f"{root}/b") == 2
    client.move(f"{root}/a", f"{root}/b", force=True)
    assert client.get(root) == {"b": 1}


def test_a_link_leads_to_its_target(client: Any, root: str) -> None:
    """Source: documentation, user-guide/storage/links (redirects)"""
    client.set(f"{root}/a", {"x": 1})
    client.link(f"{root}/a", f"{root}/l")
    assert client.get(f"{root}/l/x") == 1
    assert client.get(f"{root}/l/@path") == f"{root}/a"


def test_a_link_itself_is_named_by_an_ampersand(client: Any, root: str) -> None:
    """Source: documentation, user-guide/storage/links (redirects, system attributes)"""
    client.set(f"{root}/a", 1)
    client.link(f"{root}/a", f"{root}/l")
    assert client.get(f"{root}/l&/@type") == "link"
    assert client.get(f"{root}/l&/@target_path") == f"{root}/a"
    assert not client.get(f"{root}/l&/@broken")


def test_removing_a_link_leaves_its_target(client: Any, root: str) -> None:
    """Source: documentation, user-guide/storage/links (redirects)"""
    client.set(f"{root}/a", 1)
    client.link(f"{root}/a", f"{root}/l")
    client.remove(f"{root}/l")
    assert client.get(root) == {"a": 1}


def test_a_link_breaks_when_its_target_goes(client: Any, root: str) -> None:
    """Source: documentation, user-guide/storage/links (general information)"""
    client.set(f"{root}/a", 1)
    client.link(f"{root}/a", f"{root}/l")
    client.remove(f"{root}/a")
    assert client.get(f"{root}/l&/@broken")
    with pytest.raises(YtResolveError):
        client.get(f"{root}/l")


def test_a_batch_is_answered_part_by_part(client: Any, root: str) -> None:
    """Source: documentation, user-guide/storage/batch-requests"""
    batch = client.create_batch_client()
    made, missing = batch.create("map_node", f"{root}/a"), batch.get(f"{root}/none")
    batch.commit_batch()
    assert client.get(f"{root}/a/@id") == made.get_result()
    assert missing.get_error()["code"] == 500


def test_a_removal_is_recursive_unless_told_otherwise(client: Any, root: str) -> None:
    """Source: server test, client/api/cypress_client.h (TRemoveNodeOptions)"""
    client.create("map_node", f"{root}/a/b", recursive=True)
    with pytest.raises(yt.YtError):
        make_request("remove", {"path": f"{root}/a", "recursive": False}, client=client)
    make_request("remove", {"path": f"{root}/a"}, client=client)
    assert client.list(root) == []


def test_a_link_does_not_lead_to_itself(client: Any, root: str) -> None:
    """Source: server test, integration/cypress/test_cypress.py (test_cyclic_link)"""
    client.create("map_node", f"{root}/a/b/c", recursive=True)
    client.link(f"{root}/a/b/c", f"{root}/a/l1")
    client.create("map_node", f"{root}/r")
    client.link(f"{root}/r", f"{root}/r/l2")
    for target, place in (
        ("a/l1", "a/b/c"),
        ("r/l2", "r/l2"),
        ("r/l2/l2/l2", "r/l2"),
        ("new", "new"),
        ("a/l1/d", "a/b/c/d"),
    ):
        with pytest.raises(yt.YtError, match="link is cyclic"):
            client.link(f"{root}/{target}", f"{root}/{place}", force=True)
    assert client.get(f"{root}/a/b/c/@type") == "map_node"
    assert client.get(f"{root}/r/l2/l2/@path") == f"{root}/r"


def test_links_over_missing_ones_do_not_close_a_circle(client: Any, root: str) -> None:
    """Source: server test, integration/cypress/test_sequoia_links.py
    (test_cyclic_link_through_sequoia)"""
    client.link(f"{root}/l2", f"{root}/l1", force=True)
    client.link(f"{root}/l3", f"{root}/l2", force=True)
    with pytest.raises(yt.YtError, match="link is cyclic"):
        client.link(f"{root}/l1", f"{root}/l3", force=True)


def test_a_link_may_lead_to_a_link(client: Any, root: str) -> None:
    """Source: server test, integration/cypress/test_cypress.py (test_non_cyclic_link_to_link)"""
    client.create("map_node", f"{root}/a")
    client.link(f"{root}/a", f"{root}/l1")
    client.link(f"{root}/l1", f"{root}/l2")
    client.link(f"{root}/l1", f"{root}/l2", force=True)
    assert client.get(f"{root}/l2/@path") == f"{root}/a"


def test_a_table_may_be_told_to_stay_on_the_primary_master(client: Any, root: str) -> None:
    """Source: server test, integration/test_users.py (test_create_non_external_table)"""
    client.create("table", f"{root}/t", attributes={"external": False})
    assert not client.get(f"{root}/t/@external")


def test_a_move_keeps_the_time_of_creation(client: Any, root: str) -> None:
    """Source: server test, integration/cypress/test_cypress.py
    (test_move_preserves_creation_time_by_default1)"""
    client.create("map_node", f"{root}/a")
    created = client.get(f"{root}/a/@creation_time")
    client.move(f"{root}/a", f"{root}/b")
    assert client.get(f"{root}/b/@creation_time") == created
    client.move(f"{root}/b", f"{root}/c", preserve_creation_time=False)
    assert client.get(f"{root}/c/@creation_time") != created


KEPT = {
    "acl": [{"action": "allow", "subjects": ["everyone"], "permissions": ["read"]}],
    "expiration_time": "2099-01-01T00:00:00.000000Z",
    "expiration_timeout": 3_600_000,
}


@pytest.mark.parametrize("name", KEPT)
def test_a_copy_keeps_these_only_if_it_is_told_to(client: Any, root: str, name: str) -> None:
    """Source: client, yt/wrapper/cypress_commands.py (copy, preserve_*)"""
    client.create("document", f"{root}/a", attributes={"value": 1, name: KEPT[name]})
    client.copy(f"{root}/a", f"{root}/b")
    client.copy(f"{root}/a", f"{root}/c", **{f"preserve_{name}": True})
    absent: Any = [] if name == "acl" else None
    assert client.get(f"{root}/b/@", attributes=[name]).get(name) == absent
    assert client.get(f"{root}/c/@{name}") is not None
    assert client.get(f"{root}/c/@{name}") != absent


@over_http
def test_an_expired_node_does_not_wait_for_a_snapshot_lock(
    client: Any, root: str, transaction: Callable[..., str]
) -> None:
    """Source: documentation, user-guide/storage/cypress (TTL for Cypress nodes)"""
    path = f"{root}/a"
    client.create("document", path, attributes={"value": 1})
    with within(client, transaction()):
        client.lock(path, mode="snapshot")
    client.set(f"{path}/@expiration_time", "2020-01-01T00:00:00.000000Z")
    eventually(lambda: client.exists(path), False)
