"""A name for a user that the system does not know, as in a container with a user id of its own.

Java calls such a user "?", with the home folder "?"; Hadoop refuses to log in without a name.
"""

import os
import pwd
import tempfile
from pathlib import Path

from .plain_path import plain


def missing_name() -> str | None:
    """Return the name that this process goes by; None if the system has one for it."""
    try:
        pwd.getpwuid(os.getuid())
    except KeyError:
        return f"uid{os.getuid()}"
    return None


def java_options(name: str) -> str:
    """Return the options of a JVM whose user goes by this name."""
    home = Path(os.environ.get("HOME") or "/nonexistent")
    usable = home if os.access(home, os.W_OK) else Path(tempfile.gettempdir())
    return f"-Duser.name={name} -Duser.home={plain(usable)}"
