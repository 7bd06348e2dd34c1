"""Lock groups, row locks, atomicity and remounts under an open transaction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from minicluster.cluster import Cluster
from minicluster.core.errors import YtError
from minicluster.rows.from_wire import UPDATE
from minicluster.tables.row_locks import EXCLUSIVE, SHARED_STRONG, SHARED_WEAK, from_bits
from minicluster.tables.transactions import Transaction
from packages.minicluster.tests.support.tables_lab import KEYED, PLAIN, lookup, select, table, write

LOCKED = [
    {"name": "k", "type": "int64", "sort_order": "ascending"},
    {"name": "a", "type": "int64", "lock": "a"},
    {"name": "b", "type": "int64", "lock": "b"},
    {"name": "c", "type": "int64"},
]
T = "//tmp/t"


def started(cluster: Cluster) -> Transaction:
    return cluster.tablet_transactions.start()


def commit(cluster: Cluster, tx: Transaction) -> None:
    cluster.tablet_transactions.commit(tx.id)


def code(call: Callable[[], object]) -> int:
    with pytest.raises(YtError) as caught:
        call()
    return caught.value.cause.code


def update(cluster: Cluster, tx: Transaction, **row: Any) -> None:
    write(cluster, T, row, tx=tx, kind=UPDATE)


def lock(cluster: Cluster, tx: Transaction, name: str, type: int) -> None:
    names, keys = cluster.tables.encode(T, [{"k": 1}])
    cluster.tables.lock_rows(T, keys, names, [name], type, tx)


def test_two_lock_groups_of_a_row_are_written_side_by_side(cluster: Cluster) -> None:
    table(cluster, T, LOCKED)
    one, two = started(cluster), started(cluster)
    update(cluster, one, k=1, a=1)
    update(cluster, two, k=1, b=2)
    commit(cluster, one)
    commit(cluster, two)
    assert lookup(cluster, T, {"k": 1}) == [{"k": 1, "a": 1, "b": 2, "c": None}]


@pytest.mark.parametrize("row", [{"a": 2}, {"c": 2}, {"a": 2, "b": 2, "c": 2}])
def test_one_lock_group_conflicts(cluster: Cluster, row: dict[str, int]) -> None:
    """The columns without a lock share the primary one, which all others conflict with."""
    table(cluster, T, LOCKED)
    one, two = started(cluster), started(cluster)
    update(cluster, one, k=1, a=1)
    update(cluster, two, k=1, **row)
    commit(cluster, one)
    assert code(lambda: commit(cluster, two)) == 1700


@pytest.mark.parametrize("type", [SHARED_WEAK, SHARED_STRONG, EXCLUSIVE])
def test_a_locked_row_was_not_written_in_between(cluster: Cluster, type: int) -> None:
    table(cluster, T, LOCKED)
    reader = started(cluster)
    lock(cluster, reader, "a", type)
    write(cluster, T, {"k": 1, "a": 5}, kind=UPDATE)
    assert code(lambda: commit(cluster, reader)) == 1700


@pytest.mark.parametrize(("type", "fails"), [(SHARED_WEAK, 0), (SHARED_STRONG, 1), (EXCLUSIVE, 1)])
def test_a_strong_lock_rules_out_a_write_that_began_before(
    cluster: Cluster, type: int, fails: int
) -> None:
    table(cluster, T, LOCKED)
    writer, reader = started(cluster), started(cluster)
    update(cluster, writer, k=1, a=1)
    lock(cluster, reader, "a", type)
    commit(cluster, reader)
    if fails:
        assert code(lambda: commit(cluster, writer)) == 1700
    else:
        commit(cluster, writer)


def test_shared_locks_get_along(cluster: Cluster) -> None:
    table(cluster, T, LOCKED)
    one, two = started(cluster), started(cluster)
    for tx in (one, two):
        lock(cluster, tx, "a", SHARED_STRONG)
    commit(cluster, one)
    commit(cluster, two)


def test_a_row_of_a_table_without_groups_is_locked_as_a_whole(cluster: Cluster) -> None:
    table(cluster, T, KEYED)
    writer, reader = started(cluster), started(cluster)
    update(cluster, writer, k=1, v="x")
    lock(cluster, reader, "<primary>", SHARED_STRONG)
    commit(cluster, reader)
    assert code(lambda: commit(cluster, writer)) == 1700


def test_an_unknown_lock_is_refused(cluster: Cluster) -> None:
    table(cluster, T, LOCKED)
    with pytest.raises(YtError, match='"no" not found'):
        lock(cluster, started(cluster), "no", EXCLUSIVE)


def test_locks_come_as_bits() -> None:
    """As the native client sends the weak lock of group 2, and the strong one."""
    assert from_bits(4, 0) == {2: SHARED_WEAK}
    assert from_bits(0, 32) == {2: SHARED_STRONG}
    assert from_bits(0, 0) == {}


# Atomicity


@pytest.mark.parametrize(
    ("of_table", "of_write"),
    [("full", "full"), ("none", "none"), ("full", "none"), ("none", "full")],
)
def test_atomicity_has_to_be_that_of_the_table(
    cluster: Cluster, of_table: str, of_write: str
) -> None:
    table(cluster, T, KEYED, atomicity=of_table)
    rows = [{"k": 1, "v": "x", "n": 1}]
    if of_table == of_write:
        cluster.tables.modify_items(T, 0, rows, atomicity=of_write)
        return
    with pytest.raises(YtError, match=f'mode: "{of_write}" instead of "{of_table}"'):
        cluster.tables.modify_items(T, 0, rows, atomicity=of_write)


# Remounts


def remount(cluster: Cluster, **reshard: Any) -> None:
    cluster.tables.unmount(T)
    if reshard:
        cluster.tables.reshard(T, **reshard)
    cluster.tables.mount(T)


@pytest.mark.parametrize("columns", [KEYED, PLAIN])
@pytest.mark.parametrize("reshard", [{}, {"tablet_count": 2}])
def test_a_remount_ends_the_transactions_that_wrote_before(
    cluster: Cluster, columns: list[dict[str, Any]], reshard: dict[str, Any]
) -> None:
    table(cluster, T, columns)
    row = {column["name"]: "x" if column["type"] == "string" else 1 for column in columns}
    tx = started(cluster)
    write(cluster, T, row, tx=tx)
    remount(cluster, **reshard)
    assert code(lambda: commit(cluster, tx)) == (1701 if reshard else 1704)
    assert select(cluster, f"* from [{T}]") == []


def test_a_write_after_the_remount_is_committed(cluster: Cluster) -> None:
    table(cluster, T, PLAIN)
    tx = started(cluster)
    remount(cluster, tablet_count=2)
    write(cluster, T, {"a": 1, "b": "x"}, tx=tx)
    commit(cluster, tx)
    assert len(select(cluster, f"a from [{T}]")) == 1


def test_other_tablets_may_be_mounted_anew(cluster: Cluster) -> None:
    table(cluster, T, KEYED, pivot_keys=[[], [10]])
    tx = started(cluster)
    write(cluster, T, {"k": 1, "v": "x", "n": 1}, tx=tx)
    cluster.tables.unmount(T, 1, 1)
    cluster.tables.mount(T, 1, 1)
    commit(cluster, tx)


def test_freezing_keeps_the_mount(cluster: Cluster) -> None:
    table(cluster, T, PLAIN)
    tx = started(cluster)
    write(cluster, T, {"a": 1, "b": "x"}, tx=tx)
    cluster.tables.freeze(T)
    cluster.tables.unfreeze(T)
    commit(cluster, tx)
