"""Runs a parsed query, clause by clause."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

from ..core.errors import YtError, generic
from ..rows import wire
from ..rows.rowset import Rowset, RowsetColumn
from ..tables.commands import Tables
from .ast import Expression, Name, Named, Query
from .evaluation import Scope, compile, require_boolean, sort_key
from .grouping import grouped
from .joins import Relation, joined, names, relation
from .naming import infer_name
from .parser import parse
from .source import Source, decoded, open_source
from .statistics import Statistics
from .typed import Typed

_DEPTH_LIMIT = 1711

Values = Sequence[Any]


def select(
    tables: Tables,
    text: str,
    timestamp: int | None = None,
    *,
    join_without_key: bool = False,
    statistics: Statistics | None = None,
) -> Rowset:
    """Return the answer to a query of the tables as they were at `timestamp`; now, for None or 0.

    Raises YtError.
    """
    query = parse(text)
    try:
        source = open_source(tables, query.path, query.alias, timestamp or None, statistics)
        if query.joins:
            table = _joined(tables, query, source, by_key=not join_without_key)
            answer = _of_tables(query, table)
        else:
            answer = _of_table(query, source)
        if statistics is not None:
            statistics.rows_written = len(answer.rows)
        return answer
    except RecursionError:
        # A chain of a thousand operators; the server has a limit on it as well.
        raise YtError(_DEPTH_LIMIT, "Maximum expression depth exceeded") from None


def _of_table(query: Query, source: Source) -> Rowset:
    columns = source.named_columns
    scope = Scope(names(columns), {}, _aliases(query))
    condition = require_boolean(query.where, scope)
    # Nothing looks at the values of `* from [table]`.
    are_wanted = condition or query.projections is not None or query.order_by
    width = len(columns)
    rows = (
        (values, row)
        for row in source.rows(query.where)
        for values in [decoded(row, width) if are_wanted else ()]
        if condition is None or condition.evaluate(values)
    )
    if query.projections is not None:
        return _answer(query, query.projections, scope, rows)
    if query.group_by is not None:
        raise generic("Cannot use wildcard projection with GROUP BY clause")
    return Rowset(columns, [row for _, row in _ordered(query, scope, rows)])


def _joined(tables: Tables, query: Query, source: Source, *, by_key: bool) -> Relation:
    result = relation(source, source.rows(query.where))
    for join in query.joins:
        other = open_source(tables, join.path, join.alias, source.timestamp, source.statistics)
        result = joined(result, join, other, _aliases(query), by_key=by_key)
    return result


def _of_tables(query: Query, table: Relation) -> Rowset:
    scope = Scope(table.names, {}, _aliases(query), ambiguous=table.ambiguous)
    condition = require_boolean(query.where, scope)
    rows = (
        (values, b"") for values in table.rows if condition is None or condition.evaluate(values)
    )
    if query.projections is not None:
        return _answer(query, query.projections, scope, rows)
    different = dict.fromkeys(column.name for column in table.columns)
    return _answer(query, [Named(Name(name)) for name in different], scope, rows)


def _aliases(query: Query) -> dict[str, Expression]:
    return {
        named.alias: named.expression
        for named in [*(query.projections or ()), *(query.group_by or ())]
        if named.alias
    }


def _answer(
    query: Query, projections: list[Named], scope: Scope, rows: Iterable[tuple[Values, bytes]]
) -> Rowset:
    if query.group_by is not None:
        scope, rows = grouped(query, query.group_by, scope, rows)
    columns, items = _projected(projections, scope)
    return Rowset(
        columns,
        [
            wire.encode([(n, item.kind, item.evaluate(values)) for n, item in enumerate(items)])
            for values, _ in _ordered(query, scope, rows)
        ],
    )


def _ordered(
    query: Query, scope: Scope, rows: Iterable[tuple[Values, bytes]]
) -> Iterable[tuple[Values, bytes]]:
    """Return rows after `order by`, `offset` and `limit`."""
    if query.order_by:
        found = list(rows)
        for item in reversed(query.order_by):
            key = compile(item.expression, scope).evaluate
            places = [sort_key(key(values)) for values, _ in found]
            order = sorted(range(len(found)), key=places.__getitem__, reverse=item.descending)
            found = [found[place] for place in order]
        rows = found
    start = query.offset or 0
    return islice(rows, start, None if query.limit is None else start + query.limit)


def _projected(projections: list[Named], scope: Scope) -> tuple[list[RowsetColumn], list[Typed]]:
    items = [compile(named.expression, scope) for named in projections]
    names = [named.alias or infer_name(named.expression) for named in projections]
    for name in names:
        if names.count(name) > 1:
            raise generic(f'Alias "{name}" has been already used')
    return [
        RowsetColumn(name, item.kind, item.logical) for name, item in zip(names, items, strict=True)
    ], items
