"""The extension that cookiecutter loads, and what its filters refuse.

Every filter for free text gives the *inside* of a double-quoted string, and the quotes are in the
template: ``name = "{{ cookiecutter.project_name | toml }}"``. So a template file is valid in its
own language before it is rendered.
"""

from __future__ import annotations

from typing import Any

import click
from jinja2 import Environment
from jinja2.ext import Extension

from . import (
    answers,
    bytecode,
    commands,
    options,
    organisation,
    origin,
    reloading,
    rules,
    text,
    versions,
    wheels,
)
from .callers import Call, current_call
from .problem import Problem


class TemplateExtension(Extension):
    """Named in ``_extensions`` of cookiecutter.json; made before the first question."""

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        environment.filters |= {
            "toml": text.quoted,
            "yaml": text.quoted,
            "json": text.quoted,
            "python": text.python,
            "markdown": text.markdown,
            "slug": answers.slug,
            "checked": checked,
            "after_the_pair": after_the_pair,
        }
        environment.globals |= {
            "pin": versions.pin,
            "action": versions.action,
            "requirement": versions.requirement,
            "locks": versions.LOCKS,
            "confs": rules.confs,
            "own_packages": wheels.requirements,
            "ytstream_version": wheels.version("ytstream"),
            "wheels_builder": str(wheels.__file__),
            "template_version": origin.VERSION,
            "template_commit": lambda: origin.commit(answers.TEMPLATE),
        }
        reloading.forget_the_extension()
        environment.bytecode_cache = bytecode.cache()
        call = current_call()
        if problems := list(options.problems(call.given)):
            _refuse(call, {}, problems)
        _check_replayed(call)


def _check_replayed(call: Call) -> None:
    """Refuse answers that come from a replay file and would not give a working project.

    They are not asked for, so ``checked`` does not see them. Where the file lacks an option,
    cookiecutter asks for it first, and makes another extension before it writes.

    Raises what ``_refuse`` raises.
    """
    answered = options.public(call.replayed)
    is_whole = answered and options.offered().keys() <= answered.keys()
    if is_whole and (problems := answers.found(answered)):
        _refuse(call, answered, problems)


def checked(given: dict[str, Any]) -> str:
    """Refuse answers that would not give a working project, all of them at once.

    Runs as cookiecutter's first private variable: by then every option is answered, and no folder
    is made yet. The answers are put into their stored form here, and the organisation's beside
    them, so that replay files, .cruft.json and the project agree.

    Raises what ``_refuse`` raises, with one line per problem, and the command that keeps the
    others.
    """
    call = current_call()
    stored = answers.stored({**options.public(given), **organisation.values(call)})
    if problems := answers.found(stored):
        _refuse(call, stored, problems)
    given.update(stored)
    return "yes"


def after_the_pair(default: str, given: dict[str, Any]) -> str:
    """Return ``default``, of the first question after both, unless the pair cannot be.

    cookiecutter renders the questions in their order: what was given for later ones is in its call
    alone.

    Raises what ``_refuse`` raises, for a guarantee that does not go with the processing.
    """
    answered = options.public(given)
    if problems := list(answers.pair_problems(answered)):
        _refuse(current_call(), answered, problems)
    return default


def _refuse(call: Call, answered: dict[str, str], problems: list[Problem]) -> None:
    """End the call with one message: a line per problem, and the command that keeps the others.

    A ClickException is the one error of an extension that cookiecutter's command line shows as a
    message and not as a traceback. cruft's (typer) shows that one as a traceback, too.

    Raises click.ClickException; under cruft SystemExit.
    """
    again = commands.keeping(call, answered, problems)
    lines = [*answers.shortened(problems), f"to keep the other answers, type: {again}"]
    if call.command.startswith("cruft"):
        raise SystemExit("Error: " + "\n".join(lines))
    raise click.ClickException("\n".join(lines))
