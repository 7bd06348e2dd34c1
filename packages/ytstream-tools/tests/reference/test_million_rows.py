"""A reference of 1,000,000 rows: repeated keys are refused with examples, else it is exact."""

from __future__ import annotations

import io
from random import Random
from typing import Any

import pytest
from rich.console import Console

from tests.support.helpers import refusal
from tests.support.reference_steps import Source
from ytstream_tools.reference.building import build
from ytstream_tools.reference.screen import Screen

pytestmark = [pytest.mark.slow, pytest.mark.journey]

ROWS = 1_000_000
REPEATED = ROWS // 100
"""Of each hundred rows, one has the key of another."""


def _row(page: int) -> dict[str, Any]:
    return {"wiki": f"w{page % 7}", "title": f"Ужас {page * 7919 % ROWS}", "page": page}


def _write(source: Source) -> None:
    """Write the rows in an order of no key, some at a time: the minicluster does one at a time."""
    pages = list(range(ROWS))
    Random(1).shuffle(pages)
    source.write([])
    for first in range(0, ROWS, 50_000):
        rows = map(_row, pages[first : first + 50_000])
        source.client.write_table(f"<append=%true>{source.path}", rows)


def _build(source: Source) -> None:
    build(source.context, source.wanted(tablets=4), Screen(Console(file=io.StringIO())))


def test_it_is_refused_with_repeated_keys_and_exact_without(
    source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The minicluster answers no ping while it takes rows.
    monkeypatch.setitem(source.client.config, "transaction_timeout", 600_000)
    _write(source)
    repeated = [{**_row(page), "page": 0} for page in range(0, ROWS, ROWS // REPEATED)]
    source.client.write_table(f"<append=%true>{source.path}", repeated)
    said = refusal(lambda: _build(source))
    assert said.count("2 times") == 3
    assert not source.client.exists(f"{source.link}&")

    _write(source)
    _build(source)
    found = source.client.get(f"{source.link}/@", attributes=["tablet_count", "tablet_state"])
    assert (found["tablet_count"], found["tablet_state"]) == (4, "frozen")
    for first in range(0, ROWS, 100_000):
        wanted = [_row(page) for page in range(first, first + 100_000)]
        keys = [{"wiki": row["wiki"], "title": row["title"]} for row in wanted]
        assert [*source.client.lookup_rows(source.link, keys)] == wanted
    (none,) = source.client.select_rows(f"sum(1) AS n from [{source.link}] group by 1")
    assert none["n"] == ROWS
