"""The shipped transformations and tests where a value is odd: a null key, a time of the year 0."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tests.support.helpers import StreamOf, refusal
from ytstream_tools.testing.stream_batches import stream_outputs
from ytstream_tools.testing.unit_frames import (
    assert_outputs,
    assert_rows,
    events_frame,
    reference_frame,
)

pytestmark = pytest.mark.spark


@pytest.fixture
def in_berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let this process have the local time of Berlin."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "Europe/Berlin")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.thorough
def test_events_without_an_id_all_pass_and_repeats_of_one_with_an_id_do_not(
    stream_of: StreamOf, tmp_path: Path
) -> None:
    stream = stream_of("transactional", "deduplicate")
    job = stream.context.job
    optional = [replace(column, required=False) for column in job.output_columns["output"]]
    stream.redeclare(outputs={**job.outputs, "output": optional})
    row, other = stream.sample.make(2, seed=5)
    rows = [{**row, "event_id": None}] * 3 + [other] * 3
    frames = stream_outputs(stream.spark, stream.context, tmp_path, rows[:5], rows[5:])
    found = [row.event_id for row in frames["output"].collect()]
    assert (found.count(None), found.count(other["event_id"]), len(found)) == (3, 1, 4)


@pytest.mark.thorough
@pytest.mark.parametrize("processing", ["sessions", "window"])
def test_the_hour_that_comes_twice_is_compared_exactly(
    stream_of: StreamOf, tmp_path: Path, in_berlin: None, processing: str
) -> None:
    stream = stream_of("transactional", processing)
    context, sample = stream.context, stream.sample
    rows = sample.make(4_000, start_us=1_698_537_600_000_000)  # 2023-10-29, 2:00 for the first time
    rows += sample.closing(context.job, rows)[:1]
    frames = stream_outputs(stream.spark, context, tmp_path, rows)
    assert_outputs(context, sample, rows, frames)


def test_a_null_key_joins_no_row_of_the_reference(stream_of: StreamOf, spark: SparkSession) -> None:
    stream = stream_of("transactional", "join")
    (row,) = stream.sample.make(1, seed=5)
    known = dict(stream.sample.reference[0])
    reference = [known, {**known, "auction": None, "category": "no auction's"}]
    bids = [{**row, "auction": None}, {**row, "auction": known["auction"]}]
    result = stream.context.job.transform(
        events_frame(spark, stream.context, bids),
        reference_frame(spark, stream.context, reference),
    )
    found = {row.auction: row.category for row in result.collect()}
    assert found == {None: None, known["auction"]: known["category"]}


def test_a_time_that_python_has_no_datetime_for_is_said(
    stream_of: StreamOf, spark: SparkSession
) -> None:
    stream = stream_of("transactional", "map")
    context, rows = stream.context, stream.sample.make(2, seed=5)
    result = context.job.transform(events_frame(spark, context, rows))
    early = result.withColumn("date_time", F.expr("timestamp '0000-01-01 00:00:00'"))
    wanted = stream.sample.wanted(context.job, rows)
    said = refusal(lambda: assert_rows(context, early, wanted))
    assert "'output' has a date or time that Python cannot show: year 0" in said
    assert "between 1970 and 2105" in said
