"""The user's columns: put in the place of a generated project's tables.py."""

from typing import Any

from tests.round_trip import columns

_TIME: list[tuple[str, Any, bool]] = [("at", "timestamp", True)]

QUEUE: list[tuple[str, Any, bool]] = [*columns.KEY, *_TIME, *columns.COLUMNS]
OUTPUT: list[tuple[str, Any, bool]] = [*columns.KEY, *columns.COLUMNS]
REFERENCE: list[tuple[str, Any, bool]] = [("id", "utf8", False), *columns.REFERENCE]
REFERENCE_KEY = ("id",)
