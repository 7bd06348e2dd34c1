"""The extension that cookiecutter loads: its filters and globals, and how Jinja loads templates.

Every filter for free text gives the *inside* of a double-quoted string, and the quotes are in the
template: ``name = "{{ cookiecutter.project_name | toml }}"``. So a template file is valid in its
own language before it is rendered.
"""

from __future__ import annotations

import importlib
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import click
from jinja2 import BytecodeCache, Environment, FileSystemBytecodeCache
from jinja2.ext import Extension

from . import answers, command_line, locks, text, versions, wheels
from .command_line import TEMPLATE, Call, current_call

# Python keeps the extension's own bytecode there. git ignores it, and `forget_the_extension`
# removes it.
_CACHE = Path(__file__).parent / "__pycache__"


class TemplateExtension(Extension):
    """Named in ``_extensions`` of cookiecutter.json. Made before the first question."""

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        environment.filters |= {
            "toml": text.quoted,
            "yaml": text.quoted,
            "json": text.quoted,
            "python": text.python,
            "markdown": text.markdown,
            "digest": text.digest,
            "slug": answers.slug,
            "checked": checked,
            "after_the_pair": after_the_pair,
        }
        environment.globals |= {
            "pin": versions.pin,
            "action": versions.action,
            "requirement": versions.requirement,
            "locked": locks.requirements,
            "megabytes": locks.megabytes,
            "confs": confs,
            "own_packages": wheels.requirements,
            "ytstream_version": wheels.version("ytstream"),
            "wheels_builder": str(wheels.__file__),
            "template_version": versions.TEMPLATE_VERSION,
            "template_commit": lambda: versions.commit(TEMPLATE),
        }
        call = current_call()
        forget_the_extension()
        environment.bytecode_cache = compiled_templates()
        _check_configured(call)
        if problems := list(answers.unknown(call.given)):
            _refuse(call, {}, problems)
        _check_replayed(call)


class Conf(NamedTuple):
    """One setting. ``since`` is the first Spark version that knows it in this form."""

    key: str
    value: str
    reason: str
    since: str = "3.5"


def confs(guarantee: str, processing: str, spark: str) -> Iterator[Conf]:
    """Yield the settings of a job's session and the options of its reader and writer."""
    rules = answers.RULES["processing"][processing]
    is_stateful = "state" in rules and not rules.get("has_totals_in_table")
    state = "stateful" if is_stateful else "stateless"
    table = answers.RULES["conf"]
    stores = [] if state == "stateless" else table["state_store"]["rocksdb"]
    listed = [*table["common"], *table[state], *stores, *table["guarantee"][guarantee]]
    session = {conf.key: conf for entry in listed if (conf := Conf(*entry)).since <= spark}
    yield from session.values()
    for part in ("reader", f"writer_{state}", "sink"):
        yield from (Conf(*entry) for entry in table[part])


def _verify_replay_folder(folder: Path) -> None:
    """Verify that cookiecutter can keep the answers, which it does before it renders (main.py).

    Where HOME is read-only it would end with a traceback.

    Raises click.ClickException.
    """
    there = next(path for path in (folder, *folder.parents) if path.exists())
    if not there.is_dir() or not os.access(there, os.W_OK):
        raise click.ClickException(
            f"cookiecutter keeps the answers in {folder}, and {there} cannot be written into\n"
            "set HOME to a folder that you can write into, or name a file with another replay_dir: "
            "--config-file FILE"
        )


def _check_configured(call: Call) -> None:
    """Refuse a configuration whose answers cookiecutter has dropped before it loaded this.

    Raises what ``_end`` raises.
    """
    answered = {**call.stored, **call.replayed, **call.given}
    if lines := answers.dropped(call.configured, answered):
        file = answers.configuration_file(call.arguments)
        _end(call, [*lines, f"correct default_context of {file}, then type the same command again"])


def _check_replayed(call: Call) -> None:
    """Refuse answers that come from a replay file and would not give a working project.

    ``checked`` does not see them, because cookiecutter renders no private variable again.

    Raises what ``_refuse`` raises.
    """
    answered = answers.public(call.replayed)
    is_whole = answered and answers.offered().keys() <= answered.keys()
    if is_whole and (problems := answers.found(answered)):
        _refuse(call, answered, problems)


def checked(given: dict[str, Any]) -> str:
    """Refuse answers that would not give a working project, all of them at once.

    Runs as cookiecutter's first private variable: by then every option is answered, and no folder
    is made yet. ``given`` gets the answers in their stored form, and those of the organisation, so
    that replay files, .cruft.json and the project agree.

    Raises what ``_refuse`` raises, with one line per problem, and the command that keeps the
    others.
    """
    call = current_call()
    # Read here: while files are written, cookiecutter works in the template's folder, where a
    # relative name of the configuration means another file.
    configured = answers.configuration(call.arguments)
    if call.command == "cookiecutter" and call.arguments:  # another program says where
        _verify_replay_folder(Path(configured["replay_dir"]).absolute())
    defaults = configured.get("default_context") or {}
    settings = answers.settings(call.given, call.stored, defaults)
    stored = answers.stored({**answers.public(given), **settings})
    if problems := answers.found(stored):
        _refuse(call, stored, problems)
    given.update(stored)
    return "yes"


def after_the_pair(default: str, given: dict[str, Any]) -> str:
    """Return ``default``, of the first question after both, unless the pair cannot be.

    cookiecutter renders the questions in their order. Answers to later ones are in the call only.

    Raises what ``_refuse`` raises, for a guarantee that does not go with the processing.
    """
    answered = answers.public(given)
    if problems := list(answers.pair_problems(answered)):
        _refuse(current_call(), answered, problems)
    return default


def _refuse(call: Call, answered: dict[str, str], problems: list[answers.Problem]) -> None:
    """End the call with one message: a line per problem, and the command that keeps the others.

    Raises what ``_end`` raises.
    """
    again = command_line.keeping(call, answered, problems)
    _end(call, [*answers.shortened(problems), f"to keep the other answers, type: {again}"])


def _end(call: Call, lines: list[str]) -> None:
    """End the call with one message.

    A ClickException is the one error of an extension that cookiecutter's command line shows as a
    message and not as a traceback. cruft's (typer) shows a traceback for it.

    Raises click.ClickException, or SystemExit under cruft.
    """
    if call.command.startswith("cruft"):
        raise SystemExit("Error: " + "\n".join(lines))
    raise click.ClickException("\n".join(lines))


def compiled_templates() -> BytecodeCache | None:
    """Return Jinja's cache on the disk, or None if Python does not write bytecode there either.

    Compiling the templates took a fourth of the time of a render. Jinja takes an entry only if the
    template's text is the same, and replaces whole files.
    """
    if sys.dont_write_bytecode:
        return None
    try:
        _CACHE.mkdir(exist_ok=True)
    except OSError:
        return None
    return FileSystemBytecodeCache(str(_CACHE)) if os.access(_CACHE, os.W_OK) else None


def forget_the_extension() -> None:
    """Under cruft, let the next render import the extension from its files again.

    `cruft update` checks the recorded and the new commit out into one folder, one after the other.
    Python would give the new commit the modules of the recorded one: from ``sys.modules``, or from
    bytecode, which it takes for current if source files have the same size and the same second.
    Elsewhere each process renders one commit.
    """
    if "cruft" not in sys.modules:
        return
    package = __name__.partition(".")[0]
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        del sys.modules[name]
    shutil.rmtree(_CACHE, ignore_errors=True)
    importlib.invalidate_caches()
