"""YPath: how nodes, attributes and parts of documents are addressed (documentation, "YPath")."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from yt.ypath.common import YPathError
from yt.ypath.rich import RichYPath
from yt.yson import YsonError
from yt.yson.yson_types import NotUnicodeError

from ..core.errors import YtError, generic


class Attr(str):
    """A step to an attribute; the empty name means all attributes."""


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
    """A path with what may surround it: attributes, columns and row ranges."""

    path: str
    attributes: dict[str, Any] = field(default_factory=dict)
    columns: list[str] | None = None
    ranges: list[Any] | None = None


_LITERAL = re.compile(r"(?:[^/@&*\[{\\]|\\x[0-9a-fA-F]{2}|\\[/@&*\[{\\])+")
_ESCAPE = re.compile(r"\\x([0-9a-fA-F]{2})|\\(.)")
_ID = re.compile(r"#[0-9a-fA-F]+(?:-[0-9a-fA-F]+){3}")


@lru_cache(maxsize=4096)
def parse(text: str) -> Path:
    """Return the parsed path. Raises YtError when `text` is not a path."""
    if text.startswith("//") or text == "/":
        root, position = "/", 1
    else:
        match = _ID.match(text)
        if match is None:
            raise _no_root(text)
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
    """Parse `<attributes>//path{columns}[ranges]`, or a YSON string that carries the attributes.

    Ranges are returned as YT gives them: {lower_limit, upper_limit} with row_index or key.
    Raises YtError.
    """
    attributes = dict(getattr(text, "attributes", None) or {})
    path = str(text)
    found: dict[str, Any] = {}
    if path.startswith("<") or "[" in path or "{" in path:  # others need no parser, and are many
        path, own, found = _parsed(path)
        attributes = {**own, **attributes}
    # Where the text and an attribute both select, the attribute holds.
    columns = attributes.get("columns", found.get("columns"))
    ranges = attributes.get("ranges", found.get("ranges"))
    return RichPath(path, attributes, columns, ranges)


def _parsed(text: str) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """Return (path, leading attributes, columns and ranges), as ytsaurus-client reads them."""
    parser = RichYPath()
    attributes: dict[str, Any] = {}
    try:
        rest = parser.parse_attributes(text.encode(), attributes)
        if rest[:1] not in (b"/", b"#"):  # the library would take it for the name of a cluster
            raise _no_root(rest.decode())
        path, found = parser.parse(rest)
        if "columns" in found:
            found["columns"] = [str(name) for name in found["columns"]]
    except (YsonError, YPathError, UnicodeError, NotUnicodeError) as error:
        reason = getattr(error, "message", None) or error
        raise generic(f'Error parsing path "{text}": {reason}') from None
    return path, attributes, found


def _no_root(text: str) -> YtError:
    return generic(f'Path "{text}" does not start with a valid root-designator')
