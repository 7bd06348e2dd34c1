"""The outputs of the sample that are kept for review, and those that the job itself computes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession

from tests.support.examples import example
from tests.support.helpers import ContextOf, adopt, fails_with
from ytstream import Column
from ytstream.errors.error_codes import ErrorCode
from ytstream.provisioning import job_objects
from ytstream_tools.demo import row_queue, yson_rows
from ytstream_tools.demo.job_sample import compared, counted, is_rejected
from ytstream_tools.preview.quick_session import static_deduplication
from ytstream_tools.testing import approved_outputs
from ytstream_tools.testing.computed_outputs import outputs_of, unstreamed_outputs_of
from ytstream_tools.testing.job_stream import Stream
from ytstream_tools.testing.unit_frames import output_frames


@pytest.mark.thorough
@pytest.mark.spark
@pytest.mark.parametrize("processing", ["map", "window", "join", "aggregate", "deduplicate"])
def test_what_the_job_computes_is_what_plain_python_expects(
    context_of: ContextOf, spark: SparkSession, processing: str
) -> None:
    context = context_of("transactional", processing, rejects=True)
    sample = example("transactional", processing, rejects=True).sample
    taken = sample.make(300)
    rows = taken + sample.closing(context.job, taken)[:1]
    made = outputs_of(spark, context, rows, sample.reference)
    assert {*made} == {"output", "rejected"}
    # A preview has the same rows sooner.
    columns = compared(context.job)
    with static_deduplication():
        at_once = unstreamed_outputs_of(spark, context, taken, sample.reference)
    assert counted(at_once["output"], columns) == counted(made["output"], columns)
    for name, found in made.items():
        columns = compared(context.job, name)
        assert counted(found, columns) == sample.wanted(context.job, rows, name)


@pytest.mark.spark
@pytest.mark.parametrize("processing", ["window", "deduplicate"])
def test_rows_of_the_sample_are_grouped_without_a_shuffle(
    context_of: ContextOf, spark: SparkSession, processing: str
) -> None:
    """A person waits for the preview, and the first shuffle of a JVM takes a second."""
    context = context_of("transactional", processing)
    rows = example("transactional", processing).sample.make(5)
    with static_deduplication():
        frame = output_frames(spark, context, rows)["output"]
    plan = str(cast(Any, frame)._jdf.queryExecution().executedPlan())
    assert "Aggregate" in plan
    assert "Exchange" not in plan


def test_rows_of_several_queues_know_their_queue_and_those_of_one_do_not() -> None:
    rows, queues = [{"id": 1}, {"id": 2}, {"id": 3}], ["//a", "//b"]
    dealt = row_queue.dealt(rows, queues)
    assert [row["queue_id"] for row in dealt] == ["//a", "//b", "//a"]
    assert row_queue.bare(dealt, queues) == rows
    own = [{"queue_id": "a column of the queue"}]
    assert row_queue.bare(row_queue.of(own, "//a", ["//a"]), ["//a"]) == own


@pytest.mark.thorough
@pytest.mark.spark
def test_an_output_with_the_queues_path_is_expected_as_it_is_written(
    context_of: ContextOf, spark: SparkSession
) -> None:
    """Approved outputs and the test on a minicluster would contradict each other otherwise."""
    context = context_of("transactional", "map", 2)
    columns = [Column("queue_id", "utf8"), Column("event_id", "utf8", required=True)]
    names = [column.name for column in columns]
    job = replace(
        context.job, outputs={"output": columns}, transform=lambda events: events.select(*names)
    )
    context = replace(context, job=job)
    job_objects.provision(context)
    adopt(spark, context)

    def expected(rows: Sequence[Any]) -> Sequence[Any]:
        return unstreamed_outputs_of(spark, context, rows)["output"]

    sample = replace(example("transactional", "map", 2).sample, expected=expected)
    stream = Stream(context, sample, spark)
    stream.send(40)
    stream.drain()
    assert stream.is_exact()
    assert {row[0] for row in stream.found()} == {*context.settings.queues}


@pytest.mark.thorough
@pytest.mark.spark
def test_approved_outputs_are_compared_until_they_are_approved_again(
    context_of: ContextOf, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(approved_outputs, "root_of", lambda _: tmp_path)
    context = context_of("transactional", "map", rejects=True)
    sample = replace(example("transactional", "map", rejects=True).sample, approved=60)
    with pytest.raises(pytest.skip.Exception):
        approved_outputs.assert_approved(spark, context, sample)
    (tmp_path / "sample").mkdir()
    (tmp_path / "tests").mkdir()
    said = approved_outputs.approve(spark, context, sample)
    file = tmp_path / "sample/expected/output.yson"
    lines = file.read_bytes().splitlines(keepends=True)
    assert lines == sorted(lines)
    assert said[0] == f"sample/expected/output.yson: {len(lines)} rows"
    assert "computed from 60 rows of the sample" in said
    assert [line.partition(": ")[0] for line in said if line.startswith("REJECT ")] == [
        f"REJECT {reason!r}" for reason in context.job.reject
    ]
    assert "assert_approved" in (tmp_path / "tests/test_approved.py").read_text()
    approved_outputs.assert_approved(spark, context, sample)
    file.write_bytes(b"".join(lines[1:]))
    with pytest.raises(pytest.fail.Exception, match="make approve"):
        approved_outputs.assert_approved(spark, context, sample)
    said = approved_outputs.approve(spark, context, sample)
    assert said[0].endswith(", 0 lines gone, 1 new")
    # A column that differs from run to run is in no file.
    ignoring = replace(sample, ignored=("price_eur",))
    with fails_with(ErrorCode.SAMPLE):
        approved_outputs.assert_approved(spark, context, ignoring)
    approved_outputs.approve(spark, context, ignoring)
    approved_outputs.assert_approved(spark, context, ignoring)
    assert "price_eur" not in yson_rows.read(file)[0]


@pytest.mark.thorough
def test_outputs_that_differ_from_run_to_run_are_named(
    context_of: ContextOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody would see it otherwise, but as a test that is red every other time."""
    context = context_of("transactional", "map", rejects=False)
    sample = replace(example("transactional", "map", rejects=False).sample, approved=3)
    (row, *_) = sample.expected(sample.make(1))
    prices = iter(range(9))

    def outputs_of(*_: object) -> dict[str, list[dict[str, Any]]]:
        return {"output": [{**row, "price_eur": float(next(prices))}]}

    monkeypatch.setattr(approved_outputs, "root_of", lambda _: tmp_path)
    monkeypatch.setattr(approved_outputs, "outputs_of", outputs_of)
    nothing = cast(SparkSession, None)
    for folder in ("sample", "tests"):
        (tmp_path / folder).mkdir()
    (said,) = (s for s in approved_outputs.approve(nothing, context, sample) if "determ" in s)
    assert said.startswith("the job is not deterministic: two runs differ in output\n-> ")
    with pytest.raises(pytest.fail.Exception, match="not deterministic"):
        approved_outputs.assert_approved(nothing, context, sample)
    ignoring = replace(sample, ignored=("price_eur",))
    assert not [s for s in approved_outputs.approve(nothing, context, ignoring) if "determ" in s]


def test_an_ignored_column_is_the_same_in_all_rows() -> None:
    made = example("transactional", "map")
    sample = replace(made.sample, ignored=("price_eur", "extra"))
    rows = sample.make(20)
    wanted = sample.wanted(made.job, rows)
    names = [column.name for column in compared(made.job)]
    for row in wanted:
        assert row[names.index("price_eur")] is None
        assert row[names.index("bidder")] is not None
    assert not is_rejected(made.job, "output")


def _lines(rows: Sequence[Any]) -> list[bytes]:
    return [yson_rows.line_of(row) for row in rows]


def test_a_row_is_one_line_with_its_columns_in_order() -> None:
    assert _lines([{"b": "x\ny", "a": None}]) == [b'{"a"=#;"b"="x\\ny";};\n']
