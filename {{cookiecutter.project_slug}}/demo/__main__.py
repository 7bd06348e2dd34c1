"""``make demo``: does the guarantee survive kill -9 at the worst request?"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from minicluster import testing

from .scenario import Result, ScenarioError, play

GUARANTEE = "{{ cookiecutter.guarantee }}"
PROCESSING = "{{ cookiecutter.processing }}"
LOG = Path("build/demo.log")
#: At least once may repeat rows; the other guarantees may not.
MAY_REPEAT = GUARANTEE == "at_least_once"

console = Console(width=100, highlight=False)


def main() -> int:
    """0 when the guarantee held; 1 when it did not, or when the crash could not be played."""
    LOG.parent.mkdir(exist_ok=True)
    LOG.unlink(missing_ok=True)
    with testing.start() as cluster:
        console.print(f"minicluster at {cluster.http}; the job's own log: {LOG}")
        try:
            result = play(cluster, LOG, console.print, _bar)
        except ScenarioError as error:
            console.print(str(error), markup=False, style="red")
            return 1
    _show(result)
    lost, duplicated = result.outcome.lost, result.outcome.duplicated
    return int(lost > 0 or (duplicated > 0 and not MAY_REPEAT))


@contextmanager
def _bar(title: str, goal: int) -> Iterator[Callable[[int], None]]:
    columns = (
        TextColumn("{task.description:14}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("output rows"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console) as progress:
        task = progress.add_task(title, total=goal)
        yield lambda rows: progress.update(task, completed=rows)


def _show(result: Result) -> None:
    figures = {
        "rows_in": result.rows_in,
        "rows_out": result.outcome.rows_out,
        "lost": result.outcome.lost,
        "duplicated": result.outcome.duplicated,
        "kills": result.kills,
        "restarts": result.restarts,
    }
    table = Table(title=f"{GUARANTEE}, {PROCESSING}, {result.queues} queue(s)")
    for name in figures:
        table.add_column(name.replace("_", " "), justify="right")
    table.add_row(*map(str, figures.values()))
    console.print(table)
    if MAY_REPEAT:
        console.print("Repeats are what at_least_once allows: of the batch that was cut off.")
    line = " ".join(f"{name}={value}" for name, value in figures.items())
    print(
        f"RESULT guarantee={GUARANTEE} processing={PROCESSING} queues={result.queues} {line}",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
