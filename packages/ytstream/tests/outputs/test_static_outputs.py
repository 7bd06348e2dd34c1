"""Static outputs: each micro-batch a table of its own, published once and whole."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yt.wrapper as yt
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from yt.wrapper.schema import TableSchema

from minicluster.testing import Running
from tests.support import all_types
from tests.support.examples import example
from tests.support.helpers import (
    ContextOf,
    StreamOf,
    adopt,
    fails_with,
    refusal,
    run_until_it_fails,
    unconnected,
)
from tests.support.server_errors import UNAVAILABLE, unavailable
from tests.support.static_outputs import Reader, make_static, named, published, static
from tests.support.waiting import eventually
from ytstream import Column
from ytstream.cluster.client import connect
from ytstream.declaration.validation import verify, verify_configuration
from ytstream.errors.error_codes import ErrorCode
from ytstream.job import JobContext
from ytstream.ledger import ledger_rows
from ytstream.ledger.ledger_rows import BatchRow, Head
from ytstream.outputs.static_outputs import PAUSE_SECONDS, StaticTables
from ytstream.provisioning import job_objects
from ytstream.query.stop_signal import StopSignal
from ytstream.query.supervisor import QueryRunner
from ytstream.recovery.epoch import Epoch
from ytstream.schema.columns import resolved
from ytstream.schema.table_schema import differences, table_schema
from ytstream.staging import staged_tables
from ytstream.staging.staged_tables import NameTakenError, StagedTable
from ytstream_tools.demo.demo_tables import snapshots
from ytstream_tools.replay.rejected_replay import replay
from ytstream_tools.status.status_text import status
from ytstream_tools.testing.job_stream import PATIENCE_SECONDS, Stream

NOW = datetime(2026, 11, 22, tzinfo=UTC)
ME = "this process"


# -- what the declaration must say ---------------------------------------------------------------


def _declared(guarantee: str = "transactional", **changes: Any) -> str:
    return refusal(lambda: verify(replace(unconnected(guarantee).job, **changes)))


def test_what_static_may_name() -> None:
    assert "STATIC names 'outptu', which OUTPUTS does not have" in _declared(static=("outptu",))
    assert "static='output': wanted a tuple of names" in _declared(static="output")
    assert "STATIC names an output twice" in _declared(static=("output", "output"))
    odd = {**unconnected("transactional").job.outputs, "per hour/day": [Column("n", "int64")]}
    said = _declared(outputs=odd, static=("per hour/day",))
    assert "the static output 'per hour/day' needs a name of letters" in said
    keyed = {"output": [Column("auction", "int64", key=True), Column("bids", "int64")]}
    said = _declared(outputs=keyed, static=("output",))
    assert "OUTPUTS['output'] is static and cannot have key columns (auction)" in said
    rejects = unconnected("transactional").job
    outputs = {**rejects.outputs, "rejected": [Column("reason", "utf8")]}
    said = _declared(outputs=outputs, reject={"cheap": "price < 0"}, static=("rejected",))
    assert "'rejected' cannot be static" in said


def test_a_static_output_of_an_idempotent_job_needs_no_position() -> None:
    """Its tables are published once, whichever rows a batch that ran again had."""
    context = unconnected("idempotent")
    outputs = {**context.job.outputs, "more": [Column("event_id", "utf8")]}
    job = replace(context.job, outputs=outputs)
    settings = replace(context.settings, outputs={name: f"//home/job/{name}" for name in outputs})
    said = refusal(lambda: verify_configuration(job, settings, context.guarantee))
    assert "in front of OUTPUTS['more']; it has none" in said
    verify_configuration(replace(job, static=("more",)), settings, context.guarantee)


# -- objects -------------------------------------------------------------------------------------


def _with_tables(context: JobContext) -> JobContext:
    """Make the first output of a job static, and provision it again."""
    job = static(context.job, "output")
    root = context.settings.ledger.rpartition("/")[0]
    settings = replace(context.settings, outputs={"output": f"{root}/tables"})
    context = replace(context, job=job, settings=settings)
    job_objects.provision(context)
    return context


def test_provision_makes_the_folders(provisioned_of: ContextOf) -> None:
    context = _with_tables(provisioned_of("transactional"))
    client, settings = context.client, context.settings
    assert {client.get(f"{path}/@type") for path in (settings.output, settings.staging)} == {
        "map_node"
    }
    assert job_objects.provision(context) == []
    listed = job_objects.check(context)
    assert settings.staging in listed
    assert "into a static table of its own" in listed
    client.remove(settings.output)
    assert "tables: missing" in refusal(lambda: job_objects.require(context))
    client.create("table", settings.output, attributes={"schema": [{"name": "a", "type": "any"}]})
    assert "is not a folder" in refusal(lambda: job_objects.require(context))


# -- published, or removed -----------------------------------------------------------------------


class Driver:
    """A driver of epoch 7 whose batches stage tables without Spark."""

    def __init__(self, context: JobContext, epoch: int = 7) -> None:
        self.context, self.static_tables = context, StaticTables(Epoch(epoch, ME))
        self.client: Any = context.client
        self.settings = context.settings
        # The number of the last batch.
        self.last = 0
        self.start(epoch)

    def write(self, *batches: int, epoch: int = 7, output: str = "output") -> list[StagedTable]:
        """Stage tables; the row of each holds its batch."""
        tables = [StagedTable(output, epoch, batch) for batch in batches]
        columns = resolved("OUTPUTS", [Column("batch", "int64")])
        schema = table_schema(columns).to_yson_type()
        for table in tables:
            path = table.path_in(self.settings)
            self.client.create("table", path, recursive=True, attributes={"schema": schema})
            self.client.write_table(path, [{"batch": table.batch}])
        self.static_tables._written.update({table: self.target(table) for table in tables})
        return tables

    def target(self, table: StagedTable) -> str:
        return f"{self.settings.outputs[table.output]}/{table.name}"

    def commit(self, tables: Iterable[StagedTable], folder: int = 7) -> None:
        """Write the rows of these batches, and the head behind them."""
        rows = []
        for table in tables:
            done = BatchRow({}, {"output": 1}, NOW, NOW, {table.output: self.target(table)})
            self.last += 1
            head = Head(table.epoch, ME, folder, table.batch, self.last)
            rows.append(ledger_rows.batch_row(head, done))
            self.client.insert_rows(self.settings.ledger, [rows[-1], ledger_rows.head_row(head)])

    def publish(self, now: float = 0.0) -> list[str]:
        self.static_tables.publish(self.client, self.settings, now)
        return self.published()

    def start(self, epoch: int) -> None:
        """Write the head as a start does."""
        head = ledger_rows.head_row(Head(epoch, ME, epoch, number=self.last))
        self.client.insert_rows(self.settings.ledger, [head])

    def settle(self, epoch: int = 8) -> list[str]:
        """Start the next query, in another process."""
        self.start(epoch)
        self.static_tables = StaticTables(Epoch(epoch, ME))
        self.static_tables.settle(self.client, self.settings)
        return self.published()

    def published(self) -> list[str]:
        """Return the names of all that is in the folder."""
        return sorted(map(str, self.client.list(self.settings.output)))

    def staged(self) -> list[str]:
        return [table.name for table in staged_tables.written(self.client, self.settings)]


@pytest.fixture
def driver(provisioned_of: ContextOf) -> Driver:
    return Driver(_with_tables(provisioned_of("transactional")))


def names(*tables: StagedTable) -> list[str]:
    return [table.name for table in tables]


def test_names_sort_by_time() -> None:
    tables = [
        StagedTable("output", epoch, batch) for epoch in (1, 2, 10) for batch in (0, 9, 10, 100)
    ]
    assert sorted(names(*tables)) == names(*tables)
    assert StagedTable("output", 7, 12).name == "00000007-0000000012"


def test_a_table_is_published_when_the_head_has_its_batch(driver: Driver) -> None:
    first, second = driver.write(3, 4)
    assert driver.publish() == []
    driver.commit([first])
    assert driver.publish() == names(first)
    assert driver.staged() == names(second)
    assert driver.publish() == names(first)
    driver.commit([second])
    assert driver.publish() == names(first, second)
    assert (driver.static_tables.waiting, driver.static_tables._written) == ({}, {})


def test_the_head_of_another_epoch_publishes_nothing(driver: Driver) -> None:
    """Whether this driver's last batch has happened is for its successor to find out."""
    (table,) = driver.write(3)
    (newer,) = driver.write(5, epoch=8)
    driver.static_tables._written.pop(newer)
    driver.commit([newer], folder=8)
    assert driver.publish() == []
    assert driver.staged() == names(table, newer)


def test_a_driver_that_was_frozen_leaves_publication_to_the_newer_one(
    driver: Driver, caplog: pytest.LogCaptureFixture
) -> None:
    """It does not miss the tables that the newer one has published and a reader has removed."""
    caplog.set_level("INFO", "job")
    (table,) = driver.write(3)
    driver.commit([table])
    driver.static_tables.waiting, frozen = {table: driver.target(table)}, driver.static_tables
    assert driver.settle() == names(table)
    driver.client.remove(driver.target(table))
    frozen.publish(driver.client, driver.settings, 0.0)
    assert caplog.messages == []


def test_the_next_start_publishes_what_the_ledger_names_and_removes_the_rest(
    driver: Driver,
) -> None:
    named = driver.write(3, 4)
    driver.write(5)
    driver.write(0, epoch=6)
    driver.commit(named)
    assert driver.settle() == names(*named)
    assert driver.staged() == []


def test_a_table_that_the_ledger_has_forgotten_is_not_removed(
    driver: Driver, caplog: pytest.LogCaptureFixture
) -> None:
    """The row of its batch is gone: the ledger keeps the last KEPT, and a reader may lock long."""
    caplog.set_level("INFO", "job")
    first, second = driver.write(3, 4)
    driver.commit([first, second])
    driver.client.delete_rows(driver.settings.ledger, [{"kind": "batch", "number": 1}])
    assert driver.settle() == names(second)
    assert driver.staged() == names(first)
    said = f"{first.path_in(driver.settings)}: the ledger does not know any more whether its batch"
    assert [said in message for message in caplog.messages] == [True]
    assert said in status(driver.context)


@pytest.mark.slow
@pytest.mark.parametrize("is_fixed", [True, False])
@pytest.mark.parametrize(
    ("removed", "kept"),
    [
        ([1], {(1, 0), (1, 1)}),
        ([1, 2], {(1, 0), (1, 1)}),
        ([2], {(1, 1)}),
        ([3], {(3, 0), (3, 1)}),
        ([4], {(3, 0), (3, 1), (4, 5)}),
        ([5], {(4, 5), (5, 9)}),
        ([1, 5], {(1, 0), (1, 1), (4, 5), (5, 9)}),
        ([1, 2, 3, 4, 5], {(1, 0), (1, 1), (3, 0), (3, 1), (4, 5), (5, 9)}),
        ([], set()),
    ],
)
def test_a_table_stays_whose_batchs_row_may_have_been_removed_by_hand(
    driver: Driver,
    monkeypatch: pytest.MonkeyPatch,
    removed: list[int],
    kept: set[tuple[int, int]],
    *,
    is_fixed: bool,
) -> None:
    """Batches 1 to 5 happened in the epochs 1, 1, 2, 4, 4; those of the tables are in question."""
    if not is_fixed:
        monkeypatch.setattr(staged_tables, "forgotten", _but_the_first_rows)
    batches = [StagedTable("output", *batch) for batch in ((1, 0), (1, 2), (2, 0), (4, 4), (4, 6))]
    driver.commit(batches)
    asked = [(1, 0), (1, 1), (3, 0), (3, 1), (4, 5), (5, 9)]
    for epoch, batch in asked:
        driver.write(batch, epoch=epoch)
    for number in removed:
        key = {"kind": "batch", "number": number}
        driver.client.delete_rows(driver.settings.ledger, [key])
    driver.settle()
    found = {(t.epoch, t.batch) for t in staged_tables.written(driver.client, driver.settings)}
    published = set() if 1 in removed else {(1, 0)}
    assert (found == kept - published) == (is_fixed or removed in ([1], [1, 2], []))


def _but_the_first_rows(client: Any, settings: Any, tables: Any, _: int) -> set[StagedTable]:
    """Return what the rows at the ledger's beginning tell alone."""
    for row in client.select_rows(ledger_rows.first_query(settings.ledger)):
        if int(row["number"]) > 1:
            first = int(row["epoch"]), int(row["batch"])
            return {table for table in tables if (table.epoch, table.batch) < first}
    return set()


def test_a_start_leaves_a_newer_drivers_table(driver: Driver) -> None:
    """A frozen driver that settles late would remove what its successor has just written."""
    (newer,) = driver.write(0, epoch=8)
    assert driver.settle(epoch=8) == []
    assert driver.staged() == names(newer)
    assert driver.settle(epoch=9) == []
    assert driver.staged() == []


def test_what_readers_have_taken_away_is_not_published_again(driver: Driver) -> None:
    tables = driver.write(3, 4)
    driver.commit(tables)
    assert driver.publish() == names(*tables)
    for path in snapshots(driver.client, driver.settings.output):
        driver.client.remove(path)
    assert driver.publish() == []
    assert driver.settle() == []


def test_an_orphan_that_is_still_being_written_goes_with_a_later_start(driver: Driver) -> None:
    (table,) = driver.write(3)
    path = table.path_in(driver.settings)
    transaction = driver.client.start_transaction(timeout=60_000, attributes={})
    with driver.client.Transaction(transaction_id=transaction):
        driver.client.lock(path, mode="exclusive")
    assert driver.settle() == []
    assert driver.staged() == names(table)
    driver.client.abort_transaction(transaction)
    assert driver.settle(epoch=9) == []
    assert driver.staged() == []


def test_a_move_whose_reply_is_lost_has_happened(
    driver: Driver, cluster: Running, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "job")
    tables = driver.write(3, 4)
    driver.commit(tables)
    lost = cluster.client.faults.add(method="move", action="lose_reply", times=None)
    assert driver.publish() == names(*tables)
    assert cluster.client.faults.get(lost).hits
    assert driver.static_tables.waiting == {}
    assert driver.staged() == []
    assert caplog.messages == []


def test_many_tables_are_published_in_several_calls(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A signal or a request to stop does not wait until thousands are moved."""
    monkeypatch.setattr(staged_tables, "AT_ONCE", 2)
    tables = driver.write(3, 4, 5, 6, 7)
    driver.commit(tables)
    assert driver.settle() == names(*tables[:2])
    assert driver.publish() == names(*tables[:4])
    assert driver.publish() == names(*tables)


def test_a_table_that_was_removed_unpublished_is_named(
    driver: Driver, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "job")
    first, second = driver.write(3, 4)
    driver.commit([first, second])
    driver.client.remove(first.path_in(driver.settings))
    assert driver.publish() == names(second)
    (said,) = caplog.messages
    assert f"{first.path_in(driver.settings)} is gone" in said
    assert "its rows are lost; the ledger's row of that epoch and batch names the rows" in said


def test_something_else_in_the_place_of_the_folder_aside_holds_no_table(driver: Driver) -> None:
    """A job without static outputs looks there, too, and has not claimed that name."""
    driver.client.remove(driver.settings.staging, recursive=True)
    driver.client.create("table", driver.settings.staging)
    assert driver.staged() == []


def test_foreign_tables_stay_as_they_are(driver: Driver, caplog: pytest.LogCaptureFixture) -> None:
    """Under a name of its own such a table is nothing to the job; under the job's it is named."""
    caplog.set_level("INFO", "job")
    first, second = driver.write(3, 4)
    for name in ("by-hand", first.name):
        path = f"{driver.settings.output}/{name}"
        driver.client.create("table", path)
        driver.client.write_table(path, [{"mine": True}])
    driver.commit([first, second])
    both = sorted(["by-hand", first.name])
    assert driver.publish() == both
    assert driver.publish(PAUSE_SECONDS) == both  # in order: the second one waits, too
    said = [line for line in caplog.messages if "exists already" in line]
    assert len(said) == 1
    assert f"{driver.target(first)} exists already, and this job did not write it" in said[0]
    with pytest.raises(NameTakenError, match="exists already"):
        driver.settle()
    rows = [*driver.client.read_table(driver.target(first))]
    assert rows == [{"mine": True}]
    driver.client.remove(driver.target(first))
    assert driver.settle() == sorted([*names(first, second), "by-hand"])


def test_a_readers_lock_delays_what_it_locks(
    driver: Driver, caplog: pytest.LogCaptureFixture
) -> None:
    """A lock on the folder holds publication up, also over a start; one on a snapshot nothing."""
    caplog.set_level("INFO", "job")
    first, second, third = driver.write(3, 4, 5)
    driver.commit([first])
    assert driver.publish() == names(first)
    reader = driver.client.start_transaction(timeout=600_000, attributes={})
    with driver.client.Transaction(transaction_id=reader):
        driver.client.lock(driver.target(first), mode="exclusive")
    driver.commit([second])
    assert driver.publish() == names(first, second)
    with driver.client.Transaction(transaction_id=reader):
        driver.client.lock(driver.settings.output, mode="exclusive")
    driver.commit([third])
    for now in (0.0, 1.0, PAUSE_SECONDS, 2 * PAUSE_SECONDS):
        assert driver.publish(now) == names(first, second)
    assert [line for line in caplog.messages if "cannot be published yet" in line] == [
        line for line in caplog.messages if third.name in line
    ]
    assert "1 table of static outputs waiting for publication" in status(driver.context)
    assert driver.settle() == names(first, second)
    driver.client.abort_transaction(reader)
    assert driver.publish(3 * PAUSE_SECONDS) == names(first, second, third)
    assert "0 tables of static outputs waiting" in status(driver.context)
    assert caplog.messages[-1] == "tables are published again"


@pytest.mark.thorough
def test_an_outage_is_waited_for(driver: Driver, cluster: Running) -> None:
    tables = driver.write(3)
    driver.commit(tables)
    for method in ("select_rows", "move"):
        error = unavailable(method)
        rule = cluster.client.faults.add(method=method, action="fail", error=error, times=None)
        assert driver.publish(driver.static_tables._next) == []
        cluster.client.faults.remove(rule)
    assert driver.publish(driver.static_tables._next) == names(*tables)


def _believe_every_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "ytstream.outputs.static_outputs.read_head", lambda *_: Head(folder=7, batch=99)
    )


def _publish_orphans(monkeypatch: pytest.MonkeyPatch) -> None:
    def named(client: Any, settings: Any, tables: Iterable[StagedTable]) -> dict[StagedTable, str]:
        return {table: f"{settings.outputs[table.output]}/{table.name}" for table in tables}

    monkeypatch.setattr(staged_tables, "named", named)


def _remove_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staged_tables, "named", lambda *_: {})


def _move_over(monkeypatch: pytest.MonkeyPatch) -> None:
    def move(client: Any, source: str, target: str) -> None:
        client.move(source, target, force=True)

    monkeypatch.setattr(staged_tables, "_move", move)


BARE: Mapping[str, tuple[Callable[[pytest.MonkeyPatch], None], Callable[..., None]]] = {
    "every batch": (_believe_every_batch, test_a_table_is_published_when_the_head_has_its_batch),
    "orphans": (
        _publish_orphans,
        test_the_next_start_publishes_what_the_ledger_names_and_removes_the_rest,
    ),
    "none": (
        _remove_all,
        test_the_next_start_publishes_what_the_ledger_names_and_removes_the_rest,
    ),
    "over": (_move_over, test_foreign_tables_stay_as_they_are),
}
"""A fix that is taken out, and a test that fails without it."""


@pytest.mark.thorough
@pytest.mark.parametrize("bare", BARE)
def test_without_its_fix_a_test_fails(
    driver: Driver, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, bare: str
) -> None:
    mutate, test = BARE[bare]
    mutate(monkeypatch)
    more = [caplog] if test is test_foreign_tables_stay_as_they_are else []
    with pytest.raises(AssertionError):
        test(driver, *more)


PAGE = Path(__file__).parents[4] / "docs/runtime/snapshots.md"


def test_tables_are_merged_as_the_page_does(
    driver: Driver, cluster: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A merge is an operation, which a minicluster does not run; it concatenates instead."""

    class Merging(yt.YtClient):  # type: ignore[misc]
        def run_merge(self, parts: list[str], merged: str, **options: Any) -> None:
            assert options == {"mode": "ordered", "spec": {"combine_chunks": True}}
            self.create("table", merged, attributes={"schema": self.get(f"{parts[0]}/@schema")})
            self.concatenate(parts, merged)

    monkeypatch.setattr(yt, "YtClient", Merging)
    (code,) = re.findall(r"^```python\n(import yt.*?)```$", PAGE.read_text(), re.M | re.S)
    folder, merged = driver.settings.output, f"{driver.settings.output}-merged"
    code = code.replace("CLUSTER", cluster.http)
    code = code.replace("//home/ytstream/job/output", folder)
    first, second, third = driver.write(3, 4, 5)
    driver.commit([first, second])
    assert driver.publish() == names(first, second)
    exec(code, {})
    driver.commit([third])
    assert driver.publish() == names(third)
    exec(code, {})  # one table is not merged
    assert driver.settle() == names(third)
    assert [str(name) for name in driver.client.list(merged)] == names(second)
    rows = [*driver.client.read_table(f"{merged}/{second.name}")]
    assert rows == [{"batch": 3}, {"batch": 4}]


def test_a_replay_goes_into_no_static_output(provisioned_of: ContextOf) -> None:
    context = _with_tables(provisioned_of("transactional"))
    job = replace(context.job, reject={"cheap": "price < 0"})
    spark: Any = None
    with fails_with(ErrorCode.NOT_FOR_THIS_JOB):
        replay(spark, replace(context, job=job), spark, print)


# -- with Spark ----------------------------------------------------------------------------------

spark_test = pytest.mark.spark


def _batches(stream: Stream) -> list[Mapping[str, Any]]:
    rows = stream.client.select_rows(
        f"number, epoch, batch, rows_written, state from [{stream.settings.ledger}] "
        'where kind = "batch"'
    )
    return sorted(rows, key=lambda row: int(row["number"]))


def _is_as_the_ledger_says(stream: Stream) -> None:
    """Compare the folder with the batches' rows: the same tables, with as many rows each.

    And each with the very columns of OUTPUTS: required where they are, texts where they are.
    """
    tables = published(stream.context)
    assert tables == named(stream.context) != {}
    assert staged_tables.written(stream.client, stream.settings) == []
    wanted = table_schema(stream.context.job.output_columns["output"])
    for path in tables:
        found = TableSchema.from_yson_type(stream.client.get(f"{path}/@schema"))
        assert differences(wanted, found) == []
        assert [c.name for c in found.columns] == [c.name for c in wanted.columns]
        assert not stream.client.get(f"{path}/@dynamic")


POINTS: Mapping[str, Mapping[str, Any]] = {
    "write": {"method": "WriteTable", "action": "fail", "error": UNAVAILABLE},
    "head": {"method": "ModifyRows", "where": "ledger", "action": "fail", "error": UNAVAILABLE},
    "refused": {"method": "CommitTransaction", "action": "fail", "error": UNAVAILABLE},
    "reply": {"method": "CommitTransaction", "action": "lose_reply"},
    "move": {"method": "move", "action": "fail", "error": UNAVAILABLE, "times": None},
}
"""Where a batch fails: the request, and what becomes of it. "commit": that of the ledger's row."""


def _fail_at(stream: Stream, cluster: Running, point: str) -> None:
    """Run a batch that fails at this point; publishing fails without ending the query."""
    stream.recover()
    faults, rule = cluster.client.faults, dict(POINTS[point])
    if rule.get("where") == "ledger":
        rule["where"] = {"path": stream.settings.ledger}
    if rule["method"] == "CommitTransaction":
        # The next commit after the head was written is that of the head's transaction.
        where = {"path": stream.settings.ledger}
        rule["armed_by"] = faults.add(
            method="ModifyRows", where=where, when="after", action="delay", seconds=0
        )
    hit = faults.add(**rule)
    if point == "move":
        stream.drain()
    else:
        run_until_it_fails(stream)
    assert faults.get(hit).hits
    faults.clear()


@pytest.mark.thorough
@spark_test
@pytest.mark.parametrize(
    "guarantee",
    [
        "transactional",
        pytest.param("idempotent", marks=pytest.mark.journey),
        pytest.param("at_least_once", marks=pytest.mark.journey),
    ],
)
def test_a_reader_sees_each_row_once_wherever_a_batch_fails(
    stream_of: StreamOf, cluster: Running, guarantee: str
) -> None:
    """Before the write, between write and commit, at the commit, before the publication."""
    stream = make_static(stream_of(guarantee), "output")
    with Reader(stream.settings) as reader:
        for point in POINTS:
            before = len(_batches(stream))
            stream.send(100)
            _fail_at(stream, cluster, point)
            assert len(_batches(stream)) - before == (point in ("reply", "move")), point
            waiting = staged_tables.written(stream.client, stream.settings)
            assert waiting, point  # for "write" it is empty
        stream.drain()
    assert stream.is_exact()
    _is_as_the_ledger_says(stream)
    ids = [row["event_id"] for rows in reader.tables.values() for row in rows]
    assert len(ids) == len({*ids}) > 0
    assert reader.changed() == []


@pytest.mark.thorough
@spark_test
def test_the_running_job_publishes(stream_of: StreamOf) -> None:
    """Not its next batch or its next start: there is none."""
    stream = make_static(stream_of("transactional"), "output")
    stream.send(100)
    stop, seen = StopSignal(), list[str]()
    client = connect(stream.settings)  # the job's own is in its transactions

    def watch() -> None:
        try:
            found = eventually(lambda: snapshots(client, stream.settings.output), PATIENCE_SECONDS)
            seen.extend(found)
        finally:
            stop.set()

    watching = threading.Thread(target=watch)
    watching.start()
    QueryRunner(stream.context, stream.spark, stream.tablets, stop).run()
    watching.join()
    assert seen
    assert stream.is_exact()
    _is_as_the_ledger_says(stream)


@pytest.mark.thorough
@spark_test
def test_windows_in_static_tables(stream_of: StreamOf) -> None:
    """Counts per window, as plain Python has them; a batch that closes no window makes no table."""
    stream = make_static(stream_of("transactional", "window"), "output")
    stream.send(700)
    stream.close()
    assert stream.is_exact()
    assert stream.found()
    _is_as_the_ledger_says(stream)
    empty = [row for row in _batches(stream) if not row["rows_written"]["output"]]
    assert [row["state"] for row in empty] == [None] * len(empty) != []


@spark_test
@pytest.mark.journey
def test_every_type_is_written_as_it_came(context_of: ContextOf, spark: SparkSession) -> None:
    """A timestamp without time zone, too, which SPYT does not know in static tables."""
    context = replace(context_of("transactional"), job=all_types.job("map"))
    made = context.job.transform

    def transform(events: DataFrame) -> DataFrame:
        return made(events).withColumn("c_timestamp", F.expr("cast(c_timestamp as timestamp_ntz)"))

    context = _with_tables(
        replace(context, job=replace(context.job, transform=transform, static=("output",)))
    )
    adopt(spark, context)
    stream = Stream(context, example("transactional", "map").sample, spark)
    sent = [{**row, "at": all_types.START} for row in all_types.rows()]
    stream.client.insert_rows(stream.settings.queues[0], sent)
    stream.drain()
    (path,) = snapshots(stream.client, stream.settings.output)
    found = {row["id"]: row for row in stream.client.read_table(path)}
    wrong = {
        (row["id"], name): (value, found[row["id"]][name])
        for row in all_types.rows()
        for name, value in row.items()
        if found[row["id"]][name] != value
    }
    assert wrong == {}
