"""The template's additions to Jinja: filters for free text, the check of the answers, the pins."""

from __future__ import annotations

import sys

from cookiecutter import __version__

from .needs import refuse_old_tools

# Before the rest is imported: an older Python fails at it.
refuse_old_tools(sys.version_info[:2], __version__)

from .extension import TemplateExtension  # noqa: E402

__all__ = ["TemplateExtension"]
