"""Names the line of the user's files in which an error came up."""

import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from .errors import JobError
from .job import Job

#: Folders of code that is not the user's; on a cluster some of them are inside archives.
_FOREIGN = {"ytstream", "pyspark", "py4j", "spyt", "site-packages"}


def place(error: BaseException) -> str:
    """Return " (transform.py:12)" for the innermost line of the user's, or nothing."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        file = Path(frame.filename)
        is_pythons = frame.filename.startswith("<") or file.is_relative_to(sys.base_prefix)
        if not is_pythons and not _FOREIGN & {*file.parts}:
            return f" ({file.name}:{frame.lineno})"
    return ""


def imported(import_job: Callable[[], Job]) -> Job:
    """Return the job of job.py. Raises JobError for an error in it or in a file it imports."""
    with user_code("the job cannot be imported"):
        return import_job()


@contextmanager
def user_code(what: str) -> Iterator[None]:
    """Raise JobError for any error of the user's code, naming ``what`` failed and the line."""
    try:
        yield
    except (JobError, KeyboardInterrupt):
        raise
    except SyntaxError as error:
        file = Path(error.filename or "one of its files").name
        raise JobError(f"{file}:{error.lineno}: {error.msg}", "correct that line") from error
    except BaseException as error:  # sys.exit() among them
        raise JobError(
            f"{what}: {type(error).__name__}: {error}{place(error)}",
            "correct that line; nothing was started",
        ) from error
