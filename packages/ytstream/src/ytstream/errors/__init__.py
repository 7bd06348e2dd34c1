"""Errors that a user can act on."""

from typing import ClassVar

from .error_codes import ErrorCode


class JobError(Exception):
    """An error that a person can fix. Commands print it without a traceback and exit with 1.

    Args:
        message: what is wrong, and where
        remedy: what to do, in one or more lines
        code: for programs: compare it, not the message
    """

    def __init__(self, message: str, remedy: str = "", *, code: ErrorCode = ErrorCode.USER) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy
        self.code = code

    def __str__(self) -> str:
        return f"{self.message}\n  -> {self.remedy}" if self.remedy else self.message


class RestartableError(Exception):
    """A failure after which the job restarts its query, up to ``most_failures`` times.

    Args:
        message: what has failed
        remedy: what to do. A command that meets the error prints it
        code: for programs: compare it, not the message
    """

    def __init__(
        self,
        message: str = "",
        remedy: str = "try again; nothing was lost",
        *,
        code: ErrorCode = ErrorCode.TRANSIENT,
    ) -> None:
        super().__init__(message)
        self.remedy = remedy
        self.code = code


def code_of(error: BaseException) -> ErrorCode:
    """Return the code of any exception."""
    if isinstance(error, JobError | RestartableError):
        return error.code
    return ErrorCode.UNEXPECTED


class OutageError(RestartableError):
    """The cluster does not answer: a command ends, a running job waits."""

    waits_for: ClassVar[str] = "the cluster"
    """What a running job waits for, and how often its log says so."""
    reminder_seconds: ClassVar[float] = 60.0

    def __init__(
        self, message: str, remedy: str = "", *, code: ErrorCode = ErrorCode.OUTAGE
    ) -> None:
        super().__init__(message, remedy, code=code)


class UnmountedError(OutageError):
    """A table is not mounted: a running job waits until it is."""

    def __init__(self, message: str) -> None:
        remedy = "mount it, then try again; nothing was lost (`check` names it)"
        super().__init__(message, remedy, code=ErrorCode.UNMOUNTED)


class FullAccountError(OutageError):
    """The account has no room: a running job waits until it has.

    ``account`` is its name; empty if the cluster did not say it.
    """

    waits_for = "room in the account"
    reminder_seconds = 600.0

    def __init__(self, message: str, account: str = "") -> None:
        remedy = (
            "remove data of the account, or ask its owner for a larger quota: the job then goes on"
        )
        super().__init__(message, remedy, code=ErrorCode.QUOTA)
        self.account = account


class ConflictError(RestartableError):
    """Another transaction has written one of the rows since this one began."""


class StalledError(RestartableError):
    """Rows wait, and neither a batch nor a task has finished for too long."""

    def __init__(self, message: str = "") -> None:
        super().__init__(message, code=ErrorCode.STALLED)


class SupersededError(JobError):
    """Another process has started the job: this one must not write any more.

    ``by`` is that process, as the ledger names it.
    """

    def __init__(self, message: str, remedy: str = "", by: str = "") -> None:
        super().__init__(message, remedy, code=ErrorCode.SUPERSEDED)
        self.by = by
