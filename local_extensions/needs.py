"""The tools that generating needs. An older Python has to be able to import this module."""

from __future__ import annotations

import re
import sys

PYTHON = (3, 11)
# The first with __prompts__ and with the folder templates/.
COOKIECUTTER = (2, 2)
# What 2.2.0 says of itself is 2.1.2.dev0.
_SAYS = (2, 1, 2)


def refuse_old_tools(python: tuple[int, ...], cookiecutter: str) -> None:
    """End the process with one line if the template cannot be rendered with these versions.

    cookiecutter imports the extension before its first question, so nothing has been written. Both
    cookiecutter and cruft show any other exception of an import as a traceback.

    Raises SystemExit.
    """
    found = tuple(int(number) for number in re.findall(r"\d+", cookiecutter)[:3])
    if python < PYTHON:
        sys.exit(
            f"Error: this template needs Python {_dotted(PYTHON)} or later for cookiecutter, and"
            f" this is Python {_dotted(python)}. Install cookiecutter with a newer one:"
            " pipx install --force --python python3.11 cookiecutter"
        )
    if found < _SAYS:
        sys.exit(
            f"Error: this template needs cookiecutter {_dotted(COOKIECUTTER)} or later, and this is"
            f" {cookiecutter}. Install a newer one: pipx install --force cookiecutter"
        )


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
