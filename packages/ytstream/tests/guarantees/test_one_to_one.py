"""idempotent admits a plan that is 1:1 and keeps the key, and names each other one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial, reduce

import pyspark
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from minicluster.testing import Running
from tests.support.helpers import (
    ContextOf,
    StreamOf,
    fail_in_the_middle_of_a_batch,
    refusal,
)
from ytstream import JobError
from ytstream.job import JobContext
from ytstream.query.read_audit import uncounted
from ytstream.spark.source import events

pytestmark = pytest.mark.spark

Change = Callable[[DataFrame], DataFrame]

JOIN, SUBQUERY = "join:unique-key", "subquery:constant"


def _sql(text: str) -> Change:
    """Return a change by a statement in which ``{rows}`` are the rows, and ``{known}`` a table."""
    return lambda rows: rows.sparkSession.sql(text, rows=rows, known=_known(rows))


def _known(rows: DataFrame) -> DataFrame:
    """Return a table whose key is unique: a channel, and its long name."""
    return rows.sparkSession.createDataFrame(
        [("apple", "a pome"), ("baidu", "a search engine")], "channel string, long string"
    )


def _in_a_view(rows: DataFrame) -> DataFrame:
    rows.createOrReplaceTempView("rows_in_a_view")
    return rows.sparkSession.table("rows_in_a_view")


def _in_a_view_of_a_view(rows: DataFrame) -> DataFrame:
    """Return the rows of a view in SQL, whose columns Spark casts to the types they have."""
    _in_a_view(rows)
    rows.sparkSession.sql(
        "create or replace temporary view view_of_a_view as select * from rows_in_a_view"
    )
    return rows.sparkSession.table("view_of_a_view")


def _joined(kind: str) -> Change:
    return lambda rows: rows.join(_known(rows), "channel", kind)


def _joined_from_the_right(kind: str) -> Change:
    return lambda rows: _known(rows).join(rows, "channel", kind)


BREAKS: dict[str, tuple[Change, str]] = {
    "aggregation": (
        lambda rows: rows.groupBy("tablet_index", "row_index").agg(F.first("price_eur")),
        "Aggregate: makes one row of many",
    ),
    "explode": (
        lambda rows: rows.withColumn("n", F.explode(F.array(F.lit(1), F.lit(2)))).drop("n"),
        "Generate: explode and its like",
    ),
    "deduplication": (lambda rows: rows.dropDuplicates(["auction"]), "Deduplicate: makes one row"),
    "limit": (lambda rows: rows.limit(10), "GlobalLimit: chooses other rows"),
    "sampling": (lambda rows: rows.sample(0.5), "Sample: chooses other rows"),
    "unknown operator": (lambda rows: rows.offset(1), "Offset: not known to be 1:1"),
    "self-union": (lambda rows: rows.union(rows), "read 2 times, as by rows united with itself"),
    "CTE used twice": (
        _sql("with c as (select * from {rows}) select * from c union all select * from c"),
        "or a CTE that is used twice: several rows of one would share a key",
    ),
    "aggregation in a view": (
        lambda rows: _in_a_view(rows.dropDuplicates(["auction"])),
        "Deduplicate: makes one row of many",
    ),
    "aggregation in a CTE": (
        _sql("with c as (select distinct * from {rows}) select * from c"),
        "Distinct: makes one row of many",
    ),
    "foreign stream": (
        lambda rows: rows.unionByName(
            rows.sparkSession.readStream.format("rate").load(), allowMissingColumns=True
        ),
        "a stream is read that is not one of the queues",
    ),
    "random value": (lambda rows: rows.withColumn("auction", F.rand()), "rand is not determ"),
    "random filter": (lambda rows: rows.filter(F.rand() < 0.5), "rand is not deterministic"),
    "uuid": (lambda rows: rows.withColumn("extra", F.expr("uuid()")), "uuid is not determ"),
    "clock": (
        lambda rows: rows.withColumn("extra", F.expr("string(unix_timestamp())")),
        "current_timestamp is not deterministic",
    ),
    "clock in a filter": (
        lambda rows: rows.filter(F.col("date_time") < F.current_date()),
        "current_date is not deterministic",
    ),
    "clock in a text": (
        lambda rows: rows.filter("date_time < cast('now' as timestamp)"),
        "a text such as 'now' is cast to a time: a replay has another one",
    ),
    "computed key": (
        lambda rows: rows.withColumn("row_index", F.col("row_index") + 1),
        "row_index is computed",
    ),
    "cast key": (
        lambda rows: rows.withColumn("row_index", F.expr("bigint(int(row_index))")),
        "row_index is computed",
    ),
    "key computed in a CTE": (
        _sql("with c as (select tablet_index, row_index * 2 as row_index from {rows}) table c"),
        "row_index is computed",
    ),
    "swapped key": (
        lambda rows: rows.select(
            F.col("row_index").alias("tablet_index"),
            F.col("tablet_index").alias("row_index"),
            *(name for name in rows.columns if name not in ("tablet_index", "row_index")),
        ),
        "computed or renamed",
    ),
    "lost key": (lambda rows: rows.drop("row_index"), "row_index is lost"),
}

BREAKS_OF_SEVERAL: dict[str, tuple[Change, str]] = {
    "lost queue": (lambda rows: rows.drop("queue_id"), "queue_id is lost"),
    "computed queue": (
        lambda rows: rows.withColumn("queue_id", F.upper("queue_id")),
        "queue_id is computed",
    ),
    "literal queue": (
        lambda rows: rows.withColumn("queue_id", F.lit("bids")),
        "queue_id is computed",
    ),
}
"""With several queues alone: equal positions of two queues would share a key."""

ACCEPTABLE: dict[str, tuple[Change, str]] = {
    "inner join": (_joined("inner"), JOIN),
    "left join": (_joined("left"), JOIN),
    "semi join": (_joined("left_semi"), JOIN),
    "anti join": (_joined("left_anti"), JOIN),
    "cross join": (lambda rows: rows.crossJoin(_known(rows).drop("channel").limit(1)), JOIN),
    "join in SQL": (
        _sql("select r.*, long from {rows} r, {known} k where r.channel = k.channel"),
        JOIN,
    ),
    "inner join, stream on the right": (_joined_from_the_right("inner"), JOIN),
    "right join, stream on the right": (_joined_from_the_right("right"), JOIN),
    "join with an aggregation": (
        lambda rows: rows.join(_known(rows).groupBy("channel").agg(F.max("long")), "channel"),
        JOIN,
    ),
    "join with a view of a union with itself": (
        lambda rows: rows.join(
            _in_a_view(_known(rows).union(_known(rows)).dropDuplicates(["channel"])), "channel"
        ),
        JOIN,
    ),
    "join with a CTE that is used twice": (
        _sql(
            "with c as (select * from {known}), d as (select * from c union select * from c) "
            "select r.*, long from {rows} r left join d on r.channel = d.channel"
        ),
        JOIN,
    ),
    "join with a subquery on the other side": (
        _sql(
            "select r.*, k.long from {rows} r join (select * from {known} where channel in "
            "(select channel from {known})) k on r.channel = k.channel"
        ),
        JOIN,
    ),
    "two joins": (lambda rows: _joined("left")(_joined("left_semi")(rows)), JOIN),
    "IN": (_sql("select * from {rows} where channel in (select channel from {known})"), SUBQUERY),
    "NOT IN": (
        _sql("select * from {rows} where channel not in (select channel from {known})"),
        SUBQUERY,
    ),
    "EXISTS": (
        _sql(
            "select * from {rows} r where exists "
            "(select 1 from {known} k where k.channel = r.channel)"
        ),
        SUBQUERY,
    ),
    "scalar subquery": (
        _sql("select *, concat('x', (select max(long) from {known})) as long from {rows}"),
        SUBQUERY,
    ),
    "subquery over a CTE": (
        _sql(
            "with k as (select channel from {known}) "
            "select * from {rows} where channel in (select channel from k)"
        ),
        SUBQUERY,
    ),
}
"""Refused unless ``accept`` has the entry that the refusal names."""

NEVER: dict[str, tuple[Change, str]] = {
    "full join": (_joined("full"), "Outer join: makes rows of the other side"),
    "right join": (_joined("right"), "Outer join: makes rows of the other side"),
    "left join, stream on the right": (_joined_from_the_right("left"), "Outer join"),
    "semi join, stream on the right": (_joined_from_the_right("left_semi"), "Outer join"),
    "join of the stream": (
        lambda rows: rows.join(rows.select("event_id"), "event_id"),
        "Join of streams: a row may meet several rows",
    ),
    "lateral join": (
        _sql(
            "select r.*, long from {rows} r, "
            "lateral (select k.long from {known} k where k.channel = r.channel)"
        ),
        "LateralJoin: may make several rows of one",
    ),
    "aggregation before the join": (
        lambda rows: _joined("left")(rows.dropDuplicates(["auction"])),
        "Deduplicate: makes one row",
    ),
    "random rows on the other side": (
        lambda rows: rows.join(_known(rows).withColumn("long", F.rand()), "channel"),
        "rand is not deterministic",
    ),
    "random rows of a subquery": (
        _sql("select *, (select rand()) as x from {rows}"),
        "scalarsubquery is not deterministic",
    ),
}
"""Refused whatever ``accept`` says."""

PASSES: dict[str, Change] = {
    "columns and filters": lambda rows: (
        rows.filter(F.col("price_eur") > 10)
        .withColumn("extra", F.upper("extra"))
        .observe("seen", F.count(F.lit(1)).alias("rows"))
        .repartition(2)
    ),
    "view": _in_a_view,
    "view of a view": _in_a_view_of_a_view,
    "view of SQL": lambda rows: _in_a_view(_sql("select * from {rows} where bidder > 1")(rows)),
    "CTE": _sql("with c as (select * from {rows}) select * from c where bidder > 1"),
    "CTE of a CTE": _sql(
        "with c as (select * from {rows}), d as (with e as (select * from c) select * from e) "
        "select * from d"
    ),
    "CTE that nothing uses": _sql(
        "with c as (select * from {rows}), d as (select count(*) from {rows}) select * from c"
    ),
    "CTE below an operator": lambda rows: _sql("with c as (select * from {rows}) select * from c")(
        rows
    ).filter("bidder > 1"),
}
PASSES_ON_SPARK_4: dict[str, tuple[Change, tuple[str, ...]]] = {
    "pipes": (_sql("from {rows} |> where bidder > 1 |> set extra = upper(extra)"), ()),
    "join with a recursive CTE": (
        _sql(
            "with recursive c(n) as (select 1 union all select n + 1 from c where n < 5) "
            "select r.* from {rows} r left join c on r.row_index = c.n"
        ),
        (JOIN,),
    ),
}


def _rows(spark: SparkSession, context: JobContext) -> DataFrame:
    return context.job.transform(events(spark, context))


def _admit(context: JobContext, rows: DataFrame, *accept: str) -> None:
    settings = replace(context.settings, accept=accept)
    context.guarantee.admit(rows, settings)


@pytest.mark.parametrize(
    ("queues", "kind"),
    [
        *((1, kind) for kind in BREAKS),
        *((2, kind) for kind in BREAKS_OF_SEVERAL),
        *((2, kind) for kind in ("computed key", "lost key", "self-union", "CTE used twice")),
    ],
)
def test_a_plan_that_is_not_one_to_one_is_refused(
    provisioned_of: ContextOf, spark: SparkSession, queues: int, kind: str
) -> None:
    context = provisioned_of("idempotent", "map", queues)
    change, said = (BREAKS | BREAKS_OF_SEVERAL)[kind]
    rows = change(_rows(spark, context))
    assert said in refusal(partial(_admit, context, rows, JOIN, SUBQUERY))


@pytest.mark.thorough
@pytest.mark.parametrize("queues", [1, 2])
def test_a_plan_that_is_one_to_one_passes(
    provisioned_of: ContextOf, spark: SparkSession, queues: int
) -> None:
    context = provisioned_of("idempotent", "map", queues)
    rows = _rows(spark, context)
    for change in PASSES.values():
        _admit(context, change(rows))


@pytest.mark.thorough
@pytest.mark.skipif(pyspark.__version__ < "4", reason="Spark 3.5 has neither")
def test_what_spark_4_has_added_passes(provisioned_of: ContextOf, spark: SparkSession) -> None:
    context = provisioned_of("idempotent", "map", 2)
    for change, accept in PASSES_ON_SPARK_4.values():
        _admit(context, change(_rows(spark, context)), *accept)


@pytest.mark.thorough
def test_a_refusal_that_can_be_accepted_says_how(
    provisioned_of: ContextOf, spark: SparkSession
) -> None:
    context = provisioned_of("idempotent", "map", 2)
    for kind, (change, entry) in ACCEPTABLE.items():
        rows = change(_rows(spark, context))
        (other,) = {JOIN, SUBQUERY} - {entry}
        said = refusal(partial(_admit, context, rows, other))
        assert f'or accept = ["{entry}"]' in said, kind
        # The refusal alone, and nothing of the other side.
        assert len(said.splitlines()) == 3, said
        _admit(context, rows, entry)


@pytest.mark.thorough
def test_other_joins_are_refused_whatever_is_accepted(
    provisioned_of: ContextOf, spark: SparkSession
) -> None:
    context = provisioned_of("idempotent")
    for kind, (change, said) in NEVER.items():
        rows = change(_rows(spark, context))
        text = refusal(partial(_admit, context, rows, JOIN, SUBQUERY))
        assert said in text, kind


def _labelled(spark: SparkSession, context: JobContext, labels: Mapping[str, str]) -> DataFrame:
    """Return the rows of some queues, each with a literal ``queue_id``."""
    parts = []
    for queue, label in labels.items():
        alone = replace(context, settings=replace(context.settings, queues=(queue,)))
        parts.append(events(spark, alone).withColumn("queue_id", F.lit(label)))
    return context.job.transform(reduce(DataFrame.unionByName, parts))


@pytest.mark.thorough
def test_the_literal_of_a_queue_counts_on_its_own_source_alone(
    provisioned_of: ContextOf, spark: SparkSession
) -> None:
    context = provisioned_of("idempotent", "map", 2)
    east, west = context.settings.queues
    _admit(context, _labelled(spark, context, {east: east, west: west}))
    both = _rows(spark, context)
    for rows in (
        *(
            _labelled(spark, context, {east: first, west: second})
            for first, second in ((west, east), (east, east), (east, "bids"))
        ),
        *(both.withColumn("queue_id", F.lit(queue)) for queue in (east, west)),
    ):
        assert "queue_id is computed" in refusal(partial(_admit, context, rows))


@pytest.mark.thorough
def test_each_queue_is_read_once(provisioned_of: ContextOf, spark: SparkSession) -> None:
    context = provisioned_of("idempotent", "map", 2)
    east, west = context.settings.queues
    said = refusal(lambda: _admit(context, _labelled(spark, context, {east: east})))
    assert f"queue {west} is not read" in said
    both = _rows(spark, context)
    assert uncounted(both, (east, west)) == set()
    assert uncounted(both.union(both), (east, west)) == {east, west}
    # The plan defines such a CTE once, but Spark reads it as often as it is used.
    rows = BREAKS["CTE used twice"][0](both)
    assert uncounted(rows, (east, west)) == {east, west}


def test_a_subquery_over_a_stream_is_refused(
    provisioned_of: ContextOf, spark: SparkSession
) -> None:
    """Spark 4 refuses it by itself."""
    context = provisioned_of("idempotent")
    change = _sql("select * from {rows} where channel in (select channel from {rows})")
    with pytest.raises(
        (JobError, AnalysisException),
        match=r"Subquery over a stream: has other rows in a replay|STREAMING_QUERY",
    ):
        _admit(context, change(_rows(spark, context)), JOIN, SUBQUERY)


WHOLE: dict[str, tuple[int, Change, tuple[str, ...]]] = {
    "CTE and views": (
        2,
        lambda rows: _sql("with c as (select * from {rows}) select * from c")(
            _in_a_view_of_a_view(rows)
        ),
        (),
    ),
    "join": (2, lambda rows: _joined("left")(rows).drop("long"), (JOIN,)),
    "subqueries": (
        1,
        _sql(
            "select * from {rows} where (select count(*) from {known}) = 2 and event_id not in "
            "(select long from {known}) and exists (select 1 from {known} where channel > long)"
        ),
        (SUBQUERY,),
    ),
}
"""Changes that leave the output's columns as they are, and what they need accepted."""


@pytest.mark.parametrize("kind", WHOLE)
def test_an_accepted_plan_writes_each_row_once(
    stream_of: StreamOf, cluster: Running, kind: str
) -> None:
    """All writes but the first fail; the batch then runs again."""
    queues, change, accept = WHOLE[kind]
    stream = stream_of("idempotent", "map", queues)
    stream.configure(max_rows_per_partition=100, accept=accept)
    transform = stream.context.job.transform
    stream.redeclare(transform=lambda rows: change(transform(rows)))
    stream.send(600)
    fail_in_the_middle_of_a_batch(stream, cluster, skip=1)
    assert stream.found()
    stream.drain()
    assert stream.is_exact()
    assert sum(stream.found().values()) == 600 * queues
