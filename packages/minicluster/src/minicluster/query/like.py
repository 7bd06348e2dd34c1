"""Patterns of LIKE and ILIKE (ConvertLikePatternToRegex in query/engine_api)."""

from __future__ import annotations

import re
from functools import lru_cache

from ..core.errors import generic


def matches(text: bytes, pattern: bytes, escape: bytes, insensitive: bool) -> bool:
    """Return whether the whole text fits the pattern. Raises YtError."""
    return _compiled(pattern, escape, insensitive).fullmatch(_decoded(text)) is not None


@lru_cache(maxsize=256)
def _compiled(pattern: bytes, escape: bytes, insensitive: bool) -> re.Pattern[str]:
    if len(escape) > 1:
        raise generic("Escape string must be empty or one character")
    escaping = _decoded(escape) or "\0"
    pieces = [""]
    characters = iter(_decoded(pattern))
    for character in characters:
        if character == escaping:
            following = next(characters, None)
            if following is None:
                raise generic("Incomplete escape sequence at the end of LIKE pattern")
            pieces[-1] += re.escape(following)
        elif character == "%":
            pieces.append("")
        else:
            pieces[-1] += "." if character == "_" else re.escape(character)
    first, *others = pieces
    if others:
        # The first place where a piece fits is as good as any: no way back, so no long search.
        first += "".join(f"(?>.*?{piece})" for piece in others[:-1]) + ".*" + others[-1]
    return re.compile(first, re.DOTALL | (re.IGNORECASE if insensitive else 0))


def _decoded(text: bytes) -> str:
    return text.decode(errors="surrogateescape")
