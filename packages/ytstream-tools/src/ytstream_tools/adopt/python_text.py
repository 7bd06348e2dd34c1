"""Python as text: names, columns and comments, readable and harmless whatever a name has in it."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator, Sequence

from ytstream.schema.columns import Column, spelled

WIDTH = 100
_SHORT = 50
"""The most characters of a path, or of a name, in a docstring."""


def in_seconds(microseconds: int) -> str:
    """Return a time for a comment."""
    return f"{microseconds / 1_000_000:,.0f} s"


def comment_above(text: str) -> str:
    """Return the lines of a comment about the constant below."""
    lines = textwrap.wrap(text, WIDTH - 1, initial_indent="#: ", subsequent_indent="#: ")
    return "\n".join([*lines, ""])


def of_rows(some: int, rows: int) -> str:
    """Return how many of the rows, for a comment."""
    return f"{some:,} of {rows:,} rows"


def printable(text: str) -> str:
    """Return text for a comment: the name of a column may have any character."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def shortened(text: str) -> str:
    """Return a path or a name for a docstring of one line."""
    plain = re.sub(r"[^\w/.:@, -]", "?", text)
    return plain if len(plain) <= _SHORT else f"...{plain[-_SHORT:]}"


def column_line(column: Column) -> str:
    """Return the line of a column in tables.py."""
    type_ = column.type if isinstance(column.type, str) else spelled(column.type)
    named = type_ if type_.startswith("ti.") else quoted(type_)
    more = (", required=True" if column.required else "") + (", key=True" if column.key else "")
    more += f', aggregate="{column.aggregate}"' if column.aggregate is not None else ""
    return f"Column({quoted(column.name)}, {named}{more}),"


def listed(lines: Iterator[str] | Sequence[str], indent: int) -> str:
    """Return a list with an item a line, whose last line is indented."""
    space = " " * (indent + 4)
    inside = "".join(f"{_fitting(space + line)}\n" for line in lines)
    return f"[\n{inside}{' ' * indent}]"


def _fitting(line: str) -> str:
    """Return the line; one that the formatter cannot break is marked for the linter."""
    is_one_name = len(line) > WIDTH and line.count("Column(") == 1 and '"' in line
    return f"{line}  # noqa: E501" if is_one_name and len(line.split('"')[1]) > WIDTH - 30 else line


def quoted(text: str) -> str:
    """Return a Python string in double quotes, without escapes for printable letters."""
    return json.dumps(text, ensure_ascii=False)


def indented(text: str) -> str:
    """Return the lines as the body of a function."""
    return textwrap.indent(text, "    ")
