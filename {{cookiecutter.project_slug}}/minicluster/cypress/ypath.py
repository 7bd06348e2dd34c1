"""YPath: how nodes, attributes and parts of documents are addressed (documentation, "YPath")."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from yt import yson

from ..errors import generic


class Attr(str):
    """A step to an attribute; the empty one stands for all attributes."""


@dataclass(frozen=True, slots=True)
class Path:
    """A parsed path.

    `root` is "/" or an object id; each step is a child's name or index, or an `Attr`. `raw` tells
    for 0..len(steps) whether `&` after that many steps keeps a link from being followed. `star` is
    a trailing `/*`.
    """

    text: str
    root: str
    steps: tuple[str, ...]
    raw: frozenset[int] = frozenset()
    star: bool = False

    @property
    def last(self) -> str:
        return self.steps[-1]


@dataclass(frozen=True, slots=True)
class RichPath:
    """A path with what may stand around it: attributes, columns and row ranges."""

    path: str
    attributes: dict[str, Any] = field(default_factory=dict)
    columns: list[str] | None = None
    ranges: list[Any] | None = None


_LITERAL = re.compile(r"(?:[^/@&*\[{\\]|\\x[0-9a-fA-F]{2}|\\[/@&*\[{\\])+")
_ESCAPE = re.compile(r"\\x([0-9a-fA-F]{2})|\\(.)")
_ID = re.compile(r"#[0-9a-fA-F]+(?:-[0-9a-fA-F]+){3}")


@lru_cache(maxsize=4096)
def parse(text: str) -> Path:
    """Raises: YtError when `text` is no path."""
    if text.startswith("//") or text == "/":
        root, position = "/", 1
    else:
        match = _ID.match(text)
        if match is None:
            raise generic(f'Path "{text}" does not start with a valid root-designator')
        root, position = match[0][1:], match.end()
    steps: list[str] = []
    raw: set[int] = set()
    star = False
    while position < len(text):
        if text[position] == "&":
            raw.add(len(steps))
            position += 1
            continue
        if text[position] != "/" or star:
            raise _unexpected(text, position)
        position += 1
        if text[position : position + 1] == "*":
            star, position = True, position + 1
            continue
        attribute = text[position : position + 1] == "@"
        position += attribute
        literal = _LITERAL.match(text, position)
        if literal is None:
            if attribute and position == len(text):
                steps.append(Attr())
                break
            raise _unexpected(text, position)
        position = literal.end()
        name = _unescape(literal[0])
        steps.append(Attr(name) if attribute else name)
    return Path(text, root, tuple(steps), frozenset(raw), star)


def _unescape(literal: str) -> str:
    if "\\" not in literal:
        return literal
    return _ESCAPE.sub(lambda match: chr(int(match[1], 16)) if match[1] else match[2], literal)


def _unexpected(text: str, position: int) -> Exception:
    found = f'"{text[position]}"' if position < len(text) else "end of path"
    return generic(f'Unexpected {found} at position {position} of path "{text}"')


def parse_rich(text: str | Any) -> RichPath:
    """`<attributes>//path{columns}[ranges]`, or a YSON string that carries the attributes.

    Ranges come back as YT gives them: {lower_limit, upper_limit} with row_index or key.
    """
    attributes = dict(getattr(text, "attributes", None) or {})
    path = str(text)
    if path.startswith("<"):
        own, path = _leading_attributes(path)
        attributes = {**own, **attributes}
    match = re.search(r"(?<!\\)[\[{]", path)
    columns, ranges = attributes.get("columns"), attributes.get("ranges")
    if match:
        path, suffix = path[: match.start()], path[match.start() :]
        if suffix.startswith("{") and "}" in suffix:
            end = suffix.index("}")
            columns = _strings(suffix[1:end])
            suffix = suffix[end + 1 :]
        if suffix.startswith("[") and suffix.endswith("]"):
            ranges = [_range(part) for part in suffix[1:-1].split(",") if part.strip()]
        elif suffix:
            raise generic(f'Unexpected "{suffix}" after path "{path}"')
    return RichPath(path, attributes, columns, ranges)


def _leading_attributes(text: str) -> tuple[dict[str, Any], str]:
    """The attributes end at the first `>` that makes them valid: strings may hold others."""
    end = text.find(">")
    while end != -1:
        try:
            value = yson.loads((text[: end + 1] + "#").encode())
        except yson.YsonError:
            end = text.find(">", end + 1)
        else:
            return dict(value.attributes), text[end + 1 :].lstrip()
    raise generic(f'Attributes of path "{text}" are not closed')


def _strings(text: str) -> list[str]:
    return [str(_value(part)) for part in text.split(",") if part.strip()]


def _value(text: str) -> Any:
    try:
        return yson.loads(text.strip().encode())
    except yson.YsonError:
        raise generic(f'Unexpected "{text}" in a path') from None


def _range(text: str) -> dict[str, Any]:
    lower, colon, upper = text.partition(":")
    if not colon:
        return {"exact": _limit(lower)}
    found: dict[str, Any] = {}
    if lower.strip():
        found["lower_limit"] = _limit(lower)
    if upper.strip():
        found["upper_limit"] = _limit(upper)
    return found


def _limit(text: str) -> dict[str, Any]:
    text = text.strip()
    if text.startswith("#") and text[1:].isdecimal():
        return {"row_index": int(text[1:])}
    keys = text.strip("()").split(",")
    return {"key": [_value(key) for key in keys if key.strip()]}
