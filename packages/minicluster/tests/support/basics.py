"""The basics: what every client of a cluster does, each a few calls and what must come of them.

They are written against the official `yt.wrapper.YtClient`; `test_basics.py` runs them over its
HTTP and its native RPC backend, and over the Java client under the same names.
`python -m packages.minicluster.tests.support.basics` prints them side by side.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import pytest
import yt.wrapper as yt
from yt import yson

from minicluster import testing
from packages.minicluster.tests.support.native_client import telling

Basic = Callable[[Any, str], None]

BASICS: dict[str, Basic] = {}

BACKENDS = ("http", "rpc") if find_spec("yt_driver_rpc_bindings") else ("http",)
"""The native client has wheels for the machines that `ytsaurus-yson` has, and for no others."""

LACKED_BY_JAVA = {
    "create_a_user": "objects of type user",
    "insert_of_a_wrong_type": "a value of a wrong type, which it refuses by itself",
    "push_by_a_producer": "producers",
    "fence_an_old_producer": "producers",
}
"""What the Java client 1.2.17 has no call for (`ApiServiceClient`, `CypressNodeType`)."""


KEYED = [
    {"name": "k", "type": "int64", "sort_order": "ascending"},
    {"name": "v", "type": "string"},
    {"name": "n", "type": "int64"},
]
PLAIN = [{"name": "a", "type": "int64"}, {"name": "b", "type": "string"}]


def basic(function: Basic) -> Basic:
    BASICS[function.__name__] = function
    return function


def connect(http: str, backend: str) -> Any:
    """Return a client of the cluster that shows each error at once."""
    client = yt.YtClient(f"http://{http}", token="any")
    client.config["backend"] = backend
    # The bindings 1.0 take a number as the id of a request; the client has a GUID.
    client.config["enable_passing_request_id_to_driver"] = False
    for group in (client.config["proxy"]["retries"], client.config["dynamic_table_retries"]):
        group["enable"] = False
    return telling(client) if backend == "rpc" else client


def refused(call: Callable[[], object], code: int, part: str | None = None) -> None:
    """Require that the call fails with this code somewhere in its error, and these words."""
    with pytest.raises(yt.YtError, match=part) as caught:
        call()
    assert caught.value.contains_code(code), caught.value


def table(client: Any, path: str, columns: list[dict[str, Any]], **attributes: Any) -> str:
    """Make a mounted dynamic table."""
    keyed = "sort_order" in columns[0]
    schema = yson.to_yson_type(columns, attributes={"strict": True, "unique_keys": keyed})
    client.create("table", path, attributes={"dynamic": True, "schema": schema, **attributes})
    client.mount_table(path, sync=True)
    return path


def keyed(client: Any, root: str) -> str:
    path = table(client, f"{root}/keyed", KEYED)
    client.insert_rows(path, [{"k": k, "v": f"row {k}", "n": 10 * k} for k in (1, 2, 3)])
    return path


def queue(client: Any, root: str, rows: int = 4) -> str:
    path = table(client, f"{root}/queue", PLAIN)
    if rows:
        client.insert_rows(path, [{"a": a, "b": f"row {a}"} for a in range(rows)])
    return path


def consumer(client: Any, root: str, of: str) -> str:
    path = f"{root}/consumer"
    client.create("queue_consumer", path)
    client.mount_table(path, sync=True)
    client.register_queue_consumer(of, path, vital=True)
    return path


def offset(client: Any, of: str) -> int:
    """Return the one offset that a consumer has."""
    (row,) = client.select_rows(f"[offset] from [{of}]")
    return int(row["offset"])


def producer(client: Any, root: str) -> str:
    path = f"{root}/producer"
    client.create("queue_producer", path)
    client.mount_table(path, sync=True)
    return path


def found(client: Any, path: str, *keys: int, **options: Any) -> list[Any]:
    return list(client.lookup_rows(path, [{"k": k} for k in keys], **options))


# Cypress


@basic
def create_and_list(c: Any, root: str) -> None:
    c.create("map_node", f"{root}/a/b", recursive=True)
    assert list(c.list(f"{root}/a")) == ["b"]


@basic
def set_and_get(c: Any, root: str) -> None:
    c.set(f"{root}/node", {"x": [1, 2.5, "three", None, True]})
    assert c.get(f"{root}/node/x") == [1, 2.5, "three", None, True]


@basic
def exists(c: Any, root: str) -> None:
    assert c.exists(root)
    assert not c.exists(f"{root}/no")


@basic
def get_what_is_missing(c: Any, root: str) -> None:
    refused(lambda: c.get(f"{root}/no"), 500)


@basic
def remove(c: Any, root: str) -> None:
    c.set(f"{root}/node", 1)
    c.remove(f"{root}/node")
    assert not c.exists(f"{root}/node")
    c.remove(f"{root}/node", force=True)


@basic
def copy(c: Any, root: str) -> None:
    c.set(f"{root}/a", 1)
    c.copy(f"{root}/a", f"{root}/b")
    assert c.get(root) == {"a": 1, "b": 1}


@basic
def move(c: Any, root: str) -> None:
    c.set(f"{root}/a", 1)
    c.move(f"{root}/a", f"{root}/b")
    assert c.get(root) == {"b": 1}


@basic
def link(c: Any, root: str) -> None:
    c.set(f"{root}/a", 7)
    c.link(f"{root}/a", f"{root}/b")
    assert c.get(f"{root}/b") == 7
    assert c.get(f"{root}/b&/@type") == "link"


@basic
def attributes(c: Any, root: str) -> None:
    c.create("table", f"{root}/t", attributes={"owner_team": "bids"})
    assert c.get(f"{root}/t/@owner_team") == "bids"
    assert c.get(f"{root}/t/@")["type"] == "table"


@basic
def get_with_attributes(c: Any, root: str) -> None:
    c.create("document", f"{root}/d", attributes={"value": {"x": 1}, "mine": 2})
    value = c.get(f"{root}/d", attributes=["type", "mine"])
    assert dict(value) == {"x": 1}
    assert dict(value.attributes) == {"type": "document", "mine": 2}


@basic
def list_with_attributes(c: Any, root: str) -> None:
    c.create("table", f"{root}/t")
    (name,) = c.list(root, attributes=["type"])
    assert (str(name), name.attributes["type"]) == ("t", "table")


@basic
def set_and_remove_an_attribute(c: Any, root: str) -> None:
    c.set_attribute(root, "mine", 1)
    assert c.get_attribute(root, "mine") == 1
    assert "mine" in c.get(f"{root}/@")
    c.remove_attribute(root, "mine")
    assert not c.has_attribute(root, "mine")


@basic
def check_permission(c: Any, root: str) -> None:
    assert c.check_permission("root", "write", root)["action"] == "allow"


@basic
def create_a_user(c: Any, root: str) -> None:
    name = "user-" + root.rsplit("/", 1)[1]
    c.create("user", attributes={"name": name})
    assert c.exists(f"//sys/users/{name}")
    c.remove(f"//sys/users/{name}")


# Files and static tables


@basic
def write_and_read_a_file(c: Any, root: str) -> None:
    data = bytes(range(256)) * 20_000
    c.write_file(f"{root}/f", data)
    assert c.read_file(f"{root}/f").read() == data


@basic
def read_a_part_of_a_file(c: Any, root: str) -> None:
    c.write_file(f"{root}/f", b"0123456789")
    assert c.read_file(f"{root}/f", offset=3, length=4).read() == b"3456"


@basic
def write_and_read_a_static_table(c: Any, root: str) -> None:
    c.create("table", f"{root}/t", attributes={"schema": PLAIN})
    c.write_table(f"{root}/t", [{"a": 1, "b": "x"}, {"a": 2, "b": None}])
    assert list(c.read_table(f"{root}/t")) == [{"a": 1, "b": "x"}, {"a": 2, "b": None}]


@basic
def append_to_a_static_table(c: Any, root: str) -> None:
    path = yt.TablePath(f"{root}/t", append=True)
    c.create("table", f"{root}/t", attributes={"schema": PLAIN})
    for a in (1, 2):
        c.write_table(path, [{"a": a, "b": "x"}])
    assert [row["a"] for row in c.read_table(f"{root}/t")] == [1, 2]


@basic
def read_a_range_of_a_static_table(c: Any, root: str) -> None:
    c.create("table", f"{root}/t", attributes={"schema": PLAIN})
    c.write_table(f"{root}/t", [{"a": a, "b": "x"} for a in range(10)])
    path = yt.TablePath(f"{root}/t", start_index=3, end_index=5)
    assert [row["a"] for row in c.read_table(path)] == [3, 4]


# Master transactions


@basic
def commit_a_master_transaction(c: Any, root: str) -> None:
    with c.Transaction(timeout=60_000):
        c.set(f"{root}/node", 1)
    assert c.get(f"{root}/node") == 1


@basic
def abort_a_master_transaction(c: Any, root: str) -> None:
    tx = c.start_transaction(timeout=60_000)
    with c.Transaction(transaction_id=tx, ping=False):
        c.set(f"{root}/node", 1)
    c.abort_transaction(tx)
    assert not c.exists(f"{root}/node")


@basic
def lock_conflict(c: Any, root: str) -> None:
    tx = c.start_transaction(timeout=60_000)
    with c.Transaction(transaction_id=tx, ping=False):
        c.lock(root)
    refused(lambda: c.set(f"{root}/node", 1), 402)
    c.ping_transaction(tx)
    c.commit_transaction(tx)
    c.set(f"{root}/node", 1)


# Sorted dynamic tables


@basic
def mount_state(c: Any, root: str) -> None:
    path = keyed(c, root)
    assert c.get(f"{path}/@tablet_state") == "mounted"
    c.unmount_table(path, sync=True)
    assert c.get(f"{path}/@tablet_state") == "unmounted"


@basic
def insert_and_lookup(c: Any, root: str) -> None:
    path = keyed(c, root)
    assert found(c, path, 2, 9) == [{"k": 2, "v": "row 2", "n": 20}]


@basic
def lookup_keeps_missing_rows(c: Any, root: str) -> None:
    path = keyed(c, root)
    assert found(c, path, 9, 1, column_names=["k"], keep_missing_rows=True) == [None, {"k": 1}]


@basic
def lookup_at_a_timestamp(c: Any, root: str) -> None:
    path = keyed(c, root)
    before = c.generate_timestamp()
    c.insert_rows(path, [{"k": 1, "v": "new", "n": 0}])
    assert found(c, path, 1, timestamp=before)[0]["v"] == "row 1"


@basic
def select(c: Any, root: str) -> None:
    path = keyed(c, root)
    rows = list(c.select_rows(f"sum(n) as total from [{path}] where k > 1 group by 1"))
    assert rows == [{"total": 50}]


@basic
def update_some_columns(c: Any, root: str) -> None:
    path = keyed(c, root)
    c.insert_rows(path, [{"k": 1, "n": 11}], update=True)
    assert found(c, path, 1) == [{"k": 1, "v": "row 1", "n": 11}]


@basic
def delete(c: Any, root: str) -> None:
    path = keyed(c, root)
    c.delete_rows(path, [{"k": 2}])
    assert [row["k"] for row in c.select_rows(f"k from [{path}]")] == [1, 3]


@basic
def insert_of_a_wrong_type(c: Any, root: str) -> None:
    path = keyed(c, root)
    refused(lambda: c.insert_rows(path, [{"k": "text", "v": "x", "n": 1}]), 307)


@basic
def reshard_by_pivot_keys(c: Any, root: str) -> None:
    path = keyed(c, root)
    c.unmount_table(path, sync=True)
    c.reshard_table(path, [[], [2]], sync=True)
    c.mount_table(path, sync=True)
    assert c.get(f"{path}/@pivot_keys") == [[], [2]]
    assert [row["k"] for row in found(c, path, 1, 2, 3)] == [1, 2, 3]


@basic
def freeze_and_unfreeze(c: Any, root: str) -> None:
    path = keyed(c, root)
    c.freeze_table(path, sync=True)
    refused(lambda: c.insert_rows(path, [{"k": 7, "v": "x", "n": 1}]), 1702)
    c.unfreeze_table(path, sync=True)
    c.insert_rows(path, [{"k": 7, "v": "x", "n": 1}])


@basic
def insert_into_an_unmounted_table(c: Any, root: str) -> None:
    path = keyed(c, root)
    c.unmount_table(path, sync=True)
    refused(lambda: c.insert_rows(path, [{"k": 7, "v": "x", "n": 1}]), 1702)


@basic
def alter_the_schema(c: Any, root: str) -> None:
    path = keyed(c, root)
    c.unmount_table(path, sync=True)
    c.alter_table(path, schema=[*KEYED, {"name": "more", "type": "string"}])
    c.mount_table(path, sync=True)
    assert found(c, path, 1) == [{"k": 1, "v": "row 1", "n": 10, "more": None}]


@basic
def tablet_infos(c: Any, root: str) -> None:
    path = queue(c, root)
    (info,) = c.get_tablet_infos(path, [0])["tablets"]
    assert (info["total_row_count"], info["trimmed_row_count"]) == (4, 0)


# Tablet transactions


@basic
def commit_a_tablet_transaction(c: Any, root: str) -> None:
    one, two = keyed(c, root), queue(c, root, 0)
    with c.Transaction(type="tablet"):
        c.insert_rows(one, [{"k": 5, "v": "x", "n": 1}])
        c.insert_rows(one, [{"k": 6, "v": "x", "n": 1}])
        c.insert_rows(two, [{"a": 1, "b": "x"}])
    assert len(found(c, one, 5, 6)) == 2
    assert len(list(c.select_rows(f"a from [{two}]"))) == 1


@basic
def abort_a_tablet_transaction(c: Any, root: str) -> None:
    path = keyed(c, root)
    tx = c.start_transaction(type="tablet", timeout=60_000)
    with c.Transaction(transaction_id=tx, ping=False):
        c.insert_rows(path, [{"k": 5, "v": "x", "n": 1}])
    c.abort_transaction(tx)
    assert found(c, path, 5) == []


@basic
def write_conflict(c: Any, root: str) -> None:
    path = keyed(c, root)
    tx = c.start_transaction(type="tablet", timeout=60_000)
    with c.Transaction(transaction_id=tx, ping=False):
        c.insert_rows(path, [{"k": 1, "v": "mine", "n": 1}])
    c.insert_rows(path, [{"k": 1, "v": "theirs", "n": 1}])
    refused(lambda: c.commit_transaction(tx), 1700)
    assert found(c, path, 1)[0]["v"] == "theirs"


# Queues, consumers, producers


@basic
def pull_a_queue(c: Any, root: str) -> None:
    path = queue(c, root)
    rows = list(c.pull_queue(path, offset=1, partition_index=0, max_row_count=2))
    assert [(row["a"], row["$row_index"]) for row in rows] == [(1, 1), (2, 2)]


@basic
def trim_a_queue(c: Any, root: str) -> None:
    path = queue(c, root)
    c.trim_rows(path, 0, 2)
    assert [row["a"] for row in c.select_rows(f"a from [{path}]")] == [2, 3]


@basic
def reshard_a_queue(c: Any, root: str) -> None:
    path = queue(c, root)
    c.unmount_table(path, sync=True)
    c.reshard_table(path, tablet_count=3, sync=True)
    c.mount_table(path, sync=True)
    assert c.get(f"{path}/@tablet_count") == 3
    assert len(list(c.select_rows(f"a from [{path}]"))) == 4


@basic
def choose_a_tablet(c: Any, root: str) -> None:
    path = table(c, f"{root}/queue", PLAIN, tablet_count=3)
    c.insert_rows(path, [{"$tablet_index": 2, "a": 1, "b": "x"}])
    assert [row["a"] for row in c.pull_queue(path, offset=0, partition_index=2)] == [1]


@basic
def register_a_consumer(c: Any, root: str) -> None:
    path = queue(c, root)
    reader = consumer(c, root, path)
    (known,) = c.list_queue_consumer_registrations(queue_path=path)
    assert str(known["consumer_path"]).endswith(reader)
    c.unregister_queue_consumer(path, reader)
    assert not c.list_queue_consumer_registrations(queue_path=path)


@basic
def pull_and_advance_a_consumer(c: Any, root: str) -> None:
    path = queue(c, root)
    reader = consumer(c, root, path)
    rows = list(c.pull_queue_consumer(reader, path, offset=0, partition_index=0))
    assert [row["a"] for row in rows] == [0, 1, 2, 3]
    c.advance_queue_consumer(reader, path, 0, 0, 3)
    assert offset(c, reader) == 3


@basic
def advance_from_a_wrong_offset(c: Any, root: str) -> None:
    path = queue(c, root)
    reader = consumer(c, root, path)
    refused(lambda: c.advance_queue_consumer(reader, path, 0, 2, 3), 3100)


@basic
def advance_in_a_transaction(c: Any, root: str) -> None:
    path = queue(c, root)
    reader = consumer(c, root, path)
    output = keyed(c, root)
    with c.Transaction(type="tablet"):
        c.advance_queue_consumer(reader, path, 0, 0, 4)
        c.insert_rows(output, [{"k": 8, "v": "x", "n": 1}])
    assert offset(c, reader) == 4


@basic
def push_by_a_producer(c: Any, root: str) -> None:
    path, by = queue(c, root, 0), producer(c, root)
    session = c.create_queue_producer_session(by, path, "session")
    assert (session["epoch"], session["sequence_number"]) == (0, -1)
    rows = [{"$sequence_number": n, "a": n, "b": "x"} for n in (1, 2)]
    pushed = c.push_queue_producer(by, path, "session", 0, rows)
    assert (pushed["last_sequence_number"], pushed["skipped_row_count"]) == (2, 0)
    pushed = c.push_queue_producer(by, path, "session", 0, rows)
    assert pushed["skipped_row_count"] == 2
    assert len(list(c.select_rows(f"a from [{path}]"))) == 2


@basic
def fence_an_old_producer(c: Any, root: str) -> None:
    path, by = queue(c, root, 0), producer(c, root)
    for epoch in (0, 1):
        assert c.create_queue_producer_session(by, path, "session")["epoch"] == epoch
    rows = [{"$sequence_number": 1, "a": 1, "b": "x"}]
    refused(lambda: c.push_queue_producer(by, path, "session", 0, rows), 3102)
    c.remove_queue_producer_session(by, path, "session")


def outcome(name: str, client: Any, root: str) -> str:
    """Run one of the basics in a folder of its own; return "" or what went wrong."""
    client.create("map_node", root, recursive=True)
    try:
        BASICS[name](client, root)
    except Exception as error:  # whatever it is, it belongs into the table
        return f"{type(error).__name__}: {error}"
    return ""


def main() -> int:
    """Print a line for each of the basics; 1 if one of them failed."""
    # Here, since it takes the packages that Spark needs.
    from packages.minicluster.tests.support import java_client
    from packages.minicluster.tests.support.java_values import LacksError

    failures: list[str] = []
    with testing.start(rpc_proxies=1) as cluster, java_client.connect(cluster.http) as java:
        clients = {backend: connect(cluster.http, backend) for backend in BACKENDS}
        clients["java"] = java
        print(f"{'':36}" + "".join(f"{name:8}" for name in clients))
        for name in BASICS:
            line = f"{name.replace('_', ' '):36}"
            for title, client in clients.items():
                wrong = outcome(name, client, f"//tmp/{title}/{name}")
                if wrong.startswith(LacksError.__name__):
                    line += f"{'-':8}"
                    continue
                line += f"{'no' if wrong else 'yes':8}"
                failures += [f"{name} ({title}): {wrong[:600]}"] if wrong else []
            print(line.rstrip(), flush=True)
    lacking = "; ".join(dict.fromkeys(LACKED_BY_JAVA.values()))
    print(f"\n{len(BASICS)} basics. -: the Java client has no call for it, which are: {lacking}")
    print(f"{len(failures)} failures", *failures, sep="\n")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
