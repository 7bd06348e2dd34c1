"""The template's additions to Jinja: filters for free text, the check of the answers, the pins."""

from __future__ import annotations

import sys
from importlib.metadata import version

from .needs import refuse_old_tools

# Before the rest is imported: an older Python fails at it.
refuse_old_tools(sys.version_info[:2], version("cookiecutter"))

from .extension import TemplateExtension  # noqa: E402

__all__ = ["TemplateExtension"]
