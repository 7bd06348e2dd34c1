"""``make bench``: figures of this machine, as tables and as files.

python -m bench [NAME ...] [--into FOLDER] [--again] [--tiny]    eight rows without a name
python -m bench list                               the names, and the eight
python -m bench page [--into FOLDER]               docs/performance.md, from what is stored
python -m bench generation | rows | memory | million    the template's, and the minicluster's
BESIDE=CHECKOUT python -m bench beside    rows, compared with the minicluster of another commit

A name whose results are stored already is shown and not measured again, so a run that was cut off
continues; ``--again`` measures it. ``--tiny`` shows that all works: its figures mean nothing.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench import (
    arrivals,
    generation,
    measure,
    memory,
    million,
    page,
    rows,
    screen,
    starts,
    stored,
)
from bench.cases import (
    CASES,
    CURVES,
    EIGHT,
    FULL,
    OF_CURVES,
    STARTS,
    TINY,
    TOGETHER,
    Case,
    Size,
)

ALONE: dict[str, Callable[[], Iterable[Table]]] = {
    "generation": generation.tables,
    "rows": rows.tables,
    "memory": memory.tables,
    "million": million.tables,
    "beside": rows.beside,
    "list": screen.offered,
}
"""Names that store nothing."""
ARRIVALS = {arrivals.BACKLOG: arrivals.backlog, arrivals.LATENCY: arrivals.latency}
PAGE = "page"


class Bench:
    """Measures what is not stored yet, and shows it."""

    def __init__(self, folder: Path, size: Size, *, again: bool) -> None:
        self._folder, self._size, self._again = folder, size, again
        self._began = time.monotonic()

    def tables(self, name: str) -> Iterator[Table]:
        """Yield the tables of a name."""
        if name in ALONE:
            yield from ALONE[name]()
        elif name in CURVES:
            yield from screen.of_curve(name, [self._case(case) for case in CURVES[name][1]])
        elif name in OF_CURVES:
            curve, case = OF_CURVES[name]
            yield from screen.of_curve(curve, [self._case(case)])
        elif name in STARTS:
            yield from screen.of_starts(self._starts(name))
        elif name in ARRIVALS:
            measured = ARRIVALS[name]
            yield screen.of_arrivals(
                name, self._stored(name, lambda: measured(self._size, self._say(name)))
            )
        else:
            for one in TOGETHER.get(name, (name,)):
                yield from screen.of_case(self._case(CASES[one]))

    def _case(self, case: Case) -> stored.Found:
        def run() -> stored.Found:
            about = {"case": case.written(), "ways": case.ways, "title": case.title}
            sized = {"batch_rows": case.batch_rows(self._size)}
            return {**about, **sized, **measure.measured(case, self._size, self._say(case.name))}

        return self._stored(case.name, run)

    def _starts(self, name: str) -> stored.Found:
        return self._stored(
            name, lambda: starts.measured(*STARTS[name], self._size, self._say(name))
        )

    def _stored(self, name: str, run: Callable[[], stored.Found]) -> stored.Found:
        if not self._again and (found := stored.read(self._folder, name)) is not None:
            self._say(name)("is stored already")
            return found
        began = time.monotonic()
        made = run()
        stored.write(self._folder, name, self._size, {**made, "took": time.monotonic() - began})
        return stored.read(self._folder, name) or {}

    def _say(self, name: str) -> Callable[[str], None]:
        def say(text: str) -> None:
            passed = timedelta(seconds=round(time.monotonic() - self._began))
            print(f"{passed} {name}: {text}", file=sys.stderr, flush=True)

        return say


def main(words: list[str]) -> int:
    """Print the tables of the benchmarks named; return 2 for an unknown name."""
    parser = argparse.ArgumentParser("python -m bench")
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--into", type=Path, metavar="FOLDER", help="where results are stored")
    parser.add_argument("--again", action="store_true", help="measure what is stored as well")
    parser.add_argument("--tiny", action="store_true", help="few rows: to see that all works")
    given = parser.parse_args(words)
    known = [*CASES, *STARTS, *ARRIVALS, *CURVES, *OF_CURVES, *ALONE, PAGE]
    if unknown := [name for name in given.names if name not in known]:
        print(f"no benchmark {unknown[0]}; there are: {', '.join(known)}", file=sys.stderr)
        return 2
    folder = given.into or (stored.TINY if given.tiny else stored.RESULTS)
    bench = Bench(folder, TINY if given.tiny else FULL, again=given.again)
    for name in given.names or EIGHT:
        if name == PAGE:
            print(page.write(folder, given.into))
            continue
        for table in bench.tables(name):
            Console(width=None if sys.stdout.isatty() else 160).print(table)
    return 0


if __name__ == "__main__":
    # So that it ends what it has started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    sys.exit(main(sys.argv[1:]))
