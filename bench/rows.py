"""How fast rows go through the minicluster's two front ends; `beside` compares two commits."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from rich.table import Table

from bench import inside
from tests.support.project import ROOT, generate

ROWS = 100_000
ROUNDS = 4
COMPARING = 9
"""Comparing takes more: the quartiles of the quotients have to say something."""
COMMANDS = {
    "HTTP": ("insert_rows", "pull_queue", "select_rows", "lookup_rows"),
    "RPC": ("ModifyRows", "PullQueue", "SelectRows", "LookupRows"),
}
"""The commands that both front ends have, each under its names."""


def tables() -> Iterator[Table]:
    """Yield rows per processor second, by table and command; a table for HTTP, and one for RPC."""
    for front_end, found in _measured(ROUNDS, [ROOT]).items():
        commands = COMMANDS[front_end]
        title = f"{front_end} rows per processor second of the minicluster"
        table = Table("rows", *commands, title=title)
        for what, rates in found.items():
            table.add_row(
                what, *(f"{median(rates[c][0]):.0f}" if c in rates else "" for c in commands)
            )
        yield table


def beside() -> Iterator[Table]:
    """Yield the rates of the checkout that BESIDE names, of this one, and their quotient."""
    other = Path(os.environ.get("BESIDE", ""), "packages", "minicluster", "src").resolve()
    if not os.environ.get("BESIDE") or not other.is_dir():
        sys.exit("BESIDE has to name a checkout of this repository, as `git worktree add` makes it")
    for front_end, found in _measured(COMPARING, [other.parents[2], ROOT]).items():
        title = f"{front_end} rows per processor second: there, here, and here by there (quartiles)"
        table = Table("rows", "command", "there", "here", "quotient", title=title)
        for what, rates in found.items():
            for command, (there, here) in rates.items():
                quotients = [new / old for old, new in zip(there, here, strict=True)]
                cells = _quartiles(there, "{:.0f}"), _quartiles(here, "{:.0f}")
                table.add_row(what, command, *cells, _quartiles(quotients, "{:.3f}"))
        yield table


def _quartiles(values: list[float], shown: str) -> str:
    low, middle, high = map(shown.format, quantiles(values, n=4))
    return f"{middle} ({low} to {high})"


def _measured(rounds: int, trees: list[Path]) -> dict[str, Any]:
    """Return the figures of front_ends.py."""
    with tempfile.TemporaryDirectory() as folder:
        words = (str(ROWS), str(rounds), *map(str, trees))
        return inside.run("front_ends.py", generate(Path(folder)), *words)
