"""A value of type `any` as a person reads it: the JSON that json_of() gives in Spark."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import Any

from yt.yson import YsonBoolean, YsonEntity

from ytstream.schema.string_values import canonical, is_string


def text(value: Any) -> str:
    """Return the JSON of a value."""
    return json.dumps(_plain(value), ensure_ascii=False, separators=(",", ":"))


def _plain(value: Any) -> Any:
    attributes = getattr(value, "attributes", None)
    if attributes:
        return {"$attributes": _object(attributes), "$value": _bare(value)}
    return _bare(value)


def _bare(value: Any) -> Any:
    if value is None or isinstance(value, YsonEntity):
        return None
    if isinstance(value, bool | YsonBoolean):
        return bool(value)
    if is_string(value):
        found = canonical(value)
        return found if isinstance(found, str) else {"$bytes": b64encode(found).decode()}
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        number = float(value)
        is_finite = number == number and abs(number) != float("inf")
        return number if is_finite else str(number)
    if isinstance(value, Mapping):
        return _object(value)
    return [*map(_plain, value)] if isinstance(value, Sequence) else str(value)


def _object(value: Mapping[Any, Any]) -> dict[str, Any]:
    return {_key(canonical(name)): _plain(item) for name, item in value.items()}


def _key(name: str | bytes) -> str:
    if isinstance(name, bytes):
        return f"$bytes:{b64encode(name).decode()}"
    return f"${name}" if name.startswith("$") else name
