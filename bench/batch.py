"""The batch of this runtime beside SPYT's own sink: rows per second, requests per batch."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Iterator
from pathlib import Path

from rich.table import Table

from bench import inside
from tests.project import generate

ROUNDS = 2
FIGURES = {
    "rows_per_second": "rows per second",
    "requests": "requests per batch",
    "idle_requests": "requests in 15 idle seconds",
}


def tables() -> Iterator[Table]:
    """Yield the medians, each also relative to SPYT's sink, and the rounds; see sinks.py."""
    with tempfile.TemporaryDirectory() as folder:
        found = inside.run("sinks.py", generate(Path(folder)), str(ROUNDS))
    title = f"200 000 bids in batches of 40 000, medians of {ROUNDS} rounds (beside: sink = 1)"
    table = Table("way", *FIGURES.values(), title=title)
    medians = {
        way: [statistics.median(run[name] for run in runs) for name in FIGURES]
        for way, runs in found.items()
    }
    for way, figures in medians.items():
        pairs = zip(figures, medians["sink"], strict=True)
        table.add_row(way, *(f"{value:.0f} ({value / base:.2f})" for value, base in pairs))
    yield table
    rounds = Table("way", *map(str, range(1, ROUNDS + 1)), title="rows per second, by round")
    for way, runs in found.items():
        rounds.add_row(way, *(f"{run['rows_per_second']:.0f}" for run in runs))
    yield rounds
