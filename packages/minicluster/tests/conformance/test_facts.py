"""Answers that other projects recorded from real servers: each test names its row of FACTS.md."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest
import requests
import yt.wrapper as yt
from yt.yson import YsonEntity

from packages.minicluster.tests.conformance.conftest import (
    Register,
    eventually,
    make_table,
    over_http,
)
from tests.support import codes

KEYED = [
    {"name": "k", "type": "int64", "sort_order": "ascending"},
    {"name": "v", "type": "string"},
]
QUEUE = [
    {"name": "data", "type": "string"},
    {"name": "$timestamp", "type": "uint64"},
    {"name": "$cumulative_data_weight", "type": "int64"},
]


def _queue(client: Any, root: str, **attributes: Any) -> str:
    return make_table(client, f"{root}/q", QUEUE, **attributes)


def _ask(proxy: str, verb: str, command: str, **parameters: Any) -> requests.Response:
    """Send one command over HTTP, without a client in between."""
    token = os.environ.get("YT_TOKEN", "any")
    headers = {"Authorization": f"OAuth {token}"}
    url = f"{proxy if '://' in proxy else f'http://{proxy}'}/api/v4/{command}"
    if verb == "get":
        return requests.get(url, params=parameters, headers=headers, timeout=30)
    return requests.post(url, json=parameters, headers=headers, timeout=30)


# Queues


def test_a_partition_that_is_not_mounted_is_an_error_alone(client: Any, root: str) -> None:
    """Source: observed, FACTS.md q07"""
    queue = _queue(client, root)
    client.unmount_table(queue, sync=True)

    def partition() -> Any:
        (found,) = client.get(f"{queue}/@queue_partitions")
        error = found.get("error", {})
        is_said = "is not mounted or frozen" in str(error.get("message"))
        return sorted(found), is_said, error.get("attributes", {}).get("state")

    eventually(partition, (["error"], True, "unmounted"))


def test_a_partition_tells_its_cell_and_its_weights(client: Any, root: str) -> None:
    """Source: observed, FACTS.md q08, q40b"""
    queue = _queue(client, root)
    client.insert_rows(queue, [{"data": "abc"}] * 100)
    client.trim_rows(queue, 0, 90)

    def shares() -> Any:
        (found,) = client.get(f"{queue}/@queue_partitions")
        weights = [found.get(f"{name}_data_weight") for name in ("trimmed", "available")]
        return [weight and weight // 20 for weight in weights], sorted(found.get("meta", {}))

    eventually(shares, ([90, 10], ["cell_id", "host"]))


def test_a_partition_without_a_row_has_no_weights(client: Any, root: str) -> None:
    """Source: observed, FACTS.md q09"""
    queue = _queue(client, root)

    def weights() -> Any:
        (found,) = client.get(f"{queue}/@queue_partitions")
        names = ("cumulative", "available", "trimmed")
        return [isinstance(found.get(f"{name}_data_weight"), YsonEntity) for name in names]

    eventually(weights, [True] * 3)


def test_a_queue_tells_of_its_exports(client: Any, root: str) -> None:
    """Source: observed, FACTS.md q06b"""
    queue = _queue(client, root)
    eventually(lambda: client.get(f"{queue}/@queue_status/exports"), {"progress": {}})


def test_a_consumer_of_the_own_cluster_may_name_it(
    client: Any, root: str, register: Register
) -> None:
    """Source: observed, FACTS.md q24b"""
    queue, consumer = _queue(client, root), f"{root}/c"
    client.create("queue_consumer", consumer)
    client.mount_table(consumer, sync=True)
    client.insert_rows(queue, [{"data": "a"}])
    name = client.get("//sys/@cluster_name")
    register(queue, consumer)
    path = yt.YPath(f'<cluster="{name}">{queue}')
    rows = list(client.pull_queue_consumer(consumer, path, 0, 0))
    assert [row["data"] for row in rows] == ["a"]


def test_rows_of_another_cluster_are_not_served_from_this_one(
    client: Any, root: str, register: Register
) -> None:
    """Source: observed, FACTS.md q24"""
    queue, consumer = _queue(client, root), f"{root}/c"
    client.create("queue_consumer", consumer)
    client.mount_table(consumer, sync=True)
    client.insert_rows(queue, [{"data": "a"}])
    register(queue, consumer)
    with pytest.raises(yt.YtError):
        list(client.pull_queue_consumer(consumer, yt.YPath(f'<cluster="elsewhere">{queue}'), 0, 0))


def test_a_vital_consumer_that_is_unmounted_stops_trimming(
    client: Any, root: str, register: Register
) -> None:
    """Source: observed, FACTS.md q46"""
    queue = _queue(client, root, auto_trim_config={"enable": True})
    consumers = [f"{root}/c{number}" for number in (1, 2)]
    for consumer in consumers:
        client.create("queue_consumer", consumer)
        client.mount_table(consumer, sync=True)
        register(queue, consumer, vital=True)
    client.insert_rows(queue, [{"data": "a"}] * 5)
    client.advance_queue_consumer(consumers[0], queue, 0, None, 2)
    client.unmount_table(consumers[0], sync=True)
    client.advance_queue_consumer(consumers[1], queue, 0, None, 4)

    def trimmed() -> int:
        return int(client.get_tablet_infos(queue, [0])["tablets"][0]["trimmed_row_count"])

    assert trimmed() == 0
    client.mount_table(consumers[0], sync=True)
    eventually(trimmed, 2)


def test_trimming_to_a_negative_row_does_nothing(client: Any, root: str) -> None:
    """Source: observed, FACTS.md o05"""
    queue = _queue(client, root)
    client.insert_rows(queue, [{"data": "a"}])
    client.trim_rows(queue, 0, -10)
    assert client.get_tablet_infos(queue, [0])["tablets"][0]["trimmed_row_count"] == 0


def test_a_consumer_tells_of_its_queues(client: Any, root: str, register: Register) -> None:
    """Source: observed, FACTS.md q10"""
    queue, consumer = _queue(client, root), f"{root}/c"
    client.create("queue_consumer", consumer)
    client.mount_table(consumer, sync=True)
    register(queue, consumer)
    name = f"{client.get('//sys/@cluster_name')}:{queue}"
    expected = ["partition_count", "read_data_weight_rate", "read_row_count_rate"]
    status = f"{consumer}/@queue_consumer_status"
    eventually(lambda: sorted(client.get(status)["queues"][name]), expected)


def test_a_path_may_begin_with_the_own_cluster(client: Any, root: str, register: Register) -> None:
    """Source: observed, FACTS.md q24c"""
    queue, consumer = _queue(client, root), f"{root}/c"
    client.create("queue_consumer", consumer)
    name = client.get("//sys/@cluster_name")
    register(f"{name}:{queue}", consumer)
    (found,) = client.list_queue_consumer_registrations(queue_path=queue)
    assert str(found["consumer_path"]) == consumer


def test_a_tablet_tells_up_to_when_it_is_complete(client: Any, root: str) -> None:
    """Source: observed, FACTS.md s23"""
    table = make_table(client, f"{root}/t", KEYED)
    written = client.generate_timestamp()

    def is_past() -> bool:
        (info,) = client.get_tablet_infos(table, [0])["tablets"]
        return bool(info["barrier_timestamp"] >= written)

    eventually(is_past, True)


# Dynamic tables


def test_a_lock_conflict_tells_row_and_loser(client: Any, other: Any, root: str) -> None:
    """Source: observed, FACTS.md s09"""
    if client.config["backend"] != "rpc":
        pytest.skip("the official client keeps tablet transactions on the RPC backend")
    table = make_table(client, f"{root}/t", KEYED)

    def conflicting() -> None:
        with client.Transaction(type="tablet"):
            client.insert_rows(table, [{"k": 7, "v": "mine"}])
            other.insert_rows(table, [{"k": 7, "v": "first"}])

    with pytest.raises(yt.YtError) as caught:
        conflicting()
    conflict = caught.value.find_matching_error(code=codes.TABLET_LOCK_CONFLICT)
    assert conflict is not None
    attributes = conflict.attributes
    assert attributes["table_path"] == table
    assert list(attributes["key"]) == [7]
    assert {"loser_transaction_id", "tablet_id", "lock"} <= set(attributes)


def test_a_setting_of_mounts_can_be_set_alone(client: Any, root: str) -> None:
    """Source: observed, FACTS.md d12"""
    table = make_table(client, f"{root}/t", KEYED)
    client.set(f"{table}/@mount_config/some_option", 1)
    assert client.get(f"{table}/@mount_config") == {"some_option": 1}


def test_the_memory_mode_of_a_mounted_table_stays(client: Any, root: str) -> None:
    """Source: observed, FACTS.md d13"""
    table = make_table(client, f"{root}/t", KEYED)
    with pytest.raises(yt.YtError):
        client.set(f"{table}/@in_memory_mode", "compressed")
    assert client.get(f"{table}/@in_memory_mode") == "none"


@pytest.mark.parametrize("name", ["bool", "yson"])
def test_a_type_has_no_name_of_type_v3(client: Any, root: str, name: str) -> None:
    """Source: observed, FACTS.md t14"""
    with pytest.raises(yt.YtError, match="ESimpleLogicalValueType"):
        client.create("table", f"{root}/t", attributes={"schema": [{"name": "v", "type": name}]})
    assert not client.exists(f"{root}/t")


def test_an_unknown_key_of_a_column_is_dropped(client: Any, root: str) -> None:
    """Source: observed, FACTS.md t15"""
    schema = [{"name": "k", "type": "int64", "unknown": 1}]
    client.create("table", f"{root}/t", attributes={"schema": schema})
    (column,) = client.get(f"{root}/t/@schema")
    assert sorted(column) == ["name", "required", "type", "type_v3"]


def test_a_schema_that_the_rows_do_not_allow_has_a_code(client: Any, root: str) -> None:
    """Source: observed, FACTS.md t18"""
    path = f"{root}/t"
    client.create("table", path, attributes={"schema": [{"name": "v", "type": "string"}]})
    client.write_table(path, [{"v": "a"}])
    wider = [{"name": "v", "type": "string"}, {"name": "m", "type": "string", "required": True}]
    with pytest.raises(yt.YtError, match="Table schemas are incompatible") as caught:
        client.alter_table(path, schema=wider)
    assert caught.value.contains_code(316)


# Static tables


def test_a_negative_row_index_is_the_first(client: Any, root: str) -> None:
    """Source: observed, FACTS.md t03"""
    path = f"{root}/t"
    client.write_table(path, [{"n": number} for number in range(5)])

    def read(ranges: str) -> list[int]:
        return [row["n"] for row in client.read_table(f"{path}[{ranges}]")]

    assert [read("#-2:"), read("#-2:#2"), read(":#-2")] == [[0, 1, 2, 3, 4], [0, 1], []]


@over_http
def test_an_attribute_beats_the_text_of_a_path(proxy: str, client: Any, root: str) -> None:
    """Source: observed, FACTS.md t06"""
    path = f"{root}/t"
    client.write_table(path, [{"k": number, "n": str(number)} for number in range(5)])
    rows = _ask(
        proxy, "get", "read_table", path=f"<columns=[n]>{path}{{k}}[#3]", output_format="json"
    )
    assert [json.loads(line) for line in rows.text.splitlines()] == [{"n": "3"}]


# Cypress and master transactions


def test_an_abort_of_a_gone_transaction_is_none(client: Any) -> None:
    """Source: observed, FACTS.md m11"""
    transaction = client.start_transaction(timeout=60_000)
    client.abort_transaction(transaction)
    client.abort_transaction(transaction)


def test_a_request_in_a_gone_transaction_does_not_resolve(client: Any, root: str) -> None:
    """Source: observed, FACTS.md m12"""
    transaction = client.start_transaction(timeout=60_000)
    client.abort_transaction(transaction)
    with (
        pytest.raises(yt.YtError, match="Error resolving path") as caught,
        client.Transaction(transaction_id=transaction),
    ):
        client.get(root)
    assert caught.value.contains_code(codes.RESOLVE)
    assert caught.value.contains_code(codes.NO_SUCH_TRANSACTION)


def test_the_path_is_an_entity_among_all_attributes(client: Any, root: str) -> None:
    """Source: observed, FACTS.md c08"""
    assert isinstance(client.get(f"{root}/@")["path"], YsonEntity)
    assert client.get(f"{root}/@path") == root


@pytest.mark.parametrize(
    ("request_of", "words"),
    [
        (lambda client, path: client.remove("/", recursive=True), "Node / cannot be removed"),
        (lambda client, path: client.set(f"{path}/@", 1), "Attributes can only be set from a map"),
        (lambda client, path: client.set(path, {}), '"set" command without "force" flag'),
    ],
    ids=["c02", "c07", "c11"],
)
def test_words_of_refusals(client: Any, root: str, request_of: Any, words: str) -> None:
    """Source: observed, FACTS.md c02, c07, c11"""
    with pytest.raises(yt.YtError, match=words):
        request_of(client, root)


def test_the_cell_of_the_primary_master_is_known(client: Any) -> None:
    """Source: observed, FACTS.md h20"""
    assert isinstance(client.get("//sys/@primary_cell_tag"), int)


# The HTTP proxy


@over_http
def test_a_proxy_tells_of_itself(proxy: str, client: Any) -> None:
    """Source: observed, FACTS.md h02, h03, h04, h06"""
    hosts = requests.get(f"{proxy}/hosts", timeout=10)
    assert hosts.headers["Cache-Control"] == "no-store"
    assert hosts.json()
    assert requests.get(f"{proxy}/hosts?role=nobody", timeout=10).json() == []
    assert {"version", "start_time"} <= set(requests.get(f"{proxy}/service", timeout=10).json())
    connection = requests.get(f"{proxy}/cluster_connection", timeout=10).json()
    assert connection["cluster_name"] == client.get("//sys/@cluster_name")


@over_http
def test_a_trace_keeps_its_id(proxy: str, client: Any) -> None:
    """Source: observed, FACTS.md h08"""
    parent = {"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}
    answer = requests.get(f"{proxy}/ping", headers=parent, timeout=10)
    assert answer.headers["X-YT-Trace-Id"] == "4bf92f35-77b34da6-a3ce929d-e0e4736"


@over_http
def test_a_role_without_a_proxy_finds_none(proxy: str, client: Any) -> None:
    """Source: observed, FACTS.md h21"""
    answer = _ask(proxy, "get", "discover_proxies", type="rpc", role="nobody")
    assert answer.json() == {"proxies": []}


@over_http
def test_a_list_of_operations_counts_them_by_tree(proxy: str, client: Any) -> None:
    """Source: observed, FACTS.md p07"""
    assert "pool_tree_counts" in _ask(proxy, "get", "list_operations").json()


@over_http
def test_a_get_changes_nothing(proxy: str, client: Any, root: str) -> None:
    """Source: observed, FACTS.md h23"""
    answer = _ask(proxy, "get", "create", type="map_node", path=f"{root}/m")
    assert answer.status_code == 405
    assert not client.exists(f"{root}/m")


def _made(path: str) -> dict[str, Any]:
    return {"command": "create", "parameters": {"type": "map_node", "path": path}}


@over_http
@pytest.mark.parametrize("command", ["frobnicate", "select_rows"])
def test_a_command_that_no_batch_takes_ends_it(
    proxy: str, client: Any, root: str, command: str
) -> None:
    """Source: observed, FACTS.md h14, h16"""
    parts = [_made(f"{root}/a"), {"command": command, "parameters": {"query": "x"}}]
    answer = _ask(proxy, "post", "execute_batch", requests=parts)
    assert answer.status_code == 400
    assert "results" not in answer.json()
    assert client.exists(f"{root}/a")


@over_http
@pytest.mark.parametrize("defect", ["concurrency", "nameless", "missing"])
def test_a_malformed_batch_changes_nothing(proxy: str, client: Any, root: str, defect: str) -> None:
    """Source: observed, FACTS.md h15"""
    parts = [_made(f"{root}/a")]
    cases: dict[str, dict[str, Any]] = {
        "concurrency": {"requests": parts, "concurrency": 0},
        "nameless": {"requests": [*parts, {"parameters": {}}]},
        "missing": {},
    }
    assert _ask(proxy, "post", "execute_batch", **cases[defect]).status_code == 400
    assert not client.exists(f"{root}/a")
