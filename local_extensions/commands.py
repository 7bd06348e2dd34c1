"""The command that a refusal suggests: the same call again, with the good answers."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from . import answers
from .callers import Call
from .options import offered
from .organisation import SETTINGS
from .problem import Problem

_WITH_A_VALUE = (
    "checkout", "directory", "config_file", "output_dir", "project_dir", "template_path",
)  # fmt: skip
_SWITCHES = (
    "no_input", "default_config", "overwrite_if_exists", "skip_if_file_exists",
    "cookiecutter_input", "skip_apply_ask", "allow_untracked_files",
)  # fmt: skip
_UPDATES = ("cruft update", "cruft diff")
_ADDRESSES = ("queue_paths", "cypress_root", "yt_proxy", *SETTINGS)
_OPEN = "..."


def keeping(call: Call, answered: Mapping[str, str], problems: list[Problem]) -> str:
    """Return one line for a POSIX shell: the good answers, the fixed ones, ``...`` for the others.

    ``answered`` is rendered already; answers to later questions are taken from the call as they
    are. ``cruft update`` takes the others from .cruft.json, so it is given the changed ones only.
    """
    fixed = dict(problem.fix for problem in problems if problem.fix)
    to_answer = {problem.option for problem in problems if not problem.fix}
    texts = {name: value for name, value in answered.items() if isinstance(value, str)}
    rendered = {name: typed(value) for name, value in texts.items()}
    known = {**_as_given(call.given), **rendered, **fixed}
    if call.command in _UPDATES:
        known = {name: known[name] for name in known if name in {*call.given, *fixed, *to_answer}}
    to_answer |= {name for name, value in known.items() if _may_hold_a_secret(name, value)}
    # A setting that was not given comes from the same configuration again.
    names = [*offered(), *(name for name in SETTINGS if name in {*call.given, *fixed, *to_answer})]
    good = {name: known[name] for name in names if name in known.keys() - to_answer}
    return " ".join(_words(call, {**good, **{name: _OPEN for name in names if name in to_answer}}))


def _as_given(given: Mapping[str, Any]) -> dict[str, str]:
    """Return the answers of a call, with Jinja that is not rendered yet."""
    texts = {name: value for name, value in given.items() if isinstance(value, str)}
    return {name: value if value.isprintable() else typed(value) for name, value in texts.items()}


def _may_hold_a_secret(name: str, value: str) -> bool:
    """Tell whether this may be a URL with a token in it. Such an answer is refused in the end."""
    return name in _ADDRESSES and not re.fullmatch(r"[\w.+=~:/\s-]*", value, re.ASCII)


def _words(call: Call, given: Mapping[str, str]) -> Iterator[str]:
    if call.command in _UPDATES:
        yield from ("cruft", "update", *_flags(call.arguments))
        yield from ("--variables-to-update", _quoted_json(given))
    elif call.command.startswith("cruft"):
        yield call.command
        yield shlex.quote(str(call.arguments["template_git_url"]))
        yield from (*_flags(call.arguments), "--extra-context", _quoted_json(given))
    else:
        yield "cookiecutter"
        yield shlex.quote(str(call.arguments.get("template", answers.TEMPLATE)))
        yield from _flags(call.arguments or {"no_input": True})
        for name, value in given.items():
            yield f"{name}={_OPEN}" if value == _OPEN else shlex.quote(f"{name}={value}")


def _flags(arguments: Mapping[str, Any]) -> Iterator[str]:
    for name in _WITH_A_VALUE:
        value = arguments.get(name)
        if value and Path(value) != Path():
            yield shlex.quote(f"--{name.replace('_', '-')}={value}")
    for name in _SWITCHES:
        if arguments.get(name) is True:
            yield f"--{name.replace('_', '-')}"


def _quoted_json(given: Mapping[str, str]) -> str:
    return shlex.quote(json.dumps(given, ensure_ascii=False))


def typed(value: str) -> str:
    """Return ``value`` as it has to be given to cookiecutter, on one line.

    cookiecutter renders Jinja in the values of its command line and its API, and a line break would
    break the line: such a value is given as a Jinja string, which renders to it.
    """
    if value.isprintable() and not re.search(r"\{[{%#]", value):
        return value
    return "{{ " + ascii(value) + " }}"
