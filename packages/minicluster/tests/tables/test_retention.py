"""Retention: ordered tables lose their old rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from yt import yson

from minicluster import persist, testing
from minicluster.cluster import Cluster
from minicluster.core.errors import YtError
from packages.minicluster.tests.conftest import connect
from packages.minicluster.tests.support.tables_lab import KEYED, PLAIN, lookup, select, table, write

T = "//tmp/t"
MINUTE = 60_000


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def make(cluster: Cluster, path: str = T, **attributes: Any) -> None:
    table(cluster, path, PLAIN, **{"min_data_versions": 0} | attributes)


def fill(cluster: Cluster, *commits: int, path: str = T) -> None:
    """So many rows with each commit."""
    for rows in commits:
        write(cluster, path, *({"a": n} for n in range(rows)))


def trimmed(cluster: Cluster, path: str = T) -> int:
    (info,) = cluster.tables.tablet_infos(path, [0])
    assert info["trimmed_row_count"] == cluster.cypress.get(f"{path}/@tablets/0/trimmed_row_count")
    return int(info["trimmed_row_count"])


def after(cluster: Cluster, minutes: float, path: str = T) -> int:
    """How many rows are gone then; a second more, because timestamps hold whole ones."""
    cluster.pass_time(60 * minutes + 1)
    return trimmed(cluster, path)


def test_rows_older_than_max_data_ttl_go(cluster: Cluster) -> None:
    make(cluster, min_data_ttl=0, max_data_ttl=60 * MINUTE)
    fill(cluster, 3)
    assert after(cluster, 40) == 0
    fill(cluster, 2)
    assert after(cluster, 19) == 0
    assert after(cluster, 1) == 3
    assert [row["$row_index"] for row in select(cluster, f"* from [{T}]")] == [3, 4]
    assert after(cluster, 40) == 5
    fill(cluster, 1)
    assert [row["$row_index"] for row in select(cluster, f"* from [{T}]")] == [5]


def test_by_default_nothing_goes(cluster: Cluster) -> None:
    table(cluster, T, PLAIN, min_data_ttl=0, max_data_ttl=0)
    table(cluster, "//tmp/plain", PLAIN)
    for path in (T, "//tmp/plain"):
        fill(cluster, 3, path=path)
    assert (after(cluster, 1e6), trimmed(cluster, "//tmp/plain")) == (0, 0)
    assert not cluster.cypress.exists("//tmp/plain/@max_data_ttl")


@pytest.mark.parametrize(
    ("settings", "kept", "gone"),
    [
        ({}, 29, 30),
        ({"max_data_ttl": 0}, 29, 30),
        ({"min_data_ttl": 0}, 29, 30),
        ({"min_data_ttl": 0, "max_data_ttl": 5 * MINUTE}, 4, 5),
        ({"min_data_ttl": 90 * MINUTE, "max_data_ttl": 5 * MINUTE}, 89, 90),
        ({"min_data_ttl": 0, "max_data_versions": 0}, 0, 0),
        ({"min_data_ttl": 5 * MINUTE, "max_data_versions": 0}, 4, 5),
    ],
)
def test_which_time_counts(
    cluster: Cluster, settings: dict[str, Any], kept: float, gone: float
) -> None:
    """Both have to be over, 30 minutes each unless set; without versions only the minimum."""
    table(cluster, T, PLAIN, **{"min_data_versions": 0, **settings})
    fill(cluster, 3)
    if kept:
        assert after(cluster, kept) == 0
    assert after(cluster, gone - kept) == 3


def test_a_number_of_rows_is_kept_and_no_commit_is_cut(cluster: Cluster) -> None:
    make(cluster, min_data_ttl=0, max_data_ttl=0, row_count_to_keep=2)
    fill(cluster, 2, 1, 1, 1)
    assert after(cluster, 0) == 3
    fill(cluster, 5)
    assert after(cluster, 0) == 5
    assert after(cluster, 1e6) == 5


def test_only_mounted_tablets_are_trimmed(cluster: Cluster) -> None:
    make(cluster)
    fill(cluster, 3)
    cluster.tables.freeze(T)
    assert after(cluster, 60) == 0
    cluster.tables.unfreeze(T)
    assert after(cluster, 0) == 3


def test_settings_of_a_table_with_rows_count_at_once(cluster: Cluster) -> None:
    make(cluster, max_data_ttl=1_000 * MINUTE)
    fill(cluster, 3)
    assert after(cluster, 60) == 0
    cluster.cypress.set(f"{T}/@max_data_ttl", 0)
    cluster.pass_time(0)
    assert trimmed(cluster) == 3


def test_rows_go_as_time_goes_by(cluster: Cluster) -> None:
    """Not only when the clock is moved: a look is due every second."""
    make(cluster, min_data_ttl=0, max_data_ttl=0)
    cluster.tick()
    fill(cluster, 3)
    cluster.clock.advance(1)
    cluster.tick()
    assert trimmed(cluster) == 3


def test_a_loaded_state_whose_clock_is_behind_is_trimmed_too(
    cluster: Cluster, tmp_path: Path
) -> None:
    make(cluster, min_data_ttl=0, max_data_ttl=0)
    fill(cluster, 3)
    persist.save(cluster, str(tmp_path / "state"))
    cluster.pass_time(1e6)
    persist.load(cluster, str(tmp_path / "state"))
    assert trimmed(cluster) == 0
    cluster.clock.advance(1)
    cluster.tick()
    assert trimmed(cluster) == 3


def test_a_sorted_table_takes_the_settings_and_keeps_its_rows(cluster: Cluster) -> None:
    table(cluster, T, KEYED, min_data_versions=1, max_data_ttl=MINUTE, min_data_ttl=0)
    write(cluster, T, {"k": 1, "v": "a"})
    cluster.pass_time(1e6)
    assert lookup(cluster, T, {"k": 1}, columns=["v"]) == [{"v": b"a"}]
    assert cluster.cypress.get(f"{T}/@max_data_ttl") == MINUTE


@pytest.mark.parametrize("wrong", [-1, 1.5, True, yson.YsonBoolean(True), {}, None, "1d"])
def test_what_is_no_number_is_refused(cluster: Cluster, wrong: Any) -> None:
    make(cluster, max_data_ttl=MINUTE)
    with pytest.raises(YtError, match="max_data_ttl"):
        cluster.cypress.set(f"{T}/@max_data_ttl", wrong)
    assert cluster.cypress.get(f"{T}/@max_data_ttl") == MINUTE


def test_over_http_the_clock_moves_and_the_rows_are_gone(fresh: testing.Running) -> None:
    client = connect(fresh)
    attributes = {"dynamic": True, "min_data_versions": 0, "max_data_ttl": 60 * MINUTE}
    client.create("table", T, attributes={"schema": PLAIN, **attributes})
    client.mount_table(T, sync=True)
    client.insert_rows(T, [{"a": 1}, {"a": 2}])
    fresh.client.clock.advance(3601)
    client.insert_rows(T, [{"a": 3}])
    assert client.get_tablet_infos(T, [0])["tablets"][0]["trimmed_row_count"] == 2
    assert [row["a"] for row in client.pull_queue(T, 0, 0)] == [3]
