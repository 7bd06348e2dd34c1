"""transform() alone, on a stream of files: what it drops depends on what went before."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import Module
from frames import events, plain
from pyspark.sql import functions as F

from demo.bids import bids
from demo.expected import COLUMNS, expected, published


@pytest.fixture
def plain_spark(spark: Any) -> Iterator[Any]:
    """The session without SPYT's transactions: no row comes from a queue here."""
    before = spark.conf.get("spark.yt.streaming.transactional")
    spark.conf.set("spark.yt.streaming.transactional", "false")
    yield spark
    spark.conf.set("spark.yt.streaming.transactional", before)


def _result(module: Module, spark: Any, folder: Path, *batches: list[dict[str, Any]]) -> list[Any]:
    """The rows that come out when each batch is one micro-batch."""
    frames = [events(module, spark, batch) for batch in batches]
    for number, frame in enumerate(frames):
        frame.coalesce(1).write.parquet(f"file://{folder}/in/{number}")
    stream = (
        spark.readStream.schema(frames[0].schema)
        .option("maxFilesPerTrigger", 1)
        .parquet(f"file://{folder}/in/*")
    )
    query = (
        module("transform")
        .transform(stream)
        .writeStream.format("memory")
        .queryName("deduplicated")
        .option("checkpointLocation", f"file://{folder}/checkpoint")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return list(spark.table("deduplicated").collect())


def test_an_event_comes_out_once(module: Module, plain_spark: Any, tmp_path: Path) -> None:
    rows = published(list(bids(600)))
    assert len(rows) > 600
    # The second batch holds repeats of the first one's rows.
    result = _result(module, plain_spark, tmp_path, rows[:300], [*rows[300:], *rows[250:300]])
    assert plain(result, COLUMNS) == expected(rows)
    assert list(result[0].asDict()) == [name for name, _, _ in module("tables").OUTPUT]


def test_events_without_an_id_all_pass_and_those_from_the_future_do_not(
    module: Module, plain_spark: Any, tmp_path: Path
) -> None:
    rows = list(bids(50))
    nameless = [{**row, "event_id": None} for row in rows[:5]] * 2
    future = {**rows[0], "event_id": "f", "date_time": round(time.time() * 1e6) + 3_600_000_000}
    result = _result(module, plain_spark, tmp_path, [*rows, *nameless, future])
    assert [row.event_id for row in result].count(None) == 10
    assert {row.event_id for row in result} == {None, *(row["event_id"] for row in rows)}
    assert len(result) == 60


def test_a_time_that_is_no_timestamp_is_refused_in_one_line(module: Module, spark: Any) -> None:
    wrong = events(module, spark, bids(1)).withColumn("date_time", F.unix_micros("date_time"))
    with (
        pytest.raises(module("errors").JobError, match="date_time"),
        module("failures").explained_spark(),
    ):
        module("transform").transform(wrong)
