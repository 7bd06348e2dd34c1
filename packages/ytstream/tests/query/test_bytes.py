"""Jobs over a `string` column of any bytes: passed on, keyed and joined by, rejected, replayed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from yt.yson import YsonUint64

from tests.support.examples import example
from tests.support.helpers import ContextOf, adopt
from ytstream import Column
from ytstream.job import REJECTED
from ytstream.provisioning import job_objects
from ytstream.schema.string_values import as_bytes
from ytstream_tools.demo.demo_tables import fill_reference
from ytstream_tools.demo.job_sample import Sample, SampleRow, untyped
from ytstream_tools.replay.rejected_replay import replay
from ytstream_tools.testing.job_stream import Stream
from ytstream_tools.testing.stream_batches import stream_outputs
from ytstream_tools.testing.unit_frames import (
    assert_outputs,
    output_frames,
    reference_frame,
    rejected_frames,
)

pytestmark = pytest.mark.spark

PAYLOADS = [b"\x00\xff\x1f\x8b", b"", "ы".encode(), b"\x80" * 300, "text", b"\xed\xa0\x80"]
ODD = b"\xff\xfe\xfd"
"""Neither in the reference nor accepted."""
PAYLOAD, NUMBER = Column("payload", "string"), Column("n", "int64")
REFERENCE: list[dict[str, Any]] = [
    {"payload": payload, "known": as_bytes(payload)[::-1]} for payload in PAYLOADS[:4]
]
REJECT = {"odd": f"payload = cast(X'{ODD.hex()}' AS STRING)"}


def rows(count: int, seed: int = 1, start_us: int = 1_704_067_200_000_000) -> Iterator[SampleRow]:
    """Yield rows of all payloads, the odd one among them."""
    for number in range(count):
        payload = [*PAYLOADS, ODD][number % (len(PAYLOADS) + 1)]
        yield {"payload": payload, "n": number, "at": YsonUint64(start_us + number)}


def rejected(rows: Sequence[SampleRow]) -> Iterator[tuple[str, SampleRow]]:
    """Yield the rows that REJECT keeps out."""
    yield from (("odd", row) for row in rows if row["payload"] == ODD)


def _accepted(rows: Sequence[SampleRow]) -> list[SampleRow]:
    return [row for row in rows if row["payload"] != ODD]


def _joined(events: DataFrame, reference: DataFrame) -> DataFrame:
    return events.join(F.broadcast(reference), "payload", "left").select("payload", "known", "n")


def _looked_up(rows: Sequence[SampleRow]) -> list[SampleRow]:
    known = {as_bytes(row["payload"]): row["known"] for row in REFERENCE}
    return [{**row, "known": known.get(as_bytes(row["payload"]))} for row in _accepted(rows)]


def _deduplicated(events: DataFrame) -> DataFrame:
    found = events.withWatermark("at", "1 hour").dropDuplicatesWithinWatermark(["payload"])
    return found.select("payload")


def _distinct(rows: Sequence[SampleRow]) -> list[SampleRow]:
    return [{"payload": payload} for payload in {as_bytes(r["payload"]) for r in _accepted(rows)}]


def _passed(events: DataFrame) -> DataFrame:
    return events.select("payload", "n")


def _summed(events: DataFrame) -> DataFrame:
    return events.groupBy("payload").agg(F.sum("n").alias("n"))


def _sums(rows: Sequence[SampleRow]) -> list[SampleRow]:
    sums: dict[bytes, int] = {}
    for row in _accepted(rows):
        payload = as_bytes(row["payload"])
        sums[payload] = sums.get(payload, 0) + row["n"]
    return [{"payload": payload, "n": n} for payload, n in sums.items()]


JOBS: dict[str, tuple[list[Column], Callable[..., DataFrame], Callable[..., list[SampleRow]]]] = {
    "map": ([PAYLOAD, NUMBER], _passed, _accepted),
    "join": ([PAYLOAD, Column("known", "string"), NUMBER], _joined, _looked_up),
    "deduplicate": ([PAYLOAD], _deduplicated, _distinct),
    "aggregate": ([replace(PAYLOAD, key=True), NUMBER], _summed, _sums),
}
"""Processing -> columns of the output, transform(), expected()."""


@pytest.fixture(params=JOBS)
def stream(context_of: ContextOf, spark: SparkSession, request: pytest.FixtureRequest) -> Stream:
    """Provision a job with such a column."""
    processing = str(request.param)
    columns, transform, expected = JOBS[processing]
    context = context_of("transactional", processing, rejects=True)
    job = replace(
        example("transactional", processing, rejects=True).job,
        queue=[PAYLOAD, NUMBER, Column("at", "timestamp", required=True)],
        outputs={"output": columns, REJECTED: context.job.outputs[REJECTED]},
        transform=transform,
        reject=REJECT,
        reference=[replace(PAYLOAD, key=True), Column("known", "string")]
        if processing == "join"
        else (),
    )
    sample = Sample(rows, "at", expected, {REJECTED: rejected}, REFERENCE)
    context = replace(context, job=job)
    job_objects.provision(context)
    fill_reference(context, sample)
    adopt(spark, context)
    return Stream(context, sample, spark)


@pytest.mark.thorough
def test_a_job_keeps_any_bytes(stream: Stream) -> None:
    """And gives rejected rows back as they were sent, where it can replay them."""
    stream.send(100)
    stream.drain()
    stream.send(100)
    stream.close()
    outcomes = stream.outcomes()
    assert stream.is_exact(), outcomes
    assert outcomes[REJECTED].rows_out == 28
    if stream.context.job.kind.is_stateful:
        return
    stream.redeclare(reject={"never": "false"})
    said = replay(stream.spark, stream.context, stream.flow(), print)
    assert said.startswith("28 rows went into the outputs; 0 stay")
    found = stream.client.select_rows(f"payload from [{stream.settings.output}]")
    payloads = [as_bytes(row["payload"]) for row in found]
    assert sorted(payloads) == sorted(as_bytes(row["payload"]) for row in stream.sent)


def test_a_test_of_transform_keeps_any_bytes(stream: Stream, tmp_path: Path) -> None:
    made, context, spark = stream.sample.make(100), stream.context, stream.spark
    if context.job.kind.is_stateful:
        passed = stream_outputs(spark, context, tmp_path, made)
        frames = {**passed, **rejected_frames(spark, context, made)}
    else:
        is_join = context.job.processing == "join"
        reference = reference_frame(spark, context, REFERENCE) if is_join else None
        frames = {**output_frames(spark, context, made, reference)}
    assert frames.keys() == {"output", REJECTED}
    assert_outputs(context, stream.sample, made, frames)


@pytest.mark.parametrize("stream", ["map"], indirect=True)
def test_a_transaction_reads_and_writes_any_bytes(stream: Stream) -> None:
    path, columns = stream.settings.output, stream.context.job.output_columns["output"]
    sent = [{"payload": payload, "n": 1} for payload in (ODD, "ы", "\ufffd", b"")]
    with stream.tablets.transaction() as transaction:
        transaction.modify(path, columns, sent)
    with stream.tablets.transaction() as transaction:
        found = transaction.select(f"payload, n from [{path}]")
    assert untyped(found) == untyped(sent)
