"""How much of a run's processor time is Spark's, and how much the minicluster's."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.table import Table

from bench import inside
from tests.support.project import generate

ROWS = 1_000_000
OUTPUTS = {"transactional": "ordered", "idempotent": "sorted"}
"""Guarantee -> what its output is: one of each kind."""


def run(guarantee: str, folder: Path) -> dict[str, Any]:
    """Return the figures of one run in a new project; see job.py."""
    project = generate(folder, guarantee=guarantee)
    config = project / "config" / "local.toml"
    # Without them come the sizes of production; those of local.toml are for the eye.
    small = ("max_rows_per_partition", "dyn_batch_size")
    lines = config.read_text(encoding="utf-8").splitlines(keepends=True)
    config.write_text("".join(line for line in lines if not line.startswith(small)), "utf-8")
    return inside.run("job.py", project, str(ROWS))


def tables() -> Iterator[Table]:
    """Yield processor time by output, and requests of a micro-batch by kind."""
    found = {}
    for guarantee, output in OUTPUTS.items():
        with tempfile.TemporaryDirectory() as folder:
            found[f"{output} ({guarantee})"] = run(guarantee, Path(folder))
    yield times(found)
    yield requests(found)


def times(found: dict[str, dict[str, Any]]) -> Table:
    """Return the minicluster's share of the time; Spark's start is left out."""
    names = ("output", "rows", "Spark's start", "Spark", "minicluster", "share", "rows/s")
    table = Table(*names, title="Bids through a job: processor seconds, rows by the clock")
    for output, figures in found.items():
        both = figures["spark"] + figures["minicluster"]
        table.add_row(
            output,
            f"{figures['written']}",
            f"{figures['start']:.1f}",
            f"{figures['spark']:.1f}",
            f"{figures['minicluster']:.1f}",
            f"{figures['minicluster'] / both:.0%}",
            f"{figures['written'] / figures['clock']:.0f}",
        )
    return table


def requests(found: dict[str, dict[str, Any]]) -> Table:
    """Return the connector's requests in one micro-batch of four partitions."""
    counts = [figures["requests"] for figures in found.values()]
    table = Table("request", *found, title="Requests per micro-batch")
    for method in sorted({method for asked in counts for method in asked}):
        table.add_row(method, *(f"{asked.get(method, 0):.1f}" for asked in counts))
    table.add_row("all", *(f"{sum(asked.values()):.1f}" for asked in counts))
    return table
