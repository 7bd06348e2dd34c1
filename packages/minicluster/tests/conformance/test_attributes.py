"""Attributes of nodes and tables."""

from __future__ import annotations

from typing import Any

import pytest
from yt import yson
from yt.wrapper.errors import YtResolveError, YtResponseError

from packages.minicluster.tests.conformance.conftest import (
    eventually,
    make_table,
)

KEYED = [
    {"name": "k", "type": "int64", "sort_order": "ascending"},
    {"name": "v", "type": "string"},
]


def test_attributes_of_users_are_addressed_inside(client: Any, root: str) -> None:
    """Source: documentation, user-guide/storage/attributes (how attributes are stored)"""
    client.set(f"{root}/@mine", {"x": 10, "y": ["hello", "world"]})
    assert client.get(f"{root}/@mine/y/1") == "world"
    client.set(f"{root}/@mine/x", 11)
    assert client.get(f"{root}/@mine") == {"x": 11, "y": ["hello", "world"]}


def test_attributes_are_removed(client: Any, root: str) -> None:
    """Source: documentation, user-guide/storage/attributes (examples)"""
    client.set(f"{root}/@mine", 1)
    client.remove(f"{root}/@mine")
    assert not client.exists(f"{root}/@mine")
    with pytest.raises(YtResolveError):
        client.get(f"{root}/@mine")


def test_all_attributes_of_users_are_set_at_once(client: Any, root: str) -> None:
    """Source: documentation, user-guide/storage/ypath (specify all attributes)"""
    client.set(f"{root}/@one", 1)
    client.set(f"{root}/@", {"two": 2})
    assert not client.exists(f"{root}/@one")
    assert client.get(f"{root}/@two") == 2
    assert client.get(f"{root}/@type") == "map_node"


@pytest.mark.parametrize("name", ["id", "type", "path"])
def test_what_the_system_keeps_is_not_set_or_removed(client: Any, root: str, name: str) -> None:
    """Source: documentation, user-guide/storage/attributes (system attributes)"""
    with pytest.raises(YtResponseError):
        client.set(f"{root}/@{name}", "x")
    with pytest.raises(YtResponseError):
        client.remove(f"{root}/@{name}")


def test_a_listing_brings_the_attributes_asked_for(client: Any, root: str) -> None:
    """Source: documentation, user-guide/storage/attributes (general information)"""
    client.create("document", f"{root}/a", attributes={"value": 1, "mine": "x"})
    (item,) = client.list(root, attributes=["type", "mine", "absent"])
    assert dict(item.attributes) == {"type": "document", "mine": "x"}


def test_opaque_attributes_come_only_by_name(client: Any, root: str) -> None:
    """Source: documentation, user-guide/storage/attributes (system attributes)"""
    assert client.get(f"{root}/@")["recursive_resource_usage"] == yson.YsonEntity()
    assert client.get(f"{root}/@recursive_resource_usage")["node_count"] == 1


def test_attributes_asked_for_by_name_come_in_one_answer(client: Any, root: str) -> None:
    """Source: client, yt/wrapper/shuffle.py (get of the path with /@, and attributes)"""
    client.set(f"{root}/@mine", 1)
    names = ["type", "recursive_resource_usage", "mine", "absent"]
    found = client.get(f"{root}/@", attributes=names)
    assert found.keys() == {*names} - {"absent"}
    assert (found["type"], found["mine"]) == ("map_node", 1)
    assert found["recursive_resource_usage"]["node_count"] == 1


def test_a_node_tells_where_it_is(client: Any, root: str) -> None:
    """Source: documentation, user-guide/storage/cypress (Cypress node attributes)"""
    client.create("map_node", f"{root}/a")
    assert client.get(f"{root}/a/@key") == "a"
    assert client.get(f"{root}/a/@path") == f"{root}/a"
    assert client.get(f"{root}/a/@parent_id") == client.get(f"{root}/@id")


def test_revisions_grow(client: Any, root: str) -> None:
    """Source: documentation, user-guide/storage/cypress (time attributes)"""
    client.set(f"{root}/a", 1)
    before = client.get(f"{root}/a/@revision")
    client.set(f"{root}/a", 2)
    between = client.get(f"{root}/a/@revision")
    client.set(f"{root}/a/@mine", 2)
    assert before < between < client.get(f"{root}/a/@revision")


def test_times_are_iso_8601_in_utc(client: Any, root: str) -> None:
    """Source: documentation, user-guide/storage/attributes (examples)"""
    created = client.get(f"{root}/@creation_time")
    assert len(created) == len("2013-12-06T19:00:48.256444Z")
    assert created.endswith("Z")
    assert created <= client.get(f"{root}/@modification_time")


def test_a_sorted_table_describes_itself(client: Any, root: str) -> None:
    """Source: documentation, user-guide/dynamic-tables/overview (attributes)"""
    table = make_table(client, f"{root}/t", KEYED)
    wanted = {"dynamic": True, "sorted": True, "tablet_count": 1, "type": "table"}
    assert {name: client.get(f"{table}/@{name}") for name in wanted} == wanted
    assert client.get(f"{table}/@key_columns") == ["k"]
    eventually(lambda: client.get(f"{table}/@tablet_state"), "mounted")


def test_an_ordered_table_is_not_sorted(client: Any, root: str) -> None:
    """Source: documentation, user-guide/dynamic-tables/sorted-dynamic-tables (creating)"""
    table = make_table(client, f"{root}/t", [{"name": "v", "type": "string"}], tablet_count=3)
    assert not client.get(f"{table}/@sorted")
    assert client.get(f"{table}/@tablet_count") == 3


def test_tablets_of_a_sorted_table_have_pivot_keys(client: Any, root: str) -> None:
    """Source: server test, integration/dynamic_tables/test_ordered_dynamic_tables.py
    (test_mount)"""
    keyed = make_table(client, f"{root}/s", KEYED, pivot_keys=[[], [10]])
    plain = make_table(client, f"{root}/o", KEYED[1:])
    tablets = client.get(f"{keyed}/@tablets")
    assert [tablet["pivot_key"] for tablet in tablets] == [[], [10]]
    assert all(tablet["cell_id"] for tablet in tablets)
    assert "pivot_key" not in client.get(f"{plain}/@tablets")[0]


def test_atomicity_changes_only_while_unmounted(client: Any, root: str) -> None:
    """Source: documentation, user-guide/dynamic-tables/transactions (atomicity)"""
    table = make_table(client, f"{root}/t", KEYED)
    assert client.get(f"{table}/@atomicity") == "full"
    with pytest.raises(YtResponseError):
        client.set(f"{table}/@atomicity", "none")
    client.unmount_table(table, sync=True)
    client.set(f"{table}/@atomicity", "none")
    assert client.get(f"{table}/@atomicity") == "none"


def test_all_attributes_are_narrowed_to_those_asked_for(client: Any, root: str) -> None:
    """Source: client, yt/wrapper/parallel_writer.py (get of the storage attributes)"""
    client.create("table", f"{root}/t", attributes={"mine": 1, "optimize_for": "scan"})
    found = client.get(f"{root}/t/@", attributes=["type", "mine", "optimize_for", "absent"])
    assert found == {"type": "table", "mine": 1, "optimize_for": "scan"}
    assert client.get(f"{root}/t/@", attributes=[]) == {}
