"""A batch of the ledger becomes a folder of tests, and the job reads its rows from there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from minicluster import testing as minicluster
from tests.support.helpers import (
    ContextOf,
    StreamOf,
    refusal,
    refusal_code,
    run_until_it_fails,
)
from tests.support.ledger_steps import write_ledger
from tests.support.simulated_driver import BID
from tests.support.status_steps import invoke, send
from ytstream.errors.error_codes import ErrorCode
from ytstream.job import JobContext
from ytstream.provisioning import job_objects
from ytstream_tools.commands import capture as capture_command
from ytstream_tools.demo import yson_rows
from ytstream_tools.demo.demo_tables import fill_reference, produce
from ytstream_tools.demo.job_sample import untyped
from ytstream_tools.replay import batch_capture, batch_rows
from ytstream_tools.testing import captured_rows
from ytstream_tools.testing.job_stream import Stream
from ytstream_tools.testing.pytest_fixtures import in_folder


def _captured(
    context: JobContext, root: Path, word: str = "3-19", reason: str | None = None, *without: str
) -> str:
    return batch_capture.capture(context, root, word, reason, without)


def _with_batches(provisioned_of: ContextOf) -> JobContext:
    """Provision a job with 20 batches of ten rows; the last has read 90 to 99 of partition 0."""
    context = provisioned_of("transactional")
    send(context, 4 * 200)
    write_ledger(context, 20)
    return context


def test_the_rows_of_a_batch_are_saved_with_a_test(
    provisioned_of: ContextOf, tmp_path: Path, cluster: minicluster.Running
) -> None:
    context = _with_batches(provisioned_of)
    before = context.client.get("//home", attributes=["revision"])
    said = _captured(context, tmp_path)
    folder = tmp_path / "tests/captured/batch_3_19"
    assert said.startswith("10 rows in tests/captured/batch_3_19: `make test` runs them")
    assert sorted(file.name for file in folder.iterdir()) == ["rows.yson", "test_batch_3_19.py"]
    rows = yson_rows.read(folder / "rows.yson")
    places = [(row["$queue"], row["$tablet_index"], row["$row_index"]) for row in rows]
    assert places == [(context.settings.queues[0], 0, 90 + number) for number in range(10)]
    assert all(row["event_id"] == "e" for row in rows)
    compile((folder / "test_batch_3_19.py").read_text(), "test.py", "exec")
    assert context.client.get("//home", attributes=["revision"]) == before
    assert "is there already" in refusal(lambda: _captured(context, tmp_path))


def test_columns_can_be_left_out(provisioned_of: ContextOf, tmp_path: Path) -> None:
    context = _with_batches(provisioned_of)
    _captured(context, tmp_path, "3-19", None, "url", "extra")
    (row, *_) = yson_rows.read(tmp_path / "tests/captured/batch_3_19/rows.yson")
    assert {"url", "extra"} & {*row} == set()
    said = refusal(lambda: _captured(context, tmp_path, "3-18", None, "uri"))
    assert said.startswith("no column uri to leave out\n  -> known: auction")


def test_the_batch_after_the_last_one_is_the_one_that_failed(
    provisioned_of: ContextOf, tmp_path: Path
) -> None:
    context = _with_batches(provisioned_of)
    name, ranges = batch_rows.ranges_of(context, "failed")
    queue = context.settings.queues[0]
    assert (name, ranges) == ("3-20", {queue: {p: (0 if p > 1 else 100, 200) for p in range(4)}})
    assert "600 rows in tests/captured/batch_3_20" in _captured(context, tmp_path, "failed")


def test_rows_of_any_text_come_back_as_they_were(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"a": "ж\n\"'", "b": None, "c": 2**63, "d": 1.5, "e": [{"f": True}]},
        {"a": b"\x00\xff\x1f\x8b", "b": b"", "e": [{"f": b"\xfe"}]},
    ]
    yson_rows.write(tmp_path / "rows.yson", rows)
    read = yson_rows.read(tmp_path / "rows.yson")
    assert untyped(read) == untyped(rows)
    yson_rows.write(tmp_path / "again.yson", read)  # as the client gives them
    assert (tmp_path / "again.yson").read_bytes() == (tmp_path / "rows.yson").read_bytes()
    (tmp_path / "rows.yson").write_text("{a=")
    assert refusal_code(lambda: yson_rows.read(tmp_path / "rows.yson")) == ErrorCode.FILE


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("7-1", "the ledger has no batch 7-1; its last one is 3-19"),
        ("yesterday", "cannot read the batch 'yesterday'"),
        ("", "cannot read the batch ''"),
    ],
)
def test_a_batch_that_is_none_is_refused(
    provisioned_of: ContextOf, tmp_path: Path, word: str, said: str
) -> None:
    context = _with_batches(provisioned_of)
    assert said in refusal(lambda: _captured(context, tmp_path, word))
    assert list(tmp_path.iterdir()) == []


def test_trimmed_rows_are_named_and_nothing_is_written(
    provisioned_of: ContextOf, tmp_path: Path
) -> None:
    context = _with_batches(provisioned_of)
    client: Any = context.client
    client.trim_rows(context.settings.queues[0], 0, 95)
    said = refusal(lambda: _captured(context, tmp_path))
    assert f"{context.settings.queues[0]}, partition 0: rows 90 to 94 are trimmed" in said
    assert list(tmp_path.iterdir()) == []


def test_a_job_that_has_never_run_is_refused_by_the_command(
    provisioned_of: ContextOf, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(capture_command, "root_of", lambda _: tmp_path)
    context = provisioned_of("transactional")
    assert invoke(context, tmp_path, "3-1", command="capture") == 1
    assert "the job has never run: its ledger is empty" in capsys.readouterr().err
    assert invoke(context, tmp_path, command="capture") == 1
    assert "name a batch, or --rejected REASON" in capsys.readouterr().err
    assert not (tmp_path / "tests").exists()


def test_the_command_saves_a_batch(
    provisioned_of: ContextOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(capture_command, "root_of", lambda _: tmp_path)
    context = _with_batches(provisioned_of)
    assert invoke(context, tmp_path, "3-19", "--without", "url,extra", command="capture") == 0
    assert (tmp_path / "tests/captured/batch_3_19/rows.yson").exists()


def test_rejected_rows_are_saved_by_their_reason(provisioned_of: ContextOf, tmp_path: Path) -> None:
    context = provisioned_of("transactional", rejects=True)
    produce(context.client, context.settings.queues[0], [BID] * 40, 4)
    write_ledger(context, 2)
    rejected = [
        {"tablet_index": 1, "row_index": 3, "reason": "no price", "time": 1, "row": "{}"},
        {"tablet_index": 0, "row_index": 2, "reason": "no url", "time": 1, "row": "{}"},
    ]
    context.client.insert_rows(context.settings.outputs["rejected"], rejected)
    said = refusal(lambda: _captured(context, tmp_path, "", "no name"))
    assert "reasons of rows there: 'no price' (1), 'no url' (1)" in said
    assert "1 row in tests/captured/rejected_no_price" in _captured(
        context, tmp_path, "", "no price"
    )
    (row,) = yson_rows.read(tmp_path / "tests/captured/rejected_no_price/rows.yson")
    assert (row["$tablet_index"], row["$row_index"]) == (1, 3)
    assert (
        "captured.accepted("
        in (tmp_path / "tests/captured/rejected_no_price/test_rejected_no_price.py").read_text()
    )


def _poisoned(events: DataFrame) -> DataFrame:
    """Divide by the price: a row without one ends the job."""
    return events.select(
        "event_id", "auction", "bidder", F.expr("1000 div price").alias("price_eur"),
        "channel", "url", "date_time", "extra",
    )  # fmt: skip


@pytest.mark.spark
def test_a_captured_batch_fails_before_a_correction_and_passes_after(
    stream_of: StreamOf, tmp_path: Path, root: str
) -> None:
    stream = stream_of("transactional")
    right = stream.context.job.transform
    stream.redeclare(transform=_poisoned)
    stream.publish([{**BID, "price": 0}, BID, BID])
    assert "DIVIDE_BY_ZERO" in run_until_it_fails(stream)
    _captured(stream.context, tmp_path, "failed")
    (folder,) = (tmp_path / "tests/captured").iterdir()
    for number, transform in enumerate((_poisoned, right)):
        job = replace(stream.context.job, transform=transform)
        settings = in_folder(stream.settings, f"{root}/again-{number}")
        context = replace(stream.context, job=job, settings=settings)
        job_objects.provision(context)
        fill_reference(context, stream.sample)
        again = Stream(context, stream.sample, stream.spark)
        if transform is right:
            captured_rows.run_through(again, folder)
            assert int(again.client.get(f"{settings.output}/@row_count")) == 3
        else:
            with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
                captured_rows.run_through(again, folder)
