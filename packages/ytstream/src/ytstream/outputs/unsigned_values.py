"""Numbers of Spark, which all have a sign, that an unsigned type of YTsaurus does not hold."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from pyspark.sql import Column as Expression
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from ..schema.columns import type_name
from .balanced import balanced

_LARGEST: Mapping[str, int] = {f"uint{bits}": 2**bits - 1 for bits in (8, 16, 32, 64)}
"""By the name of the type: the largest number."""
_LARGEST_OF_SPARK = {"byte": 2**7 - 1, "short": 2**15 - 1, "integer": 2**31 - 1, "long": 2**63 - 1}
"""By Spark's name."""

Check = Callable[[Expression], Expression]
"""Returns whether a value has such a number in it. Null is not one."""


def span(type_: Any) -> str:
    """Return which numbers an unsigned type holds, for a message."""
    largest = _LARGEST.get(type_name(type_))
    return "" if largest is None else f" (0 to {largest})"


def outside(type_: Any, kind: DataType) -> Check | None:
    """Return what finds values of ``kind`` that ``type_`` does not hold; None if it holds all.

    ``type_`` is of yt.type_info, ``kind`` is Spark's.
    """
    if type_ is None:
        return None
    if type_name(type_) in ("optional", "tagged"):
        return outside(type_.item, kind)
    if isinstance(kind, StructType):
        return _in_any(_in_fields(type_, kind))
    if isinstance(kind, ArrayType):
        return _in_each(outside(getattr(type_, "item", None), kind.elementType))
    if isinstance(kind, MapType):
        return _in_any(_in_map(type_, kind))
    return _number(_LARGEST.get(type_name(type_)), _LARGEST_OF_SPARK.get(kind.typeName()))


def _number(largest: int | None, largest_of_spark: int | None) -> Check | None:
    if largest is None or largest_of_spark is None:
        return None
    if largest_of_spark <= largest:
        return lambda value: value < 0
    return lambda value: (value < 0) | (value > largest)


def _in_fields(type_: Any, kind: StructType) -> Iterator[Check]:
    """Yield the checks of fields: those of a tuple are in the order of its items."""
    items = getattr(type_, "items", ())
    by_name: dict[str, Any] = dict(item for item in items if isinstance(item, tuple))
    for number, field in enumerate(kind):
        at_place = items[number] if not by_name and number < len(items) else None
        check = outside(by_name.get(field.name, at_place), field.dataType)
        if check is not None:
            yield _after(partial(_field, name=field.name), check)


def _in_map(type_: Any, kind: MapType) -> Iterator[Check]:
    for get, part, inner in (
        (F.map_keys, "key", kind.keyType),
        (F.map_values, "value", kind.valueType),
    ):
        if (check := _in_each(outside(getattr(type_, part, None), inner))) is not None:
            yield _after(get, check)


def _in_each(check: Check | None) -> Check | None:
    return None if check is None else lambda value: F.exists(value, check)


def _in_any(checks: Iterable[Check]) -> Check | None:
    found = [*checks]
    if not found:
        return None
    return lambda value: balanced(Expression.__or__, (check(value) for check in found))


def _after(get: Check, check: Check) -> Check:
    return lambda value: check(get(value))


def _field(value: Expression, name: str) -> Expression:
    return value.getField(name)
