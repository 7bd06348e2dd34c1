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
    *("[CAST_", "[DIVIDE_BY_ZERO", "[ARITHMETIC_OVERFLOW", "[NUMERIC_VALUE_OUT_OF_RANGE"),
    *("[CANNOT_PARSE_TIMESTAMP", "PythonException", "Illegal value", "out of allowed range"),
    *("Cannot find Spark field", "Cannot find YT columns", "cannot have null value"),
    *("Required column", "Access denied"),
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
    """What happened: the last line of a Python trace, Java's last cause, or the message."""
    lines = [line for line in text.splitlines() if line.strip()]
    if "Traceback (most recent call last):" in text:  # of a Python function in transform()
        start = next(n for n, line in enumerate(lines) if "Traceback (most" in line)
        return _shortened(
            next((line for line in lines[start + 1 :] if line[0] != " "), lines[start])
        )
    causes = [line for line in lines if line.startswith("Caused by:")]
    line = causes[-1].removeprefix("Caused by:") if causes else (lines or [text])[0]
    return _shortened(line.rpartition("terminated with exception: ")[2].strip())


def _shortened(text: str, limit: int = 400) -> str:
    return text if len(text) <= limit else f"{text[:limit]}..."
