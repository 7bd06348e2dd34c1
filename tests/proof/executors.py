"""`python -m tests.proof.executors`: real executors of a standalone cluster, killed in a write.

Spark starts the task again on another executor, inside the same transaction. Played with the job's
settings, with the fence alone, and without either, which repeats rows.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

from packages.ytstream.tests.test_retries import _play as play
from tests.proof import results
from tests.proof.scene import SEED

#: Faults of the worker, by the name that they have on the page.
FAULTS = {"write": "write-fails-once", "executor": "executors-killed"}
CURES = {"all": "executors", "fence": "executors", "none": "without the fence against attempts"}


def main(wanted: Sequence[str]) -> int:
    """Return 0 when nothing is lost, and nothing repeated but without the fence."""
    commit, wrong = results.commit(), 0
    for fault in wanted or FAULTS:
        for cure, of in CURES.items():
            if (fault, cure) == ("write", "all"):  # Spark starts no task again then
                continue
            started = time.monotonic()
            (found,) = play(fault, cure)
            lost, repeated = int(found["lost"]), int(found["duplicated"])
            holds = not lost and not repeated
            wrong += holds == (cure == "none")
            line = results.Line(
                case=f"transactional-map-1:middle:ModifyRows.output:{FAULTS[fault]}-{cure}",
                verdict="held" if holds else "failed",
                lost=lost,
                repeated=repeated,
                seconds=round(time.monotonic() - started, 1),
                seed=SEED,
                commit=commit,
                of=of,
                said=str(found["failure"]).partition("\n")[0][:200],
            )
            results.append(line)
            print(f"{line.verdict:8} {line.case}: {lost} lost, {repeated} repeated", flush=True)
    return int(wrong > 0)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
