"""Queues, consumers and producers: positions, registrations, trimming, reports."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from yt import yson

from minicluster import persist
from minicluster.cluster import Cluster
from minicluster.core.errors import YtError
from minicluster.queues import registrations
from packages.minicluster.tests.support.tables_lab import PLAIN, delete, pull, select, table, write
from tests.support import codes

Q, C, P = "//tmp/queue", "//tmp/consumer", "//tmp/producer"


@pytest.fixture
def cluster() -> Cluster:
    """A queue of two partitions with ten rows in the first, and a registered vital consumer."""
    cluster = Cluster()
    table(cluster, Q, PLAIN, tablet_count=2)
    write(cluster, Q, *({"a": i, "$tablet_index": 0} for i in range(10)))
    cluster.cypress.create("queue_consumer", C)
    cluster.tables.mount(C)
    cluster.queues.register(Q, C, True)
    return cluster


def consumed(cluster: Cluster, offset: int | None = None, partition: int = 0) -> list[int]:
    found = cluster.queues.pull_consumer(C, Q, partition, offset).to_dicts()
    return [row["a"] for row in found if row is not None]


# Pulling


def test_rows_carry_their_position(cluster: Cluster) -> None:
    rowset = cluster.queues.pull(Q, 0, 3, 2)
    assert [(column.name, column.wire_type) for column in rowset.columns] == [
        ("a", 3),
        ("b", 16),
        ("$tablet_index", 3),
        ("$row_index", 3),
    ]
    assert rowset.to_dicts() == [
        {"a": 3, "b": None, "$tablet_index": 0, "$row_index": 3},
        {"a": 4, "b": None, "$tablet_index": 0, "$row_index": 4},
    ]


def test_a_pull_beyond_the_end_is_empty(cluster: Cluster) -> None:
    assert pull(cluster, Q, 0, 10) == []
    assert pull(cluster, Q, 1, 0) == []
    assert pull(cluster, Q, 0, 99) == []


def test_a_pull_below_the_trimmed_rows_gives_the_first_there_are(cluster: Cluster) -> None:
    cluster.tables.trim(Q, 0, 6)
    assert [row["$row_index"] for row in pull(cluster, Q, 0, 2, max_rows=2)] == [6, 7]


def test_the_weight_limit_gives_fewer_rows_but_at_least_one(cluster: Cluster) -> None:
    assert len(pull(cluster, Q, 0, 0, max_data_weight=1)) == 1
    some = len(pull(cluster, Q, 0, 0, max_data_weight=40))
    assert 1 < some < 10
    assert len(pull(cluster, Q, 0, 0, max_data_weight=1 << 40)) == 10


@pytest.mark.parametrize(("partition", "offset"), [(2, 0), (-1, 0), (0, -1)])
def test_impossible_positions_are_refused(cluster: Cluster, partition: int, offset: int) -> None:
    with pytest.raises(YtError, match="Invalid"):
        cluster.queues.pull(Q, partition, offset)


def test_only_ordered_tables_are_queues(cluster: Cluster) -> None:
    with pytest.raises(YtError, match="is not ordered"):
        cluster.queues.pull(C, 0, 0)


# Consumers


def test_a_consumer_reads_from_where_it_stands(cluster: Cluster) -> None:
    assert consumed(cluster) == list(range(10))
    cluster.queues.advance(C, Q, 0, None, 7)
    assert consumed(cluster) == [7, 8, 9]
    assert consumed(cluster, offset=5) == [5, 6, 7, 8, 9]
    assert consumed(cluster, partition=1) == []


def test_the_consumer_table_holds_next_rows_by_canonical_path(cluster: Cluster) -> None:
    cluster.cypress.link(Q, "//tmp/link")
    cluster.queues.advance(C, "//tmp/link", 0, None, 4)
    assert select(cluster, f"* from [{C}]") == [
        {
            "queue_cluster": cluster.name.encode(),
            "queue_path": Q.encode(),
            "partition_index": 0,
            "offset": 4,
            "meta": {},
        }
    ]


def test_an_advance_checks_the_old_offset_if_there_is_one(cluster: Cluster) -> None:
    cluster.queues.advance(C, Q, 0, 0, 4)
    cluster.queues.advance(C, Q, 0, 4, 6)
    with pytest.raises(
        YtError, match=r"Offset conflict at partition 0 .*: expected offset 4, found offset 6"
    ) as caught:
        cluster.queues.advance(C, Q, 0, 4, 8)
    assert caught.value.contains(codes.OFFSET_CONFLICT)
    assert consumed(cluster)[0] == 6
    cluster.queues.advance(C, Q, 0, None, 2)
    assert consumed(cluster)[0] == 2
    with pytest.raises(YtError, match="offset -1 cannot be negative"):
        cluster.queues.advance(C, Q, 0, None, -1)


def test_an_advance_in_a_transaction_is_seen_at_its_commit(cluster: Cluster) -> None:
    tx = cluster.tablet_transactions.start()
    cluster.queues.advance(C, Q, 0, 0, 5, tx=tx)
    assert consumed(cluster)[0] == 0
    cluster.tablet_transactions.commit(tx.id)
    assert consumed(cluster)[0] == 5


def test_two_transactions_that_advance_one_partition_conflict(cluster: Cluster) -> None:
    transactions = cluster.tablet_transactions
    first, second = transactions.start(), transactions.start()
    cluster.queues.advance(C, Q, 0, None, 5, tx=first)
    cluster.queues.advance(C, Q, 0, None, 6, tx=second)
    cluster.queues.advance(C, Q, 1, None, 1, tx=second)
    transactions.commit(first.id)
    with pytest.raises(YtError) as caught:
        transactions.commit(second.id)
    assert caught.value.contains(codes.TABLET_LOCK_CONFLICT)
    assert consumed(cluster)[0] == 5


def test_an_advance_compares_with_what_its_transaction_sees(cluster: Cluster) -> None:
    tx = cluster.tablet_transactions.start()
    cluster.queues.advance(C, Q, 0, None, 5)
    cluster.queues.advance(C, Q, 0, 0, 3, tx=tx)
    with pytest.raises(YtError) as caught:
        cluster.tablet_transactions.commit(tx.id)
    assert caught.value.contains(codes.TABLET_LOCK_CONFLICT)


def test_a_consumer_that_is_not_registered_is_refused(cluster: Cluster) -> None:
    cluster.queues.unregister(Q, C)
    with pytest.raises(YtError, match=f"Consumer .*{C} is not registered for queue .*{Q}") as e:
        cluster.queues.pull_consumer(C, Q, 0, 0)
    assert e.value.contains(codes.AUTHORIZATION)
    with pytest.raises(YtError, match="Partition index -1 cannot be negative"):
        cluster.queues.advance(C, Q, -1, None, 1)


def test_an_unmounted_consumer_is_refused(cluster: Cluster) -> None:
    cluster.tables.unmount(C)
    for action in (
        lambda: cluster.queues.pull_consumer(C, Q, 0, None),
        lambda: cluster.queues.advance(C, Q, 0, None, 1),
        lambda: cluster.queues.advance(C, Q, 0, 0, 1),
    ):
        with pytest.raises(YtError) as caught:
            action()
        assert caught.value.contains(codes.TABLET_NOT_MOUNTED)


def test_any_table_with_the_right_columns_is_a_consumer(cluster: Cluster) -> None:
    key = {"required": True, "sort_order": "ascending"}
    table(
        cluster,
        "//tmp/own",
        [
            {"name": "queue_cluster", "type": "string", **key},
            {"name": "queue_path", "type": "string", **key},
            {"name": "partition_index", "type": "uint64", **key},
            {"name": "offset", "type": "uint64", "required": True},
        ],
        treat_as_queue_consumer=True,
    )
    cluster.queues.register(Q, "//tmp/own", False)
    cluster.queues.advance("//tmp/own", Q, 0, 0, 3)
    found = cluster.queues.pull_consumer("//tmp/own", Q, 0, None, 1).to_dicts()
    assert found[0] is not None
    assert found[0]["a"] == 3


def test_what_is_no_consumer_is_registered_and_reported(cluster: Cluster) -> None:
    cluster.queues.register(Q, Q, True)
    cluster.queues.register(C, C, True)
    assert len(cluster.cypress.get(f"{Q}/@queue_status")["registrations"]) == 2
    queues = cluster.cypress.get(f"{C}/@queue_consumer_status")["queues"]
    assert queues[f"{cluster.name}:{Q}"]["partition_count"] == 2
    assert "error" in queues[f"{cluster.name}:{C}"]
    assert "error" in cluster.cypress.get(f"{C}/@queue_consumer_partitions")[f"{cluster.name}:{C}"]
    with pytest.raises(YtError, match="must have unique keys"):
        cluster.queues.pull_consumer(Q, Q, 0, 0)
    with pytest.raises(YtError, match='expected "table"'):
        cluster.queues.register("//tmp", C, True)


def test_registrations_are_listed_by_queue_and_consumer(cluster: Cluster) -> None:
    table(cluster, "//tmp/queue2", PLAIN)
    cluster.queues.register("//tmp/queue2", C, False, [0])
    both = cluster.queues.list_registrations(consumer=C)
    assert [(str(r["queue_path"]), r["vital"], r["partitions"]) for r in both] == [
        (Q, True, None),
        ("//tmp/queue2", False, [0]),
    ]
    assert both[0]["queue_path"].attributes == {"cluster": cluster.name}
    cluster.queues.register(Q, C, False)
    assert [r["vital"] for r in cluster.queues.list_registrations(Q, C)] == [False]
    cluster.queues.unregister("//tmp/queue2", C)
    assert len(cluster.queues.list_registrations()) == 1


# Trimming by vital consumers


def lower(cluster: Cluster) -> int:
    cluster.tick()
    return int(cluster.cypress.get(f"{Q}/@queue_partitions/0/lower_row_index"))


def trimming(cluster: Cluster, **config: Any) -> None:
    cluster.cypress.set(f"{Q}/@auto_trim_config", {"enable": True, **config})


def test_vital_consumers_let_go_of_rows(cluster: Cluster) -> None:
    cluster.queues.advance(C, Q, 0, None, 4)
    assert lower(cluster) == 0
    trimming(cluster)
    assert lower(cluster) == 4
    cluster.queues.advance(C, Q, 0, None, 9)
    assert lower(cluster) == 9
    cluster.queues.advance(C, Q, 0, None, 1)
    assert lower(cluster) == 9


def test_the_slowest_vital_consumer_holds_rows_back(cluster: Cluster) -> None:
    trimming(cluster)
    for name, vital in (("slow", True), ("idle", False)):
        cluster.cypress.create("queue_consumer", f"//tmp/{name}")
        cluster.tables.mount(f"//tmp/{name}")
        cluster.queues.register(Q, f"//tmp/{name}", vital)
    cluster.queues.advance(C, Q, 0, None, 8)
    assert lower(cluster) == 0
    cluster.queues.advance("//tmp/slow", Q, 0, None, 3)
    assert lower(cluster) == 3
    cluster.queues.unregister(Q, "//tmp/slow")
    assert lower(cluster) == 8


def test_without_a_vital_consumer_nothing_is_trimmed(cluster: Cluster) -> None:
    trimming(cluster)
    cluster.queues.register(Q, C, False)
    cluster.queues.advance(C, Q, 0, None, 8)
    assert lower(cluster) == 0


def test_a_number_of_rows_can_be_retained(cluster: Cluster) -> None:
    trimming(cluster, retained_rows=7)
    cluster.queues.advance(C, Q, 0, None, 8)
    assert lower(cluster) == 3


def test_young_rows_can_be_retained(cluster: Cluster) -> None:
    trimming(cluster, retained_lifetime_duration=60_000)
    cluster.clock.advance(120)
    write(cluster, Q, {"a": 10, "$tablet_index": 0})
    cluster.queues.advance(C, Q, 0, None, 11)
    assert lower(cluster) == 10
    cluster.clock.advance(120)
    cluster.queues.advance(C, Q, 0, None, 11)
    assert lower(cluster) == 11


# What the queue agent reports


def test_partitions_of_a_queue(cluster: Cluster) -> None:
    cluster.tables.trim(Q, 0, 4)
    first, second = cluster.cypress.get(f"{Q}/@queue_partitions")
    bounds = ("lower_row_index", "upper_row_index", "available_row_count")
    assert [first[name] for name in bounds] == [4, 10, 6]
    assert [second[name] for name in bounds] == [0, 0, 0]
    assert first["last_row_commit_time"].endswith("Z")
    cluster.tables.unmount(Q, 1, 1)
    first, second = cluster.cypress.get(f"{Q}/@queue_partitions")
    assert first["upper_row_index"] == 10
    assert second["error"]["code"] == 1


def test_partitions_of_a_consumer(cluster: Cluster) -> None:
    cluster.queues.advance(C, Q, 0, None, 4)
    name = f"{cluster.name}:{Q}"
    report = cluster.cypress.get(f"{C}/@queue_consumer_partitions")
    first, second = report[name]
    assert (first["next_row_index"], first["unread_row_count"]) == (4, 6)
    assert (first["disposition"], second["disposition"]) == ("pending_consumption", "up_to_date")
    cluster.tables.trim(Q, 0, 5)
    report = cluster.cypress.get(f"{C}/@queue_consumer_partitions")
    assert report[name][0]["disposition"] == "expired"
    cluster.queues.advance(C, Q, 0, None, 11)
    report = cluster.cypress.get(f"{C}/@queue_consumer_partitions")
    assert report[name][0]["disposition"] == "ahead"


def test_status_of_queue_and_consumer(cluster: Cluster) -> None:
    queue = cluster.cypress.get(f"{Q}/@queue_status")
    assert queue["partition_count"] == 2
    assert queue["registrations"][0]["vital"] is True
    consumer = cluster.cypress.get(f"{C}/@queue_consumer_status")
    assert consumer["queues"][f"{cluster.name}:{Q}"]["partition_count"] == 2


def test_a_slow_agent_reports_what_it_saw_last(cluster: Cluster) -> None:
    cluster.queues.agent.delay = 30
    with pytest.raises(YtError, match="is not mapped to any queue agent"):
        cluster.cypress.get(f"{Q}/@queue_partitions")
    cluster.tick()
    write(cluster, Q, {"a": 10, "$tablet_index": 0})
    cluster.tick()
    assert cluster.cypress.get(f"{Q}/@queue_partitions/0/upper_row_index") == 10
    (info,) = cluster.tables.tablet_infos(Q, [0])
    assert info["total_row_count"] == 11
    cluster.clock.advance(31)
    cluster.tick()
    assert cluster.cypress.get(f"{Q}/@queue_partitions/0/upper_row_index") == 11


# Producers


@pytest.fixture
def producer(cluster: Cluster) -> Cluster:
    cluster.cypress.create("queue_producer", P)
    cluster.tables.mount(P)
    return cluster


def push(cluster: Cluster, epoch: int, *numbers: int, **options: Any) -> dict[str, int]:
    items = [{"a": 100 + n, "$tablet_index": 1, "$sequence_number": n} for n in numbers]
    names, encoded = cluster.tables.encode(Q, items)
    return cluster.producers.push(P, Q, "s", epoch, encoded, names, **options)


def test_rows_pushed_again_are_skipped(producer: Cluster) -> None:
    session = producer.producers.create_session(P, Q, "s")
    assert session == {"epoch": 0, "sequence_number": -1, "user_meta": None}
    assert push(producer, 0, 1, 2) == {"last_sequence_number": 2, "skipped_row_count": 0}
    assert push(producer, 0, 1, 2, 5) == {"last_sequence_number": 5, "skipped_row_count": 2}
    assert [row["a"] for row in pull(producer, Q, 1, 0)] == [101, 102, 105]


def test_a_session_taken_over_shuts_out_the_former_owner(producer: Cluster) -> None:
    producer.producers.create_session(P, Q, "s", {"host": "a"})
    push(producer, 0, 7)
    session = producer.producers.create_session(P, Q, "s")
    assert session == {"epoch": 1, "sequence_number": 7, "user_meta": {b"host": b"a"}}
    with pytest.raises(YtError, match="zombie epoch") as caught:
        push(producer, 0, 8)
    assert caught.value.contains(codes.ZOMBIE_EPOCH)
    with pytest.raises(YtError, match="invalid epoch") as caught:
        push(producer, 2, 8)
    assert caught.value.contains(codes.INVALID_EPOCH)
    push(producer, 1, 8)
    assert len(pull(producer, Q, 1, 0)) == 2


@pytest.mark.parametrize("numbers", [(2, 1), (1, 1), (-1,)])
def test_sequence_numbers_must_grow(producer: Cluster, numbers: tuple[int, ...]) -> None:
    producer.producers.create_session(P, Q, "s")
    with pytest.raises(YtError) as caught:
        push(producer, 0, *numbers)
    assert caught.value.contains(codes.INVALID_SEQUENCE_NUMBERS)
    assert pull(producer, Q, 1, 0) == []


def test_sequence_numbers_can_start_from_one_given(producer: Cluster) -> None:
    producer.producers.create_session(P, Q, "s")
    names, encoded = producer.tables.encode(Q, [{"a": 1}, {"a": 2}])
    answer = producer.producers.push(P, Q, "s", 0, encoded, names, sequence_number=10)
    assert answer == {"last_sequence_number": 11, "skipped_row_count": 0}
    with pytest.raises(YtError, match="not set"):
        producer.producers.push(P, Q, "s", 0, encoded, names)


def test_rows_and_progress_are_committed_together(producer: Cluster) -> None:
    producer.producers.create_session(P, Q, "s")
    tx = producer.tablet_transactions.start()
    push(producer, 0, 1, tx=tx)
    producer.tablet_transactions.abort(tx.id)
    assert push(producer, 0, 1) == {"last_sequence_number": 1, "skipped_row_count": 0}
    assert len(pull(producer, Q, 1, 0)) == 1


def test_a_removed_session_is_unknown(producer: Cluster) -> None:
    producer.producers.create_session(P, Q, "s")
    producer.producers.remove_session(P, Q, "s")
    producer.producers.remove_session(P, Q, "s")
    with pytest.raises(YtError, match='Unknown session "s"'):
        push(producer, 0, 1)


def test_paths_with_any_letters_are_queues_too(cluster: Cluster) -> None:
    path = '//tmp/очередь "q" \U0001f680'
    table(cluster, path, PLAIN)
    write(cluster, path, {"a": 1})
    cluster.queues.register(path, C, True)
    cluster.queues.advance(C, path, 0, None, 1)
    quoted = path.replace('"', '\\"')
    (row,) = select(cluster, f'[offset] from [{C}] where queue_path = "{quoted}"')
    assert row == {"offset": yson.YsonUint64(1)}


def test_tables_survive_saving_and_loading(cluster: Cluster, tmp_path: Path) -> None:
    cluster.queues.advance(C, Q, 0, None, 4)
    persist.save(cluster, str(tmp_path / "state"))
    loaded = Cluster()
    persist.load(loaded, str(tmp_path / "state"))
    assert consumed(loaded) == [4, 5, 6, 7, 8, 9]
    write(loaded, Q, {"a": 10, "$tablet_index": 0})
    loaded.queues.advance(C, Q, 0, 4, 10)
    assert consumed(loaded) == [10]
    assert consumed(cluster) == [4, 5, 6, 7, 8, 9]


# The table of registrations


def registered(cluster: Cluster) -> list[dict[str, Any]]:
    return select(cluster, f"* from [{registrations.PATH}]")


def test_registrations_are_rows_of_a_table(cluster: Cluster) -> None:
    """integration/queues/test_consumer_registrations.py (_replica_registrations_are)"""
    key = {
        "queue_cluster": cluster.name.encode(),
        "queue_path": Q.encode(),
        "consumer_cluster": cluster.name.encode(),
        "consumer_path": C.encode(),
    }
    assert registered(cluster) == [{**key, "vital": True, "partitions": None}]
    cluster.queues.register(Q, C, False, [1])
    assert registered(cluster) == [{**key, "vital": False, "partitions": [1]}]
    cluster.queues.unregister(Q, C)
    assert registered(cluster) == []


def test_a_row_in_the_table_registers_a_consumer(cluster: Cluster) -> None:
    """integration/queues/test_queue_agent.py inserts its registrations"""
    cluster.queues.unregister(Q, C)
    row = registrations.key_item(cluster.name, Q, C)
    write(cluster, registrations.PATH, row)
    write(cluster, registrations.PATH, {**row, "queue_cluster": "another"})
    assert [r.vital for r in cluster.queues.registrations()] == [False]
    assert cluster.queues.pull_consumer(C, Q, 0, 0).rows
    delete(cluster, registrations.PATH, row)
    with pytest.raises(YtError, match="is not registered"):
        cluster.queues.pull_consumer(C, Q, 0, 0)


def test_without_its_table_there_are_no_registrations(cluster: Cluster) -> None:
    cluster.cypress.remove(registrations.PATH)
    cluster.tick()
    assert cluster.queues.registrations() == []
    with pytest.raises(YtError, match="consumer_registrations"):
        cluster.queues.register(Q, C, True)
    table(cluster, registrations.PATH, [{**PLAIN[0], "sort_order": "ascending"}, PLAIN[1]])
    write(cluster, registrations.PATH, {"a": 1, "b": "x"})
    cluster.tick()
    assert cluster.queues.registrations() == []
