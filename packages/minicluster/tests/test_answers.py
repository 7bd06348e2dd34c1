"""Answers that were wrong without a word: each with what the server gives, and where it says so."""

from __future__ import annotations

from typing import Any

import pytest
import requests
from yt import yson

from minicluster import testing
from minicluster.cluster import Cluster
from minicluster.core import ids
from minicluster.core.errors import YtError
from minicluster.http.registry import COMMANDS
from minicluster.http.unsupported import LACKING
from minicluster.tables.ranges import read_table
from packages.minicluster.tests.support.tables_lab import KEYED, PLAIN, table, write

T = "//tmp/t"
CELL = str(ids.CELL_TAG)


def test_locks_of_a_transaction_come_by_cell(cluster: Cluster) -> None:
    """server/master/transaction_server/transaction_proxy.cpp, FetchMergeableAttribute"""
    tx = cluster.transactions.start()
    lock = cluster.cypress.lock("//tmp", tx=tx)
    assert cluster.cypress.get(f"#{tx}/@lock_ids") == {CELL: [lock["lock_id"]]}
    assert cluster.cypress.get(f"#{tx}/@locked_node_ids") == {CELL: [lock["node_id"]]}


def test_a_lock_shows_in_its_transaction(cluster: Cluster) -> None:
    """integration/tests/master/test_locks.py: @lock_mode"""
    tx = cluster.transactions.start()
    for mode in ("shared", "exclusive"):
        cluster.cypress.lock("//tmp", mode, tx=tx)
        assert cluster.cypress.get("//tmp/@lock_mode", tx=tx) == mode
    assert cluster.cypress.get("//tmp/@lock_mode") == "none"


def test_a_reshard_says_into_what(cluster: Cluster) -> None:
    """client/driver/table_commands.cpp, TReshardTableCommand"""
    table(cluster, T, PLAIN, mount=False)
    with pytest.raises(YtError, match='either "pivot_keys" or "tablet_count"'):
        cluster.tables.reshard(T)


def test_a_copy_overwrites_or_leaves_alone(cluster: Cluster) -> None:
    """server/master/cypress_server/node_proxy_detail.cpp, Copy"""
    cluster.cypress.create("document", T, attributes={"value": 1})
    with pytest.raises(YtError, match='both "ignore_existing" and "force"'):
        cluster.cypress.copy(T, "//tmp/u", ignore_existing=True, force=True)
    assert not cluster.cypress.exists("//tmp/u")


def test_several_attributes_are_set_below_an_at(cluster: Cluster) -> None:
    """server/master/cypress_server/node_proxy_detail.cpp, MultisetAttributes"""
    with pytest.raises(YtError, match='must end with "/@"'):
        cluster.cypress.multiset_attributes("//tmp", {"mine": 1})
    cluster.cypress.multiset_attributes("//tmp/@", {"mine": 1})


def test_attributes_of_a_dynamic_table(cluster: Cluster) -> None:
    """documentation, user-guide/dynamic-tables/tablet-balancing; server test,
    integration/tests/dynamic_tables/test_dynamic_tables.py"""
    table(cluster, T, KEYED)
    get = cluster.cypress.get
    assert get(f"{T}/@tablet_balancer_config/enable_auto_reshard") is True
    cluster.cypress.set(f"{T}/@tablet_balancer_config/enable_auto_reshard", False)
    assert get(f"{T}/@tablet_balancer_config/enable_auto_reshard") is False
    assert get(f"{T}/@tablet_error_count") == 0
    assert get(f"{T}/@effective_acl") == get("//tmp/@acl") + get("//@acl")


@pytest.mark.parametrize("value", [1, {"enable_store_rotation": 7}, {"max_store_size": "big"}])
def test_a_mount_config_is_checked(cluster: Cluster, value: Any) -> None:
    """server/lib/tablet_node/config.h, TCustomTableMountConfig"""
    table(cluster, T, KEYED)
    with pytest.raises(YtError):
        cluster.cypress.set(f"{T}/@mount_config", value)
    cluster.cypress.set(f"{T}/@mount_config", {"enable_store_rotation": False})


def test_get_shows_no_attributes_unless_asked(cluster: Cluster) -> None:
    """server/master/cypress_server/node_proxy_detail.cpp, GetSelf: an empty filter"""
    cluster.cypress.set(T, yson.to_yson_type(3, attributes={"mine": 5}))
    assert cluster.cypress.get(T).attributes == {}
    assert cluster.cypress.get(T, attributes=["type"]).attributes == {"type": "int64_node"}


def test_tables_inherit_the_settings_of_their_folder(cluster: Cluster) -> None:
    """server/master/cypress_server/node_detail.cpp, TInheritedAttributes"""
    cluster.cypress.set("//tmp/@compression_codec", "zstd_3")
    cluster.cypress.create("table", "//tmp/a/b", recursive=True)
    own = {"compression_codec": "none"}
    cluster.cypress.create("table", "//tmp/a/c", attributes=own)
    assert cluster.cypress.get("//tmp/a/b/@compression_codec") == "zstd_3"
    assert cluster.cypress.get("//tmp/a/c/@compression_codec") == "none"


def test_an_ordered_table_has_no_keys_to_read_by(cluster: Cluster) -> None:
    """server/master/table_server/table_node_proxy.cpp, ValidateReadLimit"""
    table(cluster, T, PLAIN)
    write(cluster, T, {"a": 1, "b": "x"})
    with pytest.raises(YtError, match="Key selectors are not supported for unsorted"):
        read_table(cluster.tables, T + "[(1):(2)]")


@pytest.mark.parametrize("name", ["start_query", "reshard_table_automatic"])
def test_what_only_a_cluster_has_is_refused_by_name(running: testing.Running, name: str) -> None:
    """client/driver/driver.cpp, RegisterCommand"""
    assert name in LACKING - COMMANDS.keys()
    request = f"http://{running.http}/api/v4/{name}"
    response = requests.post(request, timeout=10)
    assert response.status_code == 400
    assert f"not supported by minicluster: {name}" in response.text
