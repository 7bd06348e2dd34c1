"""`join`: rows of a table found by values of the tables before it.

A real cluster looks the rows up by key and refuses a join that cannot do that
(api/native/client_impl, "Foreign table key is not used"); here each table is read once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..core.errors import generic, not_supported
from ..rows.rowset import RowsetColumn
from .ast import Expression, Join, Name
from .evaluation import Scope, compile, require_boolean
from .source import Source, decoded
from .typed import Typed, common

Values = Sequence[Any]


@dataclass
class Relation:
    """Rows of one table or of several, their columns, and the names that these have."""

    columns: list[RowsetColumn]
    names: dict[str, Typed]
    ambiguous: frozenset[str]
    rows: Iterable[Values]


def relation(source: Source, rows: Iterable[bytes]) -> Relation:
    """Return the rows of one table."""
    columns = source.named_columns
    width = len(columns)
    return Relation(columns, names(columns), frozenset(), (decoded(row, width) for row in rows))


def joined(
    left: Relation, join: Join, source: Source, aliases: dict[str, Expression], *, by_key: bool
) -> Relation:
    """Return the rows of `left`, each with those of the source that belong to it.

    Raises YtError for a join that does not use the source's key, when `by_key` asks for that.
    """
    if not source.table.sorted:
        raise not_supported(f"JOIN with ordered table {source.path}")
    right = relation(source, source.rows(None))
    mine = Scope(left.names, {}, aliases, ambiguous=left.ambiguous)
    theirs = Scope(right.names, {}, {})
    if len(join.left) != len(join.right):
        raise generic(f"Tuples of {len(join.left)} and {len(join.right)} items cannot be compared")
    keys = [
        _pair(one, other, mine, theirs) for one, other in zip(join.left, join.right, strict=True)
    ]
    if by_key and not _uses_key(join, source):
        raise generic(
            "Foreign table key is not used in the join clause; "
            "the query is inefficient, consider rewriting it",
            source=source.path,
        )
    condition = require_boolean(join.predicate, theirs, "JOIN-predicate")
    found: defaultdict[Values, list[Values]] = defaultdict(list)
    for values in right.rows:
        if condition is None or condition.evaluate(values):
            found[tuple(other.evaluate(values) for _, other in keys)].append(values)
    shared = {one.name for one in join.left if isinstance(one, Name) and join.left is join.right}
    return _put_together(left, right, shared, _matched(left, keys, found, join, len(right.columns)))


def _pair(one: Expression, other: Expression, mine: Scope, theirs: Scope) -> tuple[Typed, Typed]:
    left, right = compile(one, mine), compile(other, theirs)
    common("=", left, right)
    return left, right


def _uses_key(join: Join, source: Source) -> bool:
    first = source.table.schema.columns[0].name
    return Name(source.name(first)) in join.right


def _matched(
    left: Relation,
    keys: list[tuple[Typed, Typed]],
    found: dict[Values, list[Values]],
    join: Join,
    width: int,
) -> Iterator[Values]:
    missing: list[Values] = [[None] * width] if join.outer else []
    for values in left.rows:
        key = tuple(one.evaluate(values) for one, _ in keys)
        for other in found.get(key, missing):
            yield [*values, *other]


def _put_together(
    left: Relation, right: Relation, shared: set[str], rows: Iterable[Values]
) -> Relation:
    """Return both relations as one; a shared column stands once, any other twice is ambiguous."""
    columns = left.columns + right.columns
    both = left.names.keys() & right.names.keys()
    known = {**names(right.columns, len(left.columns)), **left.names}
    return Relation(columns, known, left.ambiguous | (both - shared), rows)


def names(columns: list[RowsetColumn], start: int = 0) -> dict[str, Typed]:
    """Return the columns by name, as they stand in a row from place `start` on."""
    return {
        column.name: Typed.at(start + place, column.wire_type, column.logical)
        for place, column in enumerate(columns)
    }
