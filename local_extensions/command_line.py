"""The command line that renders the template: its answers, and the same command with good ones.

cookiecutter hands an extension no arguments, and drops names that are not in cookiecutter.json. So
the extension parses ``sys.argv`` again, with the parser of the tool. A program that calls
cookiecutter or cruft as a library has no such command line: its unknown names are dropped.
"""

from __future__ import annotations

import functools
import json
import re
import shlex
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from . import answers

TEMPLATE = Path(__file__).absolute().parent.parent

_WITH_A_VALUE = (
    "checkout", "directory", "config_file", "output_dir", "project_dir", "template_path",
)  # fmt: skip
_SWITCHES = (
    "no_input", "default_config", "overwrite_if_exists", "skip_if_file_exists",
    "cookiecutter_input", "skip_apply_ask", "allow_untracked_files",
)  # fmt: skip
_UPDATES = ("cruft update", "cruft diff")
_ADDRESSES = ("queue_paths", "cypress_root", "yt_proxy", *answers.SETTINGS)
_OPEN = "..."


class Call(NamedTuple):
    """A command, its arguments by name, and the answers.

    They are given, in .cruft.json, of a replay, or in ``default_context`` of the configuration.
    """

    command: str = "cookiecutter"
    arguments: Mapping[str, Any] = {}
    given: Mapping[str, Any] = {}
    stored: Mapping[str, Any] = {}
    replayed: Mapping[str, Any] = {}
    configured: Mapping[str, Any] = {}


@functools.cache
def current_call() -> Call:
    """Return the command line of this process, or an empty call if it is another program's.

    Cached, because cookiecutter runs a hook in the folder of the project: a relative path of the
    command line does not lead to its file there.
    """
    program = Path(sys.argv[0])
    tool = program.parent.name if program.name == "__main__.py" else program.stem
    if tool == "cookiecutter":
        return _call_of_cookiecutter(sys.argv[1:])
    return _call_of_cruft(*sys.argv[1:]) if tool == "cruft" else Call()


def _call_of_cookiecutter(words: list[str]) -> Call:
    from cookiecutter.cli import main

    arguments = main.make_context("cookiecutter", words, resilient_parsing=True).params
    given = arguments.get("extra_context") or {}
    configuration = answers.configuration(arguments)
    replayed = _replayed(arguments, configuration["replay_dir"])
    configured = configuration["default_context"] or {}
    return Call("cookiecutter", arguments, given, replayed=replayed, configured=configured)


def _replayed(arguments: Mapping[str, Any], folder: str) -> Mapping[str, Any]:
    """Return the answers of a replay, with those to questions that its file lacks.

    cookiecutter writes all of them into its replay folder before it renders the first file.
    """
    file = arguments.get("replay_file")
    if not file and not arguments.get("replay"):
        return {}
    name = Path(file).stem if file else TEMPLATE.name
    return _cookiecutter_of(_read(Path(folder, f"{name}.json")))


def _call_of_cruft(command: str = "", *words: str) -> Call:
    from cruft._cli import app
    from typer.main import get_command

    commands: Mapping[str, Any] = getattr(get_command(app), "commands", {})
    if command not in commands:
        return Call()
    context = commands[command].make_context(command, [*words], resilient_parsing=True)
    arguments = context.params
    given = json.loads(arguments.get("extra_context") or "{}")
    file = _read(arguments.get("extra_context_file"))
    configured = answers.configuration(arguments)["default_context"] or {}
    if f"cruft {command}" not in _UPDATES:
        return Call(f"cruft {command}", arguments, file or given, configured=configured)
    given = {**_cookiecutter_of(file), **given} if _renders_the_new_commit() else {}
    project = Path(arguments.get("project_dir") or ".")
    stored = _cookiecutter_of(_read(project / ".cruft.json"))
    return Call(f"cruft {command}", arguments, given, stored, configured=configured)


def _renders_the_new_commit() -> bool:
    """Tell which of the two renders of `cruft update` this is.

    It renders the recorded commit first, without the answers that are given for the new one, into
    the folder current_template next to its clone (``update`` of cruft/_commands/update.py).
    """
    clone = next(folder for folder in (TEMPLATE, *TEMPLATE.parents) if (folder / ".git").exists())
    return any(clone.parent.glob("current_template/*"))


def _read(file: str | Path | None) -> dict[str, Any]:
    """Return what a JSON file has, or nothing if it is not there."""
    if not file or not Path(file).is_file():
        return {}
    found = json.loads(Path(file).read_text(encoding="utf-8"))
    return found if isinstance(found, dict) else {}


def _cookiecutter_of(file: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answers in a replay file, whose top is ``cookiecutter``, or in .cruft.json."""
    found: dict[str, Any] = file.get("context", file).get("cookiecutter") or {}
    return found


def keeping(call: Call, answered: Mapping[str, str], problems: list[answers.Problem]) -> str:
    """Return one line for a POSIX shell: the good answers, the fixed ones, ``...`` for the others.

    ``answered`` is rendered already. Answers to later questions come from the call, unrendered.
    ``cruft update`` takes the others from .cruft.json, so its line has the changed ones only.
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
    named = {*call.given, *fixed, *to_answer}
    names = [*answers.offered(), *(name for name in answers.SETTINGS if name in named)]
    good = {name: known[name] for name in names if name in known.keys() - to_answer}
    return " ".join(_words(call, {**good, **{name: _OPEN for name in names if name in to_answer}}))


def _as_given(given: Mapping[str, Any]) -> dict[str, str]:
    """Return the answers of a call, with Jinja that is not rendered yet."""
    texts = {name: value for name, value in given.items() if isinstance(value, str)}
    return {name: value if value.isprintable() else typed(value) for name, value in texts.items()}


def _may_hold_a_secret(name: str, value: str) -> bool:
    """Tell whether this may be a URL with a token in it. Such an answer fails a check."""
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
        yield shlex.quote(str(call.arguments.get("template", TEMPLATE)))
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
    """Return ``value`` as it must be given to cookiecutter, on one line.

    cookiecutter renders Jinja in the values of its command line and its API, and a line break would
    break the line: such a value is given as a Jinja string, which renders to it.
    """
    if value.isprintable() and not re.search(r"\{[{%#]", value):
        return value
    return "{{ " + ascii(value) + " }}"
