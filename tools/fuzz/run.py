"""A seeded fuzzer of the whole server: `python -m tools.fuzz.run --seconds 120 --seed 1`.

Every input goes through a front end into a cluster in this process. A request that was refused must
have changed nothing; every so often an ordinary client does its work over both protocols, the state
must be all of a piece, and as many rows must be there as were accepted.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import faulthandler
import gzip
import io
import json
import struct
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import aiohttp
from yt import yson

from minicluster.cluster import Cluster
from minicluster.control.gate import Gate
from minicluster.control.parameters import Known
from minicluster.core.clock import Clock
from minicluster.core.errors import YtError
from minicluster.http.commands import COMMANDS
from minicluster.http.formats import Format, of_header
from minicluster.http.registry import BINARY, NULL, STRUCTURED, Command
from minicluster.http.server import UNWRITABLE, HttpServer
from minicluster.rpc import bus, protos, server
from minicluster.rpc.methods import METHODS
from minicluster.rpc.parameters import PARTS
from minicluster.rpc.service import Service
from packages.minicluster.tests.support.rpc_client import RpcClient, build
from tools.fuzz.inputs import NODE_TYPES, Inputs
from tools.fuzz.state import fingerprint, inconsistencies, rows

ROUND = 200
"""Inputs between two looks at the server as a whole, after which a new cluster takes over."""
HANG = 60.0
"""Seconds without a finished input after which the run is given up, with a stack trace."""
PATIENCE = 0.05
"""Seconds until a connection without an answer counts as one that waits for the rest."""
QUEUE, KEYED = "//fuzz/queue", "//fuzz/keyed"
LONGEST_HEADER = 8_000
"""Bytes that aiohttp takes in one header line (max_field_size)."""
COLUMNS = [{"name": "v", "type": "string"}, {"name": "n", "type": "int64"}]


class DefectError(AssertionError):
    """The server did what no input may make it do."""


class Still(Clock):
    """A clock that does not move, so that nothing expires and a seed repeats a run."""

    def now(self) -> float:
        return 1_800_000_000.0 + self.offset


class Wire(asyncio.Transport):
    """The server's side of a connection that is not there."""

    def __init__(self) -> None:
        super().__init__()
        self.sent = bytearray()
        self.closed = False

    def write(self, data: Any) -> None:
        self.sent += data

    def writelines(self, pieces: Any) -> None:
        self.sent += b"".join(pieces)

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    abort = close

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


class Target:
    """One cluster with both front ends, and what has been accepted of the inputs so far."""

    def __init__(self, seed: int) -> None:
        self.cluster = Cluster(clock=Still())
        self.gate = Gate(self.cluster.tick)
        self.inputs = Inputs(seed, self.cluster)
        self.http = HttpServer(self.cluster, self.gate)
        self.proxy: server.RpcProxy
        self.session: aiohttp.ClientSession

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        self._furnish()
        await self.http.start("127.0.0.1", 0)
        self.proxy = await server.serve(self.cluster, self.gate, "127.0.0.1")
        timeout = aiohttp.ClientTimeout(total=HANG / 2)
        try:
            async with aiohttp.ClientSession(auto_decompress=False, timeout=timeout) as session:
                self.session = session
                yield
        finally:
            await self.proxy.down()
            await self.http.stop()

    def _furnish(self) -> None:
        cypress, tables = self.cluster.cypress, self.cluster.tables
        cypress.create("map_node", "//fuzz/map/deep", recursive=True)
        cypress.create("document", "//fuzz/document", attributes={"value": {"a": [1, {"b": 2}]}})
        cypress.create("file", "//fuzz/file")
        cypress.write_file("//fuzz/file", b"contents")
        cypress.link("//fuzz/map", "//fuzz/link")
        key = {"name": "k", "type": "int64", "sort_order": "ascending"}
        unique = {"strict": True, "unique_keys": True}
        keyed = yson.to_yson_type([key, *COLUMNS], attributes=unique)
        for path, schema, dynamic in (
            (QUEUE, COLUMNS, True),
            (KEYED, keyed, True),
            ("//fuzz/static", COLUMNS, False),
        ):
            attributes: dict[str, Any] = {"schema": schema, "dynamic": dynamic}
            if path == QUEUE:
                attributes["tablet_count"] = 2
            cypress.create("table", path, attributes=attributes)
            if dynamic:
                tables.mount(path)
        cypress.create("queue_consumer", "//fuzz/consumer")
        cypress.create("queue_producer", "//fuzz/producer")
        self.cluster.queues.register(QUEUE, "//fuzz/consumer", True)
        self.cluster.transactions.start()
        self.cluster.tablet_transactions.start(proxy="http")

    # RPC

    async def rpc(self, packet: bytes) -> tuple[str, str]:
        """Return (outcome, message of the error) of one packet on a connection of its own."""
        wire, before = Wire(), asyncio.all_tasks()
        service = Service(self.cluster, self.gate, self.proxy.address, METHODS)
        connection = server.Connection(service, set())
        connection.connection_made(wire)
        for start in range(0, len(packet), 1 << 16):
            if not wire.closed:
                connection.data_received(packet[start : start + (1 << 16)])
        tasks = asyncio.all_tasks() - before
        for _ in range(20):
            if all(task.done() for task in tasks):
                break
            await asyncio.sleep(0)
        closed = wire.closed
        connection.connection_lost(None)  # ends the streams that wait for their client
        for task in tasks:
            with contextlib.suppress(asyncio.CancelledError):
                await task
        return self._read(bytes(wire.sent), closed)

    @staticmethod
    def _read(sent: bytes, closed: bool) -> tuple[str, str]:
        machine = bus.Bus()
        machine.receive(sent)
        while (event := machine.next_event()) is not None:
            if not isinstance(event, bus.Message) or not event.parts[0]:
                continue
            if event.parts[0][:4] == b"rpco":
                header = protos.rpc("TResponseHeader").FromString(event.parts[0][4:])
                if header.error.code:
                    return "refused", str(header.error.message)
                return "accepted", ""
        return ("closed", "") if closed else ("waits", "")

    def call(self, method: str, body: bytes, attachments: list[bus.Part]) -> list[bus.Part]:
        """Return the parts of a request."""
        service = next(service for service, name in METHODS if name == method)
        header = protos.rpc("TRequestHeader")(service=service, method=method)
        header.request_id.first = header.request_id.second = 9
        framed = struct.pack("<II", 0, len(body)) + body
        return [b"rpci" + header.SerializeToString(), framed, *attachments]

    def message(self) -> tuple[str, bytes, list[bus.Part]]:
        """Return (method, body, attachments) of a request that is nearly right."""
        inputs = self.inputs
        (_, method), entry = inputs.pick(list(METHODS.items()))
        filled = inputs.fill(protos.message(entry.request)())
        if inputs.chance(0.9):
            _clear_unknown(entry.known, filled)
        attachments: list[bus.Part] = []
        if "rowset_descriptor" in filled.DESCRIPTOR.fields_by_name:
            attachments = [inputs.rowset()]
        return method, filled.SerializePartialToString(), attachments

    # HTTP

    async def ask(self, command: Command, headers: dict[str, str], body: bytes) -> tuple[str, str]:
        """Return (outcome, message of the error) of one request."""
        verb = "PUT" if command.input != NULL else "POST" if command.volatile else "GET"
        url = f"http://{self.http.address}/api/v4/{command.name}"
        async with self.session.request(verb, url, headers=headers, data=body) as response:
            answer = await response.read()
        if response.status == 200:
            return "accepted", ""
        if response.status not in (400, 404, 413):
            raise DefectError(f"{command.name}: status {response.status}: {answer[:200]!r}")
        if max(map(len, headers.values()), default=0) > LONGEST_HEADER:
            # Refused before the request is read, by the HTTP library and in its words.
            return "refused", "header too long"
        error = json.loads(answer)
        if not error["message"]:
            raise DefectError(f"{command.name}: an error without a message")
        return "refused", str(error["message"])

    def parameters(self, command: Command) -> dict[str, Any]:
        inputs = self.inputs
        makers: dict[str, Callable[[], Any]] = {
            **dict.fromkeys(("path", "source_path", "destination_path"), inputs.path),
            **dict.fromkeys(("target_path", "link_path"), inputs.path),
            "queue_path": lambda: QUEUE if inputs.chance(0.7) else inputs.path(),
            "consumer_path": lambda: "//fuzz/consumer" if inputs.chance(0.7) else inputs.path(),
            "producer_path": lambda: "//fuzz/producer" if inputs.chance(0.7) else inputs.path(),
            "query": inputs.query,
            "schema": inputs.schema,
            "attributes": inputs.attributes,
            "type": lambda: inputs.pick(NODE_TYPES),
            "mode": lambda: inputs.pick(["exclusive", "shared", "snapshot", "none", 5]),
            "session_id": lambda: inputs.pick(["s", "", 5]),
            "requests": lambda: [
                {"command": inputs.pick(list(COMMANDS)), "parameters": {"path": inputs.path()}}
            ],
            **dict.fromkeys(_FLAGS, lambda: inputs.chance(0.5)),
            **dict.fromkeys(_COUNTS, inputs.number),
            "pivot_keys": lambda: [[], [inputs.value()]],
            "tablet_indexes": lambda: [inputs.number()],
            "user": lambda: inputs.pick(["root", "nobody"]),
            "permission": lambda: inputs.pick(["read", "fly"]),
        }
        optional = {**dict.fromkeys(("transaction_id", "parent_id"), inputs.identifier)}
        found = {name: make() for name, make in makers.items() if inputs.chance(0.85)}
        found |= {name: make() for name, make in optional.items() if inputs.chance(0.15)}
        for _ in range(inputs.random.randint(0, 2)):
            found[inputs.pick(list(makers))] = inputs.value()
        if command.name == "start_transaction":
            found["type"] = inputs.pick(["master", "tablet", 5])
        if inputs.chance(0.1):
            found[inputs.pick(["input_format", "output_format"])] = inputs.pick(
                ["json", "yson", "dsv", {"$value": "json"}, 5, inputs.value()]
            )
        if inputs.chance(0.05):
            return found
        # Others are refused before the command looks at anything.
        return {name: value for name, value in found.items() if name in command.known.rules}

    def headers(self, parameters: dict[str, Any]) -> dict[str, str]:
        inputs = self.inputs
        data: bytes = yson.dumps(parameters, yson_format="text")
        if inputs.chance(0.25):
            data = inputs.damaged(data)
        text = data.decode("latin-1")
        found = {
            "X-YT-Header-Format": "<format=text>yson",
            "X-YT-Parameters": "".join(char for char in text if char.isprintable()),
            "Accept-Encoding": "identity",
        }
        if inputs.chance(0.1):
            found["X-YT-Header-Format"] = inputs.pick(["json", "<", "<format=binary>yson", "skiff"])
        return found

    def body(self, command: Command) -> tuple[bytes, dict[str, str]]:
        """Return (body, headers that go with it)."""
        inputs = self.inputs
        if command.input == NULL:
            return b"", {}
        found = {"X-YT-Input-Format": inputs.pick(FORMATS)}
        codec = Format.parse(of_header(found["X-YT-Input-Format"])).codec
        try:
            if command.input == BINARY:
                data = inputs.random.randbytes(inputs.random.randint(0, 300))
            elif command.input == STRUCTURED:
                data = codec.dump(inputs.value())
            else:
                data = codec.dump_rows(inputs.rows())
        except (YtError, AttributeError):  # not every value has a form in every format
            data = inputs.yson(inputs.value())
        if inputs.chance(0.4):
            data = inputs.damaged(data)
        match inputs.random.randrange(10):
            case 0:
                return gzip.compress(data), {**found, "Content-Encoding": "gzip"}
            case 1:
                return inputs.damaged(gzip.compress(data)), {**found, "Content-Encoding": "gzip"}
            case 2:
                coding = inputs.pick(["br", "z-lz4", "identity"])
                return data, {**found, "Content-Encoding": coding}
        return data, found


FORMATS = ("yson", "<format=text>yson", "json", "<encode_utf8=%false>json", "dsv")


def _clear_unknown(known: Known, message: Any) -> None:
    """Clear the fields that would have the request refused before its method sees it."""
    for field, value in message.ListFields():
        if field.name in PARTS:
            for part, _ in value.ListFields():
                if f"{field.name}.{part.name}" not in known.free:
                    value.ClearField(part.name)
        elif field.name not in known.free:
            message.ClearField(field.name)


_FLAGS = ("recursive", "force", "ignore_existing", "waitable", "vital", "update", "dynamic")
_COUNTS = (
    "partition_index",
    "offset",
    "new_offset",
    "max_row_count",
    "tablet_index",
    "trimmed_row_count",
    "epoch",
    "tablet_count",
    "length",
    "max_size",
)


# The families: each sends one input and returns its outcome and the error's message


async def damaged_packets(target: Target) -> tuple[str, str]:
    return await target.rpc(target.inputs.packet(target.call(*target.message())))


async def messages(target: Target) -> tuple[str, str]:
    method, body, attachments = target.message()
    if target.inputs.chance(0.4):
        body = target.inputs.damaged(body)
    packet = b"".join(bus.pack(bytes(16), target.call(method, body, attachments)))
    return await target.rpc(packet)


async def requests(target: Target) -> tuple[str, str]:
    command = COMMANDS[target.inputs.pick(list(COMMANDS))]
    body, extra = target.body(command)
    headers = target.headers(target.parameters(command)) | extra
    return await target.ask(command, headers, body)


async def raw_http(target: Target) -> tuple[str, str]:
    """Return damaged HTTP; the request would be refused even if it were whole."""
    inputs = target.inputs
    parameters = yson.dumps({"path": "//none" + inputs.path()}, yson_format="text")
    head = (
        f"PUT /api/v4/{inputs.pick(['set', 'insert_rows', 'write_file', 'lookup_rows'])} HTTP/1.1"
        f"\r\nHost: x\r\nContent-Length: {inputs.pick([0, 3, 5, 10, -1, 10**12, 'x'])}\r\n"
        f"Transfer-Encoding: {inputs.pick(['identity', 'chunked', 'gzip', ''])}\r\n"
        "X-YT-Header-Format: yson\r\nX-YT-Parameters: "
    )
    data = head.encode() + parameters.replace(b"\n", b" ") + b"\r\n\r\n5\r\n{a=1}\r\n0\r\n\r\n"
    host, port = target.http.address.split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    answer = b""
    with contextlib.suppress(ConnectionError):
        writer.write(inputs.damaged(data))
        await writer.drain()
        try:
            answer = await asyncio.wait_for(reader.read(1 << 16), PATIENCE)
        except TimeoutError:
            return "waits", ""
        finally:
            writer.close()
    if b" 500 " in answer[:20]:
        raise DefectError(f"raw HTTP: {answer[:200]!r}")
    # A damaged path may be one that can be written to.
    outcome = "accepted" if b" 200 " in answer[:20] else "refused"
    return (outcome if answer else "closed"), answer.decode("latin-1")


async def rowsets(target: Target) -> tuple[str, str]:
    """Put rows into the queue, by either protocol; count accepted ones against the table."""
    inputs = target.inputs
    before = rows(target.cluster, QUEUE) if _is_there(target, QUEUE) else 0
    if inputs.chance(0.5):
        command = COMMANDS["insert_rows"]
        body, extra = target.body(command)
        return await target.ask(command, target.headers({"path": QUEUE}) | extra, body)
    started = target.cluster.tablet_transactions.start(proxy=target.proxy.address)
    message = build("TReqModifyRows", path=QUEUE, transaction_id=started.id)
    count = inputs.random.randint(0, 3)
    message.row_modification_types.extend([0 if inputs.chance(0.9) else 3] * count)
    message.rowset_descriptor.wire_format_version = message.rowset_descriptor.rowset_kind = 1
    for name in inputs.random.sample(["v", "n", "$tablet_index", "other"], 3):
        message.rowset_descriptor.name_table_entries.add().name = name
    body = message.SerializePartialToString()
    packet = target.call("ModifyRows", body, [inputs.rowset()])
    outcome, text = await target.rpc(b"".join(bus.pack(bytes(16), packet)))
    if outcome != "accepted":
        target.cluster.tablet_transactions.abort(started.id, target.proxy.address)
        return outcome, text
    commit = build("TReqCommitTransaction", transaction_id=started.id).SerializeToString()
    done = await target.rpc(
        b"".join(bus.pack(bytes(16), target.call("CommitTransaction", commit, [])))
    )
    if done[0] == "accepted" and rows(target.cluster, QUEUE) != before + count:
        raise DefectError(f"{count} rows were accepted, {before} were there before")
    return done


def _is_there(target: Target, path: str) -> bool:
    return target.cluster.cypress.exists(path)


Family = Callable[[Target], Awaitable[tuple[str, str]]]
FAMILIES: dict[str, Family] = {
    "bus": damaged_packets,
    "protobuf": messages,
    "http": requests,
    "http bytes": raw_http,
    "rowsets": rowsets,
}


async def check(target: Target, number: int) -> None:
    """Check that an ordinary client works over both protocols, and that the state is consistent."""
    for problem in inconsistencies(target.cluster):
        raise DefectError(f"the state: {problem}")
    for identifier in list(target.cluster.transactions.running):
        if identifier in target.cluster.transactions.running:
            target.cluster.transactions.abort(identifier)
    path = f"//check-{number}"
    attributes = {"dynamic": True, "schema": COLUMNS}
    steps: list[tuple[str, dict[str, Any], bytes]] = [
        ("create", {"type": "table", "path": path, "attributes": attributes}, b""),
        ("mount_table", {"path": path}, b""),
        ("insert_rows", {"path": path}, b"{v=x;n=1};{v=y;n=2};"),
        ("select_rows", {"query": f"n from [{path}]"}, b""),
    ]
    for name, parameters, body in steps:
        text = yson.dumps(parameters, yson_format="text").decode()
        headers = {"X-YT-Header-Format": "yson", "X-YT-Parameters": text}
        outcome = await target.ask(COMMANDS[name], headers, body)
        if outcome[0] != "accepted":
            raise DefectError(f"an ordinary client is refused {name}: {outcome[1]}")
    client = await RpcClient.connect(target.proxy.address)
    state = await client.get(f"{path}/@tablet_state")
    await client.close()
    if (state, rows(target.cluster, path)) != ("mounted", 2):
        raise DefectError(f"an ordinary client finds {state}, {rows(target.cluster, path)} rows")
    for problem in inconsistencies(target.cluster):
        raise DefectError(f"the state, transactions aborted: {problem}")


async def one_round(name: str, seed: int, counts: Counter[str], stop: Callable[[], bool]) -> None:
    """Send up to `ROUND` inputs of one family to a fresh cluster. Raises DefectError."""
    target = Target(seed)
    complaints = io.StringIO()
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: complaints.write(f"Traceback {context}\n"))
    with contextlib.redirect_stderr(complaints):
        async with target.running():
            for number in range(ROUND):
                faulthandler.dump_traceback_later(HANG, exit=True, file=sys.__stderr__ or 2)
                before = fingerprint(target.cluster)
                try:
                    outcome, text = await FAMILIES[name](target)
                except DefectError as defect:
                    where = f"{name}, seed {seed}, input {number}"
                    raise DefectError(f"{where}: {defect}\n{complaints.getvalue()}") from None
                counts[outcome] += 1
                where = f"{name}, seed {seed}, input {number}: {outcome} {text}"
                if "Internal error" in text or "Traceback" in complaints.getvalue():
                    raise DefectError(f"{where}\n{complaints.getvalue()}")
                is_done = outcome == "refused" and text.startswith(UNWRITABLE)
                is_refused = outcome in ("refused", "waits") and not is_done
                if is_refused and fingerprint(target.cluster) != before:
                    raise DefectError(f"{where}: and yet something has changed")
                if stop():
                    break
            await check(target, seed)
    faulthandler.cancel_dump_traceback_later()
    if "Traceback" in complaints.getvalue():
        raise DefectError(f"{name}, seed {seed}: {complaints.getvalue()}")


def run(name: str, seed: int, counts: Counter[str], stop: Callable[[], bool]) -> None:
    asyncio.run(one_round(name, seed, counts, stop))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--family", choices=list(FAMILIES), action="append")
    parser.add_argument("--keep-going", action="store_true", help="count defects, do not stop")
    options = parser.parse_args()
    totals = {name: Counter[str]() for name in options.family or FAMILIES}
    deadline, seed, defects = time.monotonic() + options.seconds, options.seed, 0
    while time.monotonic() < deadline:
        for name, counts in totals.items():
            try:
                run(name, seed, counts, lambda: time.monotonic() > deadline)
            except DefectError as defect:
                defects += 1
                print(f"DEFECT {defect}", file=sys.stderr)
                if not options.keep_going:
                    return 1
        seed += 1
    for name, counts in totals.items():
        told = ", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items()))
        print(f"{name:12}{counts.total():8} inputs: {told}")
    tried = sum(counts.total() for counts in totals.values())
    print(f"{tried} inputs in {options.seconds:.0f} s from seed {options.seed}: {defects} defects")
    return int(defects > 0)


if __name__ == "__main__":
    sys.exit(main())
