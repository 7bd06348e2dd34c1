"""Examples of keys that several rows have: the error of the cluster names one pair of rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby, islice
from typing import Any

from ytstream.schema import string_values

MOST = 3
"""How many are shown."""


def examples(keys: Iterable[tuple[Any, ...]], most: int = MOST) -> list[str]:
    """Return the first repeated keys of a sorted table, and how many rows have each."""
    return [*islice(_repeated(keys), most)]


def _repeated(keys: Iterable[tuple[Any, ...]]) -> Iterator[str]:
    for key, rows in groupby(keys):
        if (count := sum(1 for _ in rows)) > 1:
            yield f"({', '.join(map(string_values.shown, key))}) {count} times"
