"""`tests.faults.two_drivers`: two drivers, the older one paused, late or killed in a batch."""

from __future__ import annotations

import argparse
import itertools
import json
import os
import re
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol, TypeVar

from rich.console import Console
from rich.table import Table
from yt.common import YtError

from minicluster.client import ControlError
from tests.faults.two_drivers import side_by_side
from tests.faults.two_drivers.cases import CASES
from tests.faults.two_drivers.job_site import (
    EndedError,
    Site,
    SpoiltError,
    project_of,
    site_of,
    verify_goes_on,
)
from tests.faults.two_drivers.play import Result, play
from tests.faults.two_drivers.side_by_side import Row
from tests.faults.variants import Variant
from tests.support.jvm import submit_args
from tests.support.project import ROOT
from tests.support.verdict import ENDED, FAILED, HELD

LOGS = ROOT / "build" / "crash-matrix"
COLUMNS = ("case", "seconds", "lost", "repeated", "what happened", "verdict")

console = Console(width=140, highlight=False, markup=False)


class Named(Protocol):
    """A case: what is played on a site of its variant."""

    @property
    def name(self) -> str: ...

    @property
    def variant(self) -> Variant: ...


C = TypeVar("C", bound=Named)


def main(words: Sequence[str] | None = None) -> int:
    """Return 0 when every case holds, else 1."""
    return run(__doc__, CASES, play, words)


def run(
    said: str | None,
    known: Sequence[C],
    play: Callable[[C, Site], Result],
    words: Sequence[str] | None,
) -> int:
    """Play the cases that ``--only`` names, show their figures; return 0 when each one holds."""
    parser = argparse.ArgumentParser(description=said)
    parser.add_argument("--only", default="", help="a regular expression of the names to play")
    parser.add_argument("--list", action="store_true", help="show the names, play nothing")
    parser.add_argument("--lanes", type=int, default=1, help="so many processes side by side")
    parser.add_argument("--json", action="store_true", help="print each row as JSON, and no table")
    given = parser.parse_args(words)
    cases = [case for case in known if re.search(given.only, case.name)]
    if not cases:
        parser.error(f"no case has {given.only!r} in its name; --list shows all names")
    if given.list:
        print(*(case.name for case in cases), sep="\n")
        return 0
    # Ends like Ctrl-C, so that no driver outlives it: one of them may be paused.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    os.environ.setdefault("YTSTREAM_SUBMIT_ARGS", submit_args())
    LOGS.mkdir(parents=True, exist_ok=True)
    rows = _rows(cases, play)
    if given.lanes > 1:
        spec = sys.modules["__main__"].__spec__
        assert spec is not None  # `python -m`
        rows = side_by_side.played(spec.name, side_by_side.shared(_names(cases), given.lanes))
    return _told_as_json(rows) if given.json else _told(rows, len(cases))


def _told_as_json(rows: Iterable[Row]) -> int:
    """Print each row as a line of JSON; return 0 when each one holds."""
    failed = 0
    for row in rows:
        print(json.dumps(row), flush=True)
        failed += row[-1] != HELD
    return int(failed > 0)


def _told(rows: Iterable[Row], count: int) -> int:
    """Print each row, and a table of all at the end; return 0 when each one holds."""
    table = Table(*COLUMNS, title=f"{count} cases", caption=f"logs of the drivers: {LOGS}")
    table.columns[0].overflow = "fold"
    failed = 0
    try:
        for row in rows:
            console.print("  ".join(row))
            table.add_row(*row)
            failed += row[-1] != HELD
    finally:  # also when it was interrupted
        console.print(table)
    return int(failed > 0)


def _names(cases: Iterable[C]) -> dict[str, list[str]]:
    """Return the names of cases by their variant."""
    names: dict[str, list[str]] = {}
    for case in cases:
        names.setdefault(case.variant.name, []).append(case.name)
    return names


def _rows(cases: Sequence[C], play: Callable[[C, Site], Result]) -> Iterator[Row]:
    """Play the cases; yield their rows of the table."""
    for variant, group in itertools.groupby(cases, lambda case: case.variant):
        yield from _rows_of(variant, [*group], play)


def _rows_of(
    variant: Variant, cases: Sequence[C], play: Callable[[C, Site], Result]
) -> Iterator[Row]:
    """Play the cases of one variant; yield their rows of the table."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as sites:
        project = project_of(variant, Path(folder))
        site: Site | None = None
        for case in cases:
            started = time.monotonic()
            if site is None:
                site = sites.enter_context(site_of(variant, project, LOGS))
            figures, verdict = ("", "", ""), HELD
            try:
                result = play(case, site)
                if site.driver is not None:
                    verify_goes_on(site.driver)
                tables = result.tables
                figures = str(tables.lost), str(tables.repeated), result.ended
                verdict = HELD if result.holds else "; ".join((FAILED, *tables.examples))
            except EndedError as error:
                verdict = f"{ENDED}: {error}"
            except (SpoiltError, ControlError, YtError, OSError) as error:
                verdict = f"{FAILED}: {error}"
            if verdict != HELD:  # the next case shall not suffer from it
                sites.close()
                site = None
            yield (case.name, f"{time.monotonic() - started:.0f}", *figures, verdict)


if __name__ == "__main__":
    raise SystemExit(main())
