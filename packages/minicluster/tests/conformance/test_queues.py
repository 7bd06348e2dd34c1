"""Queues, consumers, registrations, producers."""

from __future__ import annotations

from typing import Any

import pytest
import yt.wrapper as yt
from yt import yson
from yt.wrapper.errors import YtResponseError

from packages.minicluster.tests.conformance.conftest import (
    Register,
    Row,
    errors_of,
    eventually,
    make_table,
    over_http,
)
from tests.support import codes

QUEUE: list[Row] = [
    {"name": "data", "type": "string"},
    {"name": "$timestamp", "type": "uint64"},
    {"name": "$cumulative_data_weight", "type": "int64"},
]


@pytest.fixture
def queue(client: Any, root: str) -> str:
    """Two partitions, the first with ten rows."""
    path = make_table(client, f"{root}/q", QUEUE, tablet_count=2)
    client.insert_rows(path, [{"data": f"{n}", "$tablet_index": 0} for n in range(10)])
    return path


@pytest.fixture
def consumer(client: Any, root: str) -> str:
    client.create("queue_consumer", f"{root}/c")
    client.mount_table(f"{root}/c", sync=True)
    return f"{root}/c"


@pytest.fixture
def producer(client: Any, root: str) -> str:
    client.create("queue_producer", f"{root}/p")
    client.mount_table(f"{root}/p", sync=True)
    return f"{root}/p"


def found(rows: Any) -> list[tuple[int, str]]:
    return [(row["$row_index"], row["data"]) for row in rows]


def consume(client: Any, consumer: str, queue: str, offset: int | None, **options: Any) -> Any:
    return found(client.pull_queue_consumer(consumer, queue, offset, 0, **options))


def test_a_pull_brings_rows_with_their_position(client: Any, queue: str) -> None:
    """Source: client, yt/wrapper/tests/test_queue_commands.py (test_pull_queue)"""
    rows = list(client.pull_queue(queue, 3, 0, max_row_count=2))
    assert found(rows) == [(3, "3"), (4, "4")]
    assert {row["$tablet_index"] for row in rows} == {0}


def test_nothing_is_pulled_beyond_the_end(client: Any, queue: str) -> None:
    """Source: documentation, user-guide/dynamic-tables/queues (reading data)"""
    assert list(client.pull_queue(queue, 10, 0)) == []
    assert list(client.pull_queue(queue, 0, 1)) == []


def test_weight_limits_a_pull_but_for_one_row(client: Any, queue: str) -> None:
    """Source: server test, integration/queues/test_consumer_registrations.py (test_pull_queue)"""
    assert found(client.pull_queue(queue, 0, 0, max_data_weight=5)) == [(0, "0")]


def test_a_trimmed_offset_gives_the_first_rows_there_are(client: Any, queue: str) -> None:
    """Source: documentation, user-guide/dynamic-tables/queues (example: reading after a trim)"""
    client.trim_rows(queue, 0, 6)
    eventually(lambda: found(client.pull_queue(queue, 0, 0))[:1], [(6, "6")])


def test_a_partition_must_exist(client: Any, queue: str) -> None:
    """Source: server test, integration/queues/test_consumer_registrations.py
    (test_pull_consumer)"""
    with pytest.raises(YtResponseError, match="Invalid tablet index for table"):
        list(client.pull_queue(queue, 0, 2))


def test_a_consumer_has_the_documented_schema(client: Any, consumer: str) -> None:
    """Source: documentation, user-guide/dynamic-tables/queues (consumer table schema)"""
    columns = client.get(f"{consumer}/@schema")
    assert [(column["name"], column["type"]) for column in columns][:4] == [
        ("queue_cluster", "string"),
        ("queue_path", "string"),
        ("partition_index", "uint64"),
        ("offset", "uint64"),
    ]
    assert [column["name"] for column in columns if "sort_order" in column] == [
        "queue_cluster",
        "queue_path",
        "partition_index",
    ]


def test_a_table_may_serve_as_consumer(
    client: Any, root: str, queue: str, register: Register
) -> None:
    """Source: documentation, user-guide/dynamic-tables/queues (creating a consumer)"""
    keys = [("queue_cluster", "string"), ("queue_path", "string"), ("partition_index", "uint64")]
    columns: list[Row] = [
        {"name": name, "type": kind, "required": True, "sort_order": "ascending"}
        for name, kind in keys
    ]
    columns.append({"name": "offset", "type": "uint64", "required": True})
    path = make_table(client, f"{root}/own", columns, treat_as_queue_consumer=True)
    register(queue, path)
    client.advance_queue_consumer(path, queue, 0, None, 3)
    (row,) = client.select_rows(f"[offset] from [{path}]")
    assert row == {"offset": 3}


def test_consumers_and_producers_are_tables_that_mount_themselves(client: Any, root: str) -> None:
    """Source: server test, integration/queues/test_producer.py (test_create_producer)"""
    for name in ("queue_consumer", "queue_producer"):
        client.create(name, f"{root}/{name}")
        assert client.get(f"{root}/{name}/@type") == "table"
        eventually(lambda: client.get(f"{root}/{name}/@tablet_state"), "mounted")  # noqa: B023


def test_a_pull_needs_a_registration(
    client: Any, queue: str, consumer: str, register: Register
) -> None:
    """Source: documentation, user-guide/dynamic-tables/queues (reading data)"""
    with pytest.raises(YtResponseError) as caught:
        consume(client, consumer, queue, 0)
    assert caught.value.is_access_denied()
    register(queue, consumer)
    eventually(lambda: consume(client, consumer, queue, 9), [(9, "9")])


def test_registrations_are_listed(
    client: Any, queue: str, consumer: str, register: Register
) -> None:
    """Source: client, yt/wrapper/tests/test_queue_commands.py (test_register_queue_consumer)"""
    register(queue, consumer, vital=True)

    def listed(**wanted: str) -> list[tuple[str, str, bool]]:
        return [
            (str(item["queue_path"]), str(item["consumer_path"]), bool(item["vital"]))
            for item in client.list_queue_consumer_registrations(**wanted)
        ]

    cluster = client.get("//sys/@cluster_name")
    eventually(lambda: listed(queue_path=queue), [(queue, consumer, True)])
    eventually(lambda: listed(consumer_path=consumer), [(queue, consumer, True)])
    (item,) = client.list_queue_consumer_registrations(queue_path=queue)
    assert item["queue_path"].attributes["cluster"] == cluster


def test_registering_again_replaces(
    client: Any, queue: str, consumer: str, register: Register
) -> None:
    """Source: client, yt/wrapper/queue_commands.py (register_queue_consumer, vital)"""
    register(queue, consumer, vital=True)
    register(queue, consumer, vital=False)
    eventually(
        lambda: [
            bool(item["vital"])
            for item in client.list_queue_consumer_registrations(queue_path=queue)
        ],
        [False],
    )


def test_an_unregistered_consumer_is_listed_no_more(client: Any, queue: str, consumer: str) -> None:
    """Source: documentation, user-guide/dynamic-tables/queues (registering a consumer)"""
    client.register_queue_consumer(queue, consumer, vital=False)
    client.unregister_queue_consumer(queue, consumer)
    eventually(lambda: client.list_queue_consumer_registrations(queue_path=queue), [])


@over_http
def test_a_consumer_reads_on_from_where_it_stands(
    client: Any, queue: str, consumer: str, register: Register
) -> None:
    """Source: server test, integration/queues/test_consumer_registrations.py
    (test_pull_consumer)"""
    register(queue, consumer)
    eventually(lambda: consume(client, consumer, queue, None, max_row_count=1), [(0, "0")])
    client.advance_queue_consumer(consumer, queue, 0, None, 8)
    assert consume(client, consumer, queue, None) == [(8, "8"), (9, "9")]
    assert consume(client, consumer, queue, 7, max_row_count=1) == [(7, "7")]


def test_the_position_is_a_row_of_the_consumer(
    client: Any, queue: str, consumer: str, register: Register
) -> None:
    """Source: documentation, user-guide/dynamic-tables/queues (data model)"""
    register(queue, consumer)
    client.advance_queue_consumer(consumer, queue, 1, None, 5)
    query = f"queue_cluster, queue_path, partition_index, [offset] from [{consumer}]"
    assert list(client.select_rows(query)) == [
        {
            "queue_cluster": client.get("//sys/@cluster_name"),
            "queue_path": queue,
            "partition_index": 1,
            "offset": 5,
        }
    ]


def test_an_advance_compares_the_old_offset(
    client: Any, queue: str, consumer: str, register: Register
) -> None:
    """Source: documentation, user-guide/dynamic-tables/queues (working with a consumer)"""
    register(queue, consumer)
    client.advance_queue_consumer(consumer, queue, 0, 0, 3)
    with pytest.raises(YtResponseError) as caught:
        client.advance_queue_consumer(consumer, queue, 0, 4, 5)
    assert caught.value.contains_code(codes.OFFSET_CONFLICT)
    client.advance_queue_consumer(consumer, queue, 0, 3, 5)
    assert [row["offset"] for row in client.select_rows(f"[offset] from [{consumer}]")] == [5]


def test_an_advance_without_it_goes_anywhere(
    client: Any, queue: str, consumer: str, register: Register
) -> None:
    """Source: server test, integration/queues/test_consumer_registrations.py
    (test_advance_consumer)"""
    register(queue, consumer)
    for offset in (7, 3, 1543):
        client.advance_queue_consumer(consumer, queue, 0, None, offset)
        assert [row["offset"] for row in client.select_rows(f"[offset] from [{consumer}]")] == [
            offset
        ]


def test_an_advance_by_the_client_looks_at_no_queue(client: Any, root: str, consumer: str) -> None:
    """Source: client, yt/wrapper/tests/test_queue_commands.py (test_advance_consumer); server
    source, client/api/queue_transaction_mixin.cpp"""
    client.advance_queue_consumer(consumer, f"{root}/none", 5, 0, 3, client_side=True)
    columns = "[queue_path], [partition_index], [offset], [meta]"
    assert list(client.select_rows(f"{columns} from [{consumer}]")) == [
        {"queue_path": f"{root}/none", "partition_index": 5, "offset": 3, "meta": None}
    ]


@pytest.fixture
def stamped(client: Any, root: str) -> str:
    """A queue of one partition with the columns that the server fills in."""
    service = [
        {"name": "$timestamp", "type": "uint64"},
        {"name": "$cumulative_data_weight", "type": "int64"},
    ]
    return make_table(client, f"{root}/stamped", [{"name": "data", "type": "string"}, *service])


@over_http
def test_an_advance_by_the_server_resolves_the_queue(client: Any, root: str, consumer: str) -> None:
    """Source: server test, integration/queues/test_consumer_registrations.py
    (test_advance_consumer); server source, ytlib/api/native/transaction.cpp; observed,
    FACTS.md q30"""
    with pytest.raises(yt.YtError, match="Failed to resolve queue path") as caught:
        client.advance_queue_consumer(consumer, f"{root}/none", 0, None, 3, client_side=False)
    assert f"Error getting mount info for {root}/none" in str(caught.value)
    assert list(client.select_rows(f"* from [{consumer}]")) == []


@over_http
def test_an_advance_by_the_server_notes_time_and_weight(
    client: Any, stamped: str, consumer: str
) -> None:
    """Source: server source, client/queue_client/consumer_client.cpp (GetConsumerMeta); observed,
    FACTS.md q31"""

    def meta(offset: int) -> Any:
        client.advance_queue_consumer(consumer, stamped, 0, None, offset, client_side=False)
        (row,) = client.select_rows(f"[meta] from [{consumer}]")
        return row["meta"]

    for text in ("foo", "bar", "baz"):
        client.insert_rows(stamped, [{"data": text}])
    rows = list(client.select_rows(f"[$timestamp], [$cumulative_data_weight] from [{stamped}]"))
    times = [row["$timestamp"] for row in rows]
    weights = [row["$cumulative_data_weight"] for row in rows]
    assert meta(0) == {"offset_timestamp": times[0]}
    assert meta(2) == {"offset_timestamp": times[2], "cumulative_data_weight": weights[1]}
    assert meta(3) == {"cumulative_data_weight": weights[2]}
    assert meta(5) is None
    client.trim_rows(stamped, 0, 2)
    assert meta(1) is None
    assert meta(2) == {"offset_timestamp": times[2]}


@over_http
def test_an_advance_in_a_queue_without_these_columns_has_an_empty_meta(
    client: Any, root: str, consumer: str
) -> None:
    """Source: server source, client/queue_client/consumer_client.cpp (GetConsumerMeta)"""
    queue = make_table(client, f"{root}/plain", [{"name": "data", "type": "string"}])
    client.insert_rows(queue, [{"data": "foo"}])
    client.advance_queue_consumer(consumer, queue, 0, None, 1, client_side=False)
    (row,) = client.select_rows(f"[meta] from [{consumer}]")
    assert row["meta"] == {}


@over_http
def test_a_conflict_of_offsets_says_when_the_other_was_written(
    client: Any, stamped: str, consumer: str
) -> None:
    """Source: server source, client/queue_client/consumer_client.cpp (Advance)"""
    client.advance_queue_consumer(consumer, stamped, 0, None, 5, client_side=True)
    with pytest.raises(YtResponseError) as caught:
        client.advance_queue_consumer(consumer, stamped, 0, 3, 7, client_side=True)
    (found,) = [
        error["attributes"]
        for error in errors_of(caught.value)
        if error["code"] == codes.OFFSET_CONFLICT
    ]
    time = found.pop("current_offset_timestamp")
    assert {name: found[name] for name in ("partition", "consumer")} == {
        "partition": 0,
        "consumer": consumer,
    }
    assert (found["expected_offset"], found["current_offset"]) == (3, 5)
    assert time > 1 << 30


def test_only_a_table_of_its_schema_is_a_consumer(client: Any, root: str, queue: str) -> None:
    """Source: server source, client/queue_client/consumer_client.cpp (CreateConsumerClient)"""
    key: Row = {"name": "k", "type": "int64", "sort_order": "ascending"}
    path = make_table(client, f"{root}/sorted", [key, {"name": "offset", "type": "uint64"}])
    with pytest.raises(yt.YtError, match="is not recognized as a valid consumer schema"):
        client.advance_queue_consumer(path, queue, 0, None, 3)


def test_any_table_is_registered_as_a_queue(
    client: Any, root: str, consumer: str, register: Register
) -> None:
    """Source: server test, ytlib/queue_client/registration_manager_base.cpp
    (RegisterQueueConsumer)"""
    key: Row = {"name": "k", "type": "int64", "sort_order": "ascending"}
    path = make_table(client, f"{root}/sorted", [key, {"name": "data", "type": "string"}])
    register(path, consumer)
    eventually(
        lambda: [
            str(item["queue_path"])
            for item in client.list_queue_consumer_registrations(consumer_path=consumer)
        ],
        [path],
    )
    with pytest.raises(YtResponseError):
        consume(client, consumer, path, 0)
    with pytest.raises(YtResponseError):
        client.register_queue_consumer(f"{root}/none", consumer, vital=False)


def test_partitions_are_reported(client: Any, queue: str) -> None:
    """Source: documentation, user-guide/dynamic-tables/queues (graphs and statuses)"""
    client.trim_rows(queue, 0, 4)

    def bounds() -> list[tuple[int, int, int]]:
        names = ("lower_row_index", "upper_row_index", "available_row_count")
        partitions = client.get(f"{queue}/@queue_partitions")
        return [tuple(partition.get(name) for name in names) for partition in partitions]

    eventually(bounds, [(4, 10, 6), (0, 0, 0)])


def test_a_consumers_partitions_are_reported(
    client: Any, queue: str, consumer: str, register: Register
) -> None:
    """Source: documentation, user-guide/dynamic-tables/queues (graphs and statuses)"""
    register(queue, consumer)
    client.advance_queue_consumer(consumer, queue, 0, None, 8)
    name = f"{client.get('//sys/@cluster_name')}:{queue}"

    def unread() -> list[tuple[int, int]]:
        partitions = client.get(f"{consumer}/@queue_consumer_partitions")[name]
        return [(item.get("next_row_index"), item.get("unread_row_count")) for item in partitions]

    eventually(unread, [(8, 2), (0, 0)])


def _trimmed_becomes(client: Any, queue: str, *counts: int) -> None:
    """Wait until that many rows are trimmed of each tablet."""

    def trimmed() -> list[int]:
        infos = client.get_tablet_infos(queue, [*range(len(counts))])["tablets"]
        return [int(info["trimmed_row_count"]) for info in infos]

    eventually(trimmed, [*counts])


def test_a_vital_consumer_lets_the_queue_be_trimmed(
    client: Any, queue: str, consumer: str, register: Register
) -> None:
    """Source: documentation, user-guide/dynamic-tables/queues (automatic trimming)"""
    register(queue, consumer, vital=True)
    client.advance_queue_consumer(consumer, queue, 0, None, 6)

    client.set(f"{queue}/@auto_trim_config", {"enable": True, "retained_rows": 5})
    _trimmed_becomes(client, queue, 5, 0)
    client.set(f"{queue}/@auto_trim_config", {"enable": True})
    _trimmed_becomes(client, queue, 6, 0)


def test_frozen_tablets_are_trimmed_when_they_are_mounted_again(
    client: Any, queue: str, consumer: str, register: Register
) -> None:
    """Source: server test, integration/queues/test_queue_agent.py
    (test_trim_only_mounted_tablets)"""
    register(queue, consumer, vital=True)
    client.insert_rows(queue, [{"data": "more", "$tablet_index": 1}] * 3)
    for partition in (0, 1):
        client.advance_queue_consumer(consumer, queue, partition, None, 3)
    client.freeze_table(queue, first_tablet_index=0, last_tablet_index=0, sync=True)

    client.set(f"{queue}/@auto_trim_config", {"enable": True})
    _trimmed_becomes(client, queue, 0, 3)
    client.unfreeze_table(queue, first_tablet_index=0, last_tablet_index=0, sync=True)
    _trimmed_becomes(client, queue, 3, 3)


def test_the_settings_of_trimming_are_removed(
    client: Any, queue: str, consumer: str, register: Register
) -> None:
    """Source: server test, integration/queues/test_queue_agent.py (test_retained_rows)"""
    register(queue, consumer, vital=True)
    client.advance_queue_consumer(consumer, queue, 0, None, 6)

    client.set(f"{queue}/@auto_trim_config", {"enable": True, "retained_rows": 5})
    _trimmed_becomes(client, queue, 5, 0)
    client.remove(f"{queue}/@auto_trim_config/retained_rows")
    assert client.get(f"{queue}/@auto_trim_config") == {"enable": True}
    _trimmed_becomes(client, queue, 6, 0)
    client.remove(f"{queue}/@auto_trim_config")
    with pytest.raises(yt.YtError):
        client.remove(f"{queue}/@auto_trim_config/enable")


def test_a_queue_belongs_to_a_stage(client: Any, queue: str) -> None:
    """Source: server test, integration/queues/test_queue_agent.py (test_queue_agent_stage)"""
    assert client.get(f"{queue}/@queue_agent_stage") == "production"
    client.set(f"{queue}/@queue_agent_stage", "testing")
    assert client.get(f"{queue}/@queue_agent_stage") == "testing"
    with pytest.raises(yt.YtError, match='stage "testing" is not found'):
        client.get(f"{queue}/@queue_status")
    client.remove(f"{queue}/@queue_agent_stage")
    assert client.get(f"{queue}/@queue_agent_stage") == "production"


def test_a_new_session_begins_before_the_first_row(client: Any, queue: str, producer: str) -> None:
    """Source: documentation, user-guide/dynamic-tables/queues (writing data)"""
    session = client.create_queue_producer_session(producer, queue, "s")
    assert (session["epoch"], session["sequence_number"]) == (0, -1)
    session = client.create_queue_producer_session(producer, queue, "s")
    assert (session["epoch"], session["sequence_number"]) == (1, -1)


def test_rows_pushed_again_are_skipped(client: Any, queue: str, producer: str) -> None:
    """Source: server test, integration/queues/test_producer.py
    (test_push_queue_producer_with_explicit_sequence_numbers)"""
    client.create_queue_producer_session(producer, queue, "s")
    rows = [{"data": f"{n}", "$sequence_number": n, "$tablet_index": 1} for n in (6, 10, 14)]
    pushed = client.push_queue_producer(producer, queue, "s", 0, rows[:2])
    assert (pushed["last_sequence_number"], pushed["skipped_row_count"]) == (10, 0)
    pushed = client.push_queue_producer(producer, queue, "s", 0, rows)
    assert (pushed["last_sequence_number"], pushed["skipped_row_count"]) == (14, 2)
    assert found(client.pull_queue(queue, 0, 1)) == [(0, "6"), (1, "10"), (2, "14")]


def test_epochs_keep_zombies_out(client: Any, queue: str, producer: str) -> None:
    """Source: server test, integration/queues/test_producer.py
    (test_push_queue_producer_with_start_sequence_number)"""
    client.create_queue_producer_session(producer, queue, "s")
    row = [{"data": "x", "$sequence_number": 0, "$tablet_index": 1}]
    with pytest.raises(YtResponseError) as caught:
        client.push_queue_producer(producer, queue, "s", 1, row)
    assert caught.value.contains_code(codes.INVALID_EPOCH)
    client.create_queue_producer_session(producer, queue, "s")
    with pytest.raises(YtResponseError) as caught:
        client.push_queue_producer(producer, queue, "s", 0, row)
    assert caught.value.contains_code(codes.ZOMBIE_EPOCH)
    assert list(client.pull_queue(queue, 0, 1)) == []


def test_every_pushed_row_has_a_number(client: Any, queue: str, producer: str) -> None:
    """Source: server test, integration/queues/test_producer.py
    (test_push_queue_producer_with_start_sequence_number)"""
    client.create_queue_producer_session(producer, queue, "s")
    with pytest.raises(YtResponseError) as caught:
        client.push_queue_producer(producer, queue, "s", 0, [{"data": "x", "$tablet_index": 1}])
    assert caught.value.contains_code(codes.INVALID_SEQUENCE_NUMBERS)
    assert list(client.pull_queue(queue, 0, 1)) == []


def test_sessions_are_kept_apart_and_removed(client: Any, queue: str, producer: str) -> None:
    """Source: server test, integration/queues/test_producer.py (test_basic,
    test_multiple_sessions)"""
    for name in ("a", "b", "b"):
        client.create_queue_producer_session(producer, queue, name, user_meta={"of": name})
    query = f"session_id, epoch, user_meta from [{producer}] order by session_id limit 9"
    assert list(client.select_rows(query)) == [
        {"session_id": "a", "epoch": 0, "user_meta": {"of": "a"}},
        {"session_id": "b", "epoch": 1, "user_meta": {"of": "b"}},
    ]
    client.remove_queue_producer_session(producer, queue, "b")
    session = client.create_queue_producer_session(producer, queue, "b")
    assert session["epoch"] == 0
    assert session["user_meta"] in (None, yson.YsonEntity())
