"""Rows into the queues, rows out of the output table, and the count of what came through."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

CHUNK = 5_000


def produce(
    client: Any, queue: str, rows: Sequence[Mapping[str, Any]], tablets: int, first: int = 0
) -> None:
    """Append ``rows`` to ``queue``, dealt out evenly over its ``tablets``."""
    dealt = [
        {**row, "$tablet_index": (first + number) % tablets} for number, row in enumerate(rows)
    ]
    for start in range(0, len(dealt), CHUNK):
        client.insert_rows(queue, dealt[start : start + CHUNK])


def rows_in(client: Any, queue: str) -> int:
    """Rows ever put into ``queue``, by its tablets' own count."""
    tablets = range(int(client.get(f"{queue}/@tablet_count")))
    infos = client.get_tablet_infos(queue, list(tablets))["tablets"]
    return sum(int(info["total_row_count"]) for info in infos)


def read(client: Any, path: str, columns: Sequence[str]) -> Counter[tuple[Any, ...]]:
    """All rows of a table as tuples of ``columns``, and how often each is there."""
    names = ", ".join(f"[{column}]" for column in columns)
    rows: Iterable[Mapping[str, Any]] = client.select_rows(f"{names} from [{path}]")
    return Counter(tuple(_plain(row[column]) for column in columns) for row in rows)


@dataclass(frozen=True)
class Outcome:
    """``lost``: expected appearances that are missing; ``duplicated``: appearances too many."""

    rows_out: int
    lost: int
    duplicated: int


def compare(expected: Counter[tuple[Any, ...]], found: Counter[tuple[Any, ...]]) -> Outcome:
    """Count, row by row; a row with a wrong value is one lost and one too many."""
    return Outcome(
        rows_out=found.total(),
        lost=(expected - found).total(),
        duplicated=(found - expected).total(),
    )


def _plain(value: Any) -> Any:
    # YSON's own number and text types compare unequal to Python's when they carry attributes.
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int):
        return int(value)
    return str(value) if isinstance(value, str) else value
