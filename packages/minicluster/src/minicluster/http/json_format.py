"""The JSON format: attributes beside values, `$` before keys, bytes as characters.

With `encode_utf8`, which is the default, a character stands for the byte of its number; without it,
strings are UTF-8 on both sides (documentation, "formats"; the wording of errors: core/json,
core/misc/utf8_decoder.cpp).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from yt import yson
from yt.yson.yson_types import make_byte_key

from ..core.errors import YtError, generic
from .options import Options, flag, one_of, refuse

_REFUSED: Options = {
    "attributes_mode": "on_demand",
    "annotate_with_types": False,
    "stringify": False,
    "stringify_nan_and_infinity": False,
    "support_infinity": False,
    "skip_null_values": False,
    "string_length_limit": None,
}
_INT64, _UINT64 = 1 << 63, 1 << 64

Decode = Callable[[bytes], Any]
"""Makes a string of a value from its bytes."""


@dataclass(frozen=True, slots=True)
class Json:
    """JSON with its options; `plain` is for input alone, `pretty` for output."""

    encode_utf8: bool = True
    plain: bool = False
    pretty: bool = False

    content_type = "application/json"

    @classmethod
    def parse(cls, options: Options) -> Json:
        refuse(options, _REFUSED)
        return cls(
            flag(options, "encode_utf8", True),
            flag(options, "plain", False),
            one_of(options, "format", "text", "pretty") == "pretty",
        )

    # From JSON

    def load(self, data: bytes) -> Any:
        """Return the one value. Raises YtError."""
        values = self._values(data, _text_or_bytes)
        if len(values) != 1:
            raise _malformed(f"one value is expected, found {len(values)}")
        return values[0]

    def load_rows(self, data: bytes) -> list[Any]:
        """Return values that follow each other, with bytes for strings. Raises YtError."""
        if self.pretty:
            raise generic("Pretty JSON format is not supported for list fragments")
        return self._values(data, bytes)

    def _values(self, data: bytes, string: Decode) -> list[Any]:
        try:
            return [self._value(value, string) for value in _values(data)]
        except RecursionError:
            raise _malformed("depth limit exceeded") from None

    def _value(self, value: Any, string: Decode) -> Any:
        if isinstance(value, str):
            return string(self._bytes(value))
        if isinstance(value, dict):
            return self._map(value, string)
        if isinstance(value, list):
            return [self._value(item, string) for item in value]
        return _number(value) if type(value) is int else value

    def _map(self, given: dict[str, Any], string: Decode) -> Any:
        if self.plain:
            return self._items(given, string)
        if "$value" not in given:
            if "$attributes" in given:
                raise generic('Found key "$attributes" without key "$value"')
            return self._items(given, string)
        value = self._value(given["$value"], string)
        if "$type" in given:
            value = _typed(given["$type"], value)
        if "$attributes" not in given:
            return value
        attributes = given["$attributes"]
        if not isinstance(attributes, dict):
            raise generic('Value of "$attributes" must be a map')
        return yson.to_yson_type(value, attributes=self._items(attributes, string))

    def _items(self, given: dict[str, Any], string: Decode) -> dict[Any, Any]:
        return {
            string(self._bytes(self._key(name))): self._value(item, string)
            for name, item in given.items()
        }

    def _key(self, name: str) -> str:
        if self.plain or not name.startswith("$"):
            return name
        if not name.startswith("$$"):
            raise generic(
                f'Key "{name}" starts with single "$"; use "${name}" '
                "to encode this key in JSON format"
            )
        return name[1:]

    def _bytes(self, text: str) -> bytes:
        try:
            return text.encode("latin-1" if self.encode_utf8 else "utf-8")
        except UnicodeEncodeError:
            if not self.encode_utf8:
                raise _malformed("a half of a surrogate pair") from None
        raise generic(
            "Unicode symbols with codes greater than 255 are not supported; "
            "consider using encode_utf8=false in format options"
        )

    # To JSON

    def dump(self, value: Any) -> bytes:
        """Return one value. Raises YtError for one that JSON cannot hold."""
        return self._dumped(value)

    def dump_rows(self, rows: Iterable[Any]) -> bytes:
        """Return a line for each row. Raises YtError for a value that JSON cannot hold."""
        return b"".join([self._dumped(row) + b"\n" for row in rows])

    def _dumped(self, value: Any) -> bytes:
        try:
            return (_PRETTY if self.pretty else _DENSE)(self.shown(value)).encode()
        except ValueError:
            raise generic(
                "Unexpected NaN or infinity encountered during JSON writing; consider using either "
                '"support_infinity" or "stringify_nan_and_infinity" config options'
            ) from None

    def shown(self, value: Any) -> Any:
        """Return the tree of a value, for Python's own encoder."""
        kind = type(value)
        if kind is bytes:
            return self._string(value)
        if kind in _PLAIN:
            return value
        attributes = getattr(value, "attributes", None)
        if attributes:
            return {"$attributes": self._shown_map(attributes), "$value": self._bare(value)}
        return self._bare(value)

    def _bare(self, value: Any) -> Any:
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
                return self._shown_map(value)
            case list():
                return [self.shown(item) for item in value]
            case str():
                return self._string(value.encode())
        return self._string(yson.get_bytes(value))

    def _shown_map(self, given: dict[Any, Any]) -> dict[str, Any]:
        return {self._shown_key(name): self.shown(item) for name, item in given.items()}

    def _shown_key(self, name: Any) -> str:
        text: str = self.shown(name)
        return f"${text}" if text.startswith("$") else text

    def _string(self, data: bytes) -> str:
        try:
            return data.decode("latin-1" if self.encode_utf8 else "utf-8")
        except UnicodeDecodeError:
            raise generic("Invalid UTF-8 string in JSON") from None


_PLAIN = frozenset({bool, int, float, type(None)})
_DENSE = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
_PRETTY = json.JSONEncoder(ensure_ascii=False, allow_nan=False, indent=4).encode


def _not_a_number(text: str) -> float:
    raise ValueError(f"{text} is not a number")


_DECODER = json.JSONDecoder(parse_constant=_not_a_number)
_SPACE = re.compile(r"[ \t\n\r]*").match


def _values(data: bytes) -> Iterator[Any]:
    """Yield values that stand one after another, with white space between them or without."""
    try:
        text = data.decode()
        position = _after_space(text, 0)
        while position < len(text):
            value, end = _DECODER.raw_decode(text, position)
            yield value
            position = _after_space(text, end)
    except ValueError as error:
        raise _malformed(str(error)) from None


def _after_space(text: str, position: int) -> int:
    found = _SPACE(text, position)
    return found.end() if found else position


def _malformed(reason: str) -> YtError:
    return generic(f"Error parsing JSON: {reason}")


def _number(value: int) -> int:
    if -_INT64 <= value < _INT64:
        return value
    if not 0 <= value < _UINT64:
        raise _malformed(f"integer overflow: {value}")
    unsigned: int = yson.YsonUint64(value)
    return unsigned


def _typed(name: Any, value: Any) -> Any:
    """Return a value as its `$type` says; numbers and booleans may come as text."""
    if name == "string" and isinstance(value, str | bytes | yson.yson_types.YsonStringProxy):
        return value
    try:
        text = value.decode() if isinstance(value, bytes) else value
        numeric = isinstance(text, str | int) and not isinstance(text, bool)
        match name:
            case "int64" if numeric:
                return int(text)
            case "uint64" if numeric:
                return yson.YsonUint64(int(text))
            case "double" if numeric or isinstance(text, float):
                return float(text)
            case "boolean" if text in ("true", "false") or isinstance(text, bool):
                return text in ("true", True)
    except ValueError as error:
        raise _malformed(str(error)) from None
    raise generic("Type mismatch in JSON", expected_type=str(name))


def _text_or_bytes(data: bytes) -> Any:
    """Return a string as YSON's parser does: text if it is UTF-8."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return make_byte_key(data)
