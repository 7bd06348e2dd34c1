"""The batch of this runtime beside SPYT's own sink: rows per second, requests per batch."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from rich.table import Table

from bench import inside
from tests.project import generate

ROUNDS = 6


def tables() -> Iterator[Table]:
    """Yield the medians, each also relative to SPYT's sink, and the rounds; see sinks.py."""
    yield from _beside("sink", "documentation", "ledger")


def rejects() -> Iterator[Table]:
    """Yield the same of a job that rejects one row in a hundred, beside one that rejects none."""
    yield from _beside("ledger", "rejects")


def _beside(base: str, *others: str) -> Iterator[Table]:
    with tempfile.TemporaryDirectory() as folder:
        project = generate(Path(folder))
        found = inside.run("sinks.py", project, str(ROUNDS), base, *others)
    yield _medians(found, base)
    yield _rounds(found)


def _medians(found: dict[str, Any], first: str) -> Table:
    base = {
        "requests": statistics.median(found[first]["requests"]),
        "idle": found[first]["idle_requests"],
    }
    names = (
        "way",
        "rows per second",
        f"beside {first}",
        "lowest, highest round",
        "seconds per batch, quartiles",
        "requests per batch",
        "requests in 15 idle seconds",
    )
    rows = found[first]["batch_rows"]
    table = Table(*names, title=f"Bids in batches of {rows}, medians of {ROUNDS} rounds")
    for way, figures in found.items():
        ratios = _ratios(found, first, way)
        seconds = list(chain(*figures["rounds"]))
        requests, idle = statistics.median(figures["requests"]), figures["idle_requests"]
        table.add_row(
            way,
            f"{rows / statistics.median(seconds):.0f}",
            f"{statistics.median(ratios):.2f}",
            f"{min(ratios):.2f}, {max(ratios):.2f}",
            ", ".join(f"{quartile:.2f}" for quartile in statistics.quantiles(seconds)),
            f"{requests:.0f} ({requests / base['requests']:.2f})",
            f"{idle} ({idle / base['idle']:.2f})",
        )
    return table


def _rounds(found: dict[str, Any]) -> Table:
    table = Table("way", *map(str, range(1, ROUNDS + 1)), title="Seconds per batch, by round")
    for way, figures in found.items():
        table.add_row(way, *(f"{statistics.median(batches):.2f}" for batches in figures["rounds"]))
    return table


def _ratios(found: dict[str, Any], first: str, way: str) -> list[float]:
    """Return the rows per second of each round beside those of ``first`` in the same round."""
    pairs = zip(found[first]["rounds"], found[way]["rounds"], strict=True)
    return [statistics.median(base) / statistics.median(batches) for base, batches in pairs]
