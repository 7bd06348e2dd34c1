"""Formats of parameters, values and rows: YSON and JSON, as YT's driver reads and writes them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from yt import yson

from ..errors import GENERIC, YtError, generic, not_supported

_OTHER_MODES = {
    "string_keyed_dict_mode": "positional",
    "decimal_mode": "binary",
    "time_mode": "binary",
    "uuid_mode": "binary",
}
"""Ways to write values in rows, and the default, which is the only one here."""


@dataclass(frozen=True, slots=True)
class Format:
    """A format's name and the attributes that matter: YSON's form, JSON's encoding, and whether
    structs and named variants are lists without names."""

    name: str
    yson_form: str = "binary"
    encode_utf8: bool = True
    positional: bool = False

    @classmethod
    def parse(cls, given: Any) -> Format:
        """Read a format such as `<format=text>yson` in any of the ways clients write it.

        Raises YtError for a format that is not supported here.
        """
        if isinstance(given, dict):  # JSON headers: {"$value": ..., "$attributes": ...}
            attributes, name = given.get("$attributes") or {}, given.get("$value")
        else:
            attributes, name = getattr(given, "attributes", None) or {}, given
        if not isinstance(name, str) or not isinstance(attributes, dict):
            raise generic("Error parsing format: a name with attributes is expected")
        name = str(name)  # a YSON string with attributes equals none without
        if name not in ("yson", "json"):
            raise not_supported(f'Format "{name}"')
        form = attributes.get("format", "binary")
        if not isinstance(form, str) or str(form) not in ("binary", "text", "pretty"):
            raise generic(f"Error parsing YSON format {form!r}")
        encode_utf8 = attributes.get("encode_utf8", True)
        mode = attributes.get("complex_type_mode", "named")
        if mode not in ("named", "positional"):
            raise generic(f"Error parsing format: complex_type_mode {mode!r}")
        for other, default in _OTHER_MODES.items():
            if attributes.get(other, default) != default:
                raise not_supported(f'Format with "{other}" other than "{default}"')
        return cls(
            name, str(form), encode_utf8 in (True, "true", "%true"), str(mode) == "positional"
        )


YSON = Format("yson")
YSON_TEXT = Format("yson", "text")
JSON = Format("json")


def of_header(text: str) -> Any:
    """Return a format as a header names it, for `Format.parse`."""
    return load_yson(text.strip().rstrip(";").encode())


def load_yson(data: bytes) -> Any:
    """Return the value of YSON text. Raises YtError if it is not YSON."""
    return _parsed(lambda: yson.loads(data, always_create_attributes=False))


def _parsed(parse: Any) -> Any:
    try:
        return parse()
    except RecursionError:
        raise generic("Error parsing YSON: depth limit exceeded") from None
    except (yson.YsonError, ValueError, TypeError) as error:
        reason = getattr(error, "message", None) or str(error)
        inner = [YtError.from_dict(item) for item in _inner(error)]
        raise YtError(GENERIC, f"Error parsing YSON: {reason}", inner=inner) from None


def _inner(error: Any) -> list[dict[str, Any]]:
    return [
        item if isinstance(item, dict) else item.simplify()
        for item in getattr(error, "inner_errors", None) or ()
    ]


def load(data: bytes, given: Format) -> Any:
    """Return one value. Raises YtError."""
    if given.name == "yson":
        return load_yson(data)
    return from_json(_json(data), given.encode_utf8)


def load_rows(data: bytes, given: Format) -> list[dict[str, Any]]:
    """Return rows as maps of column names to values, with bytes for strings. Raises YtError."""
    if given.name == "yson":
        # Keys and strings may hold any bytes, so nothing is decoded but column names.
        items = _parsed(
            lambda: list(
                yson.loads(
                    data, yson_type="list_fragment", encoding=None, always_create_attributes=False
                )
            )
        )
    else:
        items = [
            from_json(_json(line), given.encode_utf8) for line in data.splitlines() if line.strip()
        ]
    if not all(isinstance(item, dict) for item in items):
        raise generic("Unexpected row: a map was expected")
    names = _Names()
    try:
        return [{names[name]: value for name, value in item.items()} for item in items]
    except UnicodeDecodeError:
        raise generic("A column name is not UTF-8") from None


class _Names(dict[Any, str]):
    """Column names as text; few in all rows of a request, so each is decoded once."""

    def __missing__(self, name: Any) -> str:
        text = self[name] = name.decode() if isinstance(name, bytes) else str(name)
        return text


def dump(value: Any, wanted: Format) -> bytes:
    """Return one value as bytes."""
    if wanted.name == "yson":
        data: bytes = yson.dumps(value, yson_format=wanted.yson_form)
        return data
    return json.dumps(to_json(value, wanted.encode_utf8), ensure_ascii=False).encode()


def dump_rows(rows: Iterable[dict[str, Any] | None], wanted: Format) -> bytes:
    """Return rows as a list fragment, or as one JSON object a line."""
    if wanted.name == "yson":
        data: bytes = yson.dumps(
            list(rows), yson_type="list_fragment", yson_format=wanted.yson_form
        )
        return data
    lines = [
        json.dumps(to_json(row, wanted.encode_utf8), ensure_ascii=False) + "\n" for row in rows
    ]
    return "".join(lines).encode()


def to_json(value: Any, encode_utf8: bool = True) -> Any:
    """Return JSON as YT writes it: attributes beside values, with `encode_utf8` a char a byte."""
    attributes = getattr(value, "attributes", None)
    plain = _plain_json(value, encode_utf8)
    if attributes:
        shown = {
            _json_string(name, encode_utf8): to_json(item, encode_utf8)
            for name, item in attributes.items()
        }
        return {"$value": plain, "$attributes": shown}
    return plain


def _plain_json(value: Any, encode_utf8: bool) -> Any:
    match value:
        case None | yson.YsonEntity():
            return None
        case bool() | yson.YsonBoolean():
            return bool(value)
        case int():
            return int(value)
        case float():
            return float(value)
        case dict():
            return {
                _json_key(name, encode_utf8): to_json(item, encode_utf8)
                for name, item in value.items()
            }
        case list():
            return [to_json(item, encode_utf8) for item in value]
    return _json_string(value, encode_utf8)


def _json_key(name: Any, encode_utf8: bool) -> str:
    text = _json_string(name, encode_utf8)
    return f"${text}" if text.startswith("$") else text


def _json_string(value: Any, encode_utf8: bool) -> str:
    if isinstance(value, str):
        return value.encode().decode("latin-1") if encode_utf8 else str(value)
    data = yson.get_bytes(value) if not isinstance(value, bytes) else value
    return data.decode("latin-1") if encode_utf8 else data.decode("utf-8", "replace")


def _json(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise generic(f"Error parsing JSON: {error}") from None


def from_json(value: Any, encode_utf8: bool = True) -> Any:
    """Return the value that `to_json` made this JSON of."""
    if isinstance(value, dict):
        if "$value" in value:
            attributes = from_json(value.get("$attributes") or {}, encode_utf8)
            return yson.to_yson_type(from_json(value["$value"], encode_utf8), attributes=attributes)
        return {
            _from_json_key(name, encode_utf8): from_json(item, encode_utf8)
            for name, item in value.items()
        }
    if isinstance(value, list):
        return [from_json(item, encode_utf8) for item in value]
    if isinstance(value, str):
        return _from_json_string(value, encode_utf8)
    if isinstance(value, int) and not isinstance(value, bool) and value >= 1 << 63:
        return yson.YsonUint64(value)
    return value


def _from_json_key(name: str, encode_utf8: bool) -> str:
    return _from_json_string(name[1:] if name.startswith("$$") else name, encode_utf8)


def _from_json_string(value: str, encode_utf8: bool) -> str:
    if encode_utf8:
        with suppress(UnicodeError):
            return value.encode("latin-1").decode()
    try:
        value.encode()
    except UnicodeEncodeError:
        raise generic("Error parsing JSON: a half of a surrogate pair") from None
    return value
