"""A reason why answers do not give a working project."""

from __future__ import annotations

from typing import NamedTuple


class Problem(NamedTuple):
    """One line for the user, the option that it is about, and an answer that is right, if known."""

    text: str
    option: str = ""
    fix: tuple[str, str] | None = None
