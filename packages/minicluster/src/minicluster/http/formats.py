"""Formats of parameters, values and rows: which one a client asked for, and YSON itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Protocol

from yt import yson

from ..core.errors import GENERIC, YtError, generic, not_supported
from ..rows.conversions import NONE, Conversions
from .arrow_format import Arrow
from .dsv_format import Dsv
from .json_format import Json
from .options import Options, flag, one_of, refuse
from .schemaful_dsv_format import SchemafulDsv

_REFUSED: Options = {
    "string_keyed_dict_mode": "positional",
    "decimal_mode": "binary",
    "time_mode": "binary",
    "uuid_mode": "binary",
    "enable_integral_type_conversion": True,
}
"""Ways to write values in rows, and the default, which is the only one here."""


class Codec(Protocol):
    """Bytes into values and back; everything raises YtError. Rows have bytes for strings."""

    @property
    def content_type(self) -> str: ...
    def load(self, data: bytes) -> Any: ...
    def load_rows(self, data: bytes) -> list[Any]: ...
    def dump(self, value: Any) -> bytes: ...
    def dump_rows(self, rows: Iterable[Any]) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Yson:
    """YSON in one of its forms, which matter for output alone."""

    form: str = "binary"

    content_type = "application/x-yt-yson-binary"

    @classmethod
    def parse(cls, options: Options) -> Yson:
        refuse(options, {"skip_null_values": False})
        return cls(one_of(options, "format", "binary", "text", "pretty"))

    def load(self, data: bytes) -> Any:
        return load_yson(data)

    def load_rows(self, data: bytes) -> list[Any]:
        # Keys and strings may hold any bytes, so nothing is decoded but column names.
        rows: list[Any] = _parsed(
            lambda: list(
                yson.loads(
                    data, yson_type="list_fragment", encoding=None, always_create_attributes=False
                )
            )
        )
        return rows

    def dump(self, value: Any) -> bytes:
        data: bytes = yson.dumps(value, yson_format=self.form)
        return data

    def dump_rows(self, rows: Iterable[Any]) -> bytes:
        data: bytes = yson.dumps(list(rows), yson_type="list_fragment", yson_format=self.form)
        return data


_CODECS: dict[str, Callable[[Options], Codec]] = {
    "yson": Yson.parse,
    "json": Json.parse,
    "dsv": Dsv.parse,
    "schemaful_dsv": SchemafulDsv.parse,
    "arrow": Arrow.parse,
}

SCHEMALESS = frozenset({"dsv", "arrow"})
"""Formats of static tables, and of no answer with one schema (library/formats/format.cpp,
CreateSchemafulWriterForFormat)."""


@dataclass(frozen=True, slots=True)
class Format:
    """A format's name, how it writes values, and what holds for the rows of any format."""

    name: str
    codec: Codec
    positional: bool = False
    """Whether structs and named variants are lists without names."""
    conversions: Conversions = NONE

    @classmethod
    def parse(cls, given: Any) -> Format:
        """Read a format such as `<format=text>yson`.

        Raises YtError for a format that is not supported here.
        """
        if not isinstance(given, str):
            raise generic("Error parsing format: a name with attributes is expected")
        options = getattr(given, "attributes", None) or {}
        name = str(given)  # a YSON string with attributes equals none without
        if name not in _CODECS:
            raise not_supported(f'format "{name}"')
        refuse(options, _REFUSED)
        every = flag(options, "enable_type_conversion", False)
        return cls(
            name,
            _CODECS[name](options),
            one_of(options, "complex_type_mode", "named", "positional") == "positional",
            Conversions(
                string_to_all=flag(options, "enable_string_to_all_conversion", every),
                all_to_string=flag(options, "enable_all_to_string_conversion", every),
                integral_to_double=flag(options, "enable_integral_to_double_conversion", every),
            ),
        )

    def of_one_schema(self) -> Format:
        """Return the format for rows that all have the columns of one schema.

        Raises YtError for one in which only `read_table` gives its rows.
        """
        if self.name in SCHEMALESS:
            raise generic(f'Unsupported output format "{self.name}"')
        if isinstance(self.codec, SchemafulDsv):
            return replace(self, codec=replace(self.codec, one_schema=True))
        return self

    def load_rows(self, data: bytes) -> list[dict[str, Any]]:
        """Return rows as maps of column names to values, with bytes for strings. Raises YtError."""
        items = self.codec.load_rows(data)
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


YSON = Format("yson", Yson())
YSON_TEXT = Format("yson", Yson("text"))
JSON = Format("json", Json())


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
