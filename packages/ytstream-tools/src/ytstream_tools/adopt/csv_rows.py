"""Rows of a text file with separated fields: the separator is found, and no value is changed.

A column becomes numbers only if each of its texts is how its number is written. A code such as
01234 stays text, as does an id with more digits than 64 bits hold.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from ytstream.errors import JobError
from ytstream.errors.error_codes import ErrorCode
from ytstream.text_table import counted

from .source_rows import Row

_SEPARATORS = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "a bar"}
_ANNOUNCED = re.compile(rf'"?sep=([{re.escape("".join(_SEPARATORS))}])"?(?=\r|\n|$)')
"""The first line of files made for Excel, which names the separator. It is not the header."""
_MISSING = {"NA", "N/A", "NaN", "nan", "NULL", "null", "None", "\\N"}
"""What programs write for a number that is missing. Among texts it is a text."""
_WHOLE = re.compile(r"-?[0-9]{1,20}")
_DECIMAL = re.compile(r"-?[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?")
_MOST_BYTES = 16 * 2**20
"""A value of YTsaurus has at most so many bytes (YTsaurus, client/table_client/public.h,
MaxStringValueLength). Python's own limit is 128 KiB."""

_NAMED, _SHORT = 3, 24
"""How many values of a column are named, and how much of each."""

_Record = tuple[int, list[str]]
"""The line on which a record begins, and its fields."""


def damaged(file: Path, line: int, what: str, remedy: str) -> JobError:
    """Return the error about a line of a file."""
    return JobError(f"{file}, line {line}: {what}", remedy, code=ErrorCode.FILE)


def text_of(file: Path) -> str:
    """Return the text of a file. Raises JobError where it is not UTF-8."""
    data = file.read_bytes()
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        what = f"the byte 0x{data[error.start]:02x} is not UTF-8"
        raise damaged(file, line, what, "save the file as UTF-8") from error


def read(file: Path) -> tuple[list[str], list[Row], list[str], dict[str, str]]:
    """Return the columns, the rows, and what a person has to know about their values.

    The last are columns of text that have numbers, and why they are not a column of numbers.

    Raises JobError for a file whose lines do not have the same fields.
    """
    csv.field_size_limit(_MOST_BYTES)
    names, records = _table(file, text_of(file))
    columns, notes, doubts = {}, [], {}
    for name, texts in zip(names, zip(*records, strict=True), strict=False):
        columns[name], missing = _values(texts)
        if doubt := _doubt(columns[name]):
            doubts[name] = doubt
        if missing:
            notes.append(f"{name}: {', '.join(sorted(missing))} is null, since the rest is numbers")
    rows = [dict(zip(names, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    return names, rows, notes, doubts


def _table(file: Path, text: str) -> tuple[list[str], list[list[str]]]:
    """Return the header and the rows, by the separator that is announced or fits all lines."""
    if announced := _ANNOUNCED.match(text):  # the empty line keeps the numbers of the others
        return _verified(file, text[announced.end() :], announced[1])
    found = {one: next(_records(file, text, one), (1, [""]))[1] for one in _SEPARATORS}
    likely = [one for one, header in found.items() if len(header) > 1] or [","]
    if len(likely) == 1:
        return _verified(file, text, likely[0])
    tables, problems = [], []
    for separator in likely:
        try:
            tables.append(_verified(file, text, separator))
        except JobError as error:
            problems.append(error)
    if len(tables) == 1:
        return tables[0]
    names = " or ".join(_SEPARATORS[one] for one in likely)
    why = "; ".join(error.message for error in problems) or "each of them fits all lines"
    raise damaged(
        file, 1, f"it is not clear whether {names} separates the fields: {why}",
        "put fields that contain another separator into double quotes",
    )  # fmt: skip


def _verified(file: Path, text: str, separator: str) -> tuple[list[str], list[list[str]]]:
    records = _records(file, text, separator)
    line, names = next(records, (1, []))
    for name, count in Counter(names).items():
        if count > 1:
            what = f"{count} columns are named {name!r}" if name else f"{count} columns lack a name"
            raise damaged(file, line, what, "give each column a name of its own")
    rows = []
    for number, fields in records:
        if len(fields) != len(names):
            raise damaged(
                file, number,
                f"{counted(len(fields), 'field')}, but the header has {len(names)}",
                f"give each line a field for each column. {_SEPARATORS[separator].capitalize()} "
                "separates them: put a field that contains one into double quotes",
            )  # fmt: skip
        rows.append(fields)
    return names, rows


def _records(file: Path, text: str, separator: str) -> Iterator[_Record]:
    """Yield the records but for empty lines."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    while True:
        line = reader.line_num + 1
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            remedy = "write a double quote inside a quoted field twice"
            raise damaged(file, line, str(error), remedy) from error
        if fields:
            yield line, fields


def _values(texts: Sequence[str]) -> tuple[list[Any], set[str]]:
    """Return the values of a column, and which texts are null in it. An empty text is null."""
    present = {text for text in texts if text}
    to = _number(present - _MISSING)
    if to is None:
        return [text or None for text in texts], set()
    missing = present & _MISSING
    return [to(text) if text and text not in missing else None for text in texts], missing


def _doubt(values: Sequence[Any]) -> str:
    """Return why values are text although some are numbers; empty if none is."""
    texts = [value for value in values if isinstance(value, str)]
    numbers = [text for text in texts if _DECIMAL.fullmatch(text)]
    if not numbers:
        return ""
    others = dict.fromkeys(text for text in texts if not _DECIMAL.fullmatch(text))
    if others:
        named = ", ".join(map(_quoted, [*others][:_NAMED]))
        return f"{len(numbers):,} of {len(texts):,} values are numbers, but not {named}"
    changed = next((text for text in numbers if _number({text}) is None), None)
    if changed is not None:
        return f"its values are numbers, but {_quoted(changed)} would change"
    return "its values are numbers, but no type holds all of them as they are written"


def _quoted(text: str) -> str:
    return repr(text if len(text) <= _SHORT else f"{text[: _SHORT - 3]}...")


def _number(texts: set[str]) -> Callable[[str], Any] | None:
    """Return what makes the texts numbers, if each number is written as its text again."""
    if not texts:
        return None
    if all(_WHOLE.fullmatch(text) and str(int(text)) == text for text in texts):
        low, high = min(map(int, texts)), max(map(int, texts))
        if low >= -(2**63) and high < (2**63 if low < 0 else 2**64):
            return int
    if not all(map(_DECIMAL.fullmatch, texts)):
        return None
    if all(repr(float(text)) in (text, f"{text}.0") for text in texts):
        return float
    decimals = {len(text.partition(".")[2]) for text in texts}
    if len(decimals) == 1 and all(f"{float(text):.{min(decimals)}f}" == text for text in texts):
        return float
    return None
