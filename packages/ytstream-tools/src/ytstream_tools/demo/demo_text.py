"""``make demo``: does the guarantee survive kill -9 at the worst request?"""

from __future__ import annotations

import fcntl
import itertools
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from minicluster import testing
from ytstream.errors import JobError
from ytstream.errors.error_codes import ErrorCode
from ytstream.job import REJECTED, Job
from ytstream.schema.columns import key_of
from ytstream.schema.string_values import shown
from ytstream.text_table import counted

from .crash_scenario import DemoResult, play
from .demo_batches import table_of
from .demo_tables import OutputCounts
from .job_sample import Sample, compared
from .unexpected_rejects import kept_out

DIFFERENCES = 3
"""Rows that are shown of each side."""
LOGS = Path("build")

console = Console(width=100, highlight=False)


def main(job: Job, sample: Sample) -> int:
    """Return 0 when the guarantee held, else 1. Raises JobError when the crash cannot be played."""
    with own_log(LOGS) as log, _minicluster() as cluster:
        console.print(f"minicluster at {cluster.http}; the job's own log: {log}")
        result = play(job, sample, cluster, log, console.print, bar)
    show(job, result)
    return int(not is_kept(job, result))


@contextmanager
def _minicluster() -> Iterator[testing.Running]:
    try:
        with testing.start() as cluster:
            yield cluster
    except testing.StartError as error:
        raise JobError(
            f"the minicluster did not start: {error}",
            "try again when the machine has less to do, or correct what it says",
            code=ErrorCode.COMMAND_FAILED,
        ) from error


def is_kept(job: Job, result: DemoResult) -> bool:
    """Return whether the guarantee held, and every row was read."""
    return are_kept(job, result.outcomes) and result.history.rows_read == result.rows_in


def are_kept(job: Job, outcomes: Mapping[str, OutputCounts]) -> bool:
    """Return whether no row is lost, and none repeated that may not be."""
    return all(
        one.lost == 0 and (one.duplicated == 0 or may_repeat(job, name))
        for name, one in outcomes.items()
    )


@contextmanager
def own_log(folder: Path, stem: str = "demo") -> Iterator[Path]:
    """Give an empty file demo.log in ``folder``, or demo-2.log ... while other demos run there."""
    folder.mkdir(exist_ok=True)
    for number in itertools.count(1):
        name = f"{stem}-{number}.log" if number > 1 else f"{stem}.log"
        with (folder / name).open("a") as log:
            try:
                fcntl.flock(log, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                continue
            log.truncate(0)
            yield folder / name
            return


def may_repeat(job: Job, output: str = "output") -> bool:
    """Return whether rows may repeat: at least once allows it, in a table without a key.

    The tables of a static output are published once under every guarantee.
    """
    is_open = not key_of(job.output_columns[output]) and output not in job.static
    return job.guarantee == "at_least_once" and is_open


@contextmanager
def bar(title: str, goal: int) -> Iterator[Callable[[int, int], None]]:
    """Show the progress as a line on the screen: a Watch."""
    columns = (
        TextColumn("{task.description:14}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("rows read, {task.fields[written]} in output"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console) as progress:
        task = progress.add_task(title, total=goal, written=0)
        yield lambda read, written: progress.update(task, completed=read, written=written)


def differences(job: Job, outcome: OutputCounts, output: str = "output") -> Table | None:
    """Return the first missing and unexpected rows, face to face; None when there are none."""
    if not outcome.lost and (not outcome.duplicated or may_repeat(job, output)):
        return None
    table = Table(title=f"{output}: first rows that differ, by column")
    for name in ("column", "expected, but missing", f"in {output}, but not expected"):
        table.add_column(name)
    sides = (sorted(rows, key=str)[:DIFFERENCES] for rows in (outcome.missing, outcome.unexpected))
    for missing, unexpected in itertools.zip_longest(*sides):
        for position, column in enumerate(compared(job, output)):
            cells = [escape(shown(row[position])) if row else "" for row in (missing, unexpected)]
            style = "bold" if cells[0] != cells[1] else None
            table.add_row(column.name, *cells, style=style)
        table.add_section()
    return table


def show(job: Job, result: DemoResult) -> None:
    """Show what came of it, and end with one RESULT line."""
    figures = {
        "rows_in": result.rows_in,
        "rows_out": result.outcome.rows_out,
        **further(result.outcomes),
        "lost": result.outcome.lost,
        "duplicated": result.outcome.duplicated,
        "kills": result.kills,
        "restarts": result.restarts,
    }
    table = Table(title=f"{job.guarantee}, {job.processing}, {counted(result.queues, 'queue')}")
    for name in figures:
        table.add_column(name.replace("_", " "), justify="right")
    table.add_row(*map(str, figures.values()))
    console.print(table)
    found = (differences(job, outcome, name) for name, outcome in result.outcomes.items())
    shown = [difference for difference in found if difference is not None]
    if shown:
        console.print(*shown, sep="\n")
        console.print(
            "Rows that differ: correct transform.py, or what sample/ expects. Rows that are lost "
            "or repeated as they are: report it, with the job's log."
        )
    if remark := kept_out(job, result.outcomes):
        console.print(remark, markup=False)
    if may_repeat(job):
        console.print("at_least_once allows repeats of the batch that was cut off.")
    show_history(job, result)
    line = " ".join(f"{name}={value}" for name, value in figures.items())
    print(
        f"RESULT guarantee={job.guarantee} processing={job.processing} queues={result.queues} "
        f"{line}",
        flush=True,
    )


def further(outcomes: Mapping[str, OutputCounts]) -> dict[str, int]:
    """Return the rows of the outputs after the first: `rejected`, and `rows_NAME` of others."""
    rows = {name: one.rows_out for name, one in outcomes.items() if name != "output"}
    more = {f"rows_{name}": count for name, count in rows.items() if name != REJECTED}
    return {name: rows[name] for name in rows if name == REJECTED} | more


def show_history(job: Job, result: DemoResult) -> None:
    """Show the batches, and one query that says whether all rows were read."""
    history = result.history
    console.print(table_of(history, [*job.outputs], job.totals))
    same = "as many" if history.rows_read == result.rows_in else "NOT as many"
    line = f"{history.rows_read} rows read, {same} as were put in"
    written = sum(history.rows_written.values())
    if job.processing == "map" and job.split is None:
        parts = " + ".join(map(str, history.rows_written.values()))
        line += f", {written} written ({parts})" if job.rejects else f", {written} written"
    if result.outcome.rows_out > history.rows_written["output"] and job.processing == "map":
        line += "; the output also holds what the batch that was cut off had written"
    console.print(f"{line}; one query over the ledger:")
    console.print(f"  {history.query}", markup=False, soft_wrap=True)
    what = dict.fromkeys(job.totals, " contributions")
    counts = (f"{name} = {n}{what.get(name, '')}" for name, n in history.rows_written.items())
    console.print(f"  read = {history.rows_read}, {', '.join(counts)}")
