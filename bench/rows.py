"""How fast rows go through the minicluster's two front ends."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from rich.table import Table

from bench import inside
from tests.project import generate

ROWS = 200_000
#: Script -> the commands that it measures.
FRONT_ENDS = {
    "http_rows.py": ("insert_rows", "pull_queue", "select_rows"),
    "rpc_rows.py": ("ModifyRows", "PullQueue", "SelectRows"),
}


def tables() -> Iterator[Table]:
    """Yield rows per processor second, by table and command; a table for HTTP, and one for RPC."""
    for script, commands in FRONT_ENDS.items():
        with tempfile.TemporaryDirectory() as folder:
            found = inside.run(script, generate(Path(folder)), str(ROWS))
        front_end = script.partition("_")[0].upper()
        title = f"{front_end} rows per processor second of the minicluster"
        table = Table("rows", *commands, title=title)
        for what, rates in found.items():
            table.add_row(what, *(f"{rates[c]:.0f}" if c in rates else "" for c in commands))
        yield table
