"""The commands that give a table more tablets, as a person pastes them into a shell.

A key is a tuple whose items compare as YTsaurus compares the values: null before everything else,
texts by their bytes, and the front of a key before the key.
"""

import shlex
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from yt import yson

from ..schema.columns import Column, type_name
from ..settings.job_settings import Settings

_UNSIGNED = ("uint", "date", "datetime", "timestamp")
"""Types whose values are unsigned in YSON (YTsaurus, "Data types"); a pivot key has the column's.
"""


def by_count(settings: Settings, path: str, tablets: int) -> str:
    """Return the commands that give an ordered table ``tablets``."""
    return _commands(settings, path, f"--tablet-count {tablets}")


def by_pivots(
    settings: Settings, path: str, columns: Sequence[Column], pivots: Iterable[tuple[Any, ...]]
) -> str:
    """Return the commands that cut a sorted table at ``pivots``, and let them stay."""
    words = " ".join(shlex.quote(_text(pivot, columns)) for pivot in pivots)
    # The balancer would merge small tablets again (YTsaurus, "Tablet balancing").
    stay = f"set {shlex.quote(f'{path}/@tablet_balancer_config/enable_auto_reshard')} %false"
    return _commands(settings, path, words, stay)


def key(values: Iterable[Any]) -> tuple[Any, ...]:
    """Return a row's key, or a pivot key of a table, as one that can be compared."""
    return tuple(_comparable(value) for value in values)


def _commands(settings: Settings, path: str, cut: str, *more: str) -> str:
    table, proxy = shlex.quote(path), shlex.quote(settings.proxy)
    steps = [
        *more,
        f"unmount-table {table} --sync",
        f"reshard-table {table} {cut} --sync",
        f"mount-table {table} --sync",
    ]
    return " &&\n".join(f"yt --proxy {proxy} {step}" for step in steps)


def _comparable(value: Any) -> tuple[Any, ...]:
    value = getattr(value, "value", value)  # SPYT's own types wrap a number, or a time
    if value is None or isinstance(value, yson.YsonEntity):
        return (0,)
    if isinstance(value, datetime):
        value = int(value.replace(tzinfo=UTC).timestamp())
    elif isinstance(value, str):
        value = value.encode()
    elif not isinstance(value, bool | int | float):
        value = bytes(value) if isinstance(value, bytes | bytearray) else yson.get_bytes(value)
    return (1, value)


def _text(pivot: Sequence[tuple[Any, ...]], columns: Sequence[Column]) -> str:
    """Return a pivot key as YSON."""
    items = (_typed(part, column) for part, column in zip(pivot, columns, strict=False))
    return str(yson.dumps([*items], yson_format="text").decode("ascii"))


def _typed(part: tuple[Any, ...], column: Column) -> Any:
    if part == (0,):
        return None
    kind = type_name(column.type)
    is_unsigned = kind.rstrip("0123456789") == "uint" or kind in _UNSIGNED
    if kind == "bool":
        return bool(part[1])
    return yson.YsonUint64(part[1]) if is_unsigned else part[1]
