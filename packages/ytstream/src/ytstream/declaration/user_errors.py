"""Names the line of the user's files in which an error came up."""

import re
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from ..errors import JobError
from ..errors.error_codes import ErrorCode
from ..job import PROCESSINGS, Job

_FOREIGN = {"ytstream", "ytstream_tools", "pyspark", "py4j", "spyt", "site-packages", "__main__.py"}
"""Folders and files of code that is not the user's; on a cluster some are inside archives."""


_PACKAGES = {name for kind in PROCESSINGS.values() for name in kind.packages}
"""Packages that a processing type needs in addition to SPYT's, and what to do if one is missing."""
BRING = (
    "on this machine run `make setup`; docs/operations.md tells how packages come to a cluster, "
    'under "The processing"'
)


_FORMER: Mapping[str, str] = {"made_for": "remove the line made_for=... from job.py"}
"""Arguments of Job that former versions took -> the lines of job.py to change."""

_WITHOUT_SPARK = (
    "Spark is not there yet when a module is imported: give a function's type as an object, "
    '@F.udf(LongType()) of pyspark.sql.types and not @F.udf("long"), or make the function, or '
    "the column, inside transform()"
)


def place(error: BaseException) -> str:
    """Return " (transform.py:12)" for the innermost line of the user's, or nothing."""
    frames = traceback.extract_tb(error.__traceback__)
    return _innermost((frame.filename, frame.lineno) for frame in frames)


def place_in(trace: str) -> str:
    """Return the same for a traceback as text, as Spark quotes those of Python functions."""
    return _innermost(re.findall(r'^ *File "(.+)", line (\d+)', trace, re.MULTILINE))


def _innermost(frames: Iterable[tuple[str, object]]) -> str:
    for name, line in reversed([*frames]):
        file = Path(name)
        is_pythons = name.startswith("<") or file.is_relative_to(sys.base_prefix)
        # The frames of compiled modules name their sources (.pyx, .pxi).
        if file.suffix == ".py" and not is_pythons and not _FOREIGN & {*file.parts}:
            return f" ({file.name}:{line})"
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
        where = f"{Path(error.filename).name}:{error.lineno}: " if error.filename else f"{what}: "
        raise JobError(
            f"{where}{error.msg}", "correct that line", code=ErrorCode.USER_CODE
        ) from error
    except BaseException as error:  # sys.exit() among them
        # ImportError names the file that it looked into, which is seldom the one to correct.
        text = str(error).replace(f" ({getattr(error, 'path', None)})", "")
        remedy = f"correct {'that line' if place(error) else 'it'}; nothing was started"
        if isinstance(error, ModuleNotFoundError) and error.name in _PACKAGES:
            remedy = f"{BRING}; a job of another processing has to do without"
        for name in _FORMER:
            if isinstance(error, TypeError) and f"keyword argument '{name}'" in text:
                remedy = f"{_FORMER[name]}; nothing was started"
        if _is_for_want_of_spark(error):
            remedy = f"{_WITHOUT_SPARK}; nothing was started"
        kind = type(error).__name__ + (f": {text}" if text else "")
        raise JobError(f"{what}: {kind}{place(error)}", remedy, code=ErrorCode.USER_CODE) from error


def _is_for_want_of_spark(error: BaseException) -> bool:
    """Return whether PySpark has asked for a session where there is none.

    It says so where it parses a type; where it makes a column, it asserts without a word.
    """
    frames = traceback.extract_tb(error.__traceback__)
    is_in_pyspark = bool(frames) and "pyspark" in Path(frames[-1].filename).parts
    is_said = "SparkContext or SparkSession should be created first" in str(error)
    return is_in_pyspark and (is_said or isinstance(error, AssertionError))
