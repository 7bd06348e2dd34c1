"""Tablet transactions: isolation, conflicts, limits, life time, the proxy they are bound to."""

from __future__ import annotations

import pytest

from minicluster.cluster import Cluster
from minicluster.core.errors import YtError
from minicluster.rows.from_wire import UPDATE, WRITE
from packages.minicluster.tests.support.tables_lab import (
    KEYED,
    PLAIN,
    delete,
    lookup,
    pull,
    select,
    table,
    write,
)
from tests.support import codes

T, Q = "//tmp/t", "//tmp/q"
PROXY, OTHER = "127.0.0.1:1", "127.0.0.1:2"


@pytest.fixture
def cluster() -> Cluster:
    cluster = Cluster()
    table(cluster, T, KEYED)
    table(cluster, Q, PLAIN)
    return cluster


def test_nothing_is_seen_before_the_commit_and_everything_after(cluster: Cluster) -> None:
    transactions = cluster.tablet_transactions
    tx = transactions.start()
    write(cluster, T, {"k": 1}, tx=tx)
    write(cluster, Q, {"a": 1}, {"a": 2}, tx=tx)
    assert (select(cluster, f"* from [{T}]"), pull(cluster, Q, 0, 0)) == ([], [])
    assert select(cluster, f"* from [{T}]", tx.start_timestamp) == []
    committed = transactions.commit(tx.id)
    assert committed > tx.start_timestamp
    assert len(lookup(cluster, T, {"k": 1})) == 1
    assert [row["a"] for row in pull(cluster, Q, 0, 0)] == [1, 2]


def test_an_aborted_transaction_leaves_nothing(cluster: Cluster) -> None:
    tx = cluster.tablet_transactions.start()
    write(cluster, T, {"k": 1}, tx=tx)
    write(cluster, Q, {"a": 1}, tx=tx)
    cluster.tablet_transactions.abort(tx.id)
    assert (select(cluster, f"* from [{T}]"), pull(cluster, Q, 0, 0)) == ([], [])


def test_a_transaction_reads_what_was_there_when_it_started(cluster: Cluster) -> None:
    write(cluster, T, {"k": 1, "v": "before"})
    tx = cluster.tablet_transactions.start()
    write(cluster, T, {"k": 1, "v": "after"})
    (row,) = lookup(cluster, T, {"k": 1}, timestamp=tx.start_timestamp, columns=["v"])
    assert row == {"v": b"before"}


def test_of_two_writers_of_one_key_the_second_to_commit_fails(cluster: Cluster) -> None:
    transactions = cluster.tablet_transactions
    first, second = transactions.start(), transactions.start()
    write(cluster, T, {"k": 1, "v": "first"}, tx=first)
    write(cluster, T, {"k": 1, "v": "second"}, {"k": 2}, tx=second)
    write(cluster, Q, {"a": 1}, tx=second)
    transactions.commit(first.id)
    with pytest.raises(YtError, match="Row lock conflict due to concurrent write") as caught:
        transactions.commit(second.id)
    assert caught.value.contains(codes.TABLET_LOCK_CONFLICT)
    assert lookup(cluster, T, {"k": 1}, {"k": 2}, columns=["v"]) == [{"v": b"first"}]
    assert pull(cluster, Q, 0, 0) == []
    with pytest.raises(YtError, match="is not found"):
        transactions.commit(second.id)


def test_a_deletion_conflicts_like_a_write(cluster: Cluster) -> None:
    write(cluster, T, {"k": 1})
    tx = cluster.tablet_transactions.start()
    delete(cluster, T, {"k": 1}, tx=tx)
    delete(cluster, T, {"k": 1})
    with pytest.raises(YtError, match="Row lock conflict"):
        cluster.tablet_transactions.commit(tx.id)


def test_writers_of_different_keys_and_of_queues_do_not_conflict(cluster: Cluster) -> None:
    transactions = cluster.tablet_transactions
    started = [transactions.start() for _ in range(3)]
    for index, tx in enumerate(started):
        write(cluster, T, {"k": index}, tx=tx)
        write(cluster, Q, {"a": index}, tx=tx)
    for tx in reversed(started):
        transactions.commit(tx.id)
    assert [row["k"] for row in select(cluster, f"* from [{T}]")] == [0, 1, 2]
    assert [row["a"] for row in pull(cluster, Q, 0, 0)] == [2, 1, 0]


def test_without_atomicity_the_last_writer_wins(cluster: Cluster) -> None:
    table(cluster, "//tmp/loose", KEYED, atomicity="none")
    tx = cluster.tablet_transactions.start(atomicity="none")
    write(cluster, "//tmp/loose", {"k": 1, "v": "late"}, tx=tx)
    early = [{"k": 1, "v": "early"}]
    cluster.tables.modify_items("//tmp/loose", WRITE, early, atomicity="none")
    cluster.tablet_transactions.commit(tx.id)
    assert lookup(cluster, "//tmp/loose", {"k": 1}, columns=["v"]) == [{"v": b"late"}]


def test_table_and_transaction_must_agree_on_atomicity(cluster: Cluster) -> None:
    tx = cluster.tablet_transactions.start(atomicity="none")
    write(cluster, T, {"k": 1}, tx=tx)
    with pytest.raises(YtError, match='Invalid atomicity mode: "none" instead of "full"'):
        cluster.tablet_transactions.commit(tx.id)


def test_updates_of_one_transaction_add_up(cluster: Cluster) -> None:
    write(cluster, T, {"k": 1, "v": "a", "n": 1})
    tx = cluster.tablet_transactions.start()
    write(cluster, T, {"k": 1, "n": 2}, tx=tx, kind=UPDATE)
    write(cluster, T, {"k": 1, "v": "b"}, tx=tx, kind=UPDATE)
    write(cluster, T, {"k": 2, "v": "c", "n": 7}, tx=tx)
    write(cluster, T, {"k": 2, "n": 8}, tx=tx, kind=UPDATE)
    cluster.tablet_transactions.commit(tx.id)
    assert lookup(cluster, T, {"k": 1}, {"k": 2}) == [
        {"k": 1, "v": b"b", "n": 2},
        {"k": 2, "v": b"c", "n": 8},
    ]


def test_a_refused_request_leaves_the_transaction_as_it_was(cluster: Cluster) -> None:
    tx = cluster.tablet_transactions.start()
    write(cluster, T, {"k": 1}, tx=tx)
    write(cluster, Q, {"a": 1}, tx=tx)
    with pytest.raises(YtError):
        write(cluster, T, {"k": 2}, {"k": "x"}, tx=tx)
    with pytest.raises(YtError):
        write(cluster, Q, {"a": 2}, {"a": "x"}, tx=tx)
    cluster.tablet_transactions.commit(tx.id)
    assert [row["k"] for row in select(cluster, f"* from [{T}]")] == [1]
    assert [row["a"] for row in pull(cluster, Q, 0, 0)] == [1]


@pytest.mark.parametrize(("rows", "fits"), [(100_000, True), (100_001, False)])
def test_rows_per_ordered_tablet_are_limited_at_the_commit(
    cluster: Cluster, rows: int, fits: bool
) -> None:
    tx = cluster.tablet_transactions.start()
    names, (row,) = cluster.tables.encode(Q, [{"a": 1, "b": ""}])
    for start in range(0, rows, 50_000):
        count = min(50_000, rows - start)
        cluster.tables.modify(Q, [(0, row)] * count, names, tx=tx)
    if fits:
        cluster.tablet_transactions.commit(tx.id)
    else:
        with pytest.raises(YtError, match="Transaction affects too many rows in tablet") as caught:
            cluster.tablet_transactions.commit(tx.id)
        assert caught.value.contains(codes.TOO_MANY_ROWS)
    (info,) = cluster.tables.tablet_infos(Q, [0])
    assert info["total_row_count"] == (rows if fits else 0)


@pytest.mark.thorough
@pytest.mark.slow
def test_the_limit_is_per_tablet_and_counts_keys_once(cluster: Cluster) -> None:
    cluster.tables.unmount(T)
    cluster.tables.reshard(T, pivot_keys=[[], [60_000]])
    cluster.tables.mount(T)
    tx = cluster.tablet_transactions.start()
    names, encoded = cluster.tables.encode(T, [{"k": k} for k in range(120_000)])
    for _ in range(2):
        cluster.tables.modify(T, [(0, row) for row in encoded], names, tx=tx)
    cluster.tablet_transactions.commit(tx.id)
    assert cluster.cypress.get(f"{T}/@row_count") == 120_000


def test_a_table_unmounted_meanwhile_fails_the_commit(cluster: Cluster) -> None:
    tx = cluster.tablet_transactions.start()
    write(cluster, T, {"k": 1}, tx=tx)
    write(cluster, Q, {"a": 1}, tx=tx)
    cluster.tables.unmount(Q)
    with pytest.raises(YtError, match='is in "unmounted" state') as caught:
        cluster.tablet_transactions.commit(tx.id)
    assert caught.value.contains(codes.TABLET_NOT_MOUNTED)
    assert select(cluster, f"* from [{T}]") == []


def test_a_table_removed_meanwhile_fails_the_commit(cluster: Cluster) -> None:
    tx = cluster.tablet_transactions.start()
    write(cluster, T, {"k": 1}, tx=tx)
    cluster.cypress.remove(T)
    with pytest.raises(YtError):
        cluster.tablet_transactions.commit(tx.id)


def test_a_transaction_is_known_to_its_proxy_only(cluster: Cluster) -> None:
    transactions = cluster.tablet_transactions
    tx = transactions.start(proxy=PROXY)
    assert transactions.get(tx.id, PROXY) is tx
    for action in (transactions.get, transactions.ping, transactions.commit, transactions.abort):
        with pytest.raises(YtError, match=f"transaction {tx.id} is not found") as caught:
            action(tx.id, OTHER)
        assert caught.value.contains(codes.NO_SUCH_TRANSACTION)
    transactions.commit(tx.id, PROXY)


def test_a_proxy_that_goes_down_takes_its_transactions_along(cluster: Cluster) -> None:
    transactions = cluster.tablet_transactions
    lost, kept = transactions.start(proxy=PROXY), transactions.start(proxy=OTHER)
    transactions.drop_proxy(PROXY)
    transactions.ping(kept.id, OTHER)
    with pytest.raises(YtError):
        transactions.ping(lost.id, PROXY)


def test_transactions_expire_by_the_clock_unless_pinged(cluster: Cluster) -> None:
    transactions = cluster.tablet_transactions
    silent, pinged = transactions.start(timeout_ms=5000), transactions.start(timeout_ms=5000)
    write(cluster, T, {"k": 1}, tx=silent)
    cluster.clock.advance(4)
    cluster.tick()
    transactions.ping(pinged.id)
    cluster.clock.advance(4)
    cluster.tick()
    transactions.commit(pinged.id)
    with pytest.raises(YtError) as caught:
        transactions.commit(silent.id)
    assert caught.value.contains(codes.NO_SUCH_TRANSACTION)
    assert select(cluster, f"* from [{T}]") == []


def test_a_given_id_is_used_once(cluster: Cluster) -> None:
    tx = cluster.tablet_transactions.start(id="1-2-10002-3")
    assert tx.id == "1-2-10002-3"
    with pytest.raises(YtError, match="already exists"):
        cluster.tablet_transactions.start(id="1-2-10002-3")


def test_a_table_moved_meanwhile_was_mounted_anew(cluster: Cluster) -> None:
    tx = cluster.tablet_transactions.start()
    write(cluster, T, {"k": 1}, tx=tx)
    cluster.tables.unmount(T)
    cluster.cypress.move(T, "//tmp/moved")
    cluster.tables.mount("//tmp/moved")
    with pytest.raises(YtError, match="Invalid mount revision"):
        cluster.tablet_transactions.commit(tx.id)
    assert select(cluster, "k from [//tmp/moved]") == []


def test_rows_of_one_key_count_once(cluster: Cluster) -> None:
    """They are merged before they are counted (ytlib/api/native/tablet_request_batcher.cpp)."""
    table(cluster, "//tmp/sums", [KEYED[0], {"name": "n", "type": "int64", "aggregate": "sum"}])
    cluster.tablet_transactions.rows_per_tablet = 5
    tx = cluster.tablet_transactions.start()
    for _ in range(3):
        rows = [{"k": k % 5, "n": 1} for k in range(20)]
        cluster.tables.modify_items("//tmp/sums", UPDATE, rows, tx=tx, aggregate=True)
    cluster.tablet_transactions.commit(tx.id)
    assert lookup(cluster, "//tmp/sums", {"k": 4}) == [{"k": 4, "n": 12}]
