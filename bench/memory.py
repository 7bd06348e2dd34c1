"""How much memory rows take in the minicluster, and how much of it comes back."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.table import Table

from bench import inside
from tests.support.project import ROOT, generate

ROWS = 1_000_000
WRITES = 1_000
TITLES = {
    "queue": "bids in a queue, then removed",
    "row": "writes of one row, 200 bytes each",
    "row 10": "the same, at most 10 versions",
}


def tables() -> Iterator[Table]:
    """Yield the memory of the process before, with the rows, and without them again."""
    with tempfile.TemporaryDirectory() as folder:
        found = inside.run("held.py", generate(Path(folder)), str(ROWS), str(WRITES), str(ROOT))
    names = ("", "rows", "before", "full", "removed", "bytes each", "versions")
    table = Table(*names, title="Memory of the minicluster's process, MiB")
    for name, figures in found.items():
        table.add_row(TITLES[name], *_cells(figures))
    yield table


def _cells(figures: dict[str, Any]) -> Iterator[str]:
    rows, before, full = figures["rows"], figures["before"], figures["full"]
    yield f"{rows}"
    yield f"{before:.1f}"
    yield f"{full:.1f}"
    yield f"{figures['after']:.1f}" if "after" in figures else ""
    yield f"{(full - before) * (1 << 20) / rows:.0f}"
    yield f"{figures.get('versions') or ''}"
