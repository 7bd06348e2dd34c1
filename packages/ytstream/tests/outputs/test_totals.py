"""Totals: the table adds up what batches contribute (`aggregate=` in tables.py)."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from minicluster.testing import Running
from tests.support.examples import TOTALS, example, settings_of
from tests.support.helpers import ContextOf, StreamOf, adopt, head_of, refusal
from tests.support.histories import cut, play
from tests.support.killed_stream import PLACES, cut_off, killed
from tests.support.totals_oracle import QUEUE, contributions, history
from tests.support.totals_oracle import TOTALS as HISTORY
from tests.support.totals_oracle import totals_of as of_history
from ytstream import Column, JobError, RestartableError
from ytstream.connector import choose_connector
from ytstream.job import JobContext
from ytstream.provisioning import job_objects
from ytstream.provisioning.job_objects import LOCAL_QUEUE_TABLETS
from ytstream.query.batch_outcome import last_report
from ytstream.recovery import migration
from ytstream.recovery.epoch import Epoch
from ytstream_tools.replay import rejected_replay
from ytstream_tools.testing.job_stream import Stream

pytestmark = pytest.mark.spark

TASKS = LOCAL_QUEUE_TABLETS
"""Those that write a batch: at most one for each tablet of the queue."""

OUTPUT = [
    Column("auction", "int64", key=True),
    Column("channel", "utf8", key=True),
    Column("bids", "int64", required=True, aggregate="sum"),
    Column("total", "uint64", aggregate="sum"),
    Column("average", "double", aggregate="sum"),
    Column("lowest", "int64", aggregate="min"),
    Column("highest", "int64", aggregate="max"),
    Column("last", "string", aggregate="max"),
    Column("is_any", "boolean", aggregate="max"),
]


def transform(events: DataFrame) -> DataFrame:
    return events.select(
        (F.col("auction") % 20).alias("auction"),
        "channel",
        F.lit(1).cast("long").alias("bids"),
        F.col("price").alias("total"),
        (F.col("price") / 4).alias("average"),
        F.col("price").alias("lowest"),
        F.when(F.col("price") % 3 != 0, F.col("price")).alias("highest"),
        F.col("url").alias("last"),
        (F.col("price") % 7 == 0).alias("is_any"),
    )


def totals_of(rows: list[dict[str, Any]]) -> dict[tuple[Any, ...], list[Any]]:
    """Return what the table must have, in plain Python."""
    found: dict[tuple[Any, ...], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        found[row["auction"] % 20, row["channel"]].append(row)

    def most(values: list[Any], pick: Any = max) -> Any:
        return pick((value for value in values if value is not None), default=None)

    return {
        key: [
            len(group),
            sum(row["price"] for row in group),
            sum(row["price"] / 4 for row in group),
            min(row["price"] for row in group),
            most([row["price"] for row in group if row["price"] % 3]),
            most([row["url"] for row in group]),
            any(row["price"] % 7 == 0 for row in group),
        ]
        for key, group in found.items()
    }


def stored(context: JobContext) -> dict[tuple[Any, ...], list[Any]]:
    rows = context.client.select_rows(f"* from [{context.settings.output}]")
    return {
        (row["auction"], row["channel"]): [row[column.name] for column in OUTPUT[2:]]
        for row in rows
    }


@pytest.fixture
def totals(context_of: ContextOf, root: str) -> JobContext:
    context = context_of("transactional")
    job = replace(context.job, outputs={"output": OUTPUT}, transform=transform)
    settings = settings_of(job, root, proxy=context.settings.proxy)
    context = replace(context, job=job, settings=settings)
    job_objects.provision(context)
    return context


@pytest.fixture
def two_queues(context_of: ContextOf, root: str, spark: SparkSession) -> Stream:
    """A job of two queues, each key of which stays in one tablet of one of them."""
    context = context_of("transactional")
    job = replace(
        context.job, queue=QUEUE, outputs={"output": HISTORY}, transform=contributions, reject={}
    )
    settings = settings_of(job, root, proxy=context.settings.proxy, queues=2)
    settings = replace(settings, accept=("one_tablet:output",))
    context = replace(context, job=job, settings=settings)
    job_objects.provision(context)
    adopt(spark, context)
    return Stream(context, example("transactional", "map").sample, spark)


@pytest.fixture
def stream(totals: JobContext, spark: SparkSession) -> Stream:
    adopt(spark, totals)
    return Stream(totals, example("transactional", "map").sample, spark)


def test_the_table_has_the_totals_of_all_batches(stream: Stream, cluster: Running) -> None:
    """A write whose reply is lost is not sent again: its batch is aborted, and runs again."""
    output, faults = stream.settings.output, cluster.client.faults
    stream.send(700)
    stream.drain()
    report = last_report(stream.batch.outcomes)
    assert report is not None
    assert " contributions" in report.line((), 1, 1.0)
    stream.send(700)
    lost = faults.add(method="ModifyRows", where={"path": output}, skip=1, action="lose_reply")
    cluster.client.journal.clear()
    with suppress(RestartableError, Py4JJavaError):
        stream.drain()
    assert faults.get(lost).hits == 1
    writes = [entry for entry in cluster.client.journal() if entry.args.get("path") == output]
    sent = Counter(entry.args["transaction"] for entry in writes if entry.method == "ModifyRows")
    assert max(sent.values()) <= TASKS
    stream.drain()
    assert stored(stream.context) == totals_of(stream.sent)


@pytest.mark.thorough
def test_a_task_writes_a_key_once(stream: Stream, cluster: Running) -> None:
    """Here with a request for each row. Several tasks may add to one key."""
    stream.configure(dyn_batch_size=1)
    stream.send(400)
    cluster.client.journal.clear()
    stream.drain()
    output, tablets = stream.settings.output, LOCAL_QUEUE_TABLETS
    writes = [entry for entry in cluster.client.journal() if entry.args.get("path") == output]
    parts = [totals_of(stream.sent[tablet::tablets]) for tablet in range(tablets)]
    assert sum(entry.method == "ModifyRows" for entry in writes) == sum(map(len, parts))
    assert stored(stream.context) == totals_of(stream.sent)


@pytest.mark.thorough
@pytest.mark.journey
def test_each_write_of_a_batch_may_lose_its_reply(stream: Stream, cluster: Running) -> None:
    output, writes = stream.settings.output, 0
    stream.configure(dyn_batch_size=15)
    while True:
        stream.send(200)
        hits = cut_off(
            stream, cluster, method="ModifyRows", where={"path": output}, skip=writes,
            action="lose_reply",
        )  # fmt: skip
        stream.drain()
        assert stored(stream.context) == totals_of(stream.sent)
        if not hits:
            break
        writes += 1
    print(f"{writes} writes", flush=True)
    assert writes >= 2 * TASKS


@pytest.mark.thorough
@pytest.mark.parametrize(("end", "more"), [(2**63 - 1, 1), (-(2**63), -1)])
def test_a_sum_reaches_the_end_of_64_bits_and_a_batch_beyond_it_ends_the_job(
    stream: Stream, end: int, more: int
) -> None:
    """Also where two tasks add: no task has seen both rows. The table would wrap.

    A task may leave 64 bits and come back.
    """
    (row,) = stream.sample.make(1)
    columns = [
        Column("auction", "int64", key=True),
        Column("channel", "utf8", key=True),
        Column("total", "int64", aggregate="sum"),
    ]
    stream.redeclare(outputs={"output": columns}, transform=prices_of)
    stream.client.remove(stream.settings.output)
    job_objects.provision(stream.context)

    def add(*prices: int, auction: int = 1) -> None:
        rows = [{**row, "auction": auction, "channel": "é", "price": price} for price in prices]
        stream.publish(rows)
        stream.drain()

    def found() -> dict[int, int]:
        rows = stream.client.select_rows(f"* from [{stream.settings.output}]")
        return {found["auction"]: found["total"] for found in rows}

    half = end // 2
    add(*[half] * 3, *[0] * TASKS, -half, -half, end - half)
    assert found() == {1: end}
    add(7, auction=2)
    assert found() == {1: end, 2: 7}
    assert end in head_of(stream).sums[stream.settings.output]["total"]
    with pytest.raises(JobError, match=r"total is beyond 64 bits: for the key \(1, é\)"):
        add(more)
    assert found() == {1: end, 2: 7}


def prices_of(events: DataFrame) -> DataFrame:
    return events.select("auction", "channel", F.col("price").alias("total"))


@pytest.mark.thorough
def test_the_table_groups_and_not_the_stream(stream: Stream) -> None:
    stream.redeclare(transform=lambda events: transform(events).groupBy("auction").count())
    assert "return what each row contributes" in refusal(stream.flow)


@pytest.mark.thorough
def test_spyts_connector_does_not_take_over(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where the sources do not compile: it would replace the totals."""
    monkeypatch.setattr(choose_connector, "unavailable", lambda _: "no compiler")
    assert "only the job's own connector adds to totals" in refusal(stream.flow)


def in_state(stream_of: StreamOf, queues: int) -> Stream:
    """Return a stopped job with totals in its state, whose tables.py is to have them in the table.

    A batch of the state may be planned and is not done.
    """
    stream = stream_of("transactional", "aggregate", queues, rejects=True)
    stream.send(500)
    stream.drain()
    stream.send(500)
    stream.recover()
    totals = example("transactional", TOTALS, queues, rejects=True).job
    stream.redeclare(outputs=totals.outputs, transform=totals.transform)
    return stream


def goes_on(stream: Stream) -> bool:
    """Return whether a new process reads on from there, and counts each row once."""
    stream.epoch = Epoch()
    stream.recover()
    stream.drain()
    stream.send(500)
    stream.drain()
    return stream.is_exact()


@pytest.mark.thorough
@pytest.mark.parametrize("queues", [1, 2])
def test_a_job_of_1_0_0_moves_its_totals_from_the_state_to_the_table(
    stream_of: StreamOf, queues: int
) -> None:
    """It runs on with its state, until `migrate`. No row is counted twice, and none is lost."""
    stream = in_state(stream_of, queues)
    assert "run `migrate`" in refusal(lambda: job_objects.require(stream.context))
    said = migration.migrate(stream.context, stream.tablets)
    assert any("adds up bids, total, highest from now on" in line for line in said)
    assert goes_on(stream)


CHANGES = (
    "StartTransaction", "ModifyRows", "AdvanceConsumer", "CommitTransaction", "start_tx",
    "start_transaction", "commit_tx", "commit_transaction", "create", "remove", "move", "set",
    "lock", "unmount_table", "alter_table", "mount_table",
)  # fmt: skip
"""Requests that may change the cluster."""


@pytest.mark.thorough
@pytest.mark.journey
@pytest.mark.parametrize("queues", [1, 2])
def test_the_move_may_be_killed_after_each_of_its_requests(
    stream_of: StreamOf, cluster: Running, tmp_path: Path, queues: int
) -> None:
    """What a killed `migrate` leaves: no start goes on from it, and another `migrate` does."""
    stream = in_state(stream_of, queues)
    control, sent, before = cluster.client, [*stream.sent], stream.epoch
    control.record(str(tmp_path), CHANGES)
    control.journal.clear()
    migration.migrate(stream.context, stream.tablets)
    control.record(None)
    requests = {entry.n: entry.method for entry in control.journal()}
    states = sorted(tmp_path.iterdir(), key=lambda state: int(state.stem))
    for state in states:
        control.load(str(state))
        stream.sent, stream.epoch = [*sent], before
        is_over = "nothing to do" in migration.rehearse_migrate(stream.context)[0]
        if not is_over:
            assert "run `migrate`" in refusal(stream.recover)
        said = migration.migrate(stream.context, stream.tablets)
        print(requests[int(state.stem)], is_over, said[:1], flush=True)
        assert goes_on(stream)
    assert {"ModifyRows", "alter_table", "mount_table"} <= {requests[int(s.stem)] for s in states}


@pytest.mark.thorough
def test_rejected_rows_are_added_once(stream_of: StreamOf, spark: SparkSession) -> None:
    stream = stream_of("transactional", TOTALS, rejects=True)
    stream.send(1_000)
    stream.drain()
    assert stream.is_exact()
    rejected = stream.client.select_rows(f"* from [{stream.settings.outputs['rejected']}]")
    count = len([*rejected])
    stream.redeclare(reject={"no bid is invalid any more": "false"})
    for expected in (count, 0):
        said = rejected_replay.replay(spark, stream.context, stream.flow(), print)
        assert said.startswith(f"{expected} rows went into the outputs")
    rows = [*stream.client.select_rows(f"bids from [{stream.settings.output}]")]
    assert sum(row["bids"] for row in rows) == len(stream.sent)
    known = head_of(stream).sums[stream.settings.output]["bids"]
    assert known.most > max(row["bids"] for row in rows)  # the last replay had no rows


FAULTS: tuple[Mapping[str, Any], ...] = (
    {"method": "ModifyRows", "action": "lose_reply"},
    {"method": "ModifyRows", "action": "hang_up"},
    {"method": "CommitTransaction", "action": "lose_reply"},
    {"method": "CommitTransaction", "action": "hang_up"},
)
"""What may happen to a batch, if its driver is not killed: the request, and what it meets."""


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("seed", "rows"), [(1, 1_500), pytest.param(2, 60_000, marks=pytest.mark.journey)]
)
def test_a_random_history_has_the_totals_of_its_rows(
    stream: Stream, cluster: Running, tmp_path: Path, seed: int, rows: int
) -> None:
    """Batches of random sizes: in each a driver is killed, a reply lost, or a request refused."""
    chance, output = random.Random(seed), stream.settings.output
    stream.configure(dyn_batch_size=chance.choice((1, 7, 1_000)))
    hits, kills = 0, 0
    while len(stream.sent) < rows:
        stream.send(chance.randint(1, rows // 10))
        if chance.random() < 0.5:
            kills += killed(stream, cluster, tmp_path, **_in(output, chance.choice(PLACES)))
        else:
            fault = _in(output, chance.choice(FAULTS))
            hits += cut_off(stream, cluster, **fault, skip=chance.randint(0, 1))
        stream.drain()
    print(f"{kills} kills, {hits} other faults", flush=True)
    assert hits
    assert kills
    assert stored(stream.context) == totals_of(stream.sent)


def _in(path: str, fault: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fault. Of writes it meets those of the table at that path."""
    where = {"path": path} if fault["method"] == "ModifyRows" else {}
    return {**fault, "where": where}


ROWS, KEYS = 60_000, 4_000


@pytest.mark.thorough
@pytest.mark.parametrize("is_swapped", [False, True])
@pytest.mark.parametrize(
    ("rows", "size", "cuts"),
    [
        (1_000, 100, 3),
        pytest.param(ROWS, 10_000, 20, marks=pytest.mark.journey),
        pytest.param(ROWS, 0, 20, marks=pytest.mark.journey),
    ],
)
def test_a_history_of_two_queues_makes_one_table(
    two_queues: Stream, cluster: Running, tmp_path: Path, rows: int, size: int, cuts: int,
    is_swapped: bool,
) -> None:  # fmt: skip
    """Each key is in one tablet of one queue, so that its first value is not left to chance."""
    stream, tablets = two_queues, LOCAL_QUEUE_TABLETS
    stream.configure(max_rows_per_partition=100_000, trigger_seconds=0.05)
    contributed, chance = history(rows, rows, KEYS if rows == ROWS else 200), random.Random(size)

    def publish(part: list[dict[str, Any]]) -> None:
        for number, queue in enumerate(stream.settings.queues):
            chosen = [row for row in part if (row["key"] + is_swapped) % 2 == number]
            if chosen:
                dealt = [{**row, "$tablet_index": row["key"] // 2 % tablets} for row in chosen]
                stream.client.insert_rows(queue, dealt)
        stream.sent += part

    play(
        stream, cluster, tmp_path, [*cut(contributed, size, chance)], publish, kills=cuts,
        written=[stream.settings.ledger, stream.settings.output], chance=chance,
    )  # fmt: skip
    wanted = of_history(contributed)
    found = {
        row["key"]: [row[column.name] for column in HISTORY[1:]]
        for row in stream.client.select_rows(f"* from [{stream.settings.output}]")
    }
    assert found.keys() == wanted.keys()
    for key, totals in wanted.items():
        parts = totals[3]
        # Near 0 the order of millions decides about the last digits.
        near = parts if parts is None else pytest.approx(parts, rel=1e-9, abs=1e-6)
        assert found[key] == [*totals[:3], near, *totals[4:]], key
    assert len(wanted) > (200 if rows != ROWS else 3_000) * 0.8
