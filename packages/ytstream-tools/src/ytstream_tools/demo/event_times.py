"""Event times of sample rows as microseconds since 1970, whatever the type of their column."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from ytstream.schema.string_values import canonical, is_string

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND = 1_000_000
_DAY = 86_400 * _SECOND

UNITS = {
    "timestamp": 1,
    "timestamp64": 1,
    "datetime": _SECOND,
    "datetime64": _SECOND,
    "date": _DAY,
    "date32": _DAY,
}
"""Microseconds in a unit of each of YTsaurus' times (YTsaurus, "Data types")."""


def microseconds(value: Any, kind: str) -> int | None:
    """Return the time that a column of the type ``kind`` holds; None for what is not a time."""
    if is_string(value):
        try:
            found = datetime.fromisoformat(str(canonical(value)))
        except ValueError:
            return None
        found = found if found.tzinfo else found.replace(tzinfo=UTC)
        return round(found.timestamp() * _SECOND)
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    times, parts = _unit(value, kind)
    return int(value * times // parts)


def moved(value: Any, kind: str, time_us: int) -> Any:
    """Return ``time_us`` in the type and unit of ``value``; None for a text: it has many forms."""
    if is_string(value):
        return None
    times, parts = _unit(value, kind)
    found = time_us * parts
    return type(value)(found / times if isinstance(value, float) else found // times)


def unit_us(value: Any, kind: str) -> int:
    """Return the microseconds in a unit of a number; 0 for nanoseconds."""
    times, parts = _unit(value, kind)
    return times // parts


def text(time_us: int) -> str:
    """Return the time for a message."""
    try:
        return datetime.fromtimestamp(time_us / _SECOND, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        return f"{time_us} microseconds since 1970"


def _unit(value: float, kind: str) -> tuple[int, int]:
    """Return the microseconds in a unit, as a fraction: of a plain number by its size.

    Seconds until the year 5138, milliseconds from 1973, microseconds from 1973, nanoseconds.
    """
    if kind in UNITS:
        return UNITS[kind], 1
    sizes = ((1e11, (_SECOND, 1)), (1e14, (1_000, 1)), (1e17, (1, 1)))
    return next((unit for below, unit in sizes if abs(value) < below), (1, 1_000))
