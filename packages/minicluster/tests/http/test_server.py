"""Requests that no proper client makes: each gets an error or loses its connection, and the server
lives on with its state unchanged."""

from __future__ import annotations

import gzip
import json
import random
import socket
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from typing import Any

import pytest
import requests

from minicluster import testing
from minicluster.http import bodies
from packages.minicluster.tests.conftest import connect

YSON_HEADERS = {"X-YT-Header-Format": "<format=text>yson"}


@pytest.fixture(scope="module")
def server() -> Iterator[testing.Running]:
    with testing.start() as running:
        yield running


@pytest.fixture(autouse=True)
def _unharmed(server: testing.Running) -> Iterator[None]:
    client = connect(server)
    before = client.get("/")
    yield
    assert client.get("/") == before


def api(server: testing.Running, command: str = "") -> str:
    return f"http://{server.http}/api/v4/{command}"


def error_of(response: requests.Response) -> dict[str, Any]:
    """Return the error, on which the headers and the body agree."""
    error: dict[str, Any] = json.loads(response.headers["X-YT-Error"])
    assert response.json() == error
    assert int(response.headers["X-YT-Response-Code"]) == error["code"]
    return error


def test_what_the_spark_connector_asks(server: testing.Running) -> None:
    headers = {
        "X-YT-Header-Format": '<"format"="text";>"yson"',
        "X-YT-Output-Format": '<"format"="text";>"yson"',
        "Authorization": "OAuth any",
        "Connection": "Upgrade, HTTP2-Settings",
        "Upgrade": "h2c",
    }
    answer = requests.get(api(server, "discover_proxies?type=rpc"), headers=headers, timeout=10)
    assert answer.status_code == 200
    assert server.rpc[0] in answer.text
    assert answer.text.startswith('{"proxies"=[')
    assert requests.get(f"http://{server.http}/hosts", timeout=10).json() == [server.http]


def test_parameters_by_query_and_json_answers(server: testing.Running) -> None:
    answer = requests.get(api(server, "get?path=//tmp/@type"), timeout=10)
    assert answer.json() == {"value": "map_node"}
    with_attributes = {"path": "//tmp", "attributes": ["type"]}
    headers = {"X-YT-Parameters": json.dumps(with_attributes)}
    answer = requests.get(api(server, "get"), headers=headers, timeout=10)
    assert answer.json() == {"value": {"$value": {}, "$attributes": {"type": "map_node"}}}


@pytest.mark.parametrize(
    ("command", "headers"),
    [
        ("get", {}),
        ("get", {"X-YT-Parameters": "{"}),
        ("get", {"X-YT-Parameters": "[]"}),
        ("get", {"X-YT-Parameters": '{"path": 5}'}),
        ("get", {"X-YT-Parameters": '{"path": "nonsense"}'}),
        ("get", {"X-YT-Parameters": '{"path": "//tmp", "transaction_id": "xyz"}'}),
        ("get", {"X-YT-Parameters": '{"path": "//tmp", "transaction_id": "1-2-10001-3"}'}),
        ("get", {"X-YT-Parameters": '{"path": "//tmp", "output_format": "skiff"}'}),
        ("get", {"X-YT-Parameters": "{path=//tmp", **YSON_HEADERS}),
        ("get", {"X-YT-Parameters": "[" * 100_000, **YSON_HEADERS}),
        ("get", {"X-YT-Header-Format": "<", "X-YT-Parameters": "{}"}),
        ("list", {"X-YT-Parameters": '{"path": "//tmp", "max_size": "many"}'}),
        ("get_tablet_infos", {"X-YT-Parameters": '{"path": "//tmp", "tablet_indexes": [0]}'}),
        ("select_rows", {"X-YT-Parameters": '{"query": "drop table"}'}),
        ("read_file", {"X-YT-Parameters": '{"path": "//tmp"}'}),
        ("pull_queue", {"X-YT-Parameters": '{"queue_path": "//tmp", "offset": 0}'}),
    ],
)
def test_wrong_parameters(server: testing.Running, command: str, headers: dict[str, str]) -> None:
    answer = requests.get(api(server, command), headers=headers, timeout=10)
    assert answer.status_code == 400
    assert error_of(answer)["message"]


@pytest.mark.parametrize(
    ("command", "parameters"),
    [
        ("create", {"type": "map_node", "path": "//tmp/x", "recursive": "maybe"}),
        ("create", {"type": "map_node", "path": "//tmp/x", "attributes": 5}),
        ("create", {"type": "map_node", "path": "//tmp/@x"}),
        ("create", {"type": "table", "path": "//tmp/x", "attributes": {"schema": "nonsense"}}),
        ("create", {"type": "table", "path": "//tmp/x", "attributes": {"schema": [{"a": 1}]}}),
        ("create", {"type": "link", "path": "//tmp/x"}),
        ("create", {"type": "account"}),
        ("start_transaction", {"timeout": -1}),
        ("start_transaction", {"type": "nonsense"}),
        ("start_transaction", {"deadline": "tomorrow"}),
        ("start_transaction", {"prerequisite_transaction_ids": 5}),
        ("commit_transaction", {}),
        ("commit_transaction", {"transaction_id": "0-0-0-0"}),
        ("commit_transaction", {"transaction_id": "1-2-10002-3"}),
        ("lock", {"path": "//tmp", "mode": "exclusive"}),
        ("mount_table", {"path": "//tmp"}),
        ("alter_table", {"path": "//tmp"}),
        ("reshard_table", {"path": "//tmp", "tablet_count": "x"}),
        ("execute_batch", {"requests": [1]}),
        ("register_queue_consumer", {"queue_path": "//a", "consumer_path": "//b"}),
        ("create", {"type": "map_node", "path": "//tmp/x", "output_format": "yamr"}),
        ("create", {"type": "map_node", "path": "//tmp/x", "output_format": 5}),
        ("remove", {"path": "//tmp/@/"}),
    ],
)
def test_wrong_changes(server: testing.Running, command: str, parameters: dict[str, Any]) -> None:
    answer = requests.post(api(server, command), json=parameters, timeout=10)
    assert answer.status_code == 400
    assert error_of(answer)["message"]
    assert "Internal error" not in error_of(answer)["message"]


@pytest.mark.parametrize("body", [b'{"a": "\\ud800"}', b'{"\\ud800": 1}', b'["\\udfff"]'])
@pytest.mark.parametrize("command", ["insert_rows", "set"])
@pytest.mark.parametrize("encode_utf8", [True, False])
def test_halves_of_a_surrogate_pair(
    server: testing.Running, command: str, body: bytes, encode_utf8: bool
) -> None:
    spoken = {"$value": "json", "$attributes": {"encode_utf8": encode_utf8}}
    parameters = {"path": "//tmp/x", "input_format": spoken}
    headers = {"X-YT-Parameters": json.dumps(parameters)}
    answer = requests.put(api(server, command), data=body, headers=headers, timeout=10)
    assert answer.status_code == 400
    expected = "greater than 255" if encode_utf8 else "surrogate"
    assert expected in error_of(answer)["message"]


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("identity", b"{"),
        ("identity", b"\xff\xfe"),
        ("identity", b"["),
        ("gzip", b"not gzip"),
        ("gzip", gzip.compress(b"{a=1};", mtime=0)[:-9]),
        ("gzip", zlib.compress(b"{a=1};" * 1000)[:-50]),
        ("z-lz4", b"x"),
        ("br", b"\xff\xff"),
    ],
)
@pytest.mark.parametrize("command", ["insert_rows", "set"])
def test_wrong_bodies(server: testing.Running, command: str, encoding: str, body: bytes) -> None:
    headers = {
        "Content-Encoding": encoding,
        "X-YT-Parameters": '{"path": "//tmp/x"}',
    }
    answer = requests.put(api(server, command), data=body, headers=headers, timeout=10)
    assert answer.status_code == 400
    assert error_of(answer)["message"]


@pytest.mark.parametrize("path", ["//tmp", "//tmp/@", "//tmp/@mine/@"])
@pytest.mark.parametrize("command", ["multiset_attributes", "set"])
@pytest.mark.parametrize("body", [b"5", b'"text"', b"#", b"[1]", b"%true", b'{"\\xff"=1}'])
def test_attributes_that_are_no_map(
    server: testing.Running, command: str, path: str, body: bytes
) -> None:
    headers = {"X-YT-Parameters": json.dumps({"path": path, "force": True})}
    answer = requests.put(api(server, command), data=body, headers=headers, timeout=10)
    assert answer.status_code == 400
    assert "Internal error" not in error_of(answer)["message"]


@pytest.mark.parametrize(
    "value", [b'{a={"\\xff"=1}}', b'{a=<"\\xff"=1>{}}', b"{a={" + b"b" * 5000 + b"=1}}"]
)
def test_names_below_a_set_map_are_checked_before_anything_changes(
    server: testing.Running, value: bytes
) -> None:
    def put(path: str, body: bytes) -> requests.Response:
        headers = {"X-YT-Parameters": json.dumps({"path": path, "force": True})}
        return requests.put(api(server, "set"), data=body, headers=headers, timeout=10)

    client = connect(server)
    assert put("//tmp/names", b"{kept=5}").status_code == 200
    answer = put("//tmp/names", value)
    assert answer.status_code == 400
    assert "Internal error" not in error_of(answer)["message"]
    assert client.get("//tmp/names") == {"kept": 5}
    client.remove("//tmp/names", recursive=True)


@pytest.mark.parametrize(
    "request_in_it",
    [
        {"command": "read_file", "parameters": {"path": "//tmp/x"}},
        {"command": "insert_rows", "parameters": {"path": "//tmp/x"}, "input": 5},
        {"command": "select_rows", "parameters": {"query": "* from [//tmp]"}},
        {"command": "nonsense"},
        {"command": ["get"]},
        {"command": "get", "parameters": 5},
    ],
)
def test_what_has_no_place_in_a_batch(
    server: testing.Running, request_in_it: dict[str, Any]
) -> None:
    requests_in_it = [request_in_it, {"command": "get", "parameters": {"path": "//tmp/@type"}}]
    answer = requests.post(
        api(server, "execute_batch"), json={"requests": requests_in_it}, timeout=10
    )
    assert answer.status_code == 400
    assert "Internal error" not in error_of(answer)["message"]


def test_gzip_as_the_standard_has_it(server: testing.Running) -> None:
    headers = {"Content-Encoding": "gzip", "X-YT-Parameters": '{"path": "//tmp/x"}'}
    data = gzip.compress(b"[1;") + gzip.compress(b"2]")
    assert requests.put(api(server, "set"), data=data, headers=headers, timeout=10).ok
    client = connect(server)
    assert client.get("//tmp/x") == [1, 2]
    client.remove("//tmp/x")


@pytest.mark.thorough
def test_a_body_that_grows_beyond_the_limit(server: testing.Running) -> None:
    # The limit is reached at a member's end: not even the next one's first byte may come out.
    bomb = gzip.compress(bytes(1 << 20)) * (bodies.MAX_BODY // (1 << 20) + 1)
    headers = {"Content-Encoding": "gzip", "X-YT-Parameters": '{"path": "//tmp/x"}'}
    answer = requests.put(api(server, "write_file"), data=bomb, headers=headers, timeout=60)
    assert answer.status_code == 413
    assert "larger than" in error_of(answer)["message"]


def test_unknown_commands_versions_and_pages(server: testing.Running) -> None:
    assert requests.get(api(server, "no_such_command"), timeout=10).status_code == 404
    assert requests.get(f"http://{server.http}/api/v9/get", timeout=10).status_code == 400
    assert requests.get(f"http://{server.http}/nowhere", timeout=10).status_code == 404
    assert requests.get(f"http://{server.http}/api", timeout=10).json() == ["v4"]


def test_a_long_error_is_in_the_body(server: testing.Running) -> None:
    path = "//tmp/" + "x" * 20_000
    headers = {"X-YT-Parameters": json.dumps({"path": path})}
    answer = requests.get(api(server, "get"), headers=headers, timeout=10)
    assert answer.status_code == 400
    assert "X-YT-Error" not in answer.headers
    assert path in answer.json()["message"]


def test_the_mark_of_a_files_state(server: testing.Running) -> None:
    client = connect(server)
    client.write_file("//tmp/marked", b"data")
    state = f"{client.get('//tmp/marked/@id')}:{client.get('//tmp/marked/@revision')}"

    def read(mark: str) -> requests.Response:
        url = api(server, "read_file?path=//tmp/marked")
        return requests.get(url, headers={"If-None-Match": mark}, timeout=10)

    first = read("1-2-3-4:5")
    assert (first.status_code, first.content) == (200, b"data")
    assert first.headers["ETag"] == state
    assert json.loads(first.headers["X-YT-Response-Parameters"])["id"] == state.split(":")[0]
    for known in (state, state.split(":")[1]):
        again = read(known)
        assert (again.status_code, again.content) == (304, b"")
        assert again.headers["ETag"] == state
    client.remove("//tmp/marked")


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"type": "replicated_table", "path": "//tmp/t"}, "not supported by minicluster: creating"),
        ({"type": "rack", "attributes": {"name": "r"}}, "not supported by minicluster: creating"),
        ({"type": "table", "path": "//tmp/t", "attributes": {"external": True}}, "external nodes"),
        ({"type": "spoon", "path": "//tmp/t"}, 'Error parsing EObjectType value "spoon"'),
        ({"type": "spoon"}, 'Error parsing EObjectType value "spoon"'),
        ({"type": "map_node"}, "without a path"),
    ],
)
def test_what_only_a_real_cluster_creates(
    server: testing.Running, parameters: dict[str, Any], message: str
) -> None:
    answer = requests.post(api(server, "create"), json=parameters, timeout=10)
    assert message in error_of(answer)["message"]


def test_objects_that_are_there_may_be_ignored(server: testing.Running) -> None:
    client = connect(server)
    given: dict[str, Any] = {"type": "user", "attributes": {"name": "ann"}}

    def create(**more: Any) -> requests.Response:
        return requests.post(api(server, "create"), json=given | more, timeout=10)

    first = create()
    assert error_of(create())["code"] == 501
    assert create(ignore_existing=True).json() == first.json()
    assert client.get("//sys/users/ann/@member_of") == ["users"]
    client.remove("//sys/users/ann")


def test_what_is_made_again_is_in_no_old_group(server: testing.Running) -> None:
    client = connect(server)
    for _ in range(2):
        client.create("user", attributes={"name": "bob"})
        client.create("group", attributes={"name": "cooks"})
        assert client.get("//sys/groups/cooks/@members") == []
        client.add_member("bob", "cooks")
        client.add_member("cooks", "admins")
        with pytest.raises(Exception, match="would produce a cycle"):
            client.add_member("admins", "cooks")
        assert "bob" in client.get("//sys/groups/users/@members")
        assert client.get("//sys/groups/admins/@members") == ["cooks"]
        client.remove("//sys/groups/cooks")
        assert client.get("//sys/users/bob/@member_of") == ["users"]
        client.create("group", attributes={"name": "cooks"})
        assert client.get("//sys/groups/cooks/@members") == []
        client.remove("//sys/groups/cooks")
        client.remove("//sys/users/bob")
        assert "bob" not in client.get("//sys/groups/users/@members")
        client.create("user", attributes={"name": "bob"})
        assert client.get("//sys/users/bob/@member_of") == ["users"]
        client.remove("//sys/users/bob")


def test_wrong_control_requests(server: testing.Running) -> None:
    root = f"http://{server.http}/minicluster"
    wrong: list[tuple[str, Any]] = [
        ("faults", {"action": "nonsense"}),
        ("faults", {"unknown": 1}),
        ("faults", {}),
        ("faults", {"action": "kill", "pid": 1}),
        ("faults/99/wait", {}),
        ("faults/x/wait", {}),
        ("faults", {"action": "hold", "when": "after"}),
        ("faults/99/release", {}),
        ("faults/x/release", {}),
        ("clock", {"advance": -1}),
        ("clock", {"advance": "soon"}),
        ("save", {"path": "relative"}),
        ("load", {"path": "/nowhere/state"}),
        ("proxies", {"address": "nowhere", "up": False}),
    ]
    for path, body in wrong:
        answer = requests.post(f"{root}/{path}", json=body, timeout=10)
        assert answer.status_code == 400, (path, body)
        assert error_of(answer)["message"]
    assert requests.post(f"{root}/clock", data="{", timeout=10).status_code == 400


def raw(server: testing.Running, data: bytes) -> bytes:
    """Send bytes and read until the server has answered or closed."""
    host, port = server.http.split(":")
    found = b""
    with (
        socket.create_connection((host, int(port)), timeout=10) as connection,
        suppress(ConnectionError),
    ):
        connection.sendall(data)
        with suppress(OSError):  # the server may have closed already
            connection.shutdown(socket.SHUT_WR)
        while piece := connection.recv(65536):
            found += piece
    return found


def test_garbage_on_the_wire(server: testing.Running) -> None:
    seeded = random.Random(7)
    whole = (
        b"PUT /api/v4/set HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n"
        b'X-YT-Parameters: {"path": "//tmp"}\r\n\r\n"abc"'
    )
    for _ in range(300):
        data = bytearray(whole[: seeded.randrange(1, len(whole))])
        for _ in range(seeded.randrange(4)):
            data[seeded.randrange(len(data))] = seeded.randrange(256)
        raw(server, bytes(data))


def test_headers_without_an_end(server: testing.Running) -> None:
    answer = raw(server, b"GET / HTTP/1.1\r\nX: " + b"y" * (3 << 20))
    assert answer[:12] in (b"", b"HTTP/1.0 400", b"HTTP/1.1 400")


def test_a_thousand_connections_and_clients_that_do_not_read(server: testing.Running) -> None:
    host, port = server.http.split(":")
    client = connect(server)
    client.write_file("//tmp/big", bytes(20_000_000))
    request = b'GET /api/v4/read_file HTTP/1.1\r\nHost: x\r\nX-YT-Parameters: {"path":"//tmp/big"}'
    with ExitStack() as stack:
        for number in range(1000):
            connection = socket.create_connection((host, int(port)), timeout=10)
            stack.enter_context(connection)
            if number < 5:
                connection.sendall(request + b"\r\n\r\n")
            else:
                connection.sendall(b"GET /ping HTTP/1.1\r\nHost: x\r\n")
        assert client.get("//tmp/big/@uncompressed_data_size") == 20_000_000
    client.remove("//tmp/big")


@pytest.mark.slow
def test_rows_in_a_batch(server: testing.Running) -> None:
    client = connect(server)
    schema = [{"name": "a", "type": "int64"}]
    client.create("table", "//tmp/t", attributes={"dynamic": True, "schema": schema})
    client.mount_table("//tmp/t", sync=True)
    insert: Any = {"command": "insert_rows", "parameters": {"path": "//tmp/t"}, "input": [{"a": 1}]}
    answer = requests.post(api(server, "execute_batch"), json={"requests": [insert]}, timeout=10)
    assert answer.json() == {"results": [{}]}
    assert list(client.select_rows("a from [//tmp/t]")) == [{"a": 1}]
    client.remove("//tmp/t")
