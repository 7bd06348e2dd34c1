"""Masks: a value becomes another one of the same length; equal values stay equal, null stays null.

The mask is a keyed hash. Its key is random, and nothing keeps it: who has the masked rows cannot
try values out.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from yt.yson import YsonBoolean, YsonEntity, YsonUint64

from ytstream.errors import JobError
from ytstream.errors.error_codes import ErrorCode
from ytstream.schema.columns import Column, spelled, type_name
from ytstream.schema.string_values import as_bytes, is_string

from .source_rows import Row, verify_known

_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
_TEXTS = ("utf8", "string", "json")
_NUMBERS = tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
_FLOATS = ("float", "double")

_TRIES = 16
"""Tries to find a mask that is not the value itself. One digit has ten masks."""

Mask = Callable[[Any], Any]
_T = TypeVar("_T")


def masked(rows: Sequence[Row], columns: Sequence[Column], names: Sequence[str]) -> list[Row]:
    """Return the rows with other values in some columns, or at paths such as payload.user.email.

    A path leads into a column of type `any`. Its keys stay. Raises JobError for a wrong name.
    """
    paths = [name for name in names if "." in name]
    whole = [name for name in names if name not in paths]
    verify_known([*whole, *(path.partition(".")[0] for path in paths)], columns, "MASK")
    key = secrets.token_bytes(32)
    masks = {column.name: _mask(key, column) for column in columns if column.name in whole}
    made = [
        {name: masks[name](value) if name in masks else value for name, value in row.items()}
        for row in rows
    ]
    for path in paths:
        made = _masked_at(key, made, path, columns)
    return made


def _masked_at(key: bytes, rows: Sequence[Row], path: str, columns: Sequence[Column]) -> list[Row]:
    name, *parts = path.split(".")
    (column,) = (column for column in columns if column.name == name)
    if type_name(column.type) not in ("yson", "any"):
        raise JobError(
            f"MASK: {path} is a path, and {name} is of type {spelled(column.type)}",
            f"mask the whole column: MASK={name}. Only a column of type any has paths",
            code=ErrorCode.USAGE,
        )
    found = _Found()
    made = [{**row, name: _at(key, row[name], parts, found)} for row in rows]
    if not found.values:  # a typing mistake must not leave a secret as it is
        raise JobError(f"MASK: no row has {path}", "correct the path", code=ErrorCode.USAGE)
    return made


@dataclass
class _Found:
    """How many values a path has led to."""

    values: int = 0


def _at(key: bytes, value: Any, parts: Sequence[str], found: _Found) -> Any:
    """Return the value with a mask at the path; a path goes into each item of a list."""
    if isinstance(value, Sequence) and not is_string(value):
        return [_at(key, item, parts, found) for item in value]
    if not parts:
        found.values += 1
        return _any(key, value, "at a path")
    if not isinstance(value, Mapping):
        return value
    wanted = as_bytes(parts[0])
    return {
        name: _at(key, item, parts[1:], found) if as_bytes(name) == wanted else item
        for name, item in value.items()
    }


def _mask(key: bytes, column: Column) -> Mask:
    kind = type_name(column.type)
    if kind == "json":
        # A JSON text of the same length that is valid for the cluster.
        return _of_present(lambda value: _json(key, str(value)))
    if kind in ("yson", "any") or not _scalars(column.type) - {*_TEXTS, *_NUMBERS, *_FLOATS}:
        return _of_present(lambda value: _any(key, value, kind))
    raise JobError(
        f"MASK: {column.name} is of type {spelled(column.type)}, which cannot be masked",
        f"mask texts and numbers; WITHOUT={column.name} leaves the column out",
        code=ErrorCode.USAGE,
    )


def _of_present(mask: Mask) -> Mask:
    return lambda value: None if value is None else mask(value)


def _scalars(type_: Any) -> set[str]:
    """Return the names of the types in which the values of a column are."""
    inner = [getattr(type_, name, None) for name in ("item", "key", "value")]
    items = getattr(type_, "items", ())
    inner += [item[1] if isinstance(item, tuple) else item for item in items]
    parts = [part for part in inner if part is not None]
    return set().union(*map(_scalars, parts)) if parts else {type_name(type_)}


def _any(key: bytes, value: Any, kind: str) -> Any:
    """Mask every text and number in a value. Attributes of YSON are dropped: they may have some."""
    if value is None or isinstance(value, YsonEntity):
        return None
    if isinstance(value, bool | YsonBoolean):
        return bool(value)
    if is_string(value):
        is_text = isinstance(value, str)
        return _other(key, str(value), _text) if is_text else _other(key, as_bytes(value), _bytes)
    if isinstance(value, int):
        return _other(key, value, partial(_whole, kind=kind))
    if isinstance(value, float):
        return _other(key, float(value), _float)
    if isinstance(value, Mapping):  # names of a struct's fields are in the schema
        hides_names = kind in ("yson", "any")
        return {
            _any(key, name, kind) if hides_names else name: _any(key, item, kind)
            for name, item in value.items()
        }
    return [_any(key, item, kind) for item in value]


def _other(key: bytes, value: _T, mask: Callable[[bytes, _T], _T]) -> _T:
    """Return a mask of the value that is not the value, where there is another one."""
    found = value
    for number in range(_TRIES):
        found = mask(key + bytes([number]), value)
        if found != value:
            break
    return found


def _stream(key: bytes, value: bytes, size: int) -> bytes:
    """Return ``size`` bytes that depend on the key and the value."""
    made, number = b"", 0
    while len(made) < size:
        made += hmac.digest(key, number.to_bytes(4, "big") + value, "sha256")
        number += 1
    return made[:size]


def _text(key: bytes, value: str) -> str:
    found = _stream(key, value.encode(), len(value))
    return "".join(_LETTERS[byte % len(_LETTERS)] for byte in found)


def _bytes(key: bytes, value: bytes) -> bytes:
    return _stream(key, value, len(value))


def _json(key: bytes, value: str) -> str:
    """Return a JSON text: of two characters or more a string."""
    return f'"{_text(key, value[2:] + value)[: len(value) - 2]}"' if len(value) > 1 else "0"


def _whole(key: bytes, value: int, kind: str) -> Any:
    """Return a number with the same sign and as many digits."""
    digits = len(str(abs(value)))
    low = 10 ** (digits - 1) if digits > 1 else 0
    bits = int(kind.lstrip("uint") or 64) if kind in _NUMBERS else 64
    is_unsigned = kind.startswith("u") or isinstance(value, YsonUint64)
    most = (1 << bits) - 1 if is_unsigned else (1 << (bits - 1)) - 1
    high = min(10**digits - 1, most)
    text = int.from_bytes(_stream(key, str(int(value)).encode(), 16), "big")
    found = low + text % (high - low + 1)
    if is_unsigned:
        return YsonUint64(found)
    return -found if value < 0 else found


def _float(key: bytes, value: float) -> float:
    """Return a number of the same sign and size."""
    if value == 0 or value != value or value in (float("inf"), float("-inf")):
        return value
    part = int.from_bytes(_stream(key, repr(value).encode(), 8), "big") / 2**64
    size = 10.0 ** (len(str(int(abs(value)))) - 1)
    found = round(size * (1 + 8 * part), 6)
    return -found if value < 0 else found
