"""The grammar of `select_rows`, as far as clients use it; by recursive descent.

Grammar: documentation, "query language". What it has beyond this file is refused by name. The
wording of syntax errors is a model.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple, TypeVar

from ..errors import YtError, generic, not_supported
from ..rows import wire
from .ast import (
    Binary,
    Call,
    Expression,
    In,
    Literal,
    Name,
    Named,
    OrderItem,
    Query,
    Row,
    Unary,
)

_TOKEN = re.compile(
    r"""
      (?P<space>\s+)
    | (?P<double>\d+\.\d*(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+)
    | (?P<uint>\d+u)
    | (?P<int>\d+)
    | (?P<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
    | (?P<bracket>\[[^\]]*\])
    | (?P<word>%?[A-Za-z_@$][A-Za-z0-9_@$]*)
    | (?P<symbol>!=|<>|<=|>=|<<|>>|\|\||[-+*/%=<>(),.|&~\#])
    """,
    re.VERBOSE | re.DOTALL,
)
_KEYWORDS = frozenset(
    {
        "select",
        "from",
        "where",
        "group",
        "by",
        "having",
        "order",
        "limit",
        "offset",
        "as",
        "and",
        "or",
    }
    | {"and", "or", "not", "in", "between", "is", "null", "asc", "desc", "true", "false"}
)
# Reserved in YT's grammar as well; a column of such a name has to be written in brackets.
_REFUSED = frozenset(
    {"join", "left", "array", "with", "totals", "like", "ilike", "rlike", "regexp", "escape"}
    | {"case", "when", "cast"}
)
_COMPARISONS = {"=", "!=", "<>", "<", "<=", ">", ">="}
_MAX_DEPTH = 50  # of brackets within brackets
_MAX_LENGTH = 1 << 20

_ESCAPES = {
    b"n": b"\n",
    b"t": b"\t",
    b"r": b"\r",
    b"0": b"\0",
    b"a": b"\a",
    b"b": b"\b",
    b"f": b"\f",
}


class Token(NamedTuple):
    kind: str
    text: str
    position: int


def parse(source: str) -> Query:
    """Parse a query. Raises YtError."""
    if len(source) > _MAX_LENGTH:
        raise generic(f"Query is too long: {len(source)} characters, limit {_MAX_LENGTH}")
    return _Parser(_tokens(source)).query()


def _tokens(source: str) -> list[Token]:
    result: list[Token] = []
    position = 0
    while position < len(source):
        match = _TOKEN.match(source, position)
        if match is None or match.lastgroup is None:
            raise _syntax(f'unexpected "{source[position]}"', position)
        kind, text = match.lastgroup, match.group()
        if kind == "word" and text.lower() in _KEYWORDS | _REFUSED:
            kind, text = "keyword", text.lower()
        if kind != "space":
            result.append(Token(kind, text, position))
        position = match.end()
    result.append(Token("end", "end of query", position))
    return result


def _syntax(what: str, position: int) -> YtError:
    return generic(f"Error parsing query: {what} at position {position}", position=position)


def _unquote(text: str) -> bytes:
    """Return the bytes of a quoted string with C escapes."""

    def replace(match: re.Match[bytes]) -> bytes:
        body = match.group(1)
        return bytes([int(body[1:], 16)]) if len(body) == 3 else _ESCAPES.get(body, body)

    return re.sub(rb"\\(x[0-9a-fA-F]{2}|.)", replace, text[1:-1].encode(), flags=re.DOTALL)


T = TypeVar("T")


class _Parser:
    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._position = 0
        self._depth = 0
        self._table_alias: str | None = None

    # Tokens

    @property
    def _next(self) -> Token:
        return self._tokens[self._position]

    def _advance(self) -> Token:
        token = self._next
        self._position += 1
        return token

    def _peek(self, text: str) -> bool:
        return self._next.kind in ("keyword", "symbol") and self._next.text == text

    def _take(self, *texts: str) -> bool:
        """Take all these tokens, or none."""
        ahead = self._tokens[self._position : self._position + len(texts)]
        if [t.text for t in ahead if t.kind in ("keyword", "symbol")] != list(texts):
            return False
        self._position += len(texts)
        return True

    def _expect(self, text: str) -> None:
        if not self._take(text):
            raise self._unexpected(f'"{text}"')

    def _unexpected(self, wanted: str) -> YtError:
        token = self._next
        if token.kind == "keyword" and token.text in _REFUSED:
            return not_supported(f'"{token.text.upper()}" in select_rows')
        return _syntax(f'{wanted} expected, got "{token.text}"', token.position)

    # Clauses

    def query(self) -> Query:
        self._take("select")
        projections = self._projections()
        self._expect("from")
        if self._peek("("):
            raise not_supported("A subquery in select_rows")
        query = Query(self._name(), projections=projections)
        if self._take("as") or self._next.kind in ("word", "bracket"):
            query.alias = self._name()
        if self._take("where"):
            query.where = self._expression()
        if self._take("group", "by"):
            query.group_by = self._list(self._named)
            if self._take("having"):
                query.having = self._expression()
        if self._take("order", "by"):
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

    def _projections(self) -> list[Named] | None:
        if self._take("*"):
            return None
        return self._list(self._named)

    def _list(self, item: Callable[[], T]) -> list[T]:
        result = [item()]
        while self._take(","):
            result.append(item())
        return result

    def _named(self) -> Named:
        expression = self._expression()
        return Named(expression, self._name() if self._take("as") else None)

    def _order_item(self) -> OrderItem:
        expression = self._expression()
        if self._take("desc"):
            return OrderItem(expression, True)
        self._take("asc")
        return OrderItem(expression, False)

    def _name(self) -> str:
        token = self._next
        if token.kind not in ("word", "bracket"):
            raise self._unexpected("a name")
        self._advance()
        return token.text[1:-1] if token.kind == "bracket" else token.text

    def _count(self) -> int:
        if self._next.kind != "int":
            raise self._unexpected("a number")
        return int(self._advance().text)

    # Expressions, the loosest binding first

    def _expression(self) -> Expression:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise YtError(1711, "Maximum expression depth exceeded", {"limit": _MAX_DEPTH})
        left = self._conjunction()
        while self._take("or"):
            left = Binary("or", left, self._conjunction())
        self._depth -= 1
        return left

    def _conjunction(self) -> Expression:
        left = self._negation()
        while self._take("and"):
            left = Binary("and", left, self._negation())
        return left

    def _negation(self) -> Expression:
        count = 0
        while self._take("not"):
            count += 1
        expression = self._comparison()
        for _ in range(min(count, 2 - count % 2)):
            expression = Unary("not", expression)
        return expression

    def _comparison(self) -> Expression:
        left = self._binary(0)
        token = self._next
        if token.kind == "symbol" and token.text in _COMPARISONS:
            self._advance()
            operator = "!=" if token.text == "<>" else token.text
            return Binary(operator, left, self._binary(0))
        if self._take("is", "null"):
            return Call("is_null", (left,))
        if self._take("is", "not", "null"):
            return Unary("not", Call("is_null", (left,)))
        negative = self._take("not")
        if self._take("in"):
            self._expect("(")
            result: Expression = In(left, tuple(self._list(self._expression)))
            self._expect(")")
        elif self._take("between"):
            low = self._binary(0)
            self._expect("and")
            high = self._binary(0)
            result = Binary("and", Binary(">=", left, low), Binary("<=", left, high))
        elif negative or (token.kind == "keyword" and token.text in _REFUSED):
            raise self._unexpected('"in" or "between"')
        else:
            return left
        return Unary("not", result) if negative else result

    _LEVELS = (("|",), ("&",), ("<<", ">>"), ("+", "-", "||"), ("*", "/", "%"))

    def _binary(self, level: int) -> Expression:
        if level == len(self._LEVELS):
            return self._unary()
        left = self._binary(level + 1)
        while self._next.kind == "symbol" and self._next.text in self._LEVELS[level]:
            operator = self._advance().text
            left = Binary(operator, left, self._binary(level + 1))
        return left

    def _unary(self) -> Expression:
        operators: list[str] = []
        while self._next.kind == "symbol" and self._next.text in ("-", "+", "~"):
            operators.append(self._advance().text)
        if len(operators) > _MAX_DEPTH:
            raise YtError(1711, "Maximum expression depth exceeded", {"limit": _MAX_DEPTH})
        expression = self._atom()
        for operator in reversed(operators):
            if (
                operator == "-"
                and isinstance(expression, Literal)
                and isinstance(expression.value, int | float)
                and expression.kind in (wire.INT64, wire.DOUBLE)
            ):
                expression = Literal(-expression.value, expression.kind, expression.flexible)
            elif operator != "+":
                expression = Unary(operator, expression)
        return expression

    def _atom(self) -> Expression:
        token = self._next
        if token.kind in _CONSTANTS:
            self._advance()
            return _CONSTANTS[token.kind](token.text)
        if token.text in _WORDS and token.kind in ("keyword", "symbol", "word"):
            self._advance()
            return _WORDS[token.text]
        if self._take("("):
            items = self._list(self._expression)
            self._expect(")")
            return items[0] if len(items) == 1 else Row(tuple(items))
        if token.kind not in ("word", "bracket"):
            raise self._unexpected("an expression")
        name = self._name()
        if token.kind == "word" and self._take("("):
            return Call(name.lower(), self._arguments())
        if self._take("."):
            # A column of the table under its alias; there is only one table.
            return Name(f"{name}.{self._name()}")
        return Name(name)

    def _arguments(self) -> tuple[Expression, ...]:
        if self._take(")"):
            return ()
        arguments = tuple(self._list(self._expression))
        self._expect(")")
        return arguments


def _integer(text: str) -> Literal:
    value = int(text)
    if value < 1 << 63:
        return Literal(value, wire.INT64, flexible=True)
    return _unsigned(text + "u")


def _unsigned(text: str) -> Literal:
    value = int(text[:-1])
    if value >= 1 << 64:
        raise generic(f"Error parsing query: integer {text} is too large")
    return Literal(value, wire.UINT64)


_CONSTANTS: dict[str, Callable[[str], Literal]] = {
    "int": _integer,
    "uint": _unsigned,
    "double": lambda text: Literal(float(text), wire.DOUBLE),
    "string": lambda text: Literal(_unquote(text), wire.STRING),
}
_WORDS = {
    "null": Literal(None, wire.NULL),
    "#": Literal(None, wire.NULL),
    "true": Literal(True, wire.BOOLEAN),
    "%true": Literal(True, wire.BOOLEAN),
    "false": Literal(False, wire.BOOLEAN),
    "%false": Literal(False, wire.BOOLEAN),
}
