"""What values of the configuration have to be like, in words and as functions."""

import re
from collections.abc import Callable, Mapping
from typing import Any

#: One or more components; no attributes, no rich prefix, no trailing slash: SPYT finds the
#: consumer's rows by string equality on the queue's path (YtQueueOffset.getCurrentOffset), so it
#: must be canonical.
CYPRESS_PATH = re.compile(r"//[A-Za-z0-9_.+=~-]+(/[A-Za-z0-9_.+=~-]+)*")

#: A field's metadata: what is wanted, in words and as a function.
Rule = Mapping[str, Any]


def _rule(wanted: str, is_good: Callable[[Any], bool]) -> Rule:
    return {"wanted": wanted, "is_good": is_good}


def one_of(*allowed: str) -> Rule:
    """One of these texts."""
    return _rule(f"one of: {', '.join(allowed)}", lambda value: value in allowed)


def whole(low: int, high: int) -> Rule:
    """A whole number within these bounds."""
    return _rule(
        f"a whole number from {low} to {high}",
        lambda value: type(value) is int and low <= value <= high,
    )


def seconds(low: float, high: float, remark: str = "") -> Rule:
    """A number of seconds within these bounds."""
    return _rule(
        f"a number of seconds from {low} to {high}{remark}",
        lambda value: type(value) in (int, float) and low <= value <= high,
    )


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_path(value: object) -> bool:
    return isinstance(value, str) and CYPRESS_PATH.fullmatch(value) is not None


TEXT = _rule("a text that is not empty", _is_text)
TEXTS = _rule("a list of texts", lambda value: type(value) is list and all(map(_is_text, value)))
FLAG = _rule("true or false", lambda value: isinstance(value, bool))
PATH = _rule('a plain Cypress path such as "//home/team/job"', _is_path)
PATHS = _rule(
    "a list of one or more plain Cypress paths",
    lambda value: type(value) is list and bool(value) and all(map(_is_path, value)),
)
