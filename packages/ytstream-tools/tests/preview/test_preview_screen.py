"""The preview fits the terminal, and says what each condition of REJECT has met."""

from __future__ import annotations

import io
import sys
from argparse import Namespace
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from rich.console import Console
from yt.yson import YsonUint64

from tests.support.examples import example
from ytstream import Column, Hourly, days, newest
from ytstream.connector.local_environment import QUICK
from ytstream.job import REJECTED, Job, JobContext
from ytstream.spark import session
from ytstream_tools.commands import approve, preview
from ytstream_tools.demo import any_json
from ytstream_tools.demo.job_sample import REASON
from ytstream_tools.preview import preview_screen, quick_session
from ytstream_tools.testing import computed_outputs

EXAMPLE = example("transactional", "map", rejects=True)


def _shown(
    width: int,
    columns: int,
    outputs: dict[str, list[dict[str, Any]]],
    more_by: str | None = None,
) -> list[str]:
    queue = [Column(f"column_{number:02}", "utf8") for number in range(columns)]
    job = replace(EXAMPLE.job, queue=queue)
    rows = [{column.name: f"{column.name} of row {row}" for column in queue} for row in range(2)]
    console = Console(file=io.StringIO(), width=width, record=True)
    console.print(
        preview_screen.screen(console, job, rows, outputs, 20, 1.0, now=0.0, more_by=more_by)
    )
    return console.export_text().splitlines()


@pytest.mark.parametrize("width", [60, 80, 140])
@pytest.mark.parametrize("columns", [2, 7, 12])
def test_each_value_can_be_read_at_any_width(width: int, columns: int) -> None:
    lines = _shown(width, columns, {})
    assert max(map(len, lines)) <= width
    text = "\n".join(lines)
    for column in range(columns):
        for row in range(2):  # on one line: not folded into a column of a few letters
            assert f"column_{column:02} of row {row}" in text
    assert ("┃ value" in text) == (columns > 2)


@pytest.mark.parametrize("columns", [1, 8])
def test_a_long_value_without_spaces_is_folded_and_not_cut(columns: int) -> None:
    """JSON of an `any` column has no spaces to break a line at."""
    value = "".join(f'{{"field_{number}":{number}}}' for number in range(15))
    queue = [Column(f"payload_{number}", "utf8") for number in range(columns)]
    row = {column.name: value for column in queue}
    console = Console(file=io.StringIO(), width=60, record=True)
    console.print(
        preview_screen.screen(
            console, replace(EXAMPLE.job, queue=queue), [row], {}, 20, 1.0, now=0.0
        )
    )
    lines = [line for line in console.export_text().splitlines() if line.startswith("│")]
    assert "".join(line.split("│")[2].strip() for line in lines) == value * columns


def test_an_output_without_rows_is_a_line() -> None:
    lines = _shown(100, 2, {"output": [], REJECTED: []})
    text = "\n".join(lines)
    assert "output: 0 rows" in text
    assert "rejected: 0 rows" in text
    assert text.count("┏") == 1  # the table of the sample


def test_it_says_what_each_condition_has_met_and_how_to_get_some() -> None:
    first, second = EXAMPLE.job.reject
    row = {REASON: first, **EXAMPLE.sample.make(1)[0]}
    lines = _shown(100, 2, {REJECTED: [row, row]})
    assert f"REJECT {first!r}: 2 rows" in lines
    assert f"REJECT {second!r}: 0 rows" in lines
    assert any("TAKE=spread" in line for line in lines)
    command = "make adopt FROM=orders.jsonl TAKE=spread"
    lines = _shown(100, 2, {REJECTED: [row]}, command)
    assert f"-> add rows that meet it to sample/, or take other rows: `{command}`" in lines
    assert "-> add rows that meet it to sample/" in _shown(100, 2, {REJECTED: [row]}, "")
    both = [{**row, REASON: reason} for reason in (first, second)]
    assert not any("TAKE=spread" in line for line in _shown(100, 2, {REJECTED: both}))


def test_a_value_of_any_is_shown_as_json() -> None:
    value = {"user": {"name": "Żółw"}, "n": YsonUint64(5), "b": b"\xff", "none": None}
    job = replace(EXAMPLE.job, queue=[Column("payload", "any")])
    console = Console(file=io.StringIO(), width=120, record=True)
    console.print(preview_screen.screen(console, job, [{"payload": value}], {}, 20, 1.0, now=0.0))
    wanted = '{"user":{"name":"Żółw"},"n":5,"b":{"$bytes":"/w=="},"none":null}'
    assert wanted[:25] in console.export_text()
    assert any_json.text(value) == wanted


def _text_of(job: Job, outputs: dict[str, list[dict[str, Any]]], **given: Any) -> str:
    console = Console(file=io.StringIO(), width=160, record=True)
    console.print(preview_screen.screen(console, job, [], outputs, 20, 1.0, **given))
    return console.export_text()


def test_a_row_of_an_archive_shows_its_table() -> None:
    columns = [Column("n", "int64"), Column("t", "timestamp")]
    archive = Hourly("t", keep=days(30))
    job = replace(EXAMPLE.job, outputs={"output": columns}, static={"output": archive})
    now = 1_764_446_460  # 2025-11-29T20:01:00Z
    times = [now, now - 3_600, None, now - 31 * 86_400, now + 7_200]
    rows = [{"n": n, "t": None if t is None else t * 1_000_000} for n, t in enumerate(times)]
    text = _text_of(job, {"output": rows}, now=now)
    for said in (
        "2025-11-29T20:00:00Z", "2025-11-29T19:00:00Z", "rejected: no time",
        "rejected: older than keep", "rejected: ahead of the clock",
    ):  # fmt: skip
        assert said in text
    by_arrival = replace(job, static={"output": Hourly()})
    text = _text_of(by_arrival, {"output": rows}, now=now)
    assert "output: a row goes to the table of the period in which it is written" in text


def test_a_key_of_merge_shows_what_it_had_and_has() -> None:
    columns = [Column("k", "int64", key=True), Column("v", "utf8"), Column("w", "int64")]
    job = replace(EXAMPLE.job, outputs={"output": columns}, merge={"output": newest("w")})
    had = [{"k": 1, "v": "a", "w": 1}, {"k": 2, "v": "b", "w": 1}, {"k": 3, "v": "c", "w": 1}]
    has = [{"k": 1, "v": "z", "w": 1}, {"k": 3, "v": "c", "w": 1}, {"k": 4, "v": "d", "w": 2}]
    text = _text_of(job, {"output": has}, now=0.0, had={"output": had})
    lines = [[cell.strip() for cell in line.split("│")[1:-1]] for line in text.splitlines()]
    assert [line for line in lines if line] == [
        ["added", "4", "d", "2"], ["changed", "1", "a -> z", "1"],
        ["removed", "2", "b", "1"], ["unchanged", "3", "c", "1"],
    ]  # fmt: skip


def test_times_of_one_second_are_shown_as_they_differ() -> None:
    columns = [Column("k", "int64", key=True), Column("at", "timestamp")]
    job = replace(EXAMPLE.job, outputs={"output": columns}, merge={"output": newest("at")})
    had, has = [{"k": 1, "at": 1_000_250}], [{"k": 1, "at": 1_000_750}]
    text = _text_of(job, {"output": has}, now=0.0, had={"output": had})
    assert "1000250 -> 1000750" in text


def _run_of(found: Callable[..., Any] | None) -> Callable[..., Any]:
    assert found is not None
    return found


@pytest.mark.parametrize("command", ["preview", "approve"])
def test_a_person_who_waits_gets_a_jvm_that_is_soon_ready_and_starts_before_the_sample_is_imported(
    command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps, shown = list[tuple[str, str]](), Namespace(watch=False, rows=20)

    class Sample(ModuleType):
        def __getattr__(self, name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(name)
            steps.append(("sample", name))
            return EXAMPLE.sample

    def opened(_: JobContext, java: str) -> None:
        steps.append(("opened", java))
        raise InterruptedError

    monkeypatch.setitem(sys.modules, "sample", Sample("sample"))
    monkeypatch.setattr(session, "opened", opened)
    monkeypatch.setattr(computed_outputs, "unconnected", lambda _: None)
    monkeypatch.setattr(quick_session, "context_of", lambda _: None)
    context: Any = SimpleNamespace(job=EXAMPLE.job, settings=None)
    runs: dict[str, Callable[[], Any]] = {
        "preview": partial(_run_of(preview.COMMAND.without_cluster), context, shown),
        "approve": partial(_run_of(approve.COMMAND.offline), EXAMPLE.job, None, Path()),
    }
    with pytest.raises(InterruptedError):
        runs[command]()
    assert steps == [("sample", "SAMPLE"), ("opened", QUICK)]
    assert (preview.COMMAND.early_jvm, approve.COMMAND.early_jvm) == (QUICK, QUICK)
