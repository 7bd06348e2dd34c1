"""Conversions of scalars to the types of their columns, which a format can ask for.

Without them a row keeps the types that it was written with, and DSV has strings alone
(documentation, "formats"; client/table_client/value_consumer.cpp).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..core.errors import generic
from . import wire
from .from_wire import TABLET_INDEX
from .schema import TableSchema, violation

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Conversions:
    """The conversions that are on."""

    string_to_all: bool = False
    all_to_string: bool = False
    integral_to_double: bool = False

    def apply(self, schema: TableSchema, rows: list[Row]) -> list[Row]:
        """Return the rows converted. Raises YtError for a string that its column cannot take."""
        if self == NONE:
            return rows
        kinds = {TABLET_INDEX: wire.INT64}
        kinds |= {column.name: column.wire_type for column in schema.columns}
        return [
            {name: self._value(name, kinds.get(name, wire.ANY), row[name]) for name in row}
            for row in rows
        ]

    def _value(self, column: str, wanted: int, value: Any) -> Any:
        kind, plain = wire.guess(value)
        if kind == wire.STRING and self.string_to_all and wanted in _FROM_TEXT:
            assert isinstance(plain, bytes)
            try:
                return _FROM_TEXT[wanted](plain.decode())
            except ValueError as error:
                raise violation(
                    f'Error while performing type conversion in column "{column}"',
                    [generic(str(error))],
                ) from None
        if kind in wire.FIXED and self.all_to_string and wanted == wire.STRING:
            return text_of(plain)
        if kind in _INTEGRAL and self.integral_to_double and wanted == wire.DOUBLE:
            return float(value)
        return value


NONE = Conversions()
_INTEGRAL = (wire.INT64, wire.UINT64)


def text_of(value: Any) -> bytes:
    """Return a number or a boolean as text."""
    if isinstance(value, bool):
        return b"true" if value else b"false"
    return repr(value).removesuffix(".0").encode()


def _boolean(text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError(f'Unable to convert value "{text}" to boolean')
    return text == "true"


def _integer(text: str) -> int:
    digits = text.removesuffix("u")
    if not digits.removeprefix("-").isdecimal():
        raise ValueError(f'Unable to convert value "{text}" to an integer')
    return int(digits)


_FROM_TEXT: dict[int, Callable[[str], Any]] = {
    wire.INT64: _integer,
    wire.UINT64: _integer,
    wire.DOUBLE: float,
    wire.BOOLEAN: _boolean,
}
