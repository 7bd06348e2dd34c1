"""`make proof`: every case that has no result for the runtime that is checked out.

`--only WORDS` plays the cases whose names have these words, whether they have a result or not. When
all cases have one, docs/proof gets the summary, the page and the picture.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain, zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from local_extensions.versions import SPARK, SPARK_VERSIONS
from tests.faults.sweep import cases, counts, page, page_check, results, stumbles, summary, workers
from tests.faults.sweep.driver import SLOWER
from tests.faults.sweep.recording import SEED
from tests.faults.sweep.results import BUILD
from tests.faults.sweep.worker import HISTORY
from tests.faults.variants import Variant
from tests.support.verdict import HELD, NOT_HELD
from tools import proof_digest

_CASE, _RECORDING = {False: 1.5, True: 3.5}, 8.0
"""Seconds of one core, measured: a case by whether it has state, and the recording of a variant."""
_WAITING = {cases.AWAY_LONG: 30.0, cases.FULL_LONG: 65.0}
"""Of cases that wait."""
_OF_A_VARIANT = 20
"""So many cases of a sample are of one variant, which costs a recording."""
console = Console(width=150, highlight=False, markup=False)


def main(words: Sequence[str] | None = None) -> int:
    """Return 0 when every case of a job holds that was played, else 1.

    What comes of the control is a figure, and a case that missed its point shows nothing.
    """
    parser = argparse.ArgumentParser("python -m tests.faults.sweep", description=__doc__)
    parser.add_argument("--only", default="", help="words that the names of the cases have")
    parser.add_argument("--list", action="store_true", help="show the names, play nothing")
    # A worker waits half of the time: for a trigger, a pause, a timeout.
    cores = os.cpu_count() or 1
    parser.add_argument("--lanes", type=int, default=2 * cores, help="so many workers at once")
    parser.add_argument("--sample", type=int, default=0, help="so many cases, of a few variants")
    parser.add_argument(
        "--stumbles", action="store_true", help="jobs with state, on a cluster that stumbles"
    )
    parser.add_argument("--minutes", type=float, default=0, help="stop then; a later run goes on")
    parser.add_argument("--again", action="store_true", help="also cases that have a result")
    parser.add_argument("--check", type=Path, help="a file of results, which is held to the page")
    parser.add_argument("--seed", type=int, default=SEED, help="which of its cases are played")
    parser.add_argument("--spark", default=SPARK, choices=SPARK_VERSIONS, help="of the workers")
    parser.add_argument("--results", type=Path, help="where lines go")
    given = parser.parse_args(words)
    given.results = given.results or results_of(given.spark)
    if given.check:
        return _checked(given.check, given.sample or page_check.CHECKED, given.seed, given.lanes)
    # A name may be of a case that the proof leaves out.
    wanted = cases.chosen(given.only, cases.of_proof())
    wanted = wanted or cases.chosen(given.only, cases.all_cases())
    if not wanted:
        parser.error(f"no case has {given.only!r} in its name; --list shows all names")
    if given.stumbles:
        wanted = cases.chosen(given.only, cases.sampled_stumbles())
    if given.sample:
        wanted = (cases.leading if given.stumbles else sample)(wanted, given.sample)
    if given.list:
        print(*(case.name for case in wanted), sep="\n")
        print(f"{len(wanted)} cases, {sum(case.variant.is_listing for case in wanted)} of control")
        return 0
    parts = results.parts()
    if not given.only:
        known = results.of_parts(results.read(given.results), parts)
        left = {*results.pending((case.name for case in wanted), known)}
        console.print(f"{len(wanted) - len(left)} of {len(wanted)} cases have a result.")
        wanted = [case for case in wanted if case.name in left]
    console.print(f"{len(wanted)} cases take {told(seconds_of(wanted, os.cpu_count() or 1))}.")
    console.print("Ctrl-C ends the run. The next one continues where it was.")
    if SLOWER != 1:
        said = "so all limits are other ones than the page says. No result is written."
        console.print(f"SLOWER is {SLOWER:g}, {said}")
    # Ends like Ctrl-C, so that no worker outlives it.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        lines = _played(
            wanted,
            parts,
            given.lanes,
            given.results,
            bool(given.only),
            given.minutes,
            given.spark,
        )
    except KeyboardInterrupt:
        console.print("Interrupted. The results until here are kept.")
        return 130
    jobs = [line for line in lines if line.of == results.PROOF]
    control = [line for line in lines if line not in jobs]
    # An operator restarts the control after half of the patience, and nobody a job.
    for of, found in (("jobs", jobs), ("control: times are not comparable", control)):
        if found:
            console.print(_table(of, counts.tally(found)))
    if given.stumbles:
        names = stumbles.wanted()
        kept = results.of_parts(results.read(given.results), parts)
        known = [line for line in kept if line.case in names]
        console.print(_table("stumbles so far", counts.tally(known, "variant")))
        console.print(*counts.slowest(known), sep="\n")
    if given.results == results.RESULTS:
        _summarise(parts)
    return exit_code(Counter(line.verdict for line in jobs))


def results_of(spark: str) -> Path:
    """Return where results of a Spark go. The page is made of those of the default one."""
    return results.RESULTS if spark == SPARK else BUILD / f"spark-{spark}.jsonl"


def _checked(path: Path, count: int, seed: int, lanes: int) -> int:
    """Hold a file of results to the page, play some of its cases; return 1 if they differ."""
    try:
        path.stat()  # for read(), a file that is not there yet has no lines
        parts, lines = results.parts(), results.read(path)
    except (OSError, ValueError, TypeError) as error:
        console.print(f"{path} cannot be read as results: {error}")
        console.print(f"-> give the file that the release has, or {proof_digest.SAMPLE}")
        return 2
    shown = summary.read()
    problems = [*page_check.of_file(path, shown, parts)]
    before = page_check.drawn(results.of_parts(lines, parts), count, seed)
    if not before:
        console.print(*problems, f"{path} has no case of what is checked out", sep="\n")
        return 2
    console.print(f"{len(lines)} lines. {len(before)} cases are played again, by the seed {seed}.")
    known = {case.name: case for case in cases.all_cases()}
    with TemporaryDirectory() as folder:
        wanted = [known[line.case] for line in before if line.case in known]
        again = _played(wanted, parts, lanes, Path(folder, proof_digest.RESULTS), False, 0)
    problems += page_check.differences(before, again)
    is_sample = proof_digest.checksum(path) == shown.sample
    console.print(*page_check.said(len(lines), before, is_sample=is_sample), sep="\n")
    agreed = "Whatever was checked agrees."
    console.print(*problems or [agreed], sep="\n")
    return int(bool(problems))


def exit_code(jobs: Counter[str]) -> int:
    """Return 1 for verdicts with one that counts against the job, and where no case held."""
    is_wrong = any(jobs[verdict] for verdict in NOT_HELD)
    return int(is_wrong or (jobs.total() > 0 and not jobs[HELD]))


def _table(of: str, rows: Sequence[Sequence[str]]) -> Table:
    """Return what came of the cases."""
    table = Table("", *counts.TALLIED, title=of)
    for row in rows:
        table.add_row(*row)
    return table


def sample(wanted: Sequence[cases.Case], count: int) -> list[cases.Case]:
    """Return ``count`` cases, of so few variants that recordings take less time than cases.

    The variants alternate: with state and without, on both connectors, and those of the control.
    """
    source = random.Random(SEED)
    kinds: dict[tuple[object, ...], list[Variant]] = {}
    for variant in dict.fromkeys(case.variant for case in wanted):
        kind = variant.is_listing, variant.connector, variant.is_stateful
        kinds.setdefault(kind, []).append(variant)
    mixed = [source.sample(known, len(known)) for known in kinds.values()]
    found: list[cases.Case] = []
    for chosen in filter(None, chain.from_iterable(zip_longest(*mixed))):
        own = [case for case in wanted if case.variant == chosen]
        found += source.sample(own, min(len(own), _OF_A_VARIANT, count - len(found)))
    return found


def seconds_of(wanted: Sequence[cases.Case], cores: int) -> float:
    """Return about how long these cases take."""
    variants = len({case.variant.name for case in wanted})
    seconds = sum(_WAITING.get(case.fault, _CASE[case.variant.is_stateful]) for case in wanted)
    return (seconds + variants * _RECORDING) / cores


def told(seconds: float) -> str:
    """Return a length of time in words."""
    return (
        f"about {seconds / 3600:.1f} hours" if seconds > 5400 else f"about {seconds / 60:.0f} min"
    )


def _summarise(parts: Mapping[str, str]) -> None:
    """Write what docs/proof has once every case has a result. Stumbles have a summary alone."""
    if stumbled := stumbles.of_runtime(parts):
        stumbles.write(stumbled)
        page.write(summary.read())
    found = summary.of_runtime(parts)
    if found.left:
        console.print(f"{found.left} of {found.cases} cases have no result: its summary stays.")
        return
    found = replace(found, sample=summary.write_sample(parts))
    summary.write(found)
    page.write(found)


def _played(
    wanted: list[cases.Case],
    parts: Mapping[str, str],
    count: int,
    path: Path,
    has_history: bool,
    minutes: float,
    spark: str = SPARK,
) -> list[results.Line]:
    """Play the cases; return their results."""
    lines: list[results.Line] = []
    held = 0
    counted = {case.name for case in cases.of_proof()}
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("cases", total=len(wanted))

        def heard(line: results.Line) -> None:
            nonlocal held
            line = replace(line, digest=results.digest_of(line.case, parts))
            if line.case in counted and SLOWER == 1:
                results.append(line, path)
            lines.append(line)
            held += line.verdict == HELD
            progress.advance(task)
            progress.update(task, description=f"cases ({held} held)")
            if line.verdict != HELD or has_history:
                console.print(f"{line.verdict:8} {line.seconds:5.1f} s  {line.case}  {line.said}")
            if line.verdict in NOT_HELD:
                console.print(f"  -> {line.command}")

        board = workers.board_of(wanted)
        if minutes:
            timer = threading.Timer(minutes * 60, board.clear)
            timer.daemon = True
            timer.start()
        words = [HISTORY][: int(has_history)]
        workers.run(board, min(count, len(wanted)), BUILD, heard, *words, spark=spark)
    console.print(*board.problems, sep="\n")
    return lines


if __name__ == "__main__":
    raise SystemExit(main())
