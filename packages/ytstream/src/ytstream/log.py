"""The job's log: one line a fact, with date and level. docs/log.md explains the lines.

INFO is what happens in any run. WARNING is for rows that are in no output and for what hinders
the job while it goes on by itself. ERROR is the last line of a command that fails.
"""

import logging
import os
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from .errors.error_codes import ErrorCode

_log = logging.getLogger("job")

_TIME = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"
_FAILED_LINE = re.compile(rf"(?:error|{_TIME} ERROR) \[(\w+)\]:? ")
"""Begins the line that says why a command has failed, with the error's code."""


class Event(StrEnum):
    """What programs wait for: each begins its lines, whatever follows there."""

    RUNNING = "running"
    """A query runs, after recovery."""
    FAILURE = "failure"
    """A query has failed; the job tries again."""


_COLOURS = {logging.WARNING: "\033[33m", logging.ERROR: "\033[31m"}
_PLAIN = "\033[0m"


def say(line: str) -> None:
    """Write one line to standard error, which YTsaurus keeps of every job."""
    _log.info("%s", line)


def warn(line: str) -> None:
    """Write a line that a person may have to act on."""
    _log.warning("%s", line)


def fail(text: str, code: ErrorCode) -> None:
    """Write why the command fails: as a line of its log, if it has begun one.

    ``text`` may span several lines. The code is in the first one, for failure_in().
    """
    if _lines.has_begun:
        _log.error("[%s] %s", code, text)
    else:
        print(f"error [{code}]: {text}", file=sys.stderr)


def failure_in(lines: Sequence[str]) -> tuple[int, str] | None:
    """Return where the last failure begins in what a command wrote, and its code; None if none."""
    for number in reversed(range(len(lines))):
        if found := _FAILED_LINE.match(lines[number]):
            return number, found[1]
    return None


def events_in(text: str, event: Event) -> int:
    """Return how many lines of a log are of this event."""
    return len(re.findall(rf"^{_TIME} \w+ {event}\b", text, re.MULTILINE))


@dataclass
class GrowthThresholds:
    """Decides when to log a growing figure: above its limit, then each time it has doubled."""

    _figures: dict[str, float] = field(default_factory=dict)

    def is_new(self, what: str, figure: float, limit: float) -> bool:
        """Return whether to say the figure of ``what`` now."""
        if figure < max(limit, 2 * self._figures.get(what, 0)):
            return False
        self._figures[what] = figure
        return True


class _Lines(logging.StreamHandler):  # type: ignore[type-arg]
    """Writes to standard error; knows whether it has written a line of the job."""

    has_begun = False

    def emit(self, record: logging.LogRecord) -> None:
        self.has_begun |= record.name == _log.name
        super().emit(record)

    def format(self, record: logging.LogRecord) -> str:
        """Colour a line by its level, for a person at a terminal (https://no-color.org)."""
        line, colour = super().format(record), _COLOURS.get(record.levelno)
        is_plain = os.environ.get("NO_COLOR") or not self.stream.isatty()
        return line if colour is None or is_plain else f"{colour}{line}{_PLAIN}"


_lines = _Lines()


def set_up() -> None:
    """Configure logging for a command."""
    logging.basicConfig(
        format="%(asctime)s %(levelname)s %(message)s",
        datefmt="%Y-%m-%d %H:%M:%S",
        handlers=[_lines],
    )
    _log.setLevel(logging.INFO)
    logging.getLogger().addFilter(_is_not_of_py4j)
    # PySpark logs errors as JSON and also raises them.
    for kind in ("DataFrame", "SQL"):
        logging.getLogger(f"{kind}QueryContextLogger").setLevel(logging.CRITICAL)


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    """Leave out py4j's traceback of a lost connection, which it logs as root and raises as well.

    See GatewayClient.send_command; a filter of the root logger sees no records of other loggers.
    """
    return record.module != "java_gateway"
