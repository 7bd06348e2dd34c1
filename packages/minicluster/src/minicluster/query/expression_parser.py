"""The grammar of expressions in `select_rows`, by recursive descent.

Grammar: documentation, "query language", and query/base/parser.ypp.
"""

from __future__ import annotations

from collections.abc import Callable

from ..core.errors import YtError, generic
from ..rows import wire
from .ast import Binary, Call, Case, Cast, Expression, In, Like, Literal, Name, Row, Unary
from .lexer import REFUSED, Cursor, unquote


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
    "string": lambda text: Literal(unquote(text), wire.STRING),
}
_WORDS = {
    "null": Literal(None, wire.NULL),
    "#": Literal(None, wire.NULL),
    "true": Literal(True, wire.BOOLEAN),
    "%true": Literal(True, wire.BOOLEAN),
    "false": Literal(False, wire.BOOLEAN),
    "%false": Literal(False, wire.BOOLEAN),
}


_COMPARISONS = {"=", "!=", "<>", "<", "<=", ">", ">="}
_MAX_DEPTH = 50  # of brackets within brackets
_SUM = 3  # the level of sums


class ExpressionParser(Cursor):
    """The rules of expressions, the loosest binding first."""

    _depth = 0

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
        elif self._peek("like") or self._peek("ilike"):
            result = self._like(left)
        elif negative or (token.kind == "keyword" and token.text in REFUSED):
            raise self._unexpected('"in", "between" or "like"')
        else:
            return left
        return Unary("not", result) if negative else result

    def _like(self, text: Expression) -> Expression:
        insensitive = self._advance().text == "ilike"
        pattern = self._binary(_SUM)
        escape = self._binary(_SUM) if self._take("escape") else None
        return Like(text, pattern, escape, insensitive)

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
        if self._take("case"):
            return self._case()
        if self._take("cast"):
            return self._cast()
        if token.kind not in ("word", "bracket"):
            raise self._unexpected("an expression")
        name = self._name()
        if token.kind == "word" and self._take("("):
            return Call(name.lower(), self._arguments())
        return self._column(name)

    def _column(self, name: str) -> Name:
        """Return the column of that name, or the column of a table under that alias."""
        return Name(f"{name}.{self._name()}") if self._take(".") else Name(name)

    def _case(self) -> Expression:
        operand = None if self._peek("when") else self._expression()
        branches = []
        while self._take("when"):
            condition = self._expression()
            self._expect("then")
            branches.append((condition, self._expression()))
        if not branches:
            raise self._unexpected('"when"')
        default = self._expression() if self._take("else") else None
        self._expect("end")
        return Case(operand, tuple(branches), default)

    def _cast(self) -> Expression:
        self._expect("(")
        operand = self._expression()
        self._expect("as")
        type_ = self._name()
        self._expect(")")
        return Cast(operand, type_)

    def _arguments(self) -> tuple[Expression, ...]:
        if self._take(")"):
            return ()
        arguments = tuple(self._list(self._expression))
        self._expect(")")
        return arguments
