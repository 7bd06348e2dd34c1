"""Refuses sample rows that the tables of tables.py would not take, naming the row and the column.

A cluster refuses them too, in words of its own and only once they are sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ytstream.errors import JobError
from ytstream.errors.error_codes import ErrorCode
from ytstream.schema.columns import Column, spelled, type_name
from ytstream.schema.string_values import is_string, shown

Fits = Callable[[Any], bool]


def _whole(low: int, high: int) -> Fits:
    return lambda value: isinstance(value, int) and type(value) is not bool and low <= value <= high


_SIGNED = {
    **{f"int{bits}": bits for bits in (8, 16, 32, 64)},
    "interval": 64,
    "date32": 32,
    "datetime64": 64,
    "timestamp64": 64,
    "interval64": 64,
}
"""Signed and unsigned numbers, times among them, by the size of their values (YTsaurus, "Types").
"""
_UNSIGNED = {
    **{f"uint{bits}": bits for bits in (8, 16, 32, 64)},
    "date": 16,
    "datetime": 32,
    "timestamp": 64,
}
_SCALARS: Mapping[str, Fits] = {
    **{name: _whole(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for name, bits in _SIGNED.items()},
    **{name: _whole(0, 2**bits - 1) for name, bits in _UNSIGNED.items()},
    **dict.fromkeys(("utf8", "json"), lambda value: isinstance(value, str)),
    "string": is_string,
    **dict.fromkeys(("float", "double"), lambda value: isinstance(value, float)),
    "bool": lambda value: type(value) is bool or type(value).__name__ == "YsonBoolean",
}


def verify(
    where: str,
    columns: Sequence[Column],
    rows: Iterable[Mapping[str, Any]],
    file: str = "sample/rows.py",
) -> None:
    """Raise JobError for the first row that does not fit ``columns``; ``where`` names the rows."""
    kinds = {column.name: (column, _fits(column.type)) for column in columns}
    for number, row in enumerate(rows):
        problems = [f"there is no column {name!r}" for name in row if name not in kinds]
        for name, (column, fits) in kinds.items():
            value = row.get(name)
            if value is None and column.required:
                problems.append(f"{name} is required and has no value")
            elif value is not None and not fits(value):
                problems.append(f"{name} = {shown(value)}, tables.py says {spelled(column.type)}")
        if problems:
            raise JobError(
                f"{where}, row {number}: {'; '.join(problems)}",
                f"correct {file} or tables.py",
                code=ErrorCode.SAMPLE,
            )


def verify_expected(
    where: str, columns: Sequence[Column], rows: Iterable[Mapping[str, Any]]
) -> None:
    """Raise JobError for the first row of expected() that lacks a column or has a wrong value.

    It may have more columns, and a whole number where the column has floats.
    """
    for number, row in enumerate(rows):
        for column in columns:
            if column.name not in row:
                raise JobError(
                    f"{where}, row {number}: there is no {column.name!r}",
                    "give every column of OUTPUTS in tables.py",
                    code=ErrorCode.SAMPLE,
                )
    chosen = ({c.name: _as_float(row[c.name], c.type) for c in columns} for row in rows)
    verify(where, columns, chosen, "sample/expected.py")


def _as_float(value: Any, type_: Any) -> Any:
    is_float = type_name(type_) in ("float", "double")
    return float(value) if is_float and isinstance(value, int) else value


def _fits(type_: Any) -> Fits:
    """Return whether a value that is not null fits a yt.type_info type."""
    kind = type_name(type_)
    if kind == "optional":
        inner = _fits(type_.item)
        return lambda value: value is None or inner(value)
    if kind == "list":
        item = _fits(type_.item)
        return lambda value: _is_list(value) and all(map(item, value))
    if kind == "dict":
        pair = _each([_fits(type_.key), _fits(type_.value)])
        return lambda value: _is_list(value) and all(map(pair, value))
    if kind == "tuple":
        return _each([_fits(item) for item in type_.items])
    if kind == "struct":
        fields = {name: _fits(item) for name, item in type_.items}
        return lambda value: (
            isinstance(value, Mapping)
            and value.keys() == fields.keys()
            and all(fits(value[name]) for name, fits in fields.items())
        )
    return _SCALARS.get(kind, lambda _: True)


def _each(parts: Sequence[Fits]) -> Fits:
    return lambda value: (
        _is_list(value)
        and len(value) == len(parts)
        and all(fits(item) for fits, item in zip(parts, value, strict=True))
    )


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)
