"""Patterns of LIKE and ILIKE (ConvertLikePatternToRegex in query/engine_api)."""

from __future__ import annotations

import re
from functools import lru_cache

from ..errors import generic

_WILDCARDS = {"%": ".*", "_": "."}


def matches(text: bytes, pattern: bytes, escape: bytes, insensitive: bool) -> bool:
    """Return whether the whole text fits the pattern. Raises YtError."""
    return _compiled(pattern, escape, insensitive).fullmatch(_decoded(text)) is not None


@lru_cache(maxsize=256)
def _compiled(pattern: bytes, escape: bytes, insensitive: bool) -> re.Pattern[str]:
    if len(escape) > 1:
        raise generic("Escape string must be empty or one character")
    escaping = _decoded(escape) or "\0"
    parts = []
    characters = iter(_decoded(pattern))
    for character in characters:
        if character == escaping:
            following = next(characters, None)
            if following is None:
                raise generic("Incomplete escape sequence at the end of LIKE pattern")
            parts.append(re.escape(following))
        else:
            parts.append(_WILDCARDS.get(character) or re.escape(character))
    return re.compile("".join(parts), re.DOTALL | (re.IGNORECASE if insensitive else 0))


def _decoded(text: bytes) -> str:
    return text.decode(errors="surrogateescape")
