"""`timestamp_floor_*` and `format_timestamp`: seconds since 1970 (query/engine/time/dates.cpp).

A moment before 1970 is rounded to its hour or day towards 1970, as the server does it.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from math import fmod
from zoneinfo import ZoneInfo

from ..core.errors import YtError, generic

_LEAST, _GREATEST = -62_135_596_800, 253_402_300_799  # years 1 and 9999
_MAX_FORMAT = 30
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_FLOORS: dict[str, Callable[[datetime], datetime]] = {
    "hour": lambda time: time,
    "day": lambda time: time.replace(hour=0),
    "week": lambda time: time.replace(hour=0) - timedelta(days=time.weekday()),
    "month": lambda time: time.replace(hour=0, day=1),
    "quarter": lambda time: time.replace(hour=0, day=1, month=time.month - (time.month - 1) % 3),
    "year": lambda time: time.replace(hour=0, day=1, month=1),
}
_SECONDS = {"hour": 3600, "day": 86_400}
UNITS = tuple(_FLOORS)


def floor(unit: str) -> Callable[[int], int]:
    """Return the function that rounds a time down to a unit, in UTC."""

    def apply(seconds: int) -> int:
        _check(seconds)
        if unit in _SECONDS:
            return seconds - int(fmod(seconds, _SECONDS[unit]))
        return _floor(unit, seconds, UTC)

    return apply


def floor_in_zone(unit: str) -> Callable[[int, bytes], int]:
    """Return the function that rounds a time down to a unit of a time zone."""

    def apply(seconds: int, zone: bytes) -> int:
        _check(seconds)
        return _floor(unit, seconds, _zone(zone))

    return apply


def _floor(unit: str, seconds: int, zone: tzinfo) -> int:
    floored = _FLOORS[unit](_local(seconds, zone).replace(minute=0, second=0))
    return int((floored - _EPOCH).total_seconds())


def _local(seconds: int, zone: tzinfo) -> datetime:
    try:
        return (_EPOCH + timedelta(seconds=seconds)).astimezone(zone)
    except OverflowError:
        raise generic("Timestamp is outside the years of its time zone") from None


def formatted(seconds: int, pattern: bytes) -> bytes:
    return formatted_in_zone(seconds, b"UTC", pattern)


def formatted_in_zone(seconds: int, zone: bytes, pattern: bytes) -> bytes:
    """Return the time as `strftime` writes it. Raises YtError."""
    _check(seconds)
    if len(pattern) > _MAX_FORMAT:
        raise generic("Format string is too long", length=len(pattern), limit=_MAX_FORMAT)
    local = _local(seconds, _zone(zone))
    return local.strftime(pattern.decode(errors="replace")).encode()


def _check(seconds: int) -> None:
    if seconds < _LEAST:
        raise generic("Timestamp is smaller than minimal value", timestamp=seconds)
    if seconds > _GREATEST:
        raise generic("Timestamp is greater than maximal value", timestamp=seconds)


@lru_cache(maxsize=64)
def _zone(name: bytes) -> tzinfo:
    if name == b"UTC":
        return UTC
    try:
        return ZoneInfo(name.decode())
    except (ValueError, KeyError, OSError) as error:
        raise _unknown_zone(name) from error


def _unknown_zone(name: bytes) -> YtError:
    return generic(f'Unknown time zone "{name.decode(errors="backslashreplace")}"')
