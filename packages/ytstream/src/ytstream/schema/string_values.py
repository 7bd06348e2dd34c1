"""Values of YTsaurus' type `string`, which are bytes and need not be text.

ytsaurus-client returns a str where the bytes are UTF-8, and otherwise a YsonStringProxy (yt.yson),
which has few methods of bytes or str. A sample may have either, or bytes. ``canonical`` converts
each of them to one value, so that b"" equals "".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from yt import yson
from yt.yson.yson_types import YsonStringProxy

from ..text_table import counted

_SHOWN = 16
"""Bytes that a screen shows of a value."""


def is_string(value: Any) -> bool:
    """Return whether a value is a string of YTsaurus, in any of its Python types."""
    return isinstance(value, str | bytes | bytearray | YsonStringProxy)


def canonical(value: Any) -> str | bytes:
    """Return a string as text where its bytes are UTF-8, else as bytes."""
    if isinstance(value, str):
        return str(value)
    found = as_bytes(value)
    try:
        return found.decode()
    except UnicodeDecodeError:
        return found


def as_bytes(value: Any) -> bytes:
    """Return the bytes of a string."""
    if isinstance(value, str):
        return value.encode()
    return bytes(value) if isinstance(value, bytes | bytearray) else bytes(yson.get_bytes(value))


def shown(value: Any) -> str:
    """Return a value for a screen: bytes by their first ones, escaped, and their length."""
    if isinstance(value, list | tuple):
        items = ", ".join(map(shown, value))
        if isinstance(value, list):
            return f"[{items}]"
        return f"({items},)" if len(value) == 1 else f"({items})"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{shown(key)}: {shown(item)}' for key, item in value.items())}}}"
    if isinstance(value, str) or not is_string(value):
        return f"{value!r}"
    found = as_bytes(value)
    rest = "..." if len(found) > _SHOWN else ""
    return f"{found[:_SHOWN]!r}{rest} ({counted(len(found), 'byte')})"
