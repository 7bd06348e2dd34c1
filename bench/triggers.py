"""A job that says when Spark's triggers with rows began and ended.

    python -m bench.triggers FILE PACKAGE [WORD ...]

Runs ``python -m PACKAGE run WORD ...`` in this process; each micro-batch is a line of FILE: its
rows, and the seconds since 1970 of its begin and its end.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Trigger:
    """One trigger that had rows: all of its planning, its micro-batch, its commit."""

    rows: int
    begin: float
    end: float


def main(file: Path, package: str, words: list[str]) -> None:
    """Run the job, and write down each trigger that its monitor hears of."""
    import runpy

    from ytstream.connector import pyspark_internals
    from ytstream.query import progress

    heard = pyspark_internals.progress_since

    def hear(*given: Any) -> Iterator[Any]:
        for facts in heard(*given):
            if facts["numInputRows"]:
                _say(file, trigger_of(facts))
            yield facts

    vars(progress)["progress_since"] = hear
    sys.argv = [package, "run", *words]
    runpy.run_module(package, run_name="__main__", alter_sys=True)


def trigger_of(facts: Mapping[str, Any]) -> Trigger:
    """Return the trigger that Spark's progress tells of."""
    begin = datetime.fromisoformat(facts["timestamp"].replace("Z", "+00:00")).timestamp()
    seconds = facts["durationMs"]["triggerExecution"] / 1000
    return Trigger(facts["numInputRows"], begin, begin + seconds)


def read(file: Path) -> list[Trigger]:
    """Return the triggers that were written down."""
    if not file.exists():
        return []
    lines = (line.split() for line in file.read_text(encoding="utf-8").splitlines())
    return [Trigger(int(rows), float(begin), float(end)) for rows, begin, end in lines]


def _say(file: Path, trigger: Trigger) -> None:
    with file.open("a", encoding="utf-8") as out:
        print(trigger.rows, trigger.begin, trigger.end, file=out)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:])
