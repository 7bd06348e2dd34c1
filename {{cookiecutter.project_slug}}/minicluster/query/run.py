"""Runs a parsed query, clause by clause."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ..errors import YtError, generic
from ..rows import wire
from ..rows.rowset import Rowset, RowsetColumn
from ..tables.commands import Tables
from .aggregates import Aggregate, aggregate
from .ast import Binary, Call, Expression, In, Literal, Name, Named, Query, Row, Unary
from .compile import Scope, compile, sort_key
from .parser import parse
from .source import Source, decoded, open_source
from .typed import Typed

_DEPTH_LIMIT = 1711

Values = Sequence[Any]


def select(tables: Tables, source: str, timestamp: int | None = None) -> Rowset:
    """Return the answer to a query of the table as it was at `timestamp`; now, for None or 0."""
    query = parse(source)
    try:
        return _run(query, open_source(tables, query.path, timestamp or None))
    except RecursionError:
        # A chain of a thousand operators; the server has a limit on it as well.
        raise YtError(_DEPTH_LIMIT, "Maximum expression depth exceeded") from None


def _run(query: Query, source: Source) -> Rowset:
    scope = _table_scope(query, source)
    condition = _condition(query.where, scope, "WHERE")
    width = len(source.columns)
    rows = (
        (values, row)
        for row in source.rows(query.where)
        for values in [decoded(row, width)]
        if condition is None or condition.evaluate(values)
    )
    if query.projections is None:
        if query.group_by is not None:
            raise generic("Cannot use wildcard projection with GROUP BY clause")
        return Rowset(source.columns, [row for _, row in _ordered(query, scope, rows)])
    plain: Iterable[tuple[Values, bytes]] = rows
    if query.group_by is not None:
        scope, plain = _grouped(query, scope, rows)
    columns, items = _projected(query.projections, scope)
    return Rowset(
        columns,
        [
            wire.encode([(n, item.kind, item.evaluate(values)) for n, item in enumerate(items)])
            for values, _ in _ordered(query, scope, plain)
        ],
    )


def _table_scope(query: Query, source: Source) -> Scope:
    names = {
        column.name: Typed.at(place, column.wire_type, column.logical)
        for place, column in enumerate(source.columns)
    }
    if query.alias:
        names |= {f"{query.alias}.{name}": typed for name, typed in names.items()}
    aliases = {
        named.alias: named.expression
        for named in [*(query.projections or ()), *(query.group_by or ())]
        if named.alias
    }
    return Scope(names, {}, aliases)


def _condition(expression: Expression | None, scope: Scope, clause: str) -> Typed | None:
    if expression is None:
        return None
    condition = compile(expression, scope)
    if condition.kind not in (wire.BOOLEAN, wire.NULL):
        raise generic(
            f"{clause}-clause is not a boolean expression", type=wire.TYPE_NAMES[condition.kind]
        )
    return condition


def _grouped(
    query: Query, scope: Scope, rows: Iterable[tuple[Values, bytes]]
) -> tuple[Scope, Iterable[tuple[Values, bytes]]]:
    """Return the scope and the rows after `group by` and `having`: keys first, then aggregates."""
    assert query.group_by is not None
    keys = [compile(named.expression, scope) for named in query.group_by]
    known: dict[Expression, Typed] = {}
    names: dict[str, Typed] = {}
    for place, (named, key) in enumerate(zip(query.group_by, keys, strict=True)):
        computed = Typed.at(place, key.kind, key.logical)
        known[named.expression] = computed
        names[named.alias or infer_name(named.expression)] = computed
    folds: list[Aggregate] = []

    def collect(call: Call) -> Typed:
        if call not in known:
            fold = aggregate(call.name, compile(call.arguments[0], scope))
            known[call] = Typed.at(len(keys) + len(folds), fold.kind)
            folds.append(fold)
        return known[call]

    after = Scope(names, known, scope.aliases, collect)
    # Compiled before the fold, since that is how the aggregates to compute become known.
    having = _condition(query.having, after, "HAVING")
    for named in query.projections or ():
        compile(named.expression, after)
    for item in query.order_by:
        compile(item.expression, after)
    groups = _fold(keys, folds, rows)
    return after, ((row, b"") for row in groups if having is None or having.evaluate(row))


def _fold(
    keys: list[Typed], folds: list[Aggregate], rows: Iterable[tuple[Values, bytes]]
) -> Iterator[Values]:
    groups: dict[tuple[Any, ...], list[Any]] = {}
    for values, _ in rows:
        key = tuple(item.evaluate(values) for item in keys)
        states = groups.get(key)
        if states is None:
            states = groups[key] = [fold.initial for fold in folds]
        for place, fold in enumerate(folds):
            value = fold.argument.evaluate(values)
            if value is not None:
                states[place] = fold.step(states[place], value)
    for key, states in groups.items():
        results = (fold.result(state) for fold, state in zip(folds, states, strict=True))
        yield (*key, *results)


def _ordered(
    query: Query, scope: Scope, rows: Iterable[tuple[Values, bytes]]
) -> Iterable[tuple[Values, bytes]]:
    """Yield rows after `order by`, `offset` and `limit`."""
    if query.order_by:
        found = list(rows)
        for item in reversed(query.order_by):
            key = compile(item.expression, scope).evaluate
            places = [sort_key(key(values)) for values, _ in found]
            order = sorted(range(len(found)), key=places.__getitem__, reverse=item.descending)
            found = [found[place] for place in order]
        rows = found
    start = query.offset or 0
    for index, row in enumerate(rows):
        if query.limit is not None and index >= start + query.limit:
            return
        if index >= start:
            yield row


def _projected(projections: list[Named], scope: Scope) -> tuple[list[RowsetColumn], list[Typed]]:
    items = [compile(named.expression, scope) for named in projections]
    names = [named.alias or infer_name(named.expression) for named in projections]
    for name in names:
        if names.count(name) > 1:
            raise generic(f'Alias "{name}" has been already used')
    return [
        RowsetColumn(name, item.kind, item.logical) for name, item in zip(names, items, strict=True)
    ], items


def infer_name(expression: Expression) -> str:
    """Return the column name of an expression without an alias (model but for plain columns)."""
    match expression:
        case Name(name):
            return name
        case Literal(value, kind):
            if isinstance(value, bytes):
                return f'"{value.decode(errors="backslashreplace")}"'
            text = "null" if value is None else str(value).lower()
            return text + "u" * (kind == wire.UINT64)
        case Call(name, arguments):
            return f"{name}({', '.join(map(infer_name, arguments))})"
        case Unary(sign, operand):
            return f"{sign} {infer_name(operand)}" if sign == "not" else sign + infer_name(operand)
        case Binary(sign, left, right):
            return f"({infer_name(left)}) {sign} ({infer_name(right)})"
        case Row(items):
            return f"({', '.join(map(infer_name, items))})"
        case In(operand, options):
            return f"{infer_name(operand)} in ({', '.join(map(infer_name, options))})"
