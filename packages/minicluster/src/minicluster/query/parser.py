"""The grammar of `select_rows`, as far as clients use it; by recursive descent.

Grammar: documentation, "query language", and query/base/parser.ypp. What it has beyond this file
is refused by name.
"""

from __future__ import annotations

from ..core.errors import generic, not_supported
from .ast import Expression, Join, Named, OrderItem, Query, Row
from .expression_parser import ExpressionParser
from .lexer import tokens


def parse(source: str) -> Query:
    """Parse a query. Raises YtError."""
    return _Parser(tokens(source)).query()


class _Parser(ExpressionParser):
    """The rules of clauses."""

    def query(self) -> Query:
        self._take("select")
        projections = self._projections()
        self._expect("from")
        if self._peek("("):
            raise not_supported("a subquery in select_rows")
        query = Query(*self._table(), projections=projections)
        while self._peek("join") or self._peek("left"):
            query.joins.append(self._join())
        if self._take("where"):
            query.where = self._expression()
        if self._take("group by"):
            query.group_by = self._list(self._named)
            if self._take("having"):
                query.having = self._expression()
        if self._take("order by"):
            query.order_by = self._list(self._order_item)
        # The grammar has OFFSET before LIMIT; the server takes them in that order alone.
        if self._take("offset"):
            query.offset = self._count()
        if self._take("limit"):
            query.limit = self._count()
        if self._next.kind != "end":
            raise self._unexpected("end of query")
        if query.order_by and query.limit is None:
            raise generic("ORDER BY used without LIMIT")
        if query.offset is not None and query.limit is None:
            raise generic("OFFSET used without LIMIT")
        return query

    def _table(self) -> tuple[str, str | None]:
        """Return the path of a table and its alias."""
        path = self._name()
        aliased = self._take("as") or self._next.kind in ("word", "bracket")
        return path, self._name() if aliased else None

    def _join(self) -> Join:
        outer = self._take("left")
        self._expect("join")
        path, alias = self._table()
        if self._take("using"):
            columns: tuple[Expression, ...] = tuple(self._list(lambda: self._column(self._name())))
            return Join(path, alias, outer, columns, columns, self._join_predicate())
        self._expect("on")
        left = self._binary(0)
        self._expect("=")
        right = self._binary(0)
        return Join(path, alias, outer, _items(left), _items(right), self._join_predicate())

    def _join_predicate(self) -> Expression | None:
        return self._conjunction() if self._take("and") else None

    def _projections(self) -> list[Named] | None:
        if self._take("*"):
            return None
        return self._list(self._named)

    def _named(self) -> Named:
        expression = self._expression()
        return Named(expression, self._name() if self._take("as") else None)

    def _order_item(self) -> OrderItem:
        expression = self._expression()
        if self._take("desc"):
            return OrderItem(expression, True)
        self._take("asc")
        return OrderItem(expression, False)

    def _count(self) -> int:
        if self._next.kind != "int":
            raise self._unexpected("a number")
        return int(self._advance().text)


def _items(expression: Expression) -> tuple[Expression, ...]:
    return expression.items if isinstance(expression, Row) else (expression,)
