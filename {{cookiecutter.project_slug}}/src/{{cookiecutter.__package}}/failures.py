"""Spark's exceptions, sorted into what a restart may cure and what it cannot."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException, StreamingQueryException

from .errors import JobError, RestartableError

#: What no restart cures: the same row, plan or schema fails again. Parts of messages, Spark's
#: conditions ("[CAST_INVALID_INPUT] ...") among them.
_FATAL = (
    "[CAST_",
    "[DIVIDE_BY_ZERO",
    "[ARITHMETIC_OVERFLOW",
    "[NUMERIC_VALUE_OUT_OF_RANGE",
    "[CANNOT_PARSE_TIMESTAMP",
    "PythonException",
    "Illegal value",
    "Cannot find Spark field",
    "Cannot find YT columns",
    "cannot have null value",
    "Required column",
    "Access denied",
)


@contextmanager
def explained_spark() -> Iterator[None]:
    """Turn Spark's exceptions into one line each.

    Raises JobError for what fails again however often it is tried, RestartableError for the rest.
    """
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        raise classified(error) from error
    except (Py4JError, ConnectionError) as error:
        raise JobError(
            f"the JVM is gone: {_shortened(str(error))}", "look for its own message above"
        ) from error


def classified(error: PySparkException | Py4JJavaError) -> Exception:
    """JobError for what fails again whatever one does, RestartableError for the rest."""
    text = str(error)
    line = cause(text)
    is_from_the_stream = isinstance(error, StreamingQueryException | Py4JJavaError)
    if not is_from_the_stream or any(part in text for part in _FATAL):
        return JobError(
            f"the job cannot go on: {line}",
            "correct transform.py (try_cast gives null for what cannot be cast) or the data; the "
            "batch was not committed and runs again at the next start",
        )
    return RestartableError(line)


def cause(text: str) -> str:
    """What happened, out of a Java stack trace: the last "Caused by", else the first message."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    causes = [line for line in lines if line.startswith("Caused by:")]
    if causes:
        return _shortened(causes[-1].removeprefix("Caused by:").strip())
    informative = [line for line in lines if not line.startswith(("at ", "==="))]
    for line in informative:
        if "Exception: " in line or "Error: " in line or line.startswith("["):
            return _shortened(line)
    return _shortened(informative[0] if informative else text)


def _shortened(text: str, limit: int = 400) -> str:
    return text if len(text) <= limit else f"{text[:limit]}..."
