"""The preview fits the terminal, and says what each condition of REJECT has met."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from tests.support.examples import example
from ytstream import Column
from ytstream.job import REJECTED
from ytstream_tools.demo.job_sample import REASON
from ytstream_tools.preview import preview_screen

EXAMPLE = example("transactional", "map", rejects=True)


def _shown(width: int, columns: int, outputs: dict[str, list[dict[str, Any]]]) -> list[str]:
    queue = [Column(f"column_{number:02}", "utf8") for number in range(columns)]
    job = replace(EXAMPLE.job, queue=queue)
    rows = [{column.name: f"{column.name} of row {row}" for column in queue} for row in range(2)]
    console = Console(file=io.StringIO(), width=width, record=True)
    console.print(preview_screen.screen(console, job, rows, outputs, 20, 1.0))
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


def test_it_says_what_each_condition_has_met_and_how_to_get_some() -> None:
    first, second = EXAMPLE.job.reject
    row = {REASON: first, **EXAMPLE.sample.make(1)[0]}
    lines = _shown(100, 2, {REJECTED: [row, row]})
    assert f"REJECT {first!r}: 2 rows" in lines
    assert f"REJECT {second!r}: 0 rows" in lines
    assert any("TAKE=spread" in line for line in lines)
    both = [{**row, REASON: reason} for reason in (first, second)]
    assert not any("TAKE=spread" in line for line in _shown(100, 2, {REJECTED: both}))
