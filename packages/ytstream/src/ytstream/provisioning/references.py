"""Whether the table of a reference is one that lookup() can read."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..cluster import built_reference
from ..cluster.timestamps import unix_seconds
from ..schema.columns import Column, key_of
from ..schema.table_schema import unlike

ASKED = (
    "id", "type", "dynamic", "schema", "tablet_state", "min_data_ttl", "merge_rows_on_flush",
    "row_count",
)  # fmt: skip
"""What `unfit` and `unreadable` have to know of a table."""


def unreadable(
    columns: Sequence[Column], found: Mapping[str, Any], most_rows: int
) -> Iterator[str]:
    """Yield why lookup() cannot read a table with these attributes; ``most_rows`` are read whole.

    Whatever fits a lookup by key can be read whole. Of a static table that is the only way.
    """
    if found.get("type", "table") != "table" or found.get("dynamic"):
        yield from unfit(columns, found)
        return
    if (rows := int(found.get("row_count", 0))) > most_rows:
        yield (
            f"it is static and has {rows} rows, and at most reference_rows = {most_rows} are read "
            "whole: `make reference` makes a table of it in which keys are looked up"
        )
    yield from unlike(columns, found["schema"])


def unfit(columns: Sequence[Column], found: Mapping[str, Any]) -> Iterator[str]:
    """Yield why no keys can be looked up in a table with these attributes."""
    if found.get("type", "table") != "table":
        yield f"it is a {found['type']}"
        return
    key = given_key(found["schema"])
    if not found.get("dynamic") or not any(one.get("sort_order") for one in found["schema"]):
        yield "it is not a sorted dynamic table, which has keys: `make reference` makes one of it"
        return
    if key != [*key_of(columns)]:
        known = ", ".join(key) or "computed"
        yield f"its key is {known}, REFERENCES has {', '.join(key_of(columns))}"
    yield from unlike(columns, found["schema"])
    if found.get("tablet_state") not in ("mounted", "frozen"):
        yield f"it is {found.get('tablet_state')}"
    yield from (problem for problem, *_ in forgets(found))


def given_key(schema: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the key columns that a lookup gives: the cluster computes the others.

    It takes no value for those (YTsaurus, TTableSchema::ToLookup).
    """
    keyed = (column for column in schema if column.get("sort_order"))
    return [str(column["name"]) for column in keyed if not column.get("expression")]


def forgets(found: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield why a table may not have the rows of a moment, with the attribute and a value for it.

    All tasks of a batch read as of one moment, which the table has to keep.
    """
    if found.get("min_data_ttl") == 0:
        problem = "min_data_ttl = 0: it does not keep the rows of a moment"
        yield problem, "min_data_ttl", str(MIN_DATA_TTL)
    if found.get("merge_rows_on_flush"):
        problem = "merge_rows_on_flush is on: reads at a timestamp are inconsistent"
        yield problem, "merge_rows_on_flush", "%false"


KEPT_BY = (*built_reference.ASKED, "min_data_ttl", "dynamic", "modification_time")
"""What `lost` has to know of a table."""
MIN_DATA_TTL = 1_800_000
"""How many milliseconds a table keeps what was overwritten, unless its attribute says otherwise."""


def lost(found: Mapping[str, Any], timestamp: int) -> str:
    """Return why a table may not have its rows of a time any more; empty if it is sure to.

    The cluster reports a time that is too old only once a compaction has removed its rows, and
    never one before the rows were there (YTsaurus, ValidateTabletRetainedTimestamp).
    """
    if timestamp < built_reference.earliest(found):
        return "it was built later"
    if not found.get("dynamic", True):
        changed = built_reference.end_of(str(found["modification_time"]))
        return "it is static, and was written to later" if timestamp < changed else ""
    kept = int(found.get("min_data_ttl", MIN_DATA_TTL)) / 1000
    age = time.time() - unix_seconds(timestamp)
    # Another frozen table may have been compacted before somebody froze it.
    if not built_reference.is_frozen(found) and age > kept:
        return f"it keeps its rows for {kept:.0f} s (@min_data_ttl), and that was {age:.0f} s ago"
    return ""
