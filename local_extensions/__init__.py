"""The template's extension of Jinja, which cookiecutter imports before its first question.

An older Python must be able to read this file: it ends the process in words.
"""

from __future__ import annotations

import re
import sys

from cookiecutter import __version__

PYTHON = (3, 11)
# The first with __prompts__ and with the folder templates/.
COOKIECUTTER = (2, 2)
# 2.2.0 reports its version as 2.1.2.dev0.
_REPORTED = (2, 1, 2)


def refuse_old_tools(python: tuple[int, ...], cookiecutter: str) -> None:
    """End the process with one line if the template cannot be rendered with these versions.

    Nothing has been written yet. Both cookiecutter and cruft show any other exception of an import
    as a traceback.

    Raises SystemExit.
    """
    found = tuple(int(number) for number in re.findall(r"\d+", cookiecutter)[:3])
    if python < PYTHON:
        sys.exit(
            f"Error: this template needs Python {_dotted(PYTHON)} or later for cookiecutter, and"
            f" this is Python {_dotted(python)}. Install cookiecutter with a newer one:"
            " pipx install --force --python python3.11 cookiecutter"
        )
    if found < _REPORTED:
        sys.exit(
            f"Error: this template needs cookiecutter {_dotted(COOKIECUTTER)} or later, and this is"
            f" {cookiecutter}. Install a newer one: pipx install --force cookiecutter"
        )


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


# Before the rest is imported: an older Python fails at it.
refuse_old_tools(sys.version_info[:2], __version__)

from .extension import TemplateExtension  # noqa: E402

__all__ = ["TemplateExtension"]
