"""Several outputs of one micro-batch: split, rejected, totals; all of a batch or nothing of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from minicluster.testing import Running
from tests.support.examples import example
from tests.support.helpers import (
    StreamOf,
    another_process,
    head_of,
    recreate,
    refusal,
    refusal_code,
)
from tests.support.server_errors import UNAVAILABLE
from tests.support.simulated_driver import Driver
from ytstream import Column, JobError, RestartableError, latest
from ytstream.connector.transform_plan import is_unique_by, observed_name
from ytstream.declaration.validation import verify, verify_configuration
from ytstream.errors.error_codes import ErrorCode
from ytstream.job import REJECTED, Job
from ytstream.ledger.batch_row_ranges import Ranges
from ytstream.outputs import output_frames
from ytstream.outputs.batch_metrics import Metrics
from ytstream.provisioning import job_objects
from ytstream.query.read_audit import audit
from ytstream.rejected.limit import FEW, SkippedRows
from ytstream.spark.spark_errors import explained_spark
from ytstream_tools.demo.job_sample import SampleRow
from ytstream_tools.replay.rejected_replay import replay
from ytstream_tools.testing.job_stream import Stream, wait_for_failure

pytestmark = pytest.mark.spark
each_guarantee = pytest.mark.parametrize(
    ("guarantee", "queues"), [("transactional", 2), ("idempotent", 1), ("at_least_once", 1)]
)

_CHEAP = 10_000
"""Below it a bid is cheap."""


def _with_outputs(
    stream: Stream,
    outputs: Mapping[str, Sequence[Column]],
    split: Callable[[DataFrame], Any] | None,
    **expected: Callable[[Sequence[SampleRow]], Iterable[Any]],
) -> Stream:
    """Give the job more outputs, as edits of tables.py, transform.py and the configuration would.

    ``expected`` says what must be in them, and in "output" if it is changed, too.
    """
    job, settings = stream.context.job, stream.settings
    root = settings.ledger.rpartition("/")[0]
    job = replace(job, outputs={**job.outputs, **outputs}, split=split)
    settings = replace(settings, outputs={name: f"{root}/{name}" for name in job.outputs})
    stream.context = replace(stream.context, job=job, settings=settings)
    first = expected.pop("output", stream.sample.expected)
    others = {**stream.sample.others, **expected}
    stream.sample = replace(stream.sample, expected=first, others=others)
    job_objects.provision(stream.context)
    return stream


def _three(stream: Stream) -> Stream:
    """Split the bids: a row goes to none, one or two of three outputs."""
    key = [c for c in stream.context.job.output_columns["output"] if c.key]
    names = [c.name for c in key]

    def split(rows: DataFrame) -> dict[str, DataFrame]:
        return {
            "output": rows.filter("channel IS NOT NULL"),
            "cheap": rows.filter(f"price_eur < {_CHEAP}").select(*names, "event_id", "price_eur"),
            "bidders": rows.filter("auction % 2 = 0").select(*names, "bidder"),
        }

    made = stream.sample.expected
    return _with_outputs(
        stream,
        {
            "cheap": [*key, Column("event_id", "utf8"), Column("price_eur", "int64")],
            "bidders": [*key, Column("bidder", "int64")],
        },
        split,
        output=lambda rows: [row for row in made(rows) if row["channel"] is not None],
        cheap=lambda rows: [row for row in made(rows) if row["price_eur"] < _CHEAP],
        bidders=lambda rows: [row for row in made(rows) if row["auction"] % 2 == 0],
    )


def _failure(stream: Stream) -> str:
    """Run the query until it fails; return why."""
    with stream.running() as query:
        return wait_for_failure(query)


def _rows_of(stream: Stream, output: str) -> int:
    return int(stream.client.get(f"{stream.settings.outputs[output]}/@row_count"))


# -- what the declaration and the configuration must say ------------------------------------------


def _refused_job(stream: Stream, **changes: Any) -> str:
    return refusal(lambda: verify(replace(stream.context.job, **changes)))


def test_a_job_says_who_fills_its_outputs(stream_of: StreamOf) -> None:
    stream = stream_of("transactional", rejects=True)
    job = stream.context.job
    more = {**job.outputs, "more": [Column("n", "int64")]}
    assert "nothing fills the outputs more: give Job split=outputs" in _refused_job(
        stream, outputs=more
    )
    assert "nothing fills the outputs rejected" in _refused_job(stream, reject={})
    assert "split is not a function" in _refused_job(stream, outputs=more, split="outputs")
    assert "REJECT needs an output in OUTPUTS: 'rejected': REJECTED" in _refused_job(
        stream, outputs={"output": job.outputs["output"]}
    )
    assert "REJECT['r']: wanted one line as the reason and a SQL" in _refused_job(
        stream, reject={"r": " "}
    )
    assert "reject: wanted a dict" in _refused_job(stream, reject=["price < 0"])


def test_the_columns_of_rejected_rows_are_given(stream_of: StreamOf) -> None:
    stream = stream_of("transactional", queues=2, rejects=True)
    job: Job = stream.context.job
    outputs = {**job.outputs, REJECTED: job.output_columns[REJECTED][1:]}
    wrong = replace(job, outputs=outputs)
    said = refusal(lambda: verify_configuration(wrong, stream.settings, stream.context.guarantee))
    assert "OUTPUTS['rejected'] needs, with 2 queues, the columns\n" in said
    assert """Column("queue_id", "utf8", key=True)\n""" in said


# -- outputs() -----------------------------------------------------------------------------------


@pytest.mark.thorough
@each_guarantee
def test_a_row_goes_to_none_one_or_several_outputs(
    stream_of: StreamOf, monkeypatch: pytest.MonkeyPatch, guarantee: str, queues: int
) -> None:
    """And is read from its queue once, however many outputs it goes to.

    What a batch has read and skipped is judged once.
    """
    read: list[tuple[int, int]] = []
    judged: list[SkippedRows] = []

    def audited(client: Any, name: str, planned: Ranges, metrics: Metrics) -> None:
        for path, partitions in planned.items():
            wanted = sum(rows.count for rows in partitions.values())
            read.append((wanted, metrics[observed_name(path)][0]))
        audit(client, name, planned, metrics)

    monkeypatch.setattr("ytstream.query.batch.audit", audited)
    monkeypatch.setattr("ytstream.query.batch.verify_limit", lambda found, *_: judged.append(found))
    stream = _three(stream_of(guarantee, "map", queues, rejects=True))
    for _ in range(2):
        stream.send(400)
        stream.drain()
    found = {name: (one.lost, one.duplicated) for name, one in stream.outcomes().items()}
    assert found == dict.fromkeys(("output", "rejected", "cheap", "bidders"), (0, 0))
    assert all(_rows_of(stream, name) for name in found)
    assert [wanted for wanted, _ in read] == [seen for _, seen in read] != []
    assert queues * len(judged) == len(read)


@pytest.mark.parametrize("failing", ["output", "rejected", "bidders"])
def test_a_batch_that_fails_in_its_middle_leaves_nothing(
    stream_of: StreamOf, cluster: Running, failing: str
) -> None:
    stream = _three(stream_of("transactional", "map", 1, rejects=True))
    stream.configure(max_rows_per_partition=100)
    stream.send(800)
    where = {"path": stream.settings.outputs[failing]}
    cluster.client.faults.add(method="ModifyRows", where=where, action="fail", error=UNAVAILABLE)
    stream.recover()
    assert "unable to synchronize" in _failure(stream)
    assert [_rows_of(stream, name) for name in stream.settings.outputs] == [0, 0, 0, 0]
    stream.drain()
    assert stream.is_exact()


@pytest.mark.thorough
def test_a_commit_that_is_refused_leaves_nothing_in_any_output(
    stream_of: StreamOf, cluster: Running
) -> None:
    stream = _three(stream_of("transactional", "map", 2, rejects=True))
    stream.configure(max_rows_per_partition=50)
    stream.send(400)
    stream.recover()
    faults = cluster.client.faults
    # The consumer moves in the transaction, right before it commits: here that of the second batch.
    advanced = faults.add(method="AdvanceConsumer", skip=2 * 4, action="delay", seconds=0)
    faults.add(method="CommitTransaction", armed_by=advanced, action="fail", error=UNAVAILABLE)
    _failure(stream)
    faults.clear()
    assert head_of(stream).number == 1
    (batch,) = stream.client.select_rows(
        f'rows_written from [{stream.settings.ledger}] where kind = "batch"'
    )
    written = {name: _rows_of(stream, name) for name in stream.settings.outputs}
    assert written == batch["rows_written"]
    stream.drain()
    assert stream.is_exact()


@pytest.mark.thorough
def test_outputs_are_written_in_their_order(stream_of: StreamOf, cluster: Running) -> None:
    """at_least_once: a row in the last output is in the first one, too; a repeat loses nothing."""
    stream = _three(stream_of("at_least_once", "map", 1, rejects=True))
    stream.send(400)
    where = {"path": stream.settings.outputs["bidders"]}
    strike: Any = {"times": None, "action": "fail", "error": UNAVAILABLE}
    cluster.client.faults.add(method="ModifyRows", where=where, **strike)
    stream.recover()
    _failure(stream)
    cluster.client.faults.clear()
    assert _rows_of(stream, "output")
    assert not _rows_of(stream, "bidders")
    stream.drain()
    outcomes = stream.outcomes()
    assert [one.lost for one in outcomes.values()] == [0, 0, 0, 0]
    assert (outcomes["output"].duplicated > 0, outcomes["bidders"].duplicated) == (True, 0)
    assert outcomes[REJECTED].duplicated == 0  # its key is the position


WRONG_OUTPUTS: dict[str, tuple[Callable[[DataFrame], Any], str]] = {
    "an unknown name": (lambda rows: {"output": rows, "outptu": rows}, "outptu: not in OUTPUTS"),
    "a missing one": (lambda rows: {}, "output: not returned"),
    "no dict": (lambda rows: rows, "wanted a dict of DataFrames by output"),
    "no DataFrame": (lambda rows: {"output": 1}, "output: not a DataFrame"),
    "an error": (lambda rows: {"output": 1 // 0}, "outputs() failed: ZeroDivisionError"),
    "another column": (
        lambda rows: {"output": rows.withColumn("more", F.lit(1))},
        "column more: returned by outputs(), not in OUTPUTS",
    ),
}


@pytest.mark.parametrize("kind", WRONG_OUTPUTS)
def test_what_outputs_returns_is_verified_at_the_start(stream_of: StreamOf, kind: str) -> None:
    split, said = WRONG_OUTPUTS[kind]
    stream = stream_of("transactional")
    stream.redeclare(split=split)
    assert said in refusal(stream.flow)


BREAKS_OUTPUTS: dict[str, tuple[Callable[[DataFrame], DataFrame], str]] = {
    "explode": (
        lambda rows: rows.withColumn("n", F.explode(F.array(F.lit(1), F.lit(2)))).drop("n"),
        "explode and its like make many rows of one",
    ),
    "union": (lambda rows: rows.union(rows), "outputs() uses the rows more than once"),
    "join": (
        lambda rows: rows.join(rows.select("row_index"), "row_index").select(rows.columns),
        "Join of streams",
    ),
    "aggregate": (
        lambda rows: rows.dropDuplicates(["auction"]),
        "makes one row of many",
    ),
    "computed key": (
        lambda rows: rows.withColumn("row_index", F.col("row_index") + 1),
        "key column row_index is computed or renamed",
    ),
    "a clock": (
        lambda rows: rows.withColumn("extra", F.current_timestamp().cast("string")),
        "not deterministic",
    ),
}


@pytest.mark.parametrize("kind", BREAKS_OUTPUTS)
def test_outputs_of_an_idempotent_job_are_one_to_one(stream_of: StreamOf, kind: str) -> None:
    change, said = BREAKS_OUTPUTS[kind]
    stream = stream_of("idempotent")
    stream.redeclare(split=lambda rows: {"output": change(rows)})
    assert said in refusal(stream.flow)


@pytest.mark.thorough
def test_a_batch_with_state_goes_on_when_no_output_has_its_rows(stream_of: StreamOf) -> None:
    """The state must move on with the batch, or the next one cannot load it."""
    stream = stream_of("transactional", "aggregate")
    is_open = {"open": False}

    def split(rows: DataFrame) -> dict[str, DataFrame]:
        if is_open["open"]:
            return {"output": rows}
        return {"output": rows.sparkSession.createDataFrame([], rows.schema)}

    stream.redeclare(split=split)
    stream.send(300)
    stream.drain()
    assert not stream.found()
    is_open["open"] = True
    stream.send(3_000)
    stream.drain()
    assert stream.is_exact()


# -- keys ----------------------------------------------------------------------------------------


def _by_auction(stream: Stream, split: Callable[[DataFrame], Any]) -> Stream:
    columns = [Column("auction", "int64", key=True), Column("event_id", "utf8")]

    def newest(rows: Sequence[SampleRow]) -> Iterable[SampleRow]:
        return {row["auction"]: row for row in rows}.values()

    return _with_outputs(stream, {"newest": columns}, split, newest=newest)


@pytest.mark.thorough
def test_a_key_that_is_there_twice_in_a_batch_is_refused(stream_of: StreamOf) -> None:
    stream = _by_auction(
        stream_of("transactional"),
        lambda rows: {"output": rows, "newest": rows.select("auction", "event_id")},
    )
    stream.send(400)
    with pytest.raises(JobError, match=r"have the key auction=\d+ of 'newest'"):
        stream.drain()
    assert not stream.found()


def test_a_key_in_bytes_is_shown_as_bytes(spark: SparkSession) -> None:
    job = example("transactional", "map").job
    job = replace(job, outputs={**job.outputs, "newest": [Column("payload", "string", key=True)]})
    query = "select cast(payload as string) as payload from values (x'{}'), (x'{}') as t(payload)"
    output_frames._verify_unique(job, "newest", spark.sql(query.format("FE", "FF")))
    with pytest.raises(JobError, match=r"have the key payload=b'\\xff' \(1 byte\) of 'newest'"):
        output_frames._verify_unique(job, "newest", spark.sql(query.format("FF", "FF")))


@pytest.mark.thorough
def test_latest_lets_one_row_of_each_key_through(stream_of: StreamOf) -> None:
    def split(rows: DataFrame) -> dict[str, DataFrame]:
        return {
            "output": rows,
            "newest": latest(rows, ["auction"], "event_id").select("auction", "event_id"),
        }

    stream = _by_auction(stream_of("transactional"), split)
    stream.configure(max_rows_per_partition=100_000)
    stream.publish(sorted(stream.sample.make(400), key=lambda row: str(row["event_id"])))
    stream.drain()
    assert stream.is_exact()


@pytest.mark.thorough
def test_latest_lets_a_key_through_of_which_nothing_tells_what_is_latest(
    spark: SparkSession,
) -> None:
    rows = [(7, None, "a"), (7, None, "a"), (8, 1, "b"), (8, None, "c"), (None, None, "d")]
    frame = spark.createDataFrame(rows, "auction bigint, at bigint, event_id string")
    found = {(row.auction, row.event_id) for row in latest(frame, ["auction"], "at").collect()}
    assert found == {(7, "a"), (8, "b"), (None, "d")}


@pytest.mark.thorough
def test_a_total_whose_groups_are_finer_than_its_key_is_refused(stream_of: StreamOf) -> None:
    stream = stream_of("transactional", "aggregate")
    job = stream.context.job

    def transform(events: DataFrame) -> DataFrame:
        totals = events.groupBy("auction", "channel").agg(
            F.count(F.lit(1)).alias("bids"),
            F.sum("price").alias("total"),
            F.max("price").alias("highest"),
        )
        return totals.drop("channel")

    stream.redeclare(transform=transform)
    (remark,) = stream.flow().outputs.remarks()  # of `check`, before any row
    assert "(auction) of 'output', as far as the plan shows" in remark
    assert remark.endswith("group by the key in transform(), by nothing else: auction")
    stream.send(400)
    with pytest.raises(
        JobError, match=r"is undefined .* is kept\n  -> group by the key .* nothing else: auction"
    ):
        stream.drain()
    stream.redeclare(transform=job.transform)
    assert stream.flow().outputs.unproven == frozenset()  # the plan shows it, no look at the rows
    assert not [*stream.flow().outputs.remarks()]


GROUPS = {
    "select price % 7 as k from {rows} group by price % 7": True,
    "select price % 7 as k from {rows} group by price % 7, bidder % 2": False,
    "select k from (select price % 7 as k, bidder % 2 as b from {rows}) group by k, b": False,
    "select concat('', bidder % 2) as k from {rows} group by bidder % 2": False,
    "select max(bidder) as k from {rows} group by price % 7": False,
    "select x as k from (select price % 7 as x from {rows} group by price % 7)": True,
    "select x % 2 as k from (select price % 7 as x from {rows} group by price % 7)": False,
    "select cast(x as bigint) as k from (select price % 7 as x from {rows} group by 1)": True,
    "select try_cast(x as tinyint) as k from (select price as x from {rows} group by 1)": False,
    "select cast(price as bigint) as k from {rows} group by price": True,
    "select cast(price as bigint) as k from {rows} group by cast(price as bigint)": True,
    "select price + 1 as k from {rows} group by price, price + 1": False,
    "select price as k from {rows} group by rollup(price)": False,
    "select first(price) as k from {rows}": False,
}
"""Statements, and whether each shows that no two of its rows share `k`."""


@pytest.mark.parametrize("statement", GROUPS)
def test_a_plan_shows_that_a_key_is_unique(spark: SparkSession, statement: str) -> None:
    rows = spark.range(20).selectExpr("cast(id as int) as price", "id as bidder")
    assert is_unique_by(spark.sql(statement, rows=rows), ["k"]) == GROUPS[statement]


@pytest.mark.thorough
def test_a_total_by_a_finer_expression_than_its_key_is_refused(stream_of: StreamOf) -> None:
    stream = stream_of("transactional", "aggregate")
    transform = stream.context.job.transform

    def finer(events: DataFrame) -> DataFrame:
        groups = (F.col("auction") % 7).alias("auction"), (F.col("bidder") % 2).alias("half")
        same = transform(events)
        totals = events.groupBy(*groups).agg(
            F.count(F.lit(1)).alias("bids"),
            F.sum("price").alias("total"),
            F.max("price").alias("highest"),
        )
        return totals.select(*same.columns)

    stream.redeclare(transform=finer)
    stream.send(400)
    with pytest.raises(JobError, match=r"rows of one micro-batch have the key auction=\d of"):
        stream.drain()
    assert not stream.found()


@pytest.mark.thorough
def test_a_plan_of_a_batch_may_differ_from_that_of_no_rows(stream_of: StreamOf) -> None:
    def split(rows: DataFrame) -> dict[str, DataFrame]:
        groups = ["auction"] if rows.isEmpty() else ["auction", "event_id"]
        newest = rows.groupBy(*groups).agg(F.max("event_id").alias("newest"))
        return {"output": rows, "newest": newest.selectExpr("auction", "newest as event_id")}

    stream = _by_auction(stream_of("transactional"), split)
    assert not stream.flow().outputs.unproven
    stream.send(400)
    with pytest.raises(JobError, match=r"have the key auction=\d+ of 'newest'"):
        stream.drain()


# -- rejected rows -------------------------------------------------------------------------------

WRONG_CONDITIONS = {
    "a syntax error": ("price <", "PARSE_SYNTAX_ERROR"),
    "an unknown column": ("prize < 0", "prize"),
    "no boolean": ("price + 1", "gives Spark's bigint, and not true or false"),
    "an aggregate": ("count(*) > 1", "uses more than one row"),
    "explode": ("explode(array(true, false))", "uses more than one row"),
    "a subquery": ("price > (select 1)", "uses more than one row"),
}


@pytest.mark.parametrize("kind", WRONG_CONDITIONS)
def test_a_condition_that_is_none_is_refused(stream_of: StreamOf, kind: str) -> None:
    condition, said = WRONG_CONDITIONS[kind]
    stream = stream_of("transactional", rejects=True)
    stream.redeclare(reject={"it's wrong": condition})
    text = refusal(stream.flow)
    assert 'REJECT["it\'s wrong"] in transform.py' in text
    assert said in text


@pytest.mark.thorough
def test_a_raw_literal_keeps_the_backslashes_of_a_regular_expression(stream_of: StreamOf) -> None:
    stream = stream_of("transactional", rejects=True)
    stream.redeclare(reject={"no id": r"NOT event_id RLIKE r'^\d+-\d+$'"})
    stream.send(FEW)
    stream.drain()
    assert _rows_of(stream, REJECTED) == 0


def test_a_condition_that_differs_in_a_replay_is_refused_under_idempotent(
    stream_of: StreamOf,
) -> None:
    stream = stream_of("idempotent", rejects=True)
    stream.redeclare(reject={"ahead": "date_time > current_timestamp()"})
    assert "is not deterministic" in refusal(stream.flow)


def test_a_condition_that_raises_ends_the_job(stream_of: StreamOf) -> None:
    stream = stream_of("transactional", rejects=True)
    stream.redeclare(reject={"no number": "cast(event_id as int) < 0"})
    stream.send(100)
    with pytest.raises(JobError, match="CAST_INVALID_INPUT"), explained_spark():
        stream.drain()
    assert not stream.found()


@pytest.mark.thorough
@pytest.mark.parametrize("guarantee", ["transactional", "at_least_once"])
def test_too_many_rejected_rows_end_the_job_before_any_is_written(
    stream_of: StreamOf, guarantee: str
) -> None:
    stream = stream_of(guarantee, rejects=True)
    stream.redeclare(reject={"all of them": "true"})
    stream.send(FEW)
    stream.drain()  # few rows are bad rows, even if they are all
    assert _rows_of(stream, REJECTED) == FEW
    stream.send(200)
    with pytest.raises(JobError) as caught:
        stream.drain()
    assert "200 of 200 rows of a micro-batch were skipped: 200 all of them" in str(caught.value)
    assert _rows_of(stream, REJECTED) == FEW
    stream.configure(reject_limit=1)
    stream.drain()
    assert _rows_of(stream, REJECTED) == FEW + 200


@pytest.mark.parametrize("rejects", [False, True])
def test_an_operator_that_needs_state_is_refused_without_it(
    stream_of: StreamOf, rejects: bool
) -> None:
    """In a micro-batch alone it would find the repeats of that batch only."""
    stream = stream_of("transactional", rejects=rejects)
    made = stream.context.job.transform
    stream.redeclare(transform=lambda events: made(events.dropDuplicates(["event_id"])))
    assert "an operator that needs state (Deduplicate)" in refusal(stream.flow)


# -- replay-rejected -----------------------------------------------------------------------------


def _replayed(stream: Stream) -> str:
    return replay(stream.spark, stream.context, stream.flow(), print)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("guarantee", "queues"), [("transactional", 1), ("idempotent", 2), ("at_least_once", 2)]
)
def test_rows_that_a_corrected_transform_accepts_are_replayed_once(
    stream_of: StreamOf, monkeypatch: pytest.MonkeyPatch, guarantee: str, queues: int
) -> None:
    monkeypatch.setattr("ytstream_tools.replay.rejected_table.CHUNK", 7)
    stream = stream_of(guarantee, "map", queues, rejects=True)
    stream.send(500)
    stream.drain()
    rejected, before = _rows_of(stream, REJECTED), stream.found().total()
    by_price = {"the price is not positive": "price <= 0"}
    stream.redeclare(reject=by_price)
    said = _replayed(stream)
    stayed = _rows_of(stream, REJECTED)
    assert 0 < stayed < rejected
    assert said.startswith(f"{rejected - stayed} rows went into the outputs; {stayed} stay in //")
    assert stream.found().total() == before + rejected - stayed
    assert _replayed(stream).startswith("0 rows went into the outputs")
    # Each row is there once, as if it had been accepted at first.
    accepted = [row for row in stream.sent if row["price"] > 0]
    made = {**{row["event_id"]: row["price"] * 908 // 1000 for row in accepted}}
    found = stream.client.select_rows(f"event_id, price_eur from [{stream.settings.output}]")
    assert sorted((row["event_id"], row["price_eur"]) for row in found) == sorted(made.items())
    sums = "sum(try_get_int64(rows_written, '/rejected')) as rejected"
    (ledger,) = stream.client.select_rows(f"{sums} from [{stream.settings.ledger}] group by 1")
    assert ledger["rejected"] == stayed


@pytest.mark.thorough
def test_a_replay_that_is_cut_off_changes_nothing(stream_of: StreamOf, cluster: Running) -> None:
    stream = stream_of("transactional", rejects=True)
    stream.send(500)
    stream.drain()
    rejected, before = _rows_of(stream, REJECTED), stream.found()
    stream.redeclare(reject={"never": "false"})
    for method in ("ModifyRows", "CommitTransaction"):
        cluster.client.faults.add(method=method, action="fail", error=UNAVAILABLE)
        with pytest.raises((RestartableError, Exception), match="unable to synchronize"):
            _replayed(stream)
        assert (_rows_of(stream, REJECTED), stream.found()) == (rejected, before)
    assert _replayed(stream).startswith(f"{rejected} rows went into the outputs; 0 stay")


@pytest.mark.parametrize("queues", [pytest.param(1, marks=pytest.mark.journey), 2])
@pytest.mark.parametrize("is_fixed", [True, False])
def test_a_replay_replaces_no_row_of_a_recreated_queue(
    stream_of: StreamOf, monkeypatch: pytest.MonkeyPatch, *, is_fixed: bool, queues: int
) -> None:
    """Rows of the former queue have its positions, and stay in `rejected` by consent."""
    monkeypatch.setattr("ytstream_tools.replay.rejected_table._KEYS", 7)
    if not is_fixed:
        monkeypatch.setattr(
            "ytstream_tools.replay.rejected_table.RejectedTable.taken", lambda *_: set()
        )
    stream = stream_of("idempotent", "map", queues, rejects=True)
    stream.send(300)
    stream.drain()
    recreate(stream.settings.queues[0], stream.client)
    job_objects.provision(stream.context)
    stream.send(200, queues=[0])
    Driver(stream.context, stream.tablets).rewind("earliest", overwrite=True)
    stream = another_process(stream)
    stream.drain()
    before, rejected = _by_position(stream, "output"), _by_position(stream, REJECTED)
    stream.redeclare(reject={"never": "false"})
    said, after = _replayed(stream), _by_position(stream, "output")
    held = before.keys() & rejected.keys()
    assert held
    assert any(after[place] != row for place, row in before.items()) != is_fixed
    if is_fixed:
        assert f", {len(held)} of them since an output has a row at their position" in said
        # The job reads the others that stay in the queue that is shorter now.
        ends = head_of(stream).ends
        coming = {
            place
            for place in rejected
            if place[2] >= ends[place[0] or stream.settings.queues[0]].get(place[1], 0)
        }
        assert _by_position(stream, REJECTED).keys() == held | coming
        assert after.keys() == before.keys() | (rejected.keys() - coming)


def _by_position(stream: Stream, name: str) -> dict[tuple[Any, ...], Any]:
    path = stream.settings.outputs[name]
    rows = stream.client.select_rows(f"* from [{path}]")
    return {(row.get("queue_id"), row["tablet_index"], row["row_index"]): row for row in rows}


def test_a_job_without_reject_has_nothing_to_replay(stream_of: StreamOf) -> None:
    stream = stream_of("transactional")
    assert refusal_code(lambda: _replayed(stream)) == ErrorCode.NOT_FOR_THIS_JOB
