"""The call that renders the template: a command of cookiecutter or cruft, and its arguments.

An extension is handed no arguments. cookiecutter drops options that it does not know before it
renders, and cruft renders from a clone that it deletes. So the call is read from the stack: from
the public function that was called, by its command line or by a program.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import FrameType
from typing import Any, NamedTuple

_FUNCTIONS = {
    ("cookiecutter.main", "cookiecutter"): "cookiecutter",
    ("cruft._commands.create", "create"): "cruft create",
    ("cruft._commands.link", "link"): "cruft link",
    ("cruft._commands.update", "update"): "cruft update",
    ("cruft._commands.diff", "diff"): "cruft diff",
}


class Call(NamedTuple):
    """A command, its arguments by name, the answers among them, of .cruft.json and of a replay."""

    command: str = "cookiecutter"
    arguments: Mapping[str, Any] = {}
    given: Mapping[str, Any] = {}
    stored: Mapping[str, Any] = {}
    replayed: Mapping[str, Any] = {}


def current_call() -> Call:
    """Return the call that this is a part of; one without arguments outside of both tools."""
    frame: FrameType | None = sys._getframe()
    while frame:
        place = (frame.f_globals.get("__name__", ""), frame.f_code.co_name)
        if place in _FUNCTIONS:
            return _call(_FUNCTIONS[place], dict(frame.f_locals))
        frame = frame.f_back
    return Call()


def _call(command: str, arguments: dict[str, Any]) -> Call:
    given = arguments.get("extra_context") or {}
    stored = (arguments.get("cruft_state") or {}).get("context", {}).get("cookiecutter", {})
    if command in ("cruft update", "cruft diff"):
        del arguments["directory"]  # a local variable of theirs, not an option
    if command == "cruft update":
        # cruft renders the former commit first, without the answers that are given for the new
        # one. Then it adds them to those of .cruft.json, which it calls cruft_state.
        given = {name: value for name, value in given.items() if stored.get(name) == value}
    # cookiecutter's `context`: what it read from the replay file, and the answers to new questions.
    replayed = arguments["context"]["cookiecutter"] if arguments.get("replay") else {}
    return Call(command, arguments, given, stored, replayed)
