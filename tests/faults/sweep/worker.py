"""`tests.faults.sweep.worker FOLDER`: plays the cases that it is told, one a line.

A line of standard input is a case's name. The answer is a line that begins with RESULT, and before
it, where the case is of another variant than the last one, RECORDED. FOLDER gets the history of
each case that does not hold.
"""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from dataclasses import asdict
from pathlib import Path

from tests.faults.sweep import cases, history, lab, results
from tests.faults.sweep.judging import Result, unplayed
from tests.faults.sweep.play import play
from tests.faults.sweep.recording import SEED, Recording, recorded
from tests.support.jvm import submit_args
from tests.support.verdict import NOT_HELD, STALLED

RESULT, READY, RECORDED = "RESULT ", "READY", "RECORDED"
HISTORY = "--history"
"""Keep the histories of cases that hold, too."""


def main(folder: Path) -> None:
    """Play until the input ends, or until a case has stalled: its threads may hang for ever."""
    commit = results.commit()
    os.environ.setdefault("YTSTREAM_SUBMIT_ARGS", submit_args())
    with lab.opened() as opened:
        recording: Recording | None = None
        known = {case.name: case for case in cases.all_cases()}
        print(READY, flush=True)
        for text in sys.stdin:
            case = known[text.strip()]
            if recording is None or recording.variant != case.variant:
                recording = recorded(case.variant, opened)
                print(RECORDED, flush=True)
            started = time.monotonic()
            result = _played(case, recording)
            line = line_of(case.name, result, time.monotonic() - started, commit)
            if result.verdict in NOT_HELD or HISTORY in sys.argv:
                keep(folder, line, result)
            print(f"{RESULT}{json.dumps(asdict(line))}", flush=True)
            if result.verdict == STALLED:
                return


def _played(case: cases.Case, recording: Recording) -> Result:
    try:
        return play(case, recording)
    except Exception as error:  # the proof itself is wrong: no case of it holds
        traceback.print_exc()
        return Result(unplayed(case), said=f"{type(error).__name__}: {error}")


def line_of(name: str, result: Result, seconds: float, commit: str) -> results.Line:
    """Return what is kept of a result."""
    tables = result.tables
    return results.Line(
        case=name,
        of=results.of(name),
        verdict=result.verdict,
        lost=tables.lost,
        repeated=tables.repeated,
        waiting=tables.waiting,
        seconds=round(seconds, 1),
        seed=SEED,
        commit=commit,
        starts=result.starts,
        failures=result.failures,
        resumed=round(result.resumed, 2),
        recovered=round(result.recovered, 2),
        rewritten=result.rewritten,
        said=result.said[:300],
        arrived=result.arrived,
    )


def keep(folder: Path, line: results.Line, result: Result) -> Path:
    """Write the history of a case."""
    head, requests = asdict(line), map(asdict, result.journal)
    return history.write(
        folder, line.case, history.lines(head, result.sent, requests, result.found, result.ledger)
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
    # A thread of a stalled case may never end.
    sys.stdout.flush()
    os._exit(0)
