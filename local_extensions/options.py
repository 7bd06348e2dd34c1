"""The options that the template offers, and words that are none of them."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from .organisation import SETTINGS
from .problem import Problem
from .text import shown

_OPTIONS = Path(__file__).resolve().parent.parent / "cookiecutter.json"


def offered() -> dict[str, Any]:
    """Return the options: a list of choices, or a default."""
    return public(json.loads(_OPTIONS.read_text(encoding="utf-8")))


def public(context: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a context, without cookiecutter's variables and the template's own."""
    return {name: value for name, value in context.items() if not name.startswith("_")}


def problems(given: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield a problem for each answer that cookiecutter would drop without a message.

    It drops names that are not options, and all of a list but its first element. Private names are
    left alone: cruft hands in those of an earlier render. So are the settings of an organisation.
    """
    options = offered()
    known = {**options, **dict.fromkeys(SETTINGS, "")}
    for name, value in given.items():
        if name.startswith("_") or name in SETTINGS:
            continue
        if name in options:
            if not isinstance(value, str):
                yield Problem(f"{name} is not text; give one string", name)
            continue
        near = difflib.get_close_matches(_snake(name), known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"give {', '.join(options)}"
        problem = Problem(f"{_plain(name)} is not an option; {hint}", near[0] if near else "")
        if near and isinstance(value, str) and _fits(value, known[near[0]]):
            problem = problem._replace(fix=(near[0], value))
        yield problem


def _snake(name: str) -> str:
    """Return queue_paths for queuePaths, queue-paths and QUEUE_PATHS."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|[^A-Za-z]+", "_", name).lower()


def _plain(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else shown(name)


def _fits(value: str, option: Any) -> bool:
    return not isinstance(option, list) or value in option
