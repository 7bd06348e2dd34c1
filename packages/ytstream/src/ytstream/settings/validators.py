"""What a key of the configuration may be: in words, and as a function."""

import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, fields
from typing import Any

from .addresses import is_path

Rule = Mapping[str, Any]
"""The metadata of a field: what is wanted, in words and as a function."""


def rule(wanted: str, is_good: Callable[[Any], bool]) -> Rule:
    """Return the rule of a field."""
    return {"wanted": wanted, "is_good": is_good}


def one_of(*allowed: str) -> Rule:
    """Return the rule of a text that is one of these."""
    return rule(f"one of: {', '.join(allowed)}", lambda value: value in allowed)


def whole(low: int, high: int) -> Rule:
    """Return the rule of a whole number."""
    return rule(
        f"a whole number from {low} to {high}",
        lambda value: type(value) is int and low <= value <= high,
    )


def seconds(low: float, high: float, remark: str = "") -> Rule:
    """Return the rule of a number of seconds."""
    return rule(
        f"a number of seconds from {low} to {high}{remark}",
        lambda value: type(value) in (int, float) and low <= value <= high,
    )


def is_text(value: object) -> bool:
    """Return whether the value is a text that is not empty."""
    return isinstance(value, str) and bool(value.strip())


TEXT = rule("a text that is not empty", is_text)
TEXTS = rule("a list of texts", lambda value: type(value) is list and all(map(is_text, value)))
FLAG = rule("true or false", lambda value: isinstance(value, bool))
PATH = rule('a plain Cypress path such as "//home/team/job"', is_path)


def is_needed(key: Field[Any]) -> bool:
    """Return whether the field has no default."""
    return key.default is MISSING and key.default_factory is MISSING


def problems_of(of: type, raw: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """Yield what is wrong with the keys of a table that becomes a value of the class ``of``."""
    keys = {key.name: key for key in fields(of)}
    yield from (unknown(name, [*keys], prefix) for name in raw if name not in keys)
    for name, key in keys.items():
        if name not in raw:
            if is_needed(key):
                yield f"missing key {prefix + name!r}"
        elif not key.metadata["is_good"](raw[name]):
            yield f"{prefix}{name} = {raw[name]!r}: wanted {key.metadata['wanted']}"


def unknown(name: str, known: Sequence[str], prefix: str = "") -> str:
    """Name an unknown key, and the known one that is most like it."""
    nearest = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {nearest[0]!r}?" if nearest else f"known are: {', '.join(sorted(known))}"
    return f"unknown key {prefix + name!r}; {hint}"
