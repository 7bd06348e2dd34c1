"""What a proxy remembers of a path, if a test asks for it.

Source: client/tablet_client/table_mount_cache_detail.cpp; config.cpp, TTableMountCacheConfig.
"""

from __future__ import annotations

import pytest

from minicluster.cluster import Cluster
from minicluster.core.errors import YtError
from minicluster.tables.mount_cache import through
from packages.minicluster.tests.support.tables_lab import KEYED, lookup, table, write

OLD, NEW, LINK = "//tmp/old", "//tmp/new", "//tmp/link"


@pytest.fixture
def linked(cluster: Cluster) -> Cluster:
    """A link to one of two tables, each with its name in row 1."""
    for path in (OLD, NEW):
        table(cluster, path, KEYED)
        write(cluster, path, {"k": 1, "v": path, "n": 0})
    cluster.cypress.link(OLD, LINK)
    cluster.tables.mount_cache.set_lifetime(15)
    return cluster


def seen(cluster: Cluster, proxy: str) -> str:
    with through(proxy):
        (row,) = lookup(cluster, LINK, {"k": 1})
    assert row is not None
    return str(row["v"], "utf-8")


def test_proxies_answer_from_the_old_table_and_the_new_one(linked: Cluster) -> None:
    assert seen(linked, "first") == OLD
    linked.cypress.link(NEW, LINK, force=True)
    assert [seen(linked, proxy) for proxy in ("first", "second")] == [OLD, NEW]
    linked.pass_time(16)
    assert [seen(linked, proxy) for proxy in ("first", "second")] == [NEW, NEW]


@pytest.mark.parametrize("away", ["unmounted", "removed"])
def test_a_table_that_is_away_is_forgotten(linked: Cluster, away: str) -> None:
    assert seen(linked, "first") == OLD
    linked.cypress.link(NEW, LINK, force=True)
    if away == "unmounted":
        linked.tables.unmount(OLD)
    else:
        linked.cypress.remove(OLD)
    assert seen(linked, "first") == NEW


def test_rows_go_to_the_old_table_as_well(linked: Cluster) -> None:
    assert seen(linked, "first") == OLD
    linked.cypress.link(NEW, LINK, force=True)
    with through("first"):
        write(linked, LINK, {"k": 2, "v": "late", "n": 0})
    assert len(lookup(linked, OLD, {"k": 2})) == 1
    assert lookup(linked, NEW, {"k": 2}) == []


def test_nothing_is_remembered_by_default(linked: Cluster) -> None:
    linked.tables.mount_cache.set_lifetime(0)
    assert seen(linked, "first") == OLD
    linked.cypress.link(NEW, LINK, force=True)
    assert seen(linked, "first") == NEW


def test_what_is_missing_is_not_remembered(cluster: Cluster) -> None:
    cluster.tables.mount_cache.set_lifetime(15)
    with pytest.raises(YtError, match="Error getting mount info for //tmp/late"):
        cluster.tables.dynamic("//tmp/late")
    table(cluster, "//tmp/late", KEYED)
    assert lookup(cluster, "//tmp/late", {"k": 1}) == []
