"""Variables of shell scripts and Makefiles, as far as the same file gives them one value."""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence

Lines = Sequence[tuple[int, str]]
_ASSIGNED = re.compile(
    r"^\s*(?:export\s+|readonly\s+|local\s+|ENV\s+|ARG\s+)?([A-Za-z_]\w*)\s*[:?]?=\s*"
    r"""("[^"]*"|'[^']*'|[^\s;]*)\s*(?:;|$)"""
)
_USED = re.compile(
    r"\$(?:\{(?P<braced>\w+)(?::?[-=](?P<default>[^{}$]*))?\}|\((?P<make>\w+)\)|(?P<bare>\w+))"
)
_ROUNDS = 5
"""Values may name each other; deeper nesting is not written by hand."""


def substituted(lines: Lines) -> tuple[tuple[int, str], ...]:
    """Return lines with the variables that are known; ``${A:-b}`` is b unless the file sets A."""
    known = _assigned(lines)
    return tuple((number, _with(known, line)) for number, line in lines)


def _assigned(lines: Lines) -> dict[str, str]:
    values: dict[str, set[str]] = defaultdict(set)
    for _, line in lines:
        if match := _ASSIGNED.match(line):
            name, value = match.groups()
            # A=${A:-b} takes A from outside: only its default is known.
            own = re.fullmatch(rf"\$\{{{name}:?[-=]([^{{}}$]*)\}}", value.strip("\"'"))
            values[name].add(own[1] if own else value.strip("\"'"))
    return {name: each.pop() for name, each in values.items() if len(each) == 1}


def _with(known: Mapping[str, str], line: str) -> str:
    def replaced(match: re.Match[str]) -> str:
        name = match["braced"] or match["make"] or match["bare"]
        default = match["default"]
        return known.get(name, match[0] if default is None else default)

    for _ in range(_ROUNDS):
        after = _USED.sub(replaced, line)
        if after == line:
            break
        line = after
    return line
