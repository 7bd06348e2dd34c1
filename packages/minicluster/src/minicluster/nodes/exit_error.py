"""How a process ended, as the error of its job (library/process/process.cpp)."""

from __future__ import annotations

from ..core.errors import (
    JOB_TIME_LIMIT_EXCEEDED,
    PROCESS_EXITED,
    PROCESS_SIGNALLED,
    USER_JOB_FAILED,
    YtError,
    generic,
)


def error_of(status: int, *, too_long: bool = False) -> YtError | None:
    """Return the error for an exit code, or for a signal as a negative number; None for 0."""
    if too_long:
        reason = YtError(JOB_TIME_LIMIT_EXCEEDED, "Job time limit exceeded")
    elif status == 0:
        return None
    elif status > 0:
        message = f"Process exited with code {status}"
        reason = YtError(PROCESS_EXITED, message, {"exit_code": status})
    else:
        message = f"Process terminated by signal {-status}"
        reason = YtError(PROCESS_SIGNALLED, message, {"signal": -status, "core_dumped": False})
    return YtError(USER_JOB_FAILED, "User job failed", {}, [reason])


def not_prepared(error: Exception) -> YtError:
    """Return the error of a job whose sandbox could not be made."""
    inner = [generic(f"{type(error).__name__}: {error}")]
    return YtError(1, "Failed to prepare job artifacts", {}, inner)
