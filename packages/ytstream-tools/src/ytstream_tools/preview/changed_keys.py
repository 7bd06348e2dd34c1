"""What each key of an output with MERGE had, and what it has after more rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yt.type_info as ti

from ytstream.schema.columns import Column, key_of

CHANGE = Column("$change", ti.Utf8, required=True)
"""Stands before the columns of such an output."""
Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Changed:
    """A value of a key that had another one before."""

    had: Any
    has: Any


def changes(columns: Sequence[Column], had: Rows, has: Rows) -> Iterator[dict[str, Any]]:
    """Yield a row for each key: keys that are new, that changed, that went, and the others."""
    before, after = _by_key(columns, had), _by_key(columns, has)
    found = [_change(columns, before.get(key), after.get(key)) for key in {**after, **before}]
    order = ("added", "changed", "removed", "unchanged")
    yield from sorted(found, key=lambda row: order.index(row[CHANGE.name]))


def _by_key(columns: Sequence[Column], rows: Rows) -> dict[str, Mapping[str, Any]]:
    key = key_of(columns)
    return {repr([row[name] for name in key]): row for row in rows}


def _change(
    columns: Sequence[Column], had: Mapping[str, Any] | None, has: Mapping[str, Any] | None
) -> dict[str, Any]:
    if had is None or has is None:
        return {CHANGE.name: "added" if had is None else "removed", **(has or had or {})}
    names = [column.name for column in columns]
    values = {n: has[n] if had[n] == has[n] else Changed(had[n], has[n]) for n in names}
    is_same = not any(isinstance(value, Changed) for value in values.values())
    return {CHANGE.name: "unchanged" if is_same else "changed", **values}
