"""Errors that a user can act on."""


class JobError(Exception):
    """A refusal: what is wrong, where, and what to do. Printed without a traceback, exit code 1.

    ``message`` says what and where, ``remedy`` says what to do (may span several lines).
    """

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.message}\n  -> {self.remedy}" if self.remedy else self.message


class RestartableError(Exception):
    """A failure that a restart may end: the supervisor counts it and tries again."""


class OutageError(RestartableError):
    """The cluster does not answer: a command ends, a running job waits.

    ``remedy`` is for the person at a command.
    """

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.remedy = remedy


class UnmountedError(OutageError):
    """A table is not mounted: a running job waits until it is."""

    def __init__(self, message: str) -> None:
        super().__init__(message, "mount it, then try again; nothing was lost (`check` names it)")


class ConflictError(RestartableError):
    """Another transaction has written one of the rows since this one began."""


class StalledError(RestartableError):
    """Rows wait, and neither a batch nor a task has finished for too long."""


class SupersededError(JobError):
    """Another process has started the job: this one must not write any more.

    ``by`` is that process, as the ledger names it.
    """

    def __init__(self, message: str, remedy: str = "", by: str = "") -> None:
        super().__init__(message, remedy)
        self.by = by
