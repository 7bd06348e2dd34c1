"""The template's additions to Jinja: filters for free text, the check of the answers, the pins.

Every filter for free text gives the *inside* of a double-quoted string, and the quotes are in the
template: ``name = "{{ cookiecutter.project_name | toml }}"``. So a template file is valid in its
own language before it is rendered.
"""

from __future__ import annotations

import sys
from typing import Any

import click
from jinja2 import Environment
from jinja2.ext import Extension

from . import answers, settings, text, versions, wheels


class TemplateExtension(Extension):
    """Named in ``_extensions`` of cookiecutter.json."""

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        environment.filters |= {
            "toml": text.quoted,
            "yaml": text.quoted,
            "json": text.quoted,
            "python": text.python,
            "markdown": text.markdown,
            "slug": answers.slug,
            "problems": lambda given: "\n".join(answers.problems(given)),
            "checked": checked,
            "after_the_pair": after_the_pair,
        }
        environment.globals |= {
            "pin": versions.pin,
            "requirement": versions.requirement,
            "locks": versions.LOCKS,
            "confs": settings.confs,
            "own_packages": wheels.requirements,
            "ytstream_version": wheels.version("ytstream"),
            "wheels_builder": str(wheels.__file__),
        }


def checked(given: dict[str, Any]) -> str:
    """Refuse answers that would not give a working project, all of them at once.

    Runs as cookiecutter's first private variable: by then every option is answered, and no folder
    is made yet. A ClickException is the one error of an extension that cookiecutter's command line
    shows as a message and not as a traceback. The queues are put into their stored order here, so
    that replay files, .cruft.json and the project agree.

    Raises click.ClickException with one line per problem, and the command that keeps the others.
    """
    options = {name: value for name, value in given.items() if not name.startswith("_")}
    unknown = answers.unknown(sys.argv, options)
    problems = [*(problem for problem, _ in unknown), *answers.problems(options)]
    if problems:
        meant = options | {name: value for _, meaning in unknown for name, value in meaning.items()}
        raise click.ClickException("\n".join([*problems, *answers.kept(meant, problems)]))
    given["queue_paths"] = " ".join(answers.queues(given))
    return "yes"


def after_the_pair(default: str, given: dict[str, Any]) -> str:
    """Return ``default``, of the first question after both, unless the pair cannot be.

    cookiecutter renders the questions in their order: what was given for later ones is on its
    command line alone.

    Raises click.ClickException for a guarantee that does not go with the processing.
    """
    answered = {**answers.on_command_line(sys.argv), **given}
    prompts = "--no-input" not in sys.argv
    if problems := list(answers.pair_problems(answered, prompts=prompts)):
        raise click.ClickException("\n".join(problems))
    return default
