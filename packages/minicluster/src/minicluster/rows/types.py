"""Types of columns: the scalar ones with their limits, and `type_v3` parsed into a tree.

The names are those of YT's documentation, "data types"; the wording of errors is that of the server
(client/table_client: logical_type.cpp, validate_logical_type.cpp, schema.cpp).
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from ..core.errors import YtError, generic
from . import wire

MAX_NAME_LENGTH = 256
"""Of a column or of a member of a struct, in bytes (documentation, "data schema")."""
MAX_DEPTH = 32
"""Of types in types (client/table_client/public.h)."""

_DAYS = 49_673  # the year 2106, where date, datetime and timestamp end
_DAYS64 = 53_375_808  # where date32, datetime64, timestamp64 end; they begin one day farther back
_UUID_BYTES = 16
_MAX_FLOAT = (2 - 2**-23) * 2.0**127
"""The largest number of 32 bits."""


@dataclass(frozen=True)
class ScalarType:
    """Wire type of a logical type and, for narrower integers, the bounds (both inclusive)."""

    wire_type: int
    bounds: tuple[int, int] | None = None
    utf8: bool = False
    judge: Callable[[Any], str | None] | None = None
    """Returns what is wrong with a value, where bounds and encoding do not say it all."""


def _signed(bits: int) -> ScalarType:
    return ScalarType(wire.INT64, (-(1 << bits - 1), (1 << bits - 1) - 1))


def _unsigned(bits: int) -> ScalarType:
    return ScalarType(wire.UINT64, (0, (1 << bits) - 1))


def _days64(units_per_day: int) -> ScalarType:
    return ScalarType(wire.INT64, ((-_DAYS64 - 1) * units_per_day, _DAYS64 * units_per_day - 1))


def _float(value: float) -> str | None:
    """Source: client/table_client/validate_logical_type-inl.h, ValidateSimpleLogicalType."""
    if abs(value) <= _MAX_FLOAT or not math.isfinite(value):
        return None
    return f"Value {value:f} is out of allowed range [{-_MAX_FLOAT:f}, {_MAX_FLOAT:f}]"


def _json(value: bytes) -> str | None:
    """Source: client/table_client/validate_logical_type.cpp, TValidateJsonCallbacks."""
    if not wire.is_text(value):
        return "Invalid JSON: it is not UTF-8"
    try:
        json.loads(value, parse_float=_finite, parse_constant=_finite)
    except (ValueError, RecursionError) as error:
        return f"Invalid JSON: {error}"
    return None


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError("infinite values are not allowed")
    return number


def _uuid(value: bytes) -> str | None:
    if len(value) == _UUID_BYTES:
        return None
    return f"Not a valid Uuid: length must be {_UUID_BYTES}, actual {len(value)}"


SCALARS: dict[str, ScalarType] = {
    "int8": _signed(8),
    "int16": _signed(16),
    "int32": _signed(32),
    "int64": ScalarType(wire.INT64),
    "uint8": _unsigned(8),
    "uint16": _unsigned(16),
    "uint32": _unsigned(32),
    "uint64": ScalarType(wire.UINT64),
    "float": ScalarType(wire.DOUBLE, judge=_float),
    "double": ScalarType(wire.DOUBLE),
    "boolean": ScalarType(wire.BOOLEAN),
    "string": ScalarType(wire.STRING),
    "utf8": ScalarType(wire.STRING, utf8=True),
    "json": ScalarType(wire.STRING, judge=_json),
    "uuid": ScalarType(wire.STRING, judge=_uuid),
    "any": ScalarType(wire.ANY),
    "null": ScalarType(wire.NULL),
    "void": ScalarType(wire.NULL),
    "date": ScalarType(wire.UINT64, (0, _DAYS - 1)),
    "datetime": ScalarType(wire.UINT64, (0, _DAYS * 86_400 - 1)),
    "timestamp": ScalarType(wire.UINT64, (0, _DAYS * 86_400_000_000 - 1)),
    "interval": ScalarType(wire.INT64, (-_DAYS * 86_400_000_000 + 1, _DAYS * 86_400_000_000 - 1)),
    "date32": _days64(1),
    "datetime64": _days64(86_400),
    "timestamp64": _days64(86_400_000_000),
    "interval64": ScalarType(wire.INT64, (-9_223_339_708_800_000_000, 9_223_339_708_800_000_000)),
}
V3_NAMES = {"boolean": "bool", "any": "yson"}
"""Two types have another name in type_v3."""
V1_NAMES = {v3: v1 for v1, v3 in V3_NAMES.items()}


def defect(name: str, value: wire.Value) -> str | None:
    """Return why a scalar type refuses a value of the right wire type; None if it does not."""
    scalar = SCALARS[name]
    if scalar.bounds and isinstance(value, int):
        low, high = scalar.bounds
        if not low <= value <= high:
            return f"Value {value} is out of allowed range [{low}, {high}]"
    elif scalar.utf8 and isinstance(value, bytes) and not wire.is_text(value):
        return "Not a valid utf8 string"
    return scalar.judge(value) if scalar.judge else None


@dataclass(frozen=True, slots=True)
class LogicalType:
    """A type and the types it is made of.

    `kind` is `scalar`, `optional`, `list`, `tagged`, `tuple`, `struct`, `dict` (parts: key, value),
    `variant` (over a tuple) or `named_variant` (over a struct). `where` is the place in the column
    as the server's errors name it, `column.<optional-element>.member`.
    """

    kind: str
    where: str
    parts: tuple[LogicalType, ...] = ()
    names: tuple[str, ...] = ()
    """Of the parts of a struct or a named variant."""
    scalar: str = ""
    """Name in `SCALARS`."""
    named: bool = False
    """Whether there is a name in it at any depth: then its values are written in two ways."""

    @property
    def detagged(self) -> LogicalType:
        return self.parts[0].detagged if self.kind == "tagged" else self

    @property
    def nullable(self) -> bool:
        """Whether null is a value of it; an optional of such a type wraps values into a list."""
        bare = self.detagged
        return bare.kind == "optional" or bare.scalar in ("null", "void")

    @property
    def v1(self) -> str:
        """The older name, which is `any` for everything composite."""
        return self.detagged.scalar or "any"


_ITEMS = {"optional": "<optional-element>", "list": "<list-element>", "tagged": "<tagged-element>"}


def parse(type_v3: Any, column: str) -> LogicalType:
    """Return the type. Raises YtError if there is no such type."""
    return _Parser(column).parse(type_v3, column, 1)


@dataclass(frozen=True)
class _Parser:
    column: str

    def parse(self, given: Any, where: str, depth: int) -> LogicalType:
        if depth > MAX_DEPTH:
            raise self._error(f"it is nested deeper than {MAX_DEPTH}")
        name = str(given.get("type_name") if isinstance(given, dict) else given)

        def made(
            kind: str, parts: Iterable[tuple[str, Any]], names: tuple[str, ...] = ()
        ) -> LogicalType:
            parsed = tuple([self.parse(part, f"{where}.{step}", depth + 1) for step, part in parts])
            named = kind in ("struct", "named_variant") or any(part.named for part in parsed)
            return LogicalType(kind, where, parsed, names, named=named)

        if isinstance(given, dict):
            if name in _ITEMS:
                return made(name, [(_ITEMS[name], self._key(given, "item"))])
            if name == "dict":
                pair = [(f"<{key}>", self._key(given, key)) for key in ("key", "value")]
                return made(name, pair)
            if name == "tuple" or (name == "variant" and "elements" in given):
                return made(name, self._elements(given, f"<{name}-element-%d>"))
            if name in ("struct", "variant"):
                members = self._members(given)
                kind = "struct" if name == "struct" else "named_variant"
                return made(kind, members, tuple(member for member, _ in members))
            if name == "decimal":
                return LogicalType("scalar", where, scalar="string")
        name = V1_NAMES.get(name, name)
        if name not in SCALARS:
            raise self._error(f'unknown type "{name}"')
        return LogicalType("scalar", where, scalar=name)

    def _error(self, reason: str) -> YtError:
        return generic(f'Error parsing type of column "{self.column}": {reason}')

    def _key(self, given: Any, key: str) -> Any:
        if not isinstance(given, dict) or key not in given:
            raise self._error(f'"{key}" is missing')
        return given[key]

    def _list(self, given: Any, key: str) -> list[Any]:
        found = self._key(given, key)
        if not isinstance(found, list):
            raise self._error(f'"{key}" must be a list')
        return found

    def _elements(self, given: Any, step: str) -> list[tuple[str, Any]]:
        elements = self._list(given, "elements")
        return [(step % index, self._key(item, "type")) for index, item in enumerate(elements)]

    def _members(self, given: Any) -> list[tuple[str, Any]]:
        found: dict[str, Any] = {}
        for index, member in enumerate(self._list(given, "members")):
            name = self._key(member, "name")
            if not isinstance(name, str):
                raise self._error(f"Name of struct field #{index} is not valid utf8")
            if not name:
                raise self._error(f"Name of struct field #{index} is empty")
            if name in found:
                raise self._error(f'Struct field name "{name}" is used twice')
            if (length := len(name.encode())) > MAX_NAME_LENGTH:
                raise self._error(
                    f"Name of struct field #{index} exceeds limit: {length} > {MAX_NAME_LENGTH}"
                )
            found[str(name)] = self._key(member, "type")
        return list(found.items())
