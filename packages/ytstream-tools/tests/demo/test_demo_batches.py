"""The demo shows the ledger: its last batches, and a query that counts the rows they read."""

from __future__ import annotations

import io
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from rich.console import Console
from yt import yson

from minicluster import testing
from tests.support.examples import example
from tests.support.helpers import ContextOf, fails_with
from ytstream import Column
from ytstream.errors.error_codes import ErrorCode
from ytstream.job import JobContext
from ytstream.ledger.ledger_rows import BatchRow, Head, batch_row, head_row
from ytstream_tools.demo import demo_batches, demo_text
from ytstream_tools.demo.crash_scenario import DemoResult
from ytstream_tools.demo.demo_tables import OutputCounts, compare

START = datetime(2026, 11, 22, tzinfo=UTC)


@pytest.fixture
def context(provisioned_of: ContextOf) -> JobContext:
    """Connect a job that has only a ledger so far."""
    return provisioned_of("transactional", rejects=True)


def fill(context: JobContext, batches: int) -> None:
    """Write the head, and batches that read 5, 6, ... rows and wrote one less each."""
    queue = context.settings.queues[0]
    rows = [head_row(Head(epoch=1, ids={queue: "1-2-3-4"}))]
    for number in range(batches):
        read = 5 + number
        done = BatchRow(
            {queue: {0: (10, 10 + read)}},
            {"output": read - 1, "rejected": 1},
            START,
            START + timedelta(0, 2.5),
        )
        rows.append(batch_row(Head(epoch=3, batch=number, number=number + 1), done))
    for row in rows:
        row.update(
            {name: yson.YsonUint64(row[name]) for name in ("started", "ended") if name in row}
        )
    context.client.insert_rows(context.settings.ledger, rows)


def read(context: JobContext) -> demo_batches.BatchHistory:
    """Read the ledger as the demo does."""
    ledger, outputs = context.settings.ledger, [*context.job.outputs]
    return demo_batches.read(context.client, ledger, outputs)


def shown(found: demo_batches.BatchHistory) -> list[list[str]]:
    """Return the cells of the table as it is printed."""
    console = Console(width=100, file=io.StringIO(), record=True)
    console.print(demo_batches.table_of(found, ["output", "rejected"]))
    lines = console.export_text().splitlines()
    return [line.replace("┃", "│").split("│")[1:-1] for line in lines if line[0] in "│┃"]


def test_batches_are_shown_with_their_sums(context: JobContext) -> None:
    fill(context, 3)
    found = read(context)
    assert (found.rows_read, found.rows_written) == (18, {"output": 15, "rejected": 3})
    cells = [[cell.strip() for cell in line] for line in shown(found)]
    assert cells == [
        ["batch", "rows read", "rows into output", "rows into rejected", "seconds"],
        ["3-0", "5", "4", "1", "2.5"],
        ["3-1", "6", "5", "1", "2.5"],
        ["3-2", "7", "6", "1", "2.5"],
        ["all", "18", "15", "3", ""],
    ]


def test_totals_have_contributions_and_not_rows(
    context: JobContext, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(context, 3)
    nothing = compare(Counter(), Counter())
    outcomes = {"output": nothing, "rejected": nothing}
    result = DemoResult(1, 18, outcomes, kills=1, restarts=1, history=read(context))
    job = example("transactional", "map", rejects=True).job
    totals = [Column("auction", "int64", key=True), Column("bids", "int64", aggregate="sum")]
    demo_text.show_history(replace(job, outputs={**job.outputs, "output": totals}), result)
    text = capsys.readouterr().out
    assert "contributions into output" in text
    assert text.endswith("  read = 18, output = 15 contributions, rejected = 3\n")


def test_only_the_last_ones_are_shown_and_all_are_counted(context: JobContext) -> None:
    fill(context, 12)
    found = read(context)
    cells = shown(found)
    assert len(cells) == demo_batches.SHOWN + 2
    assert cells[1][0].strip() == "3-2"
    assert found.rows_read == sum(range(5, 17))


@pytest.mark.parametrize(
    ("rows_in", "written", "processing", "said"),
    [
        (18, 15, "join", "18 rows read, as many as were put in; one query"),
        (18, 15, "map", "18 rows read, as many as were put in, 18 written (15 + 3); one query"),
        (18, 14, "map", "18 rows read, as many as were put in, 17 written (14 + 3); one query"),
        (19, 15, "map", "18 rows read, NOT as many as were put in, 18 written (15 + 3); one query"),
    ],
)
def test_the_query_and_its_answer_are_shown(
    context: JobContext,
    capsys: pytest.CaptureFixture[str],
    rows_in: int,
    written: int,
    processing: str,
    said: str,
) -> None:
    fill(context, 3)
    found = read(context)
    assert (found.rows_read, found.rows_written) == (18, {"output": 15, "rejected": 3})
    found = replace(found, rows_written={**found.rows_written, "output": written})
    nothing = compare(Counter(), Counter())
    outcomes = {"output": nothing, "rejected": nothing}
    result = DemoResult(1, rows_in, outcomes, kills=1, restarts=1, history=found)
    demo_text.show_history(example("transactional", processing, rejects=True).job, result)
    lines = capsys.readouterr().out.splitlines()
    assert lines[-3].startswith(said)
    assert lines[-2:] == [f"  {found.query}", f"  read = 18, output = {written}, rejected = 3"]


def test_a_job_without_a_batch_has_read_nothing(context: JobContext) -> None:
    fill(context, 0)
    assert (
        demo_batches.read(context.client, context.settings.ledger, ["output", "rejected"]).rows_read
        == 0
    )


def test_demos_beside_each_other_have_logs_of_their_own(tmp_path: Path) -> None:
    folder = tmp_path / "build"
    with demo_text.own_log(folder) as first:
        first.write_text("the first one\n")
        with demo_text.own_log(folder) as second:
            second.write_text("the second one\n")
        assert (first.name, second.name) == ("demo.log", "demo-2.log")
        assert first.read_text() == "the first one\n"
    with demo_text.own_log(folder) as again:
        assert again == first
        assert again.read_text() == ""


def test_a_minicluster_that_does_not_start_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(testing, "START_TIMEOUT", 0)
    one = example("transactional", "map")
    with fails_with(ErrorCode.COMMAND_FAILED) as caught:
        demo_text.main(one.job, one.sample)
    assert "the minicluster did not start: it was not ready after 0 s" in str(caught.value)


def test_the_result_has_the_rows_of_every_output() -> None:
    none = Counter[tuple[object, ...]]()
    names = {"output": 5, "rejected": 2, "alarms": 3}
    outcomes = {name: OutputCounts(rows, none, none) for name, rows in names.items()}
    assert demo_text.further(outcomes) == {"rejected": 2, "rows_alarms": 3}


def test_the_progress_is_that_of_the_rows_read(context: JobContext) -> None:
    client, ledger = context.client, context.settings.ledger
    assert demo_batches.rows_read(client, ledger) == 0
    fill(context, 3)
    assert demo_batches.rows_read(client, ledger) == 18
