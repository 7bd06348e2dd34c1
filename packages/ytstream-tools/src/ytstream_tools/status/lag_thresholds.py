"""--max-lag and --max-age of `status`: what cron asks, answered by an exit code."""

import argparse
import re
from collections.abc import Iterator
from dataclasses import dataclass

from ytstream.text_table import counted, duration

from .job_status import JobStatus

EXCEEDED = 4
"""Neither a failure (1), nor wrong usage (2), nor a job that was superseded (3)."""


@dataclass(frozen=True)
class LagThreshold:
    """The most rows that may wait, or the longest that one may."""

    rows: int | None = None
    seconds: float | None = None


def lag(text: str) -> LagThreshold:
    """Return the limit that "5000" or "300s" stands for; raises ArgumentTypeError for others."""
    if re.fullmatch(r"[0-9]+", text):
        return LagThreshold(rows=int(text))
    if match := re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)s", text):
        return LagThreshold(seconds=float(match[1]))
    raise argparse.ArgumentTypeError(f"cannot read {text!r}: rows as 5000, or seconds as 300s")


def age(text: str) -> float:
    """Return the limit that "300" or "300s" stands for; raises ArgumentTypeError for others."""
    if match := re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)s?", text):
        return float(match[1])
    raise argparse.ArgumentTypeError(f"cannot read {text!r}: seconds as 300s")


def exceeded(found: JobStatus, most: LagThreshold | None, oldest: float | None) -> Iterator[str]:
    """Yield a line for each limit that is exceeded."""
    if most is not None and most.rows is not None and found.lag > most.rows:
        yield f"lag: {counted(found.lag, 'row')}, allowed are {most.rows}"
    if most is not None and most.seconds is not None:
        if found.lag_seconds is None:
            yield f"lag: {counted(found.lag, 'row')} wait, and nothing says for how long"
        elif found.lag_seconds > most.seconds:
            waited, allowed = duration(found.lag_seconds), duration(most.seconds)
            yield f"lag: a row has waited {waited}, allowed are {allowed}"
    if oldest is not None:
        if found.age is None:
            yield "no batch has ended yet"
        elif found.age > oldest:
            yield f"the last batch ended {duration(found.age)} ago, allowed are {duration(oldest)}"
