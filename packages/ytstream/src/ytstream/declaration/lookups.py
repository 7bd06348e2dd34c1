"""``lookup``: columns of a reference table, for rows in transform() and outputs()."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from ..errors import JobError
from ..errors.error_codes import ErrorCode
from ..schema.columns import Column, key_of
from ..schema.spark_types import unlike_key

if TYPE_CHECKING:  # a job can be declared without Spark
    from pyspark.sql import DataFrame

HOW = ("left", "inner")
"""Values of ``how``, and of ``by``: reads the table whole, or looks up the keys of a batch."""
TABLE, KEYS = "table", "keys"


@dataclass(frozen=True)
class Lookup:
    """One call of lookup(), checked."""

    reference: str
    on: Mapping[str, str]
    """Key column of the reference -> column of the rows, in the order of the key."""
    columns: tuple[Column, ...]
    """The columns that the rows get."""
    how: str
    found: str | None
    """The name of the column that says whether the reference has the row; None without one."""
    by: str | None
    """TABLE, KEYS, or None for a choice by the table's size."""


class References(Protocol):
    """What lookup() reads: tables of a cluster, or the rows of a test."""

    @property
    def columns(self) -> Mapping[str, tuple[Column, ...]]:
        """The columns of each reference, by its name in REFERENCES."""

    def joined(self, rows: DataFrame, lookup: Lookup) -> DataFrame:
        """Return the rows with the columns."""


_AVAILABLE: ContextVar[References | None] = ContextVar("references", default=None)
"""What lookup() reads while transform() or outputs() runs."""


@contextmanager
def available(references: References | None) -> Iterator[None]:
    """Let lookup() read these references."""
    token = _AVAILABLE.set(references)
    try:
        yield
    finally:
        _AVAILABLE.reset(token)


def lookup(
    rows: DataFrame,
    reference: str,
    on: str | Sequence[str] | Mapping[str, str],
    columns: Sequence[str] | None = None,
    how: str = "left",
    found: str | None = None,
    by: str | None = None,
) -> DataFrame:
    """Return the rows with columns of a reference table, which has at most one row for a key.

    A table with at most ``reference_rows`` of job.py is read whole when the query starts, and again
    every ``reference_refresh`` seconds. In a larger one, each micro-batch looks up its own keys,
    all of them as of one moment.

    Args:
        rows: the rows of transform() or outputs()
        reference: its name in REFERENCES
        on: the whole key: a name that both have, a list of them, or {key column: column of rows}
        columns: the columns to add, by default all but the key. They are null for a row that the
            table does not have, or whose key has a null or NaN in it
        how: "left", or "inner", which drops such rows
        found: the name of a boolean column to add: whether the table has the row
        by: "table" or "keys" reads the table whole or by key, whatever its size is

    Returns:
        the rows, in no order, with the columns behind their own

    Raises:
        JobError: a name, a type or the key does not fit, or the table cannot be read in this way
    """
    references = _AVAILABLE.get()
    if references is None:
        raise JobError(
            "lookup() was called where no references are known",
            "call it in transform() or outputs(); a test runs them with output_frames() of "
            "ytstream.testing.frames, and a job needs references=REFERENCES in job.py",
            code=ErrorCode.REFERENCE,
        )
    known = references.columns
    if reference not in known:
        raise JobError(
            f"lookup() has no reference {reference!r}: REFERENCES of tables.py has "
            f"{', '.join(sorted(known)) or 'none'}",
            "name one of them, or add it to REFERENCES and to [references] in the configuration",
            code=ErrorCode.REFERENCE,
        )
    checked = _checked(rows, reference, known[reference], on, columns, how, found, by)
    return references.joined(rows, checked)


def _checked(
    rows: DataFrame,
    reference: str,
    known: tuple[Column, ...],
    on: str | Sequence[str] | Mapping[str, str],
    columns: Sequence[str] | None,
    how: str,
    found: str | None,
    by: str | None,
) -> Lookup:
    """Return the call. Raises JobError with all that is wrong with it."""
    values = {column.name: column for column in known if not column.key}
    wanted = [*values] if columns is None else _names(columns)
    pairs = _pairs(on)
    problems = [
        *_of_words(how, found, by),
        *_of_columns(wanted, values, reference),
        *_of_key(rows, known, pairs),
        *_of_names(rows, [*wanted, *([found] if isinstance(found, str) else [])]),
    ]
    if problems:
        raise JobError(
            f"lookup(..., {reference!r}): " + "; ".join(problems),
            "correct transform.py or REFERENCES in tables.py",
            code=ErrorCode.REFERENCE,
        )
    order = {name: pairs[name] for name in key_of(known)}
    return Lookup(reference, order, tuple(values[name] for name in wanted), how, found, by)


def _names(given: str | Sequence[str]) -> list[str]:
    return [given] if isinstance(given, str) else [*given]


def _pairs(on: str | Sequence[str] | Mapping[str, str]) -> dict[str, str]:
    """Return key column -> column of the rows."""
    return dict(on) if isinstance(on, Mapping) else {name: name for name in _names(on)}


def _of_words(how: str, found: str | None, by: str | None) -> Iterator[str]:
    if how not in HOW:
        yield f"how={how!r}, wanted one of {', '.join(HOW)}"
    if by not in (None, TABLE, KEYS):
        yield f"by={by!r}, wanted {TABLE!r} or {KEYS!r}"
    if not (found is None or (isinstance(found, str) and found.strip())):
        yield f"found={found!r}, wanted the name of a column"


def _of_columns(
    wanted: Sequence[str], values: Mapping[str, Column], reference: str
) -> Iterator[str]:
    for name in wanted:
        if name not in values:
            known = ", ".join(values) or "none"
            yield f"columns: {name!r} is not a value column of {reference} ({known})"


def _of_key(rows: DataFrame, known: Sequence[Column], pairs: Mapping[str, str]) -> Iterator[str]:
    """Yield what is wrong with ``on``: it has to give the whole key, in types that fit."""
    key = {column.name: column for column in known if column.key}
    types = {field.name: field.dataType for field in rows.schema.fields}
    if missing := [name for name in key if name not in pairs]:
        yield f"on: the key column {', '.join(missing)} is not named: give the whole key"
    for name, column in pairs.items():
        if name not in key:
            yield f"on: {name!r} is not a key column ({', '.join(key)})"
        elif rows.columns.count(column) != 1:
            count = "several columns" if column in types else "no column"
            yield f"on: the rows have {count} {column!r} (they have {', '.join(rows.columns)})"
        elif problem := unlike_key(key[name], column, types[column]):
            yield f"on: column {column}: {problem}"
    if len({*pairs.values()}) < len(pairs):
        yield "on: one column of the rows is named twice"


def _of_names(rows: DataFrame, added: Sequence[str]) -> Iterator[str]:
    """Yield names that are taken. Spark ignores the case of names."""
    there = {name.lower() for name in rows.columns}
    for position, name in enumerate(added):
        if name.lower() in there:
            yield f"the rows have a column {name!r} already: drop it, or rename it before"
        elif name.lower() in map(str.lower, added[:position]):
            yield f"the column {name!r} would be added twice"
