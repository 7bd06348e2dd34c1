"""How fast rows go through the minicluster's HTTP front end."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from rich.table import Table

from bench import inside
from tests.project import generate

ROWS = 200_000
COMMANDS = ("insert_rows", "pull_queue", "select_rows")


def tables() -> Iterator[Table]:
    """Yield rows per processor second, by table and command."""
    with tempfile.TemporaryDirectory() as folder:
        found = inside.run("http_rows.py", generate(Path(folder)), str(ROWS))
    table = Table("rows", *COMMANDS, title="HTTP rows per processor second of the minicluster")
    for what, rates in found.items():
        table.add_row(what, *(f"{rates[c]:.0f}" if c in rates else "" for c in COMMANDS))
    yield table
