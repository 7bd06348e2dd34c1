"""Spark's exceptions, sorted into what a restart may cure and what it cannot."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException, StreamingQueryException

from .errors import JobError, RestartableError
from .state import FAILURES as STATE_FAILURES

#: What no restart cures: the same row, plan or schema fails again. Parts of messages, Spark's
#: conditions ("[CAST_INVALID_INPUT] ...") among them.
_FATAL = (
    *("[CAST_", "[DIVIDE_BY_ZERO", "[ARITHMETIC_OVERFLOW", "[NUMERIC_VALUE_OUT_OF_RANGE"),
    *("[CANNOT_PARSE_TIMESTAMP", "PythonException", "Illegal value", "out of allowed range"),
    *("Cannot find Spark field", "Cannot find YT columns", "cannot have null value"),
    *("Required column", "Access denied", "[USER_RAISED_EXCEPTION]", *STATE_FAILURES),
)

#: The frames' lines are indented, the exception's is not.
_PYTHON_TRACE = re.compile(r"Traceback \(most recent call last\):\n(?:(?: .*)?\n)*(\S.*)")


@contextmanager
def explained_spark() -> Iterator[None]:
    """Turn Spark's exceptions into one line each.

    Raises JobError for what fails again however often it is tried, RestartableError for the rest.
    """
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        text = str(error)
        is_from_the_stream = isinstance(error, StreamingQueryException | Py4JJavaError)
        if is_from_the_stream and not any(part in text for part in _FATAL):
            raise RestartableError(cause(text)) from error
        remedy = "correct transform.py (try_cast gives null for what cannot be cast) or the data"
        if any(part in text for part in STATE_FAILURES):
            remedy = (
                "restore the checkpoint or the former transform.py; or `rewind`: an empty state"
            )
        raise JobError(
            f"the job cannot go on: {cause(text)}", f"{remedy}; what was committed stays"
        ) from error
    except (Py4JError, ConnectionError) as error:
        raise JobError(
            f"the JVM is gone: {_shortened(str(error))}", "look for its own message above"
        ) from error


def cause(text: str) -> str:
    """What happened: the last line of a Python trace, Java's last cause, or the message."""
    if python := _PYTHON_TRACE.search(text):  # of a Python function in transform()
        return _shortened(python[1])
    causes = re.findall(r"^Caused by:(.*)", text, re.MULTILINE)
    line = causes[-1] if causes else next(filter(str.strip, text.splitlines()), text)
    return _shortened(line.rpartition("terminated with exception: ")[2].strip())


def _shortened(text: str, limit: int = 400) -> str:
    return text if len(text) <= limit else f"{text[:limit]}..."
