"""A query cut into tokens, and the cursor that the grammar moves over them.

The wording of syntax errors is a model.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple, TypeVar

from ..core.errors import YtError, generic, not_supported

_TOKEN = re.compile(
    r"""
      (?P<space>\s+)
    | (?P<double>(?:\d+\.\d*|\.\d+)(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+)
    | (?P<uint>\d+u)
    | (?P<int>\d+)
    | (?P<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
    | (?P<bracket>\[[^\]]*\])
    | (?P<pair>(?i:group\s+by|order\s+by)(?![A-Za-z0-9_@$]))
    | (?P<word>%?[A-Za-z_@$][A-Za-z0-9_@$]*)
    | (?P<symbol>!=|<>|<=|>=|<<|>>|\|\||[-+*/%=<>(),.|&~\#])
    """,
    re.VERBOSE | re.DOTALL,
)
# Two words are one token. Each of them alone is a name, such as the column `order` of SPYT's event
# log (lexer.rl: kw_order_by).
_CLAUSES = {"select", "from", "where", "having", "limit", "offset", "as"}
_JOINS = {"join", "left", "using", "on"}
_OPERATORS = {"and", "or", "not", "in", "between", "is", "like", "ilike", "escape"}
_CASES = {"case", "when", "then", "else", "end", "cast"}
KEYWORDS = _CLAUSES | _JOINS | _OPERATORS | _CASES | {"asc", "desc", "null", "true", "false"}
# Reserved in YT's grammar as well; a column of such a name has to be written in brackets.
REFUSED = frozenset({"array", "with", "rlike", "regexp"})
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


def tokens(source: str) -> list[Token]:
    """Return the tokens of a query, the last one its end. Raises YtError."""
    if len(source) > _MAX_LENGTH:
        raise generic(f"Query is too long: {len(source)} characters, limit {_MAX_LENGTH}")
    result: list[Token] = []
    position = 0
    while position < len(source):
        match = _TOKEN.match(source, position)
        if match is None or match.lastgroup is None:
            raise _syntax(f'unexpected "{source[position]}"', position)
        kind, text = match.lastgroup, match.group()
        if kind == "pair":
            kind, text = "keyword", " ".join(text.lower().split())
        elif kind == "word" and text.lower() in KEYWORDS | REFUSED:
            kind, text = "keyword", text.lower()
        if kind != "space":
            result.append(Token(kind, text, position))
        position = match.end()
    result.append(Token("end", "end of query", position))
    return result


def _syntax(what: str, position: int) -> YtError:
    return generic(f"Error parsing query: {what} at position {position}", position=position)


def unquote(text: str) -> bytes:
    """Return the bytes of a quoted string with C escapes."""

    def replace(match: re.Match[bytes]) -> bytes:
        body = match.group(1)
        return bytes([int(body[1:], 16)]) if len(body) == 3 else _ESCAPES.get(body, body)

    return re.sub(rb"\\(x[0-9a-fA-F]{2}|.)", replace, text[1:-1].encode(), flags=re.DOTALL)


T = TypeVar("T")


class Cursor:
    """A place among the tokens, moved on by what the grammar takes."""

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._position = 0

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

    def _expect(self, *texts: str) -> None:
        for text in texts:
            if not self._take(text):
                raise self._unexpected(f'"{text}"')

    def _unexpected(self, wanted: str) -> YtError:
        token = self._next
        if token.kind == "keyword" and token.text in REFUSED:
            return not_supported(f'"{token.text.upper()}" in select_rows')
        return _syntax(f'{wanted} expected, got "{token.text}"', token.position)

    def _name(self) -> str:
        token = self._next
        if token.kind not in ("word", "bracket"):
            raise self._unexpected("a name")
        self._advance()
        return token.text[1:-1] if token.kind == "bracket" else token.text

    def _list(self, item: Callable[[], T]) -> list[T]:
        result = [item()]
        while self._take(","):
            result.append(item())
        return result
