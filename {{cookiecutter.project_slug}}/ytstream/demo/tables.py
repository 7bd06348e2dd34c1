"""Rows into the queues, rows out of the output table, and the count of what came through."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..cluster import Client
from .sample import Counted, counted

CHUNK = 5_000


def produce(
    client: Client, queue: str, rows: Sequence[Mapping[str, Any]], tablets: int, first: int = 0
) -> None:
    """Append ``rows`` to ``queue``, dealt out evenly over its ``tablets``."""
    dealt = [
        {**row, "$tablet_index": (first + number) % tablets} for number, row in enumerate(rows)
    ]
    for start in range(0, len(dealt), CHUNK):
        client.insert_rows(queue, dealt[start : start + CHUNK])


def rows_in(client: Client, queue: str) -> int:
    """Return the rows ever put into ``queue``, by its tablets' own count."""
    tablets = range(int(client.get(f"{queue}/@tablet_count")))
    infos = client.get_tablet_infos(queue, list(tablets))["tablets"]
    return sum(int(info["total_row_count"]) for info in infos)


def read(client: Client, path: str, columns: Sequence[str]) -> Counted:
    """Read all rows of a table as tuples of ``columns``, and how often each is there."""
    names = ", ".join(f"[{column}]" for column in columns)
    return counted(client.select_rows(f"{names} from [{path}]"), columns)


@dataclass(frozen=True)
class Outcome:
    """``lost``: expected appearances that are missing; ``duplicated``: appearances too many."""

    rows_out: int
    lost: int
    duplicated: int


def compare(expected: Counted, found: Counted) -> Outcome:
    """Count, row by row; a row with a wrong value is one lost and one too many."""
    return Outcome(
        rows_out=found.total(),
        lost=(expected - found).total(),
        duplicated=(found - expected).total(),
    )
