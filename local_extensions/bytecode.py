"""Keeps compiled templates: to compile them was a fourth of the time that a project takes."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from jinja2 import BytecodeCache, FileSystemBytecodeCache

# Python keeps the extension's own bytecode there: ignored by git, forgotten by `reloading`.
_FOLDER = Path(__file__).parent / "__pycache__"


def cache() -> BytecodeCache | None:
    """Return Jinja's cache on the disk; None where Python may not or cannot write bytecode either.

    Jinja takes an entry only if the template's text is the same, and replaces whole files.
    """
    if sys.dont_write_bytecode:
        return None
    try:
        _FOLDER.mkdir(exist_ok=True)
    except OSError:
        return None
    return FileSystemBytecodeCache(str(_FOLDER)) if os.access(_FOLDER, os.W_OK) else None
