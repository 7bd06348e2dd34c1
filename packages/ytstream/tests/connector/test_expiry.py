"""The state of a deduplication is gone through less often, and its rows stay those of Spark."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from tests.support.helpers import ContextOf
from tests.support.waiting import eventually
from ytstream.connector import batch_counts, choose_connector, compile_java, spark_plan
from ytstream.connector.java import Java, class_name, each, jvm_of
from ytstream.rejected.late_rows import DROPPED
from ytstream.settings import spark_conf
from ytstream.settings.job_settings import OWN, ROCKSDB
from ytstream.spark import state_metrics
from ytstream.spark.source import events
from ytstream.version import version_of

pytestmark = pytest.mark.spark

_WITHIN = 4
"""Seconds. Keys are removed up to a second late."""
_SECONDS = (0.0, 0.3, 6.0, 6.4, 6.4, 6.7, 12.0, 12.3, 12.5, 12.7, 12.9, 17.0, 17.2, 17.4, 17.6)
"""How far the time of each batch is. The rows of a batch are spread over six seconds after it."""
_EACH = 40
_SETTINGS = {
    "spark.yt.streaming.transactional": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    **{
        conf.key: conf.value
        for conf in (*spark_conf.STATE_STORES[ROCKSDB], *spark_conf.STATELESS)
        if "{" not in conf.value and conf.since <= version_of("pyspark")
    },
}
_COUNTS = [*state_metrics.METRICS, DROPPED, "none"]


@dataclass
class _Found:
    """What a query has given: the rows that each batch keeps, and the figures of its state."""

    kept: dict[int, list[int]] = field(default_factory=dict)
    states: dict[int, Mapping[str, Any]] = field(default_factory=dict)
    counts: tuple[dict[str, int], int | None] = ({}, None)
    """What all operators have counted in the last batch, asked one by one."""
    at_once: tuple[dict[str, int], int | None] = ({}, None)
    """The same by our class."""
    calls: list[str] = field(default_factory=list)
    """The calls of the JVM that this took."""

    @property
    def totals(self) -> list[int]:
        """How many keys the state has after each batch."""
        return [self.states[number]["numRowsTotal"] for number in range(len(_SECONDS))]


def _events(session: SparkSession) -> DataFrame:
    """Return rows with few ids, some without a time, and times that are late now and then."""
    begins = ", ".join(str(round(1000 * seconds)) for seconds in _SECONDS)
    milliseconds = f"element_at(array({begins}), 1 + int(value div {_EACH}))"
    time = f"timestamp_millis(1700000000000 + {milliseconds} + abs(hash(value)) % 6000)"
    return (
        session.readStream.format("rate-micro-batch")
        .options(rowsPerBatch=_EACH, numPartitions=1)
        .load()
        .filter(f"value < {_EACH * len(_SECONDS)}")
        .selectExpr(
            "value",
            "abs(hash(value, 'id')) % 50 AS id",
            f"IF(value % 37 < 2, NULL, {time}) AS time",
        )
    )


def _wait(query: StreamingQuery, batch: int, states: dict[int, Mapping[str, Any]]) -> None:
    """Wait until the query has told of a batch, and remember what it tells of its state."""

    def is_told() -> bool:
        for told in query.recentProgress:
            if told["stateOperators"]:
                states[told["batchId"]] = told["stateOperators"][0]
        return batch in states

    eventually(is_told, what=f"batch {batch}", meanwhile=lambda: query.isActive)


def _run(session: SparkSession, folder: Path, stops: Sequence[int]) -> _Found:
    """Run the query until each of these batches, with a start after each; return all of it."""
    java, found = Java(jvm_of(session)), _Found()
    configuration = session.sparkContext._jsc.hadoopConfiguration()

    def keep(rows: DataFrame, number: int) -> None:
        kept = sorted(row.value for row in rows.select("value").collect())
        assert found.kept.setdefault(number, kept) == kept  # also of one that runs again
        if number == len(_SECONDS) - 1:
            _count(found, session.streams.active[0]._jsq.streamingQuery().lastExecution(), java)

    rows = _events(session).withWatermark("time", f"{_WITHIN} seconds")
    writer = (
        rows.dropDuplicatesWithinWatermark(["id"])
        .writeStream.foreachBatch(keep)
        .option("checkpointLocation", java["ytstream.DriverFiles.uri"](str(folder), configuration))
    )
    for stop in stops:
        query = writer.start()
        try:
            _wait(query, stop, found.states)
        finally:
            query.stop()
    return found


def _count(found: _Found, execution: Any, java: Java) -> None:
    """Ask both ways what an execution has counted."""
    client, calls, mine = java.jvm._gateway_client, list[str](), threading.get_ident()
    send = client.send_command
    batch_counts.metrics(execution, ("none",), java)  # looks the class up

    def counted(command: str, *more: Any) -> Any:
        if threading.get_ident() == mine and command.startswith("c"):
            calls.append(command)
        return send(command, *more)

    with patch.object(client, "send_command", counted):
        metrics = batch_counts.metrics(execution, _COUNTS, java)
        found.calls = [*calls]
        found.at_once = metrics, batch_counts.oldest_event_time(execution, java)
    metrics = spark_plan.metrics(execution, _COUNTS)
    found.counts = metrics, spark_plan.oldest_event_time(execution)


def _forget_rules(spark: SparkSession) -> None:
    """Let queries plan as Spark does, whatever other tests have installed."""
    extensions = spark._jsparkSession.extensions()
    rules = extensions.getClass().getDeclaredField("columnarRuleBuilders")
    rules.setAccessible(True)
    rules.get(extensions).clear()


@pytest.fixture(scope="module")
def runs(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[_Found, _Found]:
    """Run the query as Spark does alone, and as a job does.

    That one is stopped in between, which may be in the middle of a batch.
    """
    assert compile_java.unavailable(spark) == ""
    session, folder = spark.newSession(), tmp_path_factory.mktemp("states")
    for key, value in _SETTINGS.items():
        session.conf.set(key, value)
    last = len(_SECONDS) - 1
    _forget_rules(session)
    sparks = _run(session, folder / "spark", [last])
    for _ in range(2):
        choose_connector.remove_expired_later(session)
    return sparks, _run(session, folder / "ours", [9, last])


@pytest.mark.thorough
def test_the_rows_are_those_of_spark_when_expired_keys_stay_longer(
    runs: tuple[_Found, _Found],
) -> None:
    (sparks, ours), numbers = runs, range(len(_SECONDS))
    assert [ours.kept[number] for number in numbers] == [sparks.kept[number] for number in numbers]
    assert sum(len(sparks.kept[number]) for number in numbers) > 100
    more = [own - least for own, least in zip(ours.totals, sparks.totals, strict=True)]
    assert min(more) == 0 < max(more)  # they stay longer, and not forever
    counted = 0
    for number in numbers:  # as the ledger counts
        counted += ours.states[number]["numRowsUpdated"] - ours.states[number]["numRowsRemoved"]
        assert ours.totals[number] == counted


@pytest.mark.thorough
def test_one_call_of_the_jvm_says_what_all_operators_have_counted(
    runs: tuple[_Found, _Found],
) -> None:
    """To ask each operator takes hundreds, a tenth of a second of each batch with state."""
    for found in runs:
        assert len(found.calls) == 1
        assert found.at_once == found.counts
        metrics, oldest = found.counts
        assert metrics[state_metrics.UPDATED] > 0 == metrics["none"]
        assert oldest is not None


@pytest.mark.parametrize("connector", [OWN], indirect=True)
def test_the_queries_of_a_job_plan_so(
    spark: SparkSession, provisioned_of: ContextOf, connector: str
) -> None:
    _forget_rules(spark)
    events(spark, provisioned_of("transactional", "map"))
    session = spark._jsparkSession
    rules = session.extensions().buildColumnarRules(session)
    assert [class_name(rule) for rule in each(rules)] == ["ExpiryRule"]
