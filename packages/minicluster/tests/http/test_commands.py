"""The official client over HTTP."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import yt.type_info.typing as ti
import yt.wrapper as yt
from yt.packages.requests.exceptions import ConnectionError as HungUp
from yt.wrapper.errors import (
    YtResolveError,
    YtResponseError,
    YtTabletTransactionLockConflict,
    YtTokenError,
)
from yt.wrapper.schema import TableSchema

from minicluster import testing
from packages.minicluster.tests.conftest import connect
from tests.support import codes, server_errors

SORTED = (
    TableSchema(strict=True, unique_keys=True)
    .add_column("k", ti.Int64, sort_order="ascending")
    .add_column("v", ti.Optional[ti.Utf8])
    .add_column("n", ti.Optional[ti.Int64])
)
QUEUE = (
    TableSchema()
    .add_column("data", ti.Optional[ti.String])
    .add_column("$timestamp", ti.Optional[ti.Uint64])
    .add_column("$cumulative_data_weight", ti.Optional[ti.Int64])
)


def make_table(client: Any, path: str, schema: TableSchema, **attributes: Any) -> str:
    given = {"dynamic": True, "schema": schema.to_yson_type(), **attributes}
    client.create("table", path, attributes=given)
    client.mount_table(path, sync=True)
    return path


def make_queue(client: Any, root: str, tablets: int = 2) -> tuple[str, str]:
    queue = make_table(client, f"{root}/q", QUEUE, tablet_count=tablets)
    client.create("queue_consumer", f"{root}/c")
    client.mount_table(f"{root}/c", sync=True)
    client.register_queue_consumer(queue, f"{root}/c", vital=True)
    return queue, f"{root}/c"


# Cypress


def test_nodes(client: Any, root: str) -> None:
    client.set(f"{root}/a", {"x": [1, "ж", None, 2.5, True]}, recursive=True)
    assert client.get(f"{root}/a/x") == [1, "ж", None, 2.5, True]
    client.copy(f"{root}/a", f"{root}/b")
    client.move(f"{root}/b", f"{root}/c")
    client.link(f"{root}/c", f"{root}/l")
    assert client.list(root) == ["a", "c", "l"]
    assert client.get(f"{root}/l/@path") == f"{root}/c"
    assert sorted(client.search(root, node_type="list_node")) == [f"{root}/a/x", f"{root}/c/x"]
    with pytest.raises(YtResolveError):
        client.get(f"{root}/nope")
    with pytest.raises(YtResponseError, match="already exists"):
        client.create("map_node", f"{root}/a")
    client.remove(f"{root}/a", recursive=True)
    assert not client.exists(f"{root}/a")


def test_binary_and_non_utf8_values(client: Any, root: str) -> None:
    client.set(f"{root}/x", b"\xff\x00\x01")
    assert yt.yson.get_bytes(client.get(f"{root}/x")) == b"\xff\x00\x01"
    client.set(f"{root}/x/@a", {"k": b"\xfe"})
    assert yt.yson.get_bytes(client.get(f"{root}/x/@a")["k"]) == b"\xfe"


def test_json_client(running: testing.Running, root: str) -> None:
    client = yt.YtClient(f"http://{running.http}", token="any")
    client.config["structured_data_format"] = "json"
    client.set(f"{root}/x", {"ж": [1, "ü"]})
    assert client.get(f"{root}/x") == {"ж": [1, "ü"]}
    assert client.get(f"{root}/x/@type") == "map_node"


def test_master_transaction(client: Any, running: testing.Running, root: str) -> None:
    outside = connect(running)
    with client.Transaction():
        client.set(f"{root}/x", 1)
        with client.Transaction():
            client.set(f"{root}/y", 2)
        assert client.get(f"{root}/y") == 2
        assert not outside.exists(f"{root}/x")
        with pytest.raises(YtResponseError) as caught:
            outside.set(f"{root}/x", 5)
        assert caught.value.is_concurrent_transaction_lock_conflict()
    assert outside.get(root) == {"x": 1, "y": 2}
    with pytest.raises(ZeroDivisionError):
        _remove_and_fail(client, root)
    assert client.exists(f"{root}/x")


def _remove_and_fail(client: Any, path: str) -> None:
    with client.Transaction():
        client.remove(path, recursive=True)
        raise ZeroDivisionError


def test_waitable_lock(client: Any, running: testing.Running, root: str) -> None:
    other = connect(running)
    first = client.start_transaction()
    second = other.start_transaction()
    with client.Transaction(transaction_id=first):
        client.lock(root)
    with other.Transaction(transaction_id=second):
        lock = other.lock(root, waitable=True)
        assert other.get(f"#{lock['lock_id']}/@state") == "pending"
        client.abort_transaction(first)
        assert other.get(f"#{lock['lock_id']}/@state") == "acquired"
    client.abort_transaction(second)


def test_batch(client: Any, root: str) -> None:
    batch = client.create_batch_client()
    made = batch.create("map_node", f"{root}/a")
    value, missing, there = batch.get(f"{root}/@type"), batch.get("//no/pe"), batch.exists(root)
    batch.commit_batch()
    assert client.get(f"#{made.get_result()}/@path") == f"{root}/a"
    assert (value.get_result(), there.get_result()) == ("map_node", True)
    assert missing.get_error()["code"] == 500


def test_permissions_and_features(client: Any, root: str) -> None:
    assert client.check_permission("root", "write", root)["action"] == "allow"
    deny = {"action": "deny", "subjects": ["guest"], "permissions": ["write"]}
    client.set(f"{root}/@acl", [deny])
    client.create("map_node", f"{root}/inner")
    assert client.check_permission("guest", "write", f"{root}/inner")["action"] == "deny"
    assert client.check_permission("guest", "read", f"{root}/inner")["action"] == "allow"
    assert "int64" in client.get_supported_features()["primitive_types"]
    assert client.generate_timestamp() < client.generate_timestamp()
    assert client.get_user_name() == "root"


# Files


@pytest.mark.parametrize("size", [0, 1, 3_000_000])
def test_files(client: Any, root: str, size: int) -> None:
    data = bytes(range(256)) * (size // 256 + 1)
    client.write_file(f"{root}/f", data[:size], compute_md5=True)
    assert client.read_file(f"{root}/f").read() == data[:size]
    assert client.get(f"{root}/f/@uncompressed_data_size") == size
    assert client.read_file(f"{root}/f", offset=10, length=5).read() == data[:size][10:15]


def test_a_file_in_pieces(client: Any, root: str) -> None:
    client.config["write_retries"]["chunk_size"] = 1000
    client.config["write_retries"]["enable"] = True
    data = bytes(range(250)) * 40
    client.write_file(f"{root}/f", iter([data[:3000], data[3000:]]))
    assert client.read_file(f"{root}/f").read() == data


# Tables


def test_sorted_table(client: Any, root: str) -> None:
    table = make_table(client, f"{root}/t", SORTED)
    assert client.get_table_schema(table) == SORTED
    client.insert_rows(table, ({"k": k, "v": f"ж{k}", "n": k} for k in range(100)))
    client.insert_rows(table, [{"k": 5, "v": "new"}], update=True)
    client.insert_rows(table, [{"k": 6, "v": "new"}])
    client.delete_rows(table, [{"k": 7}])
    found = list(client.lookup_rows(table, [{"k": k} for k in (5, 6, 7)]))
    assert found == [{"k": 5, "v": "new", "n": 5}, {"k": 6, "v": "new", "n": None}]
    kept = list(client.lookup_rows(table, [{"k": 7}, {"k": 8}], keep_missing_rows=True))
    assert kept == [None, {"k": 8, "v": "ж8", "n": 8}]
    assert list(client.lookup_rows(table, [{"k": 8}], column_names=["n"])) == [{"n": 8}]
    assert list(client.select_rows(f"k from [{table}] where n > 97 order by k limit 5")) == [
        {"k": 98},
        {"k": 99},
    ]
    (counted,) = client.select_rows(f"sum(1) as c from [{table}] group by 1")
    assert counted["c"] == 99


def test_tablet_transactions(client: Any, running: testing.Running, root: str) -> None:
    table, outside = make_table(client, f"{root}/t", SORTED), connect(running)
    with client.Transaction(type="tablet"):
        client.insert_rows(table, [{"k": 1, "v": "a"}])
        assert list(outside.lookup_rows(table, [{"k": 1}])) == []
    assert len(list(outside.lookup_rows(table, [{"k": 1}]))) == 1
    transaction = client.start_transaction(type="tablet")
    with client.Transaction(transaction_id=transaction, type="tablet"):
        client.insert_rows(table, [{"k": 1, "v": "b"}])
    outside.insert_rows(table, [{"k": 1, "v": "c"}])
    with pytest.raises(YtTabletTransactionLockConflict):
        client.commit_transaction(transaction)


def test_tablets(client: Any, root: str) -> None:
    table = make_table(client, f"{root}/t", SORTED)
    client.unmount_table(table, sync=True)
    with pytest.raises(yt.YtError) as caught:
        client.insert_rows(table, [{"k": 1}])
    assert caught.value.contains_code(codes.TABLET_NOT_MOUNTED)
    client.reshard_table(table, pivot_keys=[[], [10]], sync=True)
    client.alter_table(table, schema=SORTED.add_column("new", ti.Optional[ti.Bool]).to_yson_type())
    client.mount_table(table, first_tablet_index=0, last_tablet_index=0, sync=True)
    client.mount_table(table, sync=True)
    client.remount_table(table)
    client.freeze_table(table, sync=True)
    client.unfreeze_table(table, sync=True)
    client.insert_rows(table, [{"k": 1, "new": True}, {"k": 20}])
    assert client.get(f"{table}/@tablet_count") == 2
    assert [info["total_row_count"] for info in client.get_tablet_infos(table, [0, 1])["tablets"]]


def test_static_table(client: Any, root: str) -> None:
    rows = [{"a": n, "b": {"deep": ["ж", None]}} for n in range(5)]
    client.write_table(f"{root}/s", rows)
    assert list(client.read_table(f"{root}/s")) == rows
    client.write_table(f"<append=%true>{root}/s", [{"a": 9}])
    assert [row["a"] for row in client.read_table(f"{root}/s[#3:]")] == [3, 4, 9]
    assert client.row_count(f"{root}/s") == 6
    with pytest.raises(YtResponseError, match="not supported for dynamic tables"):
        client.write_table(make_table(client, f"{root}/t", SORTED), [{"k": 1}])


# Queues


def test_queue_and_consumer(client: Any, root: str) -> None:
    queue, consumer = make_queue(client, root)
    (registration,) = client.list_queue_consumer_registrations(queue_path=queue)
    assert (str(registration["consumer_path"]), registration["vital"]) == (consumer, True)
    rows = [{"data": f"{n}", "$tablet_index": n % 2} for n in range(10)]
    client.insert_rows(queue, rows)
    found = list(client.pull_queue_consumer(consumer, queue, 1, 0, max_row_count=2))
    assert [(row["data"], row["$tablet_index"], row["$row_index"]) for row in found] == [
        ("2", 0, 1),
        ("4", 0, 2),
    ]
    client.advance_queue_consumer(consumer, queue, 0, None, 3)
    client.advance_queue_consumer(consumer, queue, 0, 3, 4)
    with pytest.raises(YtResponseError, match="expected offset 3, found offset 4"):
        client.advance_queue_consumer(consumer, queue, 0, 3, 5)
    assert len(list(client.pull_queue_consumer(consumer, queue, None, 0))) == 1
    partitions = client.get(f"{queue}/@queue_partitions")
    assert [partition["upper_row_index"] for partition in partitions] == [5, 5]
    client.trim_rows(queue, 0, 2)
    assert next(client.pull_queue(queue, 0, 0))["$row_index"] == 2
    assert client.get_tablet_infos(queue, [0])["tablets"][0]["trimmed_row_count"] == 2
    client.unregister_queue_consumer(queue, consumer)
    with pytest.raises(YtResponseError) as caught:
        client.pull_queue_consumer(consumer, queue, 0, 0)
    assert caught.value.is_access_denied()


def test_producer(client: Any, root: str) -> None:
    queue, _ = make_queue(client, root, tablets=1)
    producer = f"{root}/p"
    client.create("queue_producer", producer)
    client.mount_table(producer, sync=True)
    session = client.create_queue_producer_session(producer, queue, "s")
    assert (session["epoch"], session["sequence_number"]) == (0, -1)
    rows = [{"data": f"{n}", "$sequence_number": n} for n in range(3)]
    for skipped in (0, 3):
        pushed = client.push_queue_producer(producer, queue, "s", 0, rows)
        assert pushed["last_sequence_number"] == 2
        assert pushed["skipped_row_count"] == skipped
    assert len(list(client.pull_queue(queue, 0, 0))) == 3
    client.remove_queue_producer_session(producer, queue, "s")


# Faults as the client sees them


def test_a_lost_answer_is_not_applied_twice(fresh: testing.Running) -> None:
    client = connect(fresh, retries=True)
    fresh.client.faults.add(method="create", action="lose_reply")
    made = client.create("map_node", "//tmp/a")
    assert client.get("//tmp/a/@id") == made
    assert fresh.client.journal.count("create") == 2


def test_failures_hang_ups_and_retries(fresh: testing.Running) -> None:
    client = connect(fresh, retries=True)
    rule = fresh.client.faults.add(method="get", action="hang_up", where={"path": "//tmp/@type"})
    assert client.get("//tmp/@type") == "map_node"
    assert fresh.client.faults.get(rule).hits == 1
    error = server_errors.denied("register_queue_consumer", "//tmp/q", user="ж")
    fresh.client.faults.add(method="register_queue_consumer", action="fail", error=error)
    with pytest.raises(YtResponseError, match="Access denied") as caught:
        client.register_queue_consumer("//tmp/q", "//tmp/c", vital=True)
    assert caught.value.is_access_denied()


def test_a_token_that_is_refused_is_status_401(fresh: testing.Running) -> None:
    fresh.client.faults.add(method="get", action="fail", error=server_errors.TOKEN_BY_HTTP)
    with pytest.raises(YtTokenError, match="has failed to authenticate") as caught:
        connect(fresh).get("//tmp/@type")
    assert caught.value.find_matching_error(code=111)


def test_rows_may_arrive_after_their_writer_has_given_up(fresh: testing.Running) -> None:
    client, faults = connect(fresh), fresh.client.faults
    table = make_table(client, "//tmp/t", SORTED)
    late = faults.add(action="apply_late", method="insert_rows", where={"path": table})
    with pytest.raises(HungUp):
        client.insert_rows(table, [{"k": 1, "v": "late"}])
    client.insert_rows(table, [{"k": 1, "v": "in time"}, {"k": 2, "v": "in time"}])
    (entry,) = (entry for entry in fresh.client.journal("insert_rows") if entry.held)
    assert entry.fault == "apply_late"
    (entry,) = faults.release(late)
    assert (entry.held, entry.error) == (False, None)
    assert [(row["k"], row["v"]) for row in client.select_rows(f"k, v from [{table}]")] == [
        (1, "late"),
        (2, "in time"),
    ]


def test_a_held_request_is_answered_on_release(fresh: testing.Running) -> None:
    client, faults = connect(fresh), fresh.client.faults
    slow = faults.add(action="hold", method="create")
    with ThreadPoolExecutor(1) as pool:
        made = pool.submit(client.create, "map_node", "//tmp/a")
        faults.wait(slow)
        assert not connect(fresh).exists("//tmp/a")
        (entry,) = faults.release(slow)
        assert (entry.args["path"], entry.held) == ("//tmp/a", False)
        assert client.get("//tmp/a/@id") == made.result(30)


@pytest.mark.parametrize("kind", ["master", "tablet"])
def test_a_held_commit_keeps_its_transaction(fresh: testing.Running, kind: str) -> None:
    client, faults = connect(fresh), fresh.client.faults
    table = make_table(client, "//tmp/t", SORTED)
    transaction = client.start_transaction(type=kind, timeout=5000)
    with client.Transaction(transaction_id=transaction, type=kind, ping=False):
        if kind == "tablet":
            client.insert_rows(table, [{"k": 1, "v": "late"}])
        else:
            client.create("map_node", "//tmp/made")
    late = faults.add(action="apply_late", method="commit_transaction")
    with pytest.raises(HungUp):
        client.commit_transaction(transaction)
    fresh.client.clock.advance(60)
    assert not client.exists("//tmp/made")
    assert [entry.error for entry in faults.release(late)] == [None]
    if kind == "tablet":
        assert [row["k"] for row in client.select_rows(f"k from [{table}]")] == [1]
    else:
        assert client.exists("//tmp/made")


def test_the_clock_ends_transactions(fresh: testing.Running) -> None:
    client = connect(fresh)
    transaction = client.start_transaction(timeout=30_000)
    with client.Transaction(transaction_id=transaction, ping=False):
        client.lock("//tmp")
    before = fresh.client.clock.now()
    assert fresh.client.clock.advance(31) >= before + 31
    with pytest.raises(YtResponseError, match="No such transaction"):
        client.ping_transaction(transaction)
    assert client.get("//tmp/@lock_count") == 0


def test_a_transaction_touches_as_many_rows_of_a_tablet_as_it_is_told(
    fresh: testing.Running,
) -> None:
    client = connect(fresh)
    table = make_table(client, "//tmp/limited", SORTED)
    fresh.client.set_rows_per_tablet(5)
    client.insert_rows(table, [{"k": k} for k in range(5)])
    with pytest.raises(YtResponseError, match="too many rows in tablet"):
        client.insert_rows(table, [{"k": k} for k in range(6)])


def test_the_balancer_is_told_table_by_table(client: Any, root: str) -> None:
    one, other = (make_table(client, f"{root}/{name}", SORTED) for name in ("one", "other"))
    client.set(f"{one}/@tablet_balancer_config/enable_auto_reshard", False)
    assert not client.get(f"{one}/@tablet_balancer_config/enable_auto_reshard")
    assert client.get(f"{other}/@tablet_balancer_config/enable_auto_reshard")


def test_proxies_are_found_while_they_are_up(fresh: testing.Running) -> None:
    down, up = fresh.rpc
    assert fresh.client.proxies.list() == {down: True, up: True}
    fresh.client.proxies.down(down)
    assert fresh.client.proxies.list() == {down: False, up: True}
    fresh.client.proxies.up(down)
    assert fresh.client.proxies.list() == {down: True, up: True}


def test_the_journal_has_labels_and_arguments(fresh: testing.Running) -> None:
    client = connect(fresh)
    fresh.client.set_label("second half")
    client.set("//tmp/x", 1)
    (entry,) = fresh.client.journal("set")
    assert (entry.protocol, entry.args["path"], entry.label) == ("http", "//tmp/x", "second half")
    assert fresh.client.journal(since=entry.n) == []
    fresh.client.journal.clear()
    assert fresh.client.journal.counts() == {}


def test_save_and_load(fresh: testing.Running, tmp_path: Any) -> None:
    client = connect(fresh)
    queue, consumer = make_queue(client, "//tmp")
    client.insert_rows(queue, [{"data": "x", "$tablet_index": 0}] * 5)
    client.advance_queue_consumer(consumer, queue, 0, 0, 2)
    table = make_table(client, "//tmp/t", SORTED)
    client.insert_rows(table, [{"k": 1, "v": "a"}])
    client.write_file("//tmp/f", b"data")
    transaction = client.start_transaction(timeout=600_000)
    with client.Transaction(transaction_id=transaction):
        client.set("//tmp/inside", 1)
    file = tmp_path / "state"
    fresh.client.save(str(file))
    client.remove("//tmp/*")
    fresh.client.load(str(file))
    fresh.client.renew_leases()
    assert len(list(client.pull_queue(queue, 0, 0))) == 5
    with testing.start(load=str(file)) as second:
        other = connect(second)
        assert other.list("//tmp") == client.list("//tmp")
        assert len(list(other.pull_queue_consumer(consumer, queue, None, 0))) == 3
        assert list(other.select_rows(f"v from [{table}]")) == [{"v": "a"}]
        assert other.read_file("//tmp/f").read() == b"data"
        other.commit_transaction(transaction)
        assert other.get("//tmp/inside") == 1
        other.insert_rows(queue, [{"data": "y", "$tablet_index": 0}])
        (last,) = other.pull_queue(queue, 5, 0)
        first = next(other.pull_queue(queue, 0, 0))
        assert last["$timestamp"] > first["$timestamp"]
