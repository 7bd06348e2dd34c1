"""The real SPYT on the real Spark, on both of its versions, against the minicluster."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import Any

import pytest
from yt.yson import YsonUint64, to_yson_type

from packages.minicluster.tests.support.spyt_lab import Lab, Worker, WorkerError
from tests.support.server_errors import UNAVAILABLE

pytestmark = [
    pytest.mark.spark,
    # `make test` has SPYT's connector in packages/ytstream/tests, in the session that they share.
    pytest.mark.thorough,
]

COLUMNS = [
    {"name": "id", "type": "int64"},
    {"name": "text", "type": "utf8"},
    {"name": "price", "type": "double"},
    {"name": "at", "type": "timestamp"},
]
SERVICE = [
    {"name": "$timestamp", "type": "uint64"},
    {"name": "$cumulative_data_weight", "type": "int64"},
]
KEYS = [
    {"name": "tablet_index", "type": "int64", "sort_order": "ascending"},
    {"name": "row_index", "type": "int64", "sort_order": "ascending"},
]
TYPES: list[dict[str, Any]] = [
    {"name": "int8", "type": "int8"},
    {"name": "int16", "type": "int16"},
    {"name": "int32", "type": "int32"},
    {"name": "int64", "type": "int64", "required": True},
    {"name": "uint8", "type": "uint8"},
    {"name": "uint16", "type": "uint16"},
    {"name": "uint32", "type": "uint32"},
    {"name": "uint64", "type": "uint64"},
    {"name": "float", "type": "float"},
    {"name": "double", "type": "double"},
    {"name": "boolean", "type": "boolean"},
    {"name": "string", "type": "string"},
    {"name": "utf8", "type": "utf8"},
    {"name": "date", "type": "date"},
    {"name": "timestamp", "type": "timestamp"},
    {"name": "any", "type": "any"},
    *(
        {"name": str(type_v3["type_name"]), "type_v3": {"type_name": "optional", "item": type_v3}}
        for type_v3 in (
            {"type_name": "list", "item": "int64"},
            {
                "type_name": "struct",
                "members": [{"name": "a", "type": "int64"}, {"name": "b", "type": "utf8"}],
            },
            {"type_name": "dict", "key": "utf8", "value": "int64"},
        )
    ),
]
VALUES: list[dict[str, Any]] = [
    {
        "int8": -128,
        "int16": -32768,
        "int32": -(2**31),
        "int64": -(2**63),
        "uint8": YsonUint64(255),
        "uint16": YsonUint64(65535),
        "uint32": YsonUint64(2**32 - 1),
        "uint64": YsonUint64(2**64 - 1),
        "float": 0.5,
        "double": 1e-300,
        "boolean": True,
        "string": "bytes",
        "utf8": "строка \U0001f600",
        "date": YsonUint64(20_000),
        "timestamp": YsonUint64(1_700_000_000_123_456),
        "any": {"a": [1, "two", 3.0, None]},
        "list": [1, 2, 3],
        "struct": {"a": 1, "b": "два"},
        "dict": [["x", 1], ["y", 2]],
    },
    {"int64": 2**63 - 1},
]
WINDOWS = [
    {"name": "start", "type": "int64"},
    {"name": "rows", "type": "int64"},
    {"name": "total", "type": "int64"},
]


@dataclass
class Job:
    """The Cypress objects of one streaming job, and what its query is started with."""

    lab: Lab
    folder: str
    kind: str
    transactional: bool
    limit: int = 100

    def create(self, tablets: int = 3) -> None:
        output, sort = {
            "copy": (COLUMNS, False),
            "keyed": (KEYS + COLUMNS, True),
            "window": (WINDOWS, False),
            "types": (TYPES, False),
        }[self.kind]
        schema = to_yson_type(output, attributes={"strict": True, "unique_keys": sort})
        source = TYPES if self.kind == "types" else COLUMNS
        yt = self.lab.yt
        for name, kind, attributes in (
            ("queue", "table", {"schema": source + SERVICE, "tablet_count": tablets}),
            ("output", "table", {"schema": schema} | ({} if sort else {"tablet_count": 2})),
            ("consumer", "queue_consumer", {}),
        ):
            attributes |= {"dynamic": True} if kind == "table" else {}
            yt.create(kind, f"{self.folder}/{name}", recursive=True, attributes=attributes)
            yt.mount_table(f"{self.folder}/{name}", sync=True)
        yt.register_queue_consumer(f"{self.folder}/queue", f"{self.folder}/consumer", vital=True)

    def put(self, first: int, last: int) -> None:
        """Put rows first..last-1 into the queue, spread over the tablets, one second apart."""
        rows = [
            {
                "id": n,
                "text": f"строка {n}",
                "price": n / 4,
                "at": YsonUint64(n * 1_000_000),
                "$tablet_index": n % 3,
            }
            for n in range(first, last)
        ]
        self.lab.yt.insert_rows(f"{self.folder}/queue", rows)

    @property
    def arguments(self) -> dict[str, Any]:
        return {
            "queue": f"{self.folder}/queue",
            "consumer": f"{self.folder}/consumer",
            "output": f"{self.folder}/output",
            "checkpoint": f"{self.folder}/checkpoint",
            "limit": self.limit,
            "transactional": self.transactional,
            "kind": self.kind,
        }

    def run(self, worker: Worker | None = None) -> Any:
        return (worker or self.lab.worker).ask("stream", **self.arguments)

    def rows(self) -> list[dict[str, Any]]:
        return list(self.lab.yt.select_rows(f"* from [{self.folder}/output]"))

    def offsets(self) -> dict[int, int]:
        rows = self.lab.yt.select_rows(f"* from [{self.folder}/consumer]")
        return {row["partition_index"]: row["offset"] for row in rows}


@pytest.fixture
def job(lab: Lab, request: pytest.FixtureRequest) -> Job:
    """`@pytest.mark.parametrize("job", [(kind, transactional)], indirect=True)`."""
    kind, transactional = getattr(request, "param", ("copy", True))
    name = request.node.name.translate(str.maketrans("[].", "---"))
    made = Job(lab, f"//home/{name}", kind, transactional)
    made.create()
    lab.cluster.client.faults.clear()
    lab.cluster.client.journal.clear()
    return made


def ids(rows: list[dict[str, Any]]) -> list[int]:
    return sorted(row["id"] for row in rows)


MODES = [("copy", False), ("copy", True)]


@pytest.mark.parametrize("job", MODES, indirect=True)
def test_every_row_arrives_once(job: Job) -> None:
    job.put(0, 900)
    batches = job.run()["batches"]
    assert batches == [300, 300, 300]
    rows = job.rows()
    assert ids(rows) == list(range(900))
    assert all(row["text"] == f"строка {row['id']}" for row in rows)
    assert all(row["price"] == row["id"] / 4 for row in rows)
    assert all(row["at"] == row["id"] * 1_000_000 for row in rows)
    # Without transactions the consumer stays one batch behind.
    moved = 300 if job.transactional else 200
    assert job.offsets() == dict.fromkeys(range(3), moved)


def test_the_transactional_job_makes_the_calls_it_should(job: Job) -> None:
    job.put(0, 300)
    job.run()
    counts = Counter(entry.method for entry in job.lab.cluster.client.journal())
    assert counts["AttachTransaction"] == counts["PullConsumer"] == 3
    assert counts["ModifyRows"] == 6
    assert counts["AdvanceConsumer"] == 3
    writes = job.lab.cluster.client.journal("ModifyRows")
    assert len({entry.args["transaction"] for entry in writes}) == 1
    assert len({entry.proxy for entry in writes}) == 1


@pytest.mark.parametrize("job", [("keyed", False), ("keyed", True)], indirect=True)
def test_rows_are_keyed_by_position(job: Job) -> None:
    job.put(0, 300)
    job.run()
    rows = job.rows()
    assert ids(rows) == list(range(300))
    assert all(row["tablet_index"] == row["id"] % 3 for row in rows)
    assert all(row["row_index"] == row["id"] // 3 for row in rows)


def test_a_stopped_job_goes_on_where_it_was(job: Job) -> None:
    job.put(0, 300)
    job.run()
    job.put(300, 700)
    job.run()
    assert ids(job.rows()) == list(range(700))


@pytest.mark.parametrize(
    "job",
    # Rows that repeat after a kill: generated jobs show them in `make test`.
    [("copy", True), pytest.param(("copy", False), marks=pytest.mark.journey)],
    indirect=True,
)
def test_a_killed_driver_is_started_again(job: Job) -> None:
    """Killed between two writes of the second batch, with a backlog waiting."""
    job.put(0, 900)
    faults = job.lab.cluster.client.faults
    with job.lab.another_worker() as victim:
        victim.ask("version")
        fault = faults.add(method="ModifyRows", action="kill", skip=8, pgid=victim.group)
        with pytest.raises(EOFError):
            job.run(victim)
    assert faults.get(fault).hits == 1
    # The dead driver's transaction ends when its time is up.
    job.lab.cluster.client.clock.advance(600)
    job.run()
    found = Counter(ids(job.rows()))
    assert set(found) == set(range(900))
    repeated = sum(found.values()) - 900
    assert repeated == 0 if job.transactional else 0 < repeated <= 300


def test_a_failed_write_fails_the_batch_and_leaves_nothing(job: Job) -> None:
    job.put(0, 300)
    job.lab.cluster.client.faults.add(method="ModifyRows", action="fail", skip=3, error=UNAVAILABLE)
    with pytest.raises(WorkerError):
        job.run()
    assert job.rows() == []
    assert job.offsets() == {}
    job.run()
    assert ids(job.rows()) == list(range(300))


def test_a_proxy_that_goes_down_takes_the_batch_with_it(job: Job) -> None:
    job.put(0, 300)
    client = job.lab.cluster.client
    client.faults.add(method="ModifyRows", action="proxy_down", skip=3)
    with pytest.raises(WorkerError):
        job.run()
    (down,) = [address for address, is_up in client.proxies.list().items() if not is_up]
    assert job.rows() == []
    job.run()
    assert ids(job.rows()) == list(range(300))
    client.proxies.up(down)


@pytest.mark.thorough
@pytest.mark.parametrize("job", [("window", False), ("window", True)], indirect=True)
def test_windows_keep_their_state_over_a_restart(job: Job) -> None:
    job.limit = 20
    job.put(0, 125)
    job.run()
    job.put(125, 300)
    job.run()
    rows = {row["start"]: (row["rows"], row["total"]) for row in job.rows()}
    assert len(rows) == len(job.rows())
    expected = {start: (10, sum(range(start, start + 10))) for start in range(0, 290, 10)}
    assert rows == expected


@pytest.mark.parametrize("job", [("types", True)], indirect=True)
def test_values_of_every_type_pass_unchanged(job: Job) -> None:
    queue = f"{job.folder}/queue"
    job.lab.yt.insert_rows(queue, VALUES)
    job.run()
    names = [column["name"] for column in TYPES]

    def values(row: dict[str, Any]) -> list[Any]:
        return [row.get(name) for name in names]

    written = [values(row) for row in job.rows()]
    assert sorted(written, key=str) == sorted(map(values, VALUES), key=str)


@pytest.mark.thorough
@pytest.mark.parametrize("job", [("keyed", True)], indirect=True)
def test_tables_are_read_back_in_batch(job: Job) -> None:
    """A sorted and an ordered dynamic table and a static one, whole and by a filter on the key."""
    worker, yt = job.lab.worker, job.lab.yt
    job.put(0, 600)
    job.run()
    output, queue, static = (f"{job.folder}/{name}" for name in ("output", "queue", "static"))
    columns = ["id", "text", "price"]
    expected = [[n, f"строка {n}", n / 4] for n in range(600)]
    assert sorted(worker.ask("read", path=output, columns=columns)) == expected
    assert sorted(worker.ask("read", path=queue, columns=columns)) == expected
    keyed = worker.ask("read", path=output, columns=["id"], where="tablet_index = 1")
    assert sorted(row[0] for row in keyed) == list(range(1, 600, 3))
    schema = [
        {"name": "n", "type": "int64", "sort_order": "ascending"},
        {"name": "s", "type": "string"},
        {"name": "l", "type_v3": {"type_name": "list", "item": "int64"}},
    ]
    yt.create("table", static, attributes={"schema": schema})
    yt.write_table(static, [{"n": n, "s": str(n), "l": [n, n + 1]} for n in range(100)])
    assert worker.ask("count", path=static) == 100
    some = worker.ask("read", path=static, where="n >= 10 and n < 13")
    assert sorted(some) == [[n, str(n), [n, n + 1]] for n in (10, 11, 12)]


def test_a_table_optimized_for_scan_is_read_without_arrow(lab: Lab) -> None:
    path = "//home/scanned"
    attributes = {"schema": [{"name": "n", "type": "int64"}], "optimize_for": "scan"}
    lab.yt.create("table", path, attributes=attributes)
    lab.yt.write_table(path, [{"n": n} for n in range(3)])
    with pytest.raises(WorkerError, match="arrow_enabled"):
        lab.worker.ask("read", path=path)
    rows = lab.worker.ask("read", path=path, options={"arrow_enabled": "false"})
    assert rows == [[0], [1], [2]]


# Static tables, written in batch. Each is made before: Spark asks for the status of a table that
# only SPYT's own transaction sees, and SPYT fails the task if the refusal is too fast for it
# (YtFileSystemBase converts a CompletionException only, RpcUtil.apply may throw another one).


def static_table(lab: Lab, name: str, columns: list[dict[str, Any]]) -> str:
    """Make an empty static table, and forget the requests and faults of before."""
    path = f"//home/{name}"
    lab.yt.create("table", path, attributes={"schema": columns})
    lab.cluster.client.faults.clear()
    lab.cluster.client.journal.clear()
    return path


NUMBERS: list[dict[str, Any]] = [
    {"name": "id", "type": "int64", "required": True},
    {"name": "text", "type": "utf8"},
]
SQL = "select id, cast(id as string) as text from range(100)"


def test_a_static_table_that_was_made_before_keeps_its_types(lab: Lab) -> None:
    source, copy = (static_table(lab, f"static-{name}", TYPES) for name in ("source", "copy"))
    lab.yt.write_table(source, VALUES)
    schema = lab.yt.get(f"{copy}/@schema")
    lab.worker.ask("copy", source=source, path=copy)
    assert list(lab.yt.read_table(copy)) == list(lab.yt.read_table(source))
    assert lab.yt.get(f"{copy}/@schema") == schema


def test_tasks_fill_a_static_table_side_by_side_in_a_transaction_of_ours(lab: Lab) -> None:
    path = static_table(lab, "static-tasks", NUMBERS)
    ours = lab.yt.start_transaction(timeout=60_000)
    options = {"write_transaction": ours}
    lab.worker.ask("write", path=path, sql=SQL, partitions=3, options=options)
    assert list(lab.yt.read_table(path)) == []
    counts = Counter(entry.method for entry in lab.cluster.client.journal())
    assert (counts["WriteTable"], counts["StartTransaction"]) == (3, 4)
    lab.yt.commit_transaction(ours)
    expected = [{"id": n, "text": str(n)} for n in range(100)]
    assert sorted(lab.yt.read_table(path), key=lambda row: int(row["id"])) == expected


def test_types_that_spark_lacks_need_a_hint(lab: Lab) -> None:
    columns: list[dict[str, Any]] = [{"name": "n", "type": "uint64"}, {"name": "u", "type": "uuid"}]
    path = static_table(lab, "static-hint", columns)
    sql = "select 5L as n, '00010203-0405-0607-0809-0a0b0c0d0e0f' as u"
    with pytest.raises(WorkerError, match="Error validating column"):
        lab.worker.ask("write", path=path, sql=sql)
    hint = json.dumps({"n": "uint64", "u": "uuid"})
    lab.worker.ask("write", path=path, sql=sql, options={"write_schema_hint": hint})
    (row,) = lab.yt.read_table(path)
    assert row["n"] == 5


def test_a_failed_static_write_leaves_nothing(lab: Lab) -> None:
    path = static_table(lab, "static-failed", NUMBERS)
    lab.cluster.client.faults.add(method="WriteTable", action="fail", skip=1, error=UNAVAILABLE)
    with pytest.raises(WorkerError, match="unable to synchronize"):
        lab.worker.ask("write", path=path, sql=SQL, partitions=2)
    assert lab.yt.get(f"{path}/@row_count") == 0
    assert lab.yt.get(f"{path}/@locks") == []
    lab.worker.ask("write", path=path, sql=SQL, partitions=2)
    assert lab.yt.get(f"{path}/@row_count") == 100


def test_a_refused_commit_of_a_job_leaves_a_transaction_that_ours_takes_with_it(lab: Lab) -> None:
    """SPYT forgets the job's transaction before it commits it (YtOutputCommitProtocol)."""
    path = static_table(lab, "static-refused", NUMBERS)
    ours = lab.yt.start_transaction(timeout=60_000)
    lab.cluster.client.faults.add(
        method="CommitTransaction", action="fail", skip=2, error=UNAVAILABLE
    )
    options = {"write_transaction": ours}
    with pytest.raises(WorkerError, match="unable to synchronize"):
        lab.worker.ask("write", path=path, sql=SQL, partitions=2, options=options)
    assert lab.yt.get(f"{path}/@locks")
    lab.yt.abort_transaction(ours)
    assert lab.yt.get(f"{path}/@locks") == []
    assert lab.yt.get(f"{path}/@row_count") == 0


def test_a_frame_without_rows_leaves_the_table_empty(lab: Lab) -> None:
    path = static_table(lab, "static-empty", NUMBERS)
    lab.worker.ask("write", path=path, sql=f"{SQL} where id < 0", partitions=2)
    assert lab.yt.get(f"{path}/@row_count") == 0
    assert len(lab.cluster.client.journal("WriteTable")) == 1


def test_the_worker_reports_what_the_cluster_says(lab: Lab) -> None:
    """Spark says that the path is not there, or the error comes as the cluster gave it.

    SPYT knows this error in a CompletionException only (YtFileSystemBase.FileNotFound). The client
    wraps it in an ExecutionException where the reply is there before anyone waits for it
    (RpcUtil.apply).
    """
    with pytest.raises(WorkerError, match=r"PATH_NOT_FOUND|Error resolving path //home/nothing"):
        lab.worker.ask("read", path="//home/nothing")
