"""`tests.faults.sweep.record [VARIANT...]`: the points of the recorded runs, in points.json.

A change of the runtime may add or remove requests; then the proof has other cases.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from tests.faults.sweep import cases, lab
from tests.faults.sweep.jobs import JOBS, LISTINGS, variant_of
from tests.faults.sweep.recording import recorded


def main(names: Sequence[str]) -> None:
    """Record these variants, or all of them."""
    wanted = [variant_of(name) for name in names] or [*JOBS, *LISTINGS]
    with lab.opened() as opened:
        for variant in wanted:
            recording = recorded(variant, opened)
            points = {variant.name: [{"name": p.name, **p.as_json()} for p in recording.points]}
            count = len(cases.distinct(cases.cases_of(variant, points[variant.name]), points))
            print(f"{variant.name}: {len(recording.points)} points, {count} cases", flush=True)
            # Another one may have recorded other variants meanwhile.
            cases.save_points({**cases.load_points(), **points})


if __name__ == "__main__":
    main(sys.argv[1:])
