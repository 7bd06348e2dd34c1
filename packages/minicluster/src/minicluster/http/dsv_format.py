"""The DSV format: a row is a line of `column=value`, separated by tabs; all input is strings.

The rules and the wording of errors: library/formats, dsv_parser.cpp, dsv_writer.cpp, helpers.cpp.
Answers of one schema, such as those of `select_rows`, cannot be in it (format.cpp there), but in
`schemaful_dsv_format.py`'s.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from yt import yson

from ..core.errors import YtError, generic
from ..rows import wire
from ..rows.conversions import text_of
from .options import Options, flag, symbol

# client/table_client/public.h
FORMAT_CANNOT_REPRESENT_ROW = 315

_FORWARD = {0: b"0", 9: b"t", 10: b"n", 13: b"r"}
"""The letter that follows the escaping symbol for a byte; every other byte stands for itself."""
_BACKWARD = {letter: bytes([byte]) for byte, letter in _FORWARD.items()}

_ANY_FIELD = (wire.ANY, wire.COMPOSITE)


@dataclass(frozen=True)
class Dsv:
    """DSV with its separators."""

    record: bytes = b"\n"
    field: bytes = b"\t"
    equals: bytes = b"="
    escape: bytes | None = b"\\"
    """The escaping symbol; None without escaping."""
    prefix: bytes | None = None
    skip_unsupported_types: bool = False

    content_type = "text/tab-separated-values"

    @classmethod
    def parse(cls, options: Options) -> Dsv:
        prefix = options.get("line_prefix")
        escaping = flag(options, "enable_escaping", True)
        return cls(
            symbol(options, "record_separator", "\n"),
            symbol(options, "field_separator", "\t"),
            symbol(options, "key_value_separator", "="),
            symbol(options, "escaping_symbol", "\\") if escaping else None,
            str(prefix).encode() if prefix is not None else None,
            flag(options, "skip_unsupported_types", False),
        )

    # From DSV

    def load(self, data: bytes) -> Any:
        raise generic("DSV is supported only for tabular data")

    def load_rows(self, data: bytes) -> list[dict[bytes, bytes]]:
        """Return rows of strings. Raises YtError."""
        return list(self._records(data))

    def _records(self, data: bytes) -> Iterator[dict[bytes, bytes]]:
        *records, rest = self._split(data, self.record)
        if rest:
            if self.escape and len(rest) - len(rest.rstrip(self.escape)) & 1:
                raise generic("Incomplete escape sequence in DSV")
            raise generic("Expected record to be terminated with record separator")
        for index, record in enumerate(records, 1):
            if b"\0" in record:
                raise generic("Unescaped \\0 symbol in DSV", record_index=index)
            fields = self._split(record, self.field)
            if self.prefix is not None:
                found = self._unescaped(fields.pop(0))
                if found != self.prefix:
                    raise generic(
                        f'Malformed line prefix in DSV: expected "{_shown(self.prefix)}", '
                        f'found "{_shown(found)}"',
                        record_index=index,
                    )
            # A field without a value is left out: so says the documentation.
            pairs = [self._split(field, self.equals, 1) for field in fields]
            yield {self._unescaped(p[0]): self._unescaped(p[1]) for p in pairs if len(p) == 2}

    def _split(self, data: bytes, separator: bytes, most: int = -1) -> list[bytes]:
        """Return the parts between separators that are not escaped; the parts stay escaped."""
        if self.escape is None or self.escape not in data:
            return data.split(separator, most)
        # An escaped byte is found first, so the separator in it is none.
        tokens = re.compile(re.escape(self.escape) + b".|" + re.escape(separator), re.DOTALL)
        pieces, start = [], 0
        for found in tokens.finditer(data):
            if found.group() == separator and most:
                pieces.append(data[start : found.start()])
                start, most = found.end(), most - 1
        return [*pieces, data[start:]]

    def _unescaped(self, data: bytes) -> bytes:
        if self.escape is None or self.escape not in data:
            return data
        escaped = re.escape(self.escape) + b"(.)"
        return re.sub(escaped, lambda m: _BACKWARD.get(m[1], m[1]), data, flags=re.DOTALL)

    # To DSV

    def dump_rows(self, rows: Iterable[Mapping[str, Any] | None]) -> bytes:
        """Return a line for each row; nulls are left out. Raises YtError for maps and lists."""
        return b"".join([self._line(row or {}) + self.record for row in rows])

    def _line(self, row: Mapping[str, Any]) -> bytes:
        fields = [] if self.prefix is None else [self.prefix]
        for name, value in row.items():
            kind, plain = wire.guess(value)
            if kind == wire.NULL:
                continue
            if kind in _ANY_FIELD and self.skip_unsupported_types:
                fields.append(b"")  # the writer's separator is out before it looks at the type
                continue
            fields.append(self._field(name, self._scalar(kind, plain)))
        return self.field.join(fields)

    def _field(self, name: Any, value: bytes) -> bytes:
        data = name.encode() if isinstance(name, str) else yson.get_bytes(name)
        return self._key_escaped(data) + self.equals + value

    def value(self, value: Any) -> bytes | None:
        """Return a value of a row as text; None for a null. Raises YtError for maps and lists."""
        kind, plain = wire.guess(value)
        return None if kind == wire.NULL else self._scalar(kind, plain)

    def _scalar(self, kind: int, value: wire.Value) -> bytes:
        if isinstance(value, bytes):
            if kind in _ANY_FIELD:
                raise _cannot('Values of type "any" are not supported by the chosen format')
            return self._value_escaped(value)
        text = text_of(value)
        whole = isinstance(value, float) and b"." not in text and b"e" not in text
        return text + b"." if whole else text

    def dump(self, value: Any) -> bytes:
        """Return a scalar, a flat map or a list of these. Raises YtError for anything deeper."""
        if isinstance(value, list) and not getattr(value, "attributes", None):
            return self.record.join([self._node(item) for item in value]) + self.record
        return self._node(value)

    def _node(self, value: Any) -> bytes:
        if getattr(value, "attributes", None):
            raise _cannot("Embedded attributes are not supported by DSV")
        if isinstance(value, Mapping):
            return self.field.join(
                [self._field(name, self._leaf(item)) for name, item in value.items()]
            )
        return self._leaf(value)

    def _leaf(self, value: Any) -> bytes:
        kind, plain = wire.guess(value)
        if kind == wire.NULL:
            raise _cannot("Entities are not supported by DSV")
        if kind == wire.ANY:
            what = "maps" if isinstance(value, Mapping) else "lists"
            raise _cannot(f"Embedded {what} are not supported by DSV")
        return self._scalar(kind, plain)

    @cached_property
    def _key_escaped(self) -> Callable[[bytes], bytes]:
        return self._escaping(self.equals)

    @cached_property
    def _value_escaped(self) -> Callable[[bytes], bytes]:
        return self._escaping(b"")

    def _escaping(self, more: bytes) -> Callable[[bytes], bytes]:
        escape = self.escape
        if escape is None:
            return bytes
        stops = re.compile(
            b"[" + re.escape(self.record + self.field + b"\0\r" + escape + more) + b"]"
        )
        return lambda data: stops.sub(
            lambda found: escape + _FORWARD.get(found[0][0], found[0]), data
        )


def _cannot(message: str) -> YtError:
    return YtError(FORMAT_CANNOT_REPRESENT_ROW, message)


def _shown(data: bytes) -> str:
    return data.decode(errors="backslashreplace")
