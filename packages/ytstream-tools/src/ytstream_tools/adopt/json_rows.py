"""Rows of a file with an object of JSON on each line; no number loses a digit."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from yt.yson import YsonUint64

from .csv_rows import damaged, text_of
from .source_rows import Row


class LongNumber(str):
    """A number that neither 64 bits nor a double hold, as the file writes it."""

    __slots__ = ()


def read(file: Path) -> list[Row]:
    """Return the rows. Raises JobError for a line that is not one."""
    # Not splitlines(): it also splits at characters that a text of JSON may have.
    lines = enumerate(text_of(file).split("\n"), 1)
    return [_row(file, number, line) for number, line in lines if line.strip()]


def _row(file: Path, number: int, line: str) -> Row:
    try:
        row = json.loads(line, parse_int=_whole, parse_float=_fraction, object_pairs_hook=_object)
    except (ValueError, RecursionError) as error:
        raise damaged(file, number, str(error), "correct that line") from error
    if not isinstance(row, dict):
        raise damaged(file, number, "it is not an object", 'write {"column": value, ...}')
    for name, value in row.items():
        _verify_text(file, number, name, value)
    return row


def _object(pairs: Sequence[tuple[str, Any]]) -> Mapping[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"an object has the name {twice!r} twice")
    return found


def _whole(text: str) -> int | str:
    if len(text) > 20:
        return LongNumber(text)
    found = int(text)
    if -(2**63) <= found < 2**63:
        return found
    return YsonUint64(found) if 0 <= found < 2**64 else LongNumber(text)


def _fraction(text: str) -> float | str:
    found = float(text)
    return found if Decimal(repr(found)) == Decimal(text) else LongNumber(text)


def _verify_text(file: Path, number: int, name: str, value: Any) -> None:
    try:
        json.dumps([name, value], ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        half = f"\\u{ord(error.object[error.start]):04x}"
        what = f"column {name!a} has {half}, one half of a character"
        raise damaged(file, number, what, "write both halves, or remove it") from error
