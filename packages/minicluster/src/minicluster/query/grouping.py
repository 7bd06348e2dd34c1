"""`group by` and `having`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from .aggregates import Aggregate, aggregate
from .ast import Call, Expression, Named, Query
from .evaluation import Scope, compile, require_boolean
from .naming import infer_name
from .typed import Typed

Values = Sequence[Any]


def grouped(
    query: Query, group_by: list[Named], scope: Scope, rows: Iterable[tuple[Values, bytes]]
) -> tuple[Scope, Iterable[tuple[Values, bytes]]]:
    """Return the scope and the rows after `group by` and `having`: keys first, then aggregates."""
    keys = [compile(named.expression, scope) for named in group_by]
    known: dict[Expression, Typed] = {}
    names: dict[str, Typed] = {}
    for place, (named, key) in enumerate(zip(group_by, keys, strict=True)):
        computed = Typed.at(place, key.kind, key.logical)
        known[named.expression] = computed
        names[named.alias or infer_name(named.expression)] = computed
    folds: list[Aggregate] = []

    def collect(call: Call) -> Typed:
        if call not in known:
            fold = aggregate(call.name, [compile(item, scope) for item in call.arguments])
            known[call] = Typed.at(len(keys) + len(folds), fold.kind)
            folds.append(fold)
        return known[call]

    after = Scope(names, known, scope.aliases, collect)
    # Compiled before the fold, since that is how the aggregates to compute become known.
    having = require_boolean(query.having, after, "HAVING-clause")
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
            states = groups[key] = [fold.initial() for fold in folds]
        for place, fold in enumerate(folds):
            value = fold.value(values)
            if value is not None:
                states[place] = fold.step(states[place], value)
    for key, states in groups.items():
        results = (fold.result(state) for fold, state in zip(folds, states, strict=True))
        yield (*key, *results)
