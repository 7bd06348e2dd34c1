"""The compiler of computed columns: the expressions of queries, on the columns of one row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from ..rows.computed import Computed
from .ast import Expression, Name
from .evaluation import Scope, compile
from .expression_parser import ExpressionParser
from .lexer import tokens
from .typed import Typed


class _Parser(ExpressionParser):
    def whole(self) -> Expression:
        expression = self._expression()
        if self._next.kind != "end":
            raise self._unexpected("end of expression")
        return expression


def compiled(text: str, columns: Mapping[str, int]) -> Computed:
    """Compile an expression. Raises YtError for one that is wrong, or names another column."""
    expression = _Parser(tokens(text)).whole()
    names = {name: Typed.at(place, kind) for place, (name, kind) in enumerate(columns.items())}
    typed = compile(expression, Scope(names, {}, {}))
    return Computed(typed.kind, frozenset(_names(expression)), typed.evaluate)


def _names(part: Any) -> Iterator[str]:
    """Yield the columns that an expression refers to."""
    if isinstance(part, Name):
        yield part.name
    elif isinstance(part, tuple):
        for item in part:
            yield from _names(item)
    elif is_dataclass(part):
        for field in fields(part):
            yield from _names(getattr(part, field.name))
