"""promtool, which Debian has in the package prometheus."""

from __future__ import annotations

import shutil


def promtool() -> str:
    """Return its path. Raises FileNotFoundError with what to install."""
    found = shutil.which("promtool")
    if found is None:
        command = "apt-get install --no-install-recommends prometheus"
        raise FileNotFoundError(f"promtool is missing: {command}")
    return found
