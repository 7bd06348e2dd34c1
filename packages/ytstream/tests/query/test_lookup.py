"""lookup(): both ways, on both connectors, in transform() and in outputs()."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
import yt.type_info as ti
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from yt.yson import YsonUint64

from minicluster.testing import Running
from tests.support.helpers import ContextOf, last_request, refusal
from ytstream import Column, lookup
from ytstream.cluster.built_reference import MARK, mark
from ytstream.cluster.client import Client
from ytstream.declaration.lookups import available
from ytstream.job import JobContext
from ytstream.ledger.ledger_rows import LookedUp
from ytstream.outputs import string_columns
from ytstream.query.references import JobReferences
from ytstream.schema.columns import resolved
from ytstream.schema.table_schema import table_schema
from ytstream_tools.testing.unit_frames import reference_frame

pytestmark = pytest.mark.spark

AUCTIONS = [
    Column("auction", "int64", key=True),
    Column("category", "utf8"),
    Column("seller", "int64"),
]


def _made(client: Client, path: str, columns: list[Column], rows: list[dict[str, Any]]) -> str:
    schema = table_schema(resolved("REFERENCES", columns)).to_yson_type()
    client.create("table", path, recursive=True, attributes={"dynamic": True, "schema": schema})
    client.mount_table(path, sync=True)
    client.insert_rows(path, rows)
    return path


def _auctions(count: int) -> list[dict[str, Any]]:
    return [{"auction": k, "category": f"category {k % 7}", "seller": k * 10} for k in range(count)]


@pytest.fixture
def references(context_of: ContextOf, root: str, spark: SparkSession) -> JobReferences:
    """A job that looks up in a table of auctions, 0 to 899."""
    context = context_of("transactional")
    path = _made(context.client, f"{root}/auctions", AUCTIONS, _auctions(900))
    return _with(context, spark, {"auctions": AUCTIONS}, {"auctions": path})


def _with(
    context: JobContext,
    spark: SparkSession,
    columns: Mapping[str, list[Column]],
    paths: Mapping[str, str],
) -> JobReferences:
    job = replace(context.job, references=columns)
    settings = replace(context.settings, references=paths)
    return JobReferences(spark, replace(context, job=job, settings=settings))


@pytest.mark.parametrize("by", ["keys", "table"])
def test_rows_get_the_columns_of_their_key(
    references: JobReferences, spark: SparkSession, by: str
) -> None:
    """Of a missing key and of null they are null, and the column `found` is false."""
    rows = spark.range(0, 1_200, 1, 3).selectExpr("nullif(id, 5) AS k", "id")
    with available(references):
        found = lookup(rows, "auctions", {"auction": "k"}, ["seller"], found="is_known", by=by)
    assert found.columns == ["k", "id", "seller", "is_known"]
    assert {tuple(row)[1:] for row in found.collect()} == {
        (i, *((i * 10, True) if i < 900 and i != 5 else (None, False))) for i in range(1_200)
    }
    assert [*references.used()] == [("auctions", by)]


@pytest.mark.parametrize("by", ["keys", "table"])
def test_operators_over_a_lookup(
    references: JobReferences, spark: SparkSession, cluster: Running, by: str
) -> None:
    """Filters, a union and a join of the rows with themselves, a group, a Python function."""
    rows = spark.range(0, 1_000, 1, 3).selectExpr("id AS auction", "id")
    with available(references):
        all_ = lookup(rows, "auctions", "auction", by=by)
        inner = lookup(rows, "auctions", "auction", ["category"], how="inner", by=by)
        twice = lookup(inner, "auctions", {"auction": "id"}, ["seller"], by=by)
    assert all_.filter("seller >= 100 AND id < 50").count() == 40
    assert all_.union(all_).count() == 2_000
    joined = all_.alias("a").join(all_.alias("b"), "id").where("a.seller = b.seller")
    assert joined.count() == 900
    per = all_.join(all_.groupBy("category").agg(F.max("seller").alias("most")), "category")
    assert per.count() == 900
    assert inner.count() == twice.filter("seller = auction * 10").count() == 900
    groups = all_.groupBy("category").count().collect()
    assert {row["category"] for row in groups} == {None, *(f"category {n}" for n in range(7))}
    more = F.udf(lambda value: None if value is None else value + 1, "bigint")
    assert all_.select(more("seller").alias("n")).filter("n > 0").count() == 900


@pytest.mark.thorough
def test_only_what_is_read_is_asked_for(
    references: JobReferences, spark: SparkSession, cluster: Running
) -> None:
    """Rows that a filter drops are not looked up, nor are columns that nobody reads."""
    rows = spark.range(0, 1_000, 1, 1).selectExpr("id AS auction", "id")
    with available(references):
        found = lookup(rows, "auctions", "auction", by="keys")

    def asked(frame: DataFrame) -> list[Any]:
        since = last_request(cluster)
        frame.collect()
        return [one for one in cluster.client.journal(since=since) if one.method == "LookupRows"]

    assert asked(found.select("id").filter("id < 10")) == []
    plan = found.filter("id < 10").select("seller")._jdf.queryExecution().optimizedPlan()
    assert "category" not in plan.toString()
    assert plan.toString().index("LookupNode") < plan.toString().index("Filter")
    assert len(asked(found.select("seller"))) == 2


_TIME = 1_704_067_200
"""Type of a key -> two values of it that the table has, and one that it has not."""
KEYS: Mapping[str, tuple[Any, Any, Any]] = {
    **dict.fromkeys(("int8", "int16", "int32", "int64", "interval"), (-7, 0, 5)),
    **{name: tuple(map(YsonUint64, (0, 200, 7))) for name in ("uint8", "uint16", "uint32")},
    "uint64": (YsonUint64(0), YsonUint64(2**64 - 1), YsonUint64(1)),
    "double": (-0.5, 1e300, 0.25),
    "float": (-0.5, 1.5, 0.25),
    "bool": (True, True, False),
    "utf8": ("", "привет", "none"),
    "string": (b"", b"\xff\xfe", b"none"),
    "date": (YsonUint64(0), YsonUint64(19_723), YsonUint64(1)),
    "datetime": tuple(map(YsonUint64, (0, _TIME, 1))),
    "timestamp": tuple(map(YsonUint64, (0, _TIME * 10**6 + 1, 1))),
}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "by"),
    [(kind, by) for kind in KEYS for by in ("keys", "table") if (kind, by) != ("uint64", "table")],
)
@pytest.mark.thorough
def test_a_key_of_each_type(
    context_of: ContextOf, root: str, spark: SparkSession, kind: str, by: str
) -> None:
    context = context_of("transactional")
    columns = [Column("k", kind, key=True), Column("n", "int64", key=True), Column("label", "utf8")]
    first, second, missing = KEYS[kind]
    given = {(first, 1): "a", (second, 2): "b"}
    rows = [{"k": k, "n": n, "label": label} for (k, n), label in given.items()]
    path = _made(context.client, f"{root}/keys", columns, rows)
    references = _with(context, spark, {"keys": columns}, {"keys": path})
    job = replace(context.job, reference=columns[:2])
    asked = [(first, 1), (missing, 1), (second, 2), (None, 1), (second, 1), (first, 1)]
    frame = reference_frame(spark, replace(context, job=job), [{"k": k, "n": n} for k, n in asked])
    with available(references):
        found = lookup(frame, "keys", ["k", "n"], by=by).select("n", "label").collect()
    assert [tuple(row) for row in found] == [(n, given.get((k, n))) for k, n in asked]


@pytest.mark.thorough
def test_a_uint64_is_not_read_whole_and_the_remedy_works(
    context_of: ContextOf, root: str, spark: SparkSession
) -> None:
    columns = [Column("k", "uint64", key=True), Column("label", "utf8")]
    context = context_of("transactional")
    path = _made(context.client, f"{root}/keys", columns, [{"k": YsonUint64(7), "label": "a"}])
    references = _with(context, spark, {"keys": columns}, {"keys": path})
    rows = spark.sql("SELECT 7L AS k")
    with available(references):
        said = refusal(lambda: lookup(rows, "keys", "k", by="table"))
        assert "cannot read k (uint64)" in said
        assert 'leave out by="table"' in said
        assert lookup(rows, "keys", "k").collect()[0]["label"] == "a"


@pytest.mark.thorough
@pytest.mark.parametrize("by", ["keys", "table"])
def test_names_may_have_brackets_and_quotes(
    context_of: ContextOf, root: str, spark: SparkSession, by: str
) -> None:
    columns = [Column('k"]', "int64", key=True), Column("v]", "int64"), Column("[w", "datetime")]
    context = context_of("transactional")
    row = {'k"]': 1, "v]": 10, "[w": YsonUint64(_TIME)}
    path = _made(context.client, f"{root}/named", columns, [row])
    references = _with(context, spark, {"named": columns}, {"named": path})
    with available(references):
        found = lookup(spark.sql("SELECT 1L AS k"), "named", {'k"]': "k"}, by=by)
    assert found.dtypes == [("k", "bigint"), ("v]", "bigint"), ("[w", "datetime")]
    assert found.collect()[0]["v]"] == 10


@pytest.mark.thorough
def test_a_key_that_begins_with_a_hash_is_given_without_it(
    context_of: ContextOf, root: str, spark: SparkSession
) -> None:
    """The cluster computes it. Such a column spreads rows over tablets."""
    context, path = context_of("transactional"), f"{root}/hashed"
    hashed = {"name": "h", "type": "uint64", "sort_order": "ascending"}
    schema = [
        {**hashed, "expression": "farm_hash(auction) % 100"},
        {"name": "auction", "type": "int64", "sort_order": "ascending"},
        {"name": "category", "type": "utf8"},
        {"name": "seller", "type": "int64"},
    ]
    client: Any = context.client
    client.create("table", path, recursive=True, attributes={"dynamic": True, "schema": schema})
    client.mount_table(path, sync=True)
    client.insert_rows(path, _auctions(90))
    for by in ("keys", "table"):
        references = _with(context, spark, {"auctions": AUCTIONS}, {"auctions": path})
        with available(references):
            found = lookup(spark.range(100).toDF("auction"), "auctions", "auction", by=by)
        assert {(row["auction"], row["seller"]) for row in found.collect()} == {
            (k, k * 10 if k < 90 else None) for k in range(100)
        }


@pytest.mark.thorough
def test_values_that_a_key_cannot_have_find_nothing(
    context_of: ContextOf, root: str, spark: SparkSession
) -> None:
    """A server would find the row of a null key, or of -1 as 2**64 - 1, and refuses NaN."""
    context = context_of("transactional")
    columns = {
        "numbers": [Column("k", "uint64", key=True), Column("label", "utf8")],
        "doubles": [Column("k", "double", key=True), Column("label", "utf8")],
        "texts": [Column("k", "utf8", key=True), Column("label", "utf8")],
    }
    keys: Mapping[str, list[Any]] = {
        "numbers": [None, YsonUint64(2**64 - 1), YsonUint64(3)],
        "doubles": [None, 0.5],
        "texts": [None, "a"],
    }
    paths = {
        name: _made(
            context.client,
            f"{root}/{name}",
            columns[name],
            [{"k": key, "label": str(key)} for key in keys[name]],
        )
        for name in columns
    }
    references = _with(context, spark, columns, paths)
    asked = {
        "numbers": "SELECT explode(array(-1L, 3L, NULL)) AS k",
        "doubles": "SELECT explode(array(double('NaN'), 0.5D, NULL)) AS k",
        "texts": "SELECT explode(array(string(X'ff'), 'a', NULL)) AS k",
    }
    found = {}
    for name, query in asked.items():
        with available(references):
            rows = lookup(spark.sql(query), name, "k", ["label"], by="keys").collect()
        found[name] = [row["label"] for row in rows]
    assert found == {
        "numbers": [None, "3", None], "doubles": [None, "0.5", None], "texts": [None, "a", None],
    }  # fmt: skip


@pytest.mark.thorough
def test_columns_come_as_a_queue_gives_them(
    context_of: ContextOf, root: str, spark: SparkSession
) -> None:
    """Also `any`, lists and SPYT's own types, by key; and null in each."""
    context = context_of("transactional")
    kinds = {name: values[1] for name, values in KEYS.items()}
    kinds |= {"any": {"a": [1, "x"]}, "json": '{"a": 1}'}
    columns = [Column("id", "int64", key=True)]
    columns += [Column(f"of_{name}", name) for name in kinds]
    columns.append(Column("of_list", ti.List[ti.Int64]))
    rows: list[dict[str, Any]] = [
        {"id": 1, **{f"of_{name}": value for name, value in kinds.items()}, "of_list": [1, 2]},
        {"id": 2, **{f"of_{name}": None for name in kinds}, "of_list": None},
    ]
    path = _made(context.client, f"{root}/values", columns, rows)
    references = _with(context, spark, {"values": columns}, {"values": path})
    with available(references):
        found = lookup(spark.sql("SELECT explode(array(1L, 2L)) AS id"), "values", "id")
    job = replace(context.job, reference=columns)
    wanted = reference_frame(spark, replace(context, job=job), rows)
    assert [*references.used()] == [("values", "keys")]  # such types are not read whole
    assert found.dtypes == wanted.dtypes
    got, want = (string_columns.crossing(frame).collect() for frame in (found, wanted))
    assert sorted(map(str, got)) == sorted(map(str, want))


@pytest.mark.thorough
def test_wide_rows_and_many_keys_are_bounded(
    context_of: ContextOf, root: str, spark: SparkSession, cluster: Running
) -> None:
    """A request asks for 2,000 keys, and for fewer where the rows of the table are large."""
    context = context_of("transactional")
    columns = [Column("k", "int64", key=True), Column("text", "string")]
    references = {}
    for name, size in (("small", 10), ("large", 100_000)):
        rows = [{"k": k, "text": b"x" * size} for k in range(200)]
        path = _made(context.client, f"{root}/{name}", columns, rows[:100])
        context.client.insert_rows(path, rows[100:])
        references[name] = path
    known = _with(context, spark, dict.fromkeys(references, columns), references)
    since, counts = last_request(cluster), []
    for name, rows_ in (("small", 20_000), ("large", 400)):
        with available(known):
            found = lookup(spark.range(0, rows_, 1, 1).toDF("k"), name, "k", by="keys")
        assert found.filter("text IS NOT NULL").count() == 200
        asked = cluster.client.journal(since=since)
        counts.append(sum(one.method == "LookupRows" for one in asked))
        since = last_request(cluster)
    assert counts[0] <= 1 + 20_000 / 2_000
    assert 5 <= counts[1] <= 12  # 41 rows of 100,000 bytes make 4 MiB


@pytest.mark.thorough
def test_the_size_of_the_table_chooses_and_the_log_says_so(
    references: JobReferences,
    spark: SparkSession,
    cluster: Running,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", logger="job")
    path = references.context.settings.references["auctions"]
    rows = spark.range(10).toDF("auction")
    context = replace(references.context, job=replace(references.context.job, reference_rows=899))
    for most, way in ((899, "keys"), (900, "table")):
        job = replace(context.job, reference_rows=most)
        known = JobReferences(spark, replace(context, job=job))
        with available(known):
            assert lookup(rows, "auctions", "auction").filter("seller = auction * 10").count() == 10
        assert [*known.used()] == [("auctions", way)]
    assert f"reference {path}: by key, each micro-batch looks up its own keys" in caplog.text
    assert f"reference {path}: read whole, 900 rows" in caplog.text
    known = JobReferences(spark, context)
    with available(known):
        said = refusal(lambda: lookup(rows, "auctions", "auction", by="table"))
    assert "has more than 899 rows" in said


@pytest.mark.thorough
def test_without_the_compiler_keys_are_refused_in_words(
    references: JobReferences, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ytstream.query.references.unavailable", lambda _: "no Janino")
    rows = spark.range(10).toDF("auction")
    with available(references):
        assert "cannot be compiled: no Janino" in refusal(
            lambda: lookup(rows, "auctions", "auction", by="keys")
        )
        assert lookup(rows, "auctions", "auction").count() == 10


@pytest.mark.parametrize("by", ["keys", "table"])
@pytest.mark.thorough
def test_what_a_batch_has_looked_up_is_looked_up_again(
    references: JobReferences, spark: SparkSession, by: str
) -> None:
    """`rewind state` executes a batch again, as of its moment, or not at all."""
    client, path = references.context.client, references.context.settings.references["auctions"]
    # A table without a mark has its rows from the second after its creation on.
    client.set(f"{path}/@{MARK}", mark(2, "//static", ("auction",)))
    at = LookedUp(by, str(client.get(f"{path}/@id")), int(client.generate_timestamp()))
    client.insert_rows(path, [{"auction": 1, "category": "new", "seller": 7}])
    known = JobReferences(spark, references.context, at={"auctions": at})
    known.verify_kept()
    with available(known):
        (row,) = lookup(spark.sql("SELECT 1L AS auction"), "auctions", "auction").collect()
    assert (row["category"], row["seller"]) == ("category 1", 10)
    later = replace(at, timestamp=1)
    known = JobReferences(spark, references.context, at={"auctions": later})
    assert "may not have the rows that the batch has looked up" in refusal(known.verify_kept)
