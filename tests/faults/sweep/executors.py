"""`python -m tests.faults.sweep.executors`: executors that are processes of a standalone cluster.

They are killed while they write, alone or with their worker, or the rows that a task has prepared
for others are gone. Spark starts tasks again, inside the same transaction. Played with the job's
settings, with the fence alone, and without either, which repeats rows.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Sequence

from tests.faults.sweep import results
from tests.faults.sweep.scene import SEED
from tests.support.retries import play

#: What is played, and the name that it has on the page.
FAULTS = {
    "write": "a-write-fails-once",
    "executor": "executors-killed",
    "worker": "worker-killed",
    "fetch": "shuffle-gone",
}
FIXES = {"all": "executors", "fence": "executors", "none": "without the fence against attempts"}
#: Spark starts no task again then, or none that has written.
NOT_PLAYED = {("write", "all"), ("fetch", "none")}


def main(wanted: Sequence[str]) -> int:
    """Return 0 when nothing is lost, and nothing repeated but without the fence."""
    commit, wrong = results.commit(), 0
    for fault in wanted or FAULTS:
        for fix, of in FIXES.items():
            if (fault, fix) in NOT_PLAYED:
                continue
            started = time.monotonic()
            (found,) = play(fault, fix)
            lost, repeated = int(found["lost"]), int(found["duplicated"])
            holds = not lost and not repeated
            wrong += holds == (fix == "none")
            where = (
                "transactional-deduplicate-1:middle:PullConsumer.queue-0"
                if fault == "fetch"
                else "transactional-map-1:middle:ModifyRows.output"
            )
            line = results.Line(
                case=f"{where}:{FAULTS[fault]}-{fix}",
                verdict="held" if holds else "failed",
                lost=lost,
                repeated=repeated,
                seconds=round(time.monotonic() - started, 1),
                seed=SEED,
                commit=commit,
                of=of,
                # Without folders: they are another machine's.
                said=re.sub(r"/\S*/", "", str(found["failure"]))[:200],
            )
            results.append(line)
            print(f"{line.verdict:8} {line.case}: {lost} lost, {repeated} repeated", flush=True)
    return int(wrong > 0)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
