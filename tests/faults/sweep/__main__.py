"""`python -m tests.faults.sweep`: every case that has no result yet; docs/proof.md at the end.

`--only WORDS` plays the cases whose names have these words, whether they have a result or not.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import threading
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from tests.faults.sweep import cases, lanes, page, results
from tests.faults.sweep.play import FAILED, HELD, STALLED
from tests.faults.sweep.worker import HISTORY
from tests.support.project import ROOT

BUILD = ROOT / "build" / "proof"
console = Console(width=150, highlight=False, markup=False)


def main(words: Sequence[str] | None = None) -> int:
    """Return 0 when every case holds that was played, else 1."""
    parser = argparse.ArgumentParser("python -m tests.faults.sweep", description=__doc__)
    parser.add_argument("--only", default="", help="words that the names of the cases have")
    parser.add_argument("--list", action="store_true", help="show the names, play nothing")
    # A lane waits half of the time: for a trigger, a pause, a timeout.
    parser.add_argument("--lanes", type=int, default=2 * (os.cpu_count() or 1))
    parser.add_argument("--count", type=int, default=0, help="so many cases at most")
    parser.add_argument("--minutes", type=float, default=0, help="stop then; a later run goes on")
    parser.add_argument("--again", action="store_true", help="also cases that have a result")
    parser.add_argument("--results", type=Path, default=results.RESULTS, help="where lines go")
    given = parser.parse_args(words)
    wanted = cases.chosen(given.only, cases.all_cases())
    if not wanted:
        parser.error(f"no case has {given.only!r} in its name; --list shows all names")
    if given.list:
        print(*(case.name for case in wanted), sep="\n")
        return 0
    if not given.only:
        wanted = cases.distinct(wanted)
    if not (given.only or given.again):
        left = {*results.pending((case.name for case in wanted), results.read(given.results))}
        wanted = [case for case in wanted if case.name in left]
    wanted = wanted[: given.count] if given.count else wanted
    # Ends like Ctrl-C, so that no worker outlives it.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if given.results == results.RESULTS:
        page.PROVENANCE.parent.mkdir(parents=True, exist_ok=True)
        page.PROVENANCE.write_text(f"{json.dumps(page.provenance(), indent=1)}\n")
    verdicts = _played(wanted, given.lanes, given.results, bool(given.only), given.minutes)
    console.print(", ".join(f"{count} {verdict}" for verdict, count in sorted(verdicts.items())))
    if given.results == results.RESULTS:
        page.write()
    return int(verdicts.total() != verdicts[HELD])


def _played(
    wanted: list[cases.Case], count: int, path: Path, has_history: bool, minutes: float
) -> Counter[str]:
    verdicts: Counter[str] = Counter()
    counted = {case.name for case in cases.distinct(wanted)}
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("cases", total=len(wanted))

        def told(line: results.Line) -> None:
            if line.case in counted:
                results.append(line, path)
            verdicts[line.verdict] += 1
            progress.advance(task)
            progress.update(task, description=f"cases ({verdicts[HELD]} held)")
            if line.verdict != HELD or has_history:
                console.print(f"{line.verdict:8} {line.seconds:5.1f} s  {line.case}  {line.said}")
            if line.verdict in (FAILED, STALLED):
                console.print(f"  -> {line.command}")

        board = lanes.board_of(wanted)
        if minutes:
            timer = threading.Timer(minutes * 60, board.clear)
            timer.daemon = True
            timer.start()
        lanes.run(board, min(count, len(wanted)), BUILD, told, *[HISTORY][: int(has_history)])
    console.print(*board.problems, sep="\n")
    return verdicts


if __name__ == "__main__":
    raise SystemExit(main())
