"""`try_get_int64` and its like: the value at a path inside a column of type any.

Paths and conversions: yt/core/ytree/ypath_resolver.cpp.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from yt import yson

from ..core.errors import YtError, generic
from ..rows import wire
from .conversions import parsed

_STEP = re.compile(rb"/(@?)((?:[^/@&*\[{\\]|\\x[0-9a-fA-F]{2}|\\[/@&*\[{\\])+)")
_ESCAPE = re.compile(rb"\\(?:x([0-9a-fA-F]{2})|(.))", re.DOTALL)
_MISSING = object()
_INT64_END, _UINT64_END = 1 << 63, 1 << 64

TYPES = {
    "int64": wire.INT64,
    "uint64": wire.UINT64,
    "double": wire.DOUBLE,
    "boolean": wire.BOOLEAN,
    "string": wire.STRING,
    "any": wire.ANY,
}


def getter(name: str) -> Callable[[bytes, bytes], Any]:
    """Return `try_get_<name>`: the value as that type, None where there is no such value."""
    return _any if name == "any" else _CONVERSIONS[name]


def strict_getter(name: str) -> Callable[[bytes, bytes], Any]:
    """Return `get_<name>`, which raises YtError where there is no such value."""
    find = getter(name)

    def get(document: bytes, path: bytes) -> Any:
        value = find(document, path)
        if value is None:
            where = path.decode(errors="backslashreplace")
            raise generic(f'Value of type "{name}" is not found at YPath {where}')
        return value

    return get


@lru_cache(maxsize=1024)
def _steps(path: bytes) -> tuple[tuple[tuple[bool, bytes], ...], bytes]:
    """Return the steps, (whether to an attribute, name), and the rest that is not a step."""
    steps = []
    position = 0
    while match := _STEP.match(path, position):
        name = _ESCAPE.sub(lambda m: bytes([int(m[1], 16)]) if m[1] else m[2], match[2])
        steps.append((bool(match[1]), name))
        position = match.end()
    return tuple(steps), path[position:]


def _found(document: bytes, path: bytes) -> Any:
    steps, rest = _steps(path)
    value = parsed(document)
    for of_attributes, name in steps:
        value = _attribute(value, name) if of_attributes else _child(value, name)
        if value is _MISSING:
            return _MISSING
    if rest:  # the server looks at a step only when it gets there
        raise _unexpected(rest, path)
    return value


def _attribute(value: Any, name: bytes) -> Any:
    return (getattr(value, "attributes", None) or {}).get(name, _MISSING)


def _child(value: Any, name: bytes) -> Any:
    if isinstance(value, dict):
        return value.get(name, _MISSING)
    if isinstance(value, list) and name.isdigit() and int(name) < len(value):
        return value[int(name)]
    return _MISSING


def _unexpected(rest: bytes, path: bytes) -> YtError:
    token, whole = (text.decode(errors="backslashreplace") for text in (rest, path))
    return generic(f'Unexpected YPath token "{token}" while parsing "{whole}"')


def _any(document: bytes, path: bytes) -> bytes | None:
    value = _found(document, path)
    return None if value is _MISSING else yson.dumps(value, yson_format="binary")


def _number(document: bytes, path: bytes) -> int | float | None:
    value = _found(document, path)
    if isinstance(value, bool | yson.YsonBoolean) or not isinstance(value, int | float):
        return None
    return float(value) if isinstance(value, float) else int(value)


def _integer(low: int, end: int) -> Callable[[bytes, bytes], int | None]:
    def get(document: bytes, path: bytes) -> int | None:
        value = _number(document, path)
        return value if isinstance(value, int) and low <= value < end else None

    return get


def _double(document: bytes, path: bytes) -> float | None:
    value = _number(document, path)
    return None if value is None else float(value)


def _boolean(document: bytes, path: bytes) -> bool | None:
    value = _found(document, path)
    return bool(value) if isinstance(value, bool | yson.YsonBoolean) else None


def _string(document: bytes, path: bytes) -> bytes | None:
    value = _found(document, path)
    return bytes(value) if isinstance(value, bytes) else None


_CONVERSIONS: dict[str, Callable[[bytes, bytes], Any]] = {
    "int64": _integer(-_INT64_END, _INT64_END),
    "uint64": _integer(0, _UINT64_END),
    "double": _double,
    "boolean": _boolean,
    "string": _string,
}
