"""Paths for what cannot hold every character: shell scripts, class paths, lists and URIs."""

import hashlib
import os
import re
import tempfile
from pathlib import Path

from ..errors import JobError
from ..errors.error_codes import ErrorCode

_PLAIN = re.compile(r"[A-Za-z0-9_./-]+")
"""Spark's load-spark-env.sh and SPYT's spark-env.sh expand paths without quotes; a class path ends
at ":", a list at ","; a URI means something by "#", "%" and "+"; Java in an ASCII locale knows no
other letters."""


def plain(path: Path) -> Path:
    """Return the path, or a link to it whose own path has only letters, digits and ``_.-``.

    The link is the user's own and named by what it leads to, so it is made once for all processes.
    Raises JobError where none can be made.
    """
    if _PLAIN.fullmatch(str(path)):
        return path
    name = hashlib.sha256(os.fsencode(path)).hexdigest()[:16]
    for folder in dict.fromkeys((tempfile.gettempdir(), "/tmp", "/var/tmp")):
        link = Path(folder, f"ytstream-{os.getuid()}-{name}")
        if _PLAIN.fullmatch(folder) and _leads(link, path):
            return link
    raise JobError(
        f"{path}: Spark's start scripts cannot take this path, and /tmp takes no link to it",
        "move the repository into a folder whose path has only letters, digits, `_`, `-` and `.`",
        code=ErrorCode.FILE,
    )


def plain_file(file: Path) -> Path:
    """Return the file in its folder's plain path: its own name stays, which others see."""
    return plain(file.parent) / file.name


def _leads(link: Path, path: Path) -> bool:
    """Make the link unless it is there; return whether it is ours and leads to the path."""
    try:
        link.symlink_to(path)
    except FileExistsError:
        pass
    except OSError:
        return False
    # Others may write into /tmp, too, but cannot replace a link of ours (the sticky bit).
    return link.is_symlink() and link.lstat().st_uid == os.getuid() and link.readlink() == path
