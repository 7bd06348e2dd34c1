"""How many files a process may have open: `ulimit -n`."""

import errno
import os
import resource

from . import JobError
from .error_codes import ErrorCode

LEAST = 512
"""What Spark with SPYT opens before its first batch: about 300 jars and libraries, and connections.
"""
SAID = os.strerror(errno.EMFILE)
"""What Java says of it, in a trace of any depth."""
REMEDY = (
    "allow more in the shell, then start again: ulimit -n 4096; where that is not permitted, ask "
    "whoever sets the limits (limits.conf, LimitNOFILE of systemd, --ulimit of Docker)"
)


def verify() -> None:
    """Raise JobError where a JVM with Spark could not open its files.

    A JVM raises the soft limit to the hard one (OpenJDK, the option MaxFDLimit).
    """
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if 0 <= hard < LEAST:  # RLIM_INFINITY is -1
        raise exhausted(f"Spark with SPYT needs {LEAST}")


def is_exhausted(error: BaseException) -> bool:
    """Return whether an error says that no more files can be opened."""
    return isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE)


def exhausted(why: str = "") -> JobError:
    """Return the error of a process that can open no more files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = f"{soft}, at most {hard}" if soft != hard else f"{soft}"
    return JobError(
        f"too few open files: this process may have {allowed}" + (f", and {why}" if why else ""),
        REMEDY,
        code=ErrorCode.OPEN_FILES,
    )
