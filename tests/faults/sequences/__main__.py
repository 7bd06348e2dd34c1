"""`tests.faults.sequences`: random sequences of what may happen to a job, counted and compared.

A failing one is made as short as it can be, and printed as an entry for found.py.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Sequence

from tests.faults.sequences.generate import KINDS, described, sequence, shrunk

REPORT = 100
"""After so many sequences a line is printed."""


def main(words: Sequence[str] | None = None) -> int:
    """Return 0 when every sequence holds, else 1."""
    parser = argparse.ArgumentParser("python -m tests.faults.sequences", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=1, help="the first sequence's number")
    given = parser.parse_args(words)
    end, played, ops = time.monotonic() + given.seconds, Counter[str](), Counter[str]()
    seed, problem = given.seed, ""
    while not problem and time.monotonic() < end:
        one = sequence(seed)
        played[one.form.name] += 1
        ops.update(op.name for op in one.ops)
        if problem := one.run():
            print(f"seed {seed}: {problem}\n{described(shrunk(one))}", flush=True)
        if played.total() % REPORT == 0:
            print(f"{played.total()} sequences", flush=True)
        seed += 1
    for kind in sorted(played):
        print(f"{kind:28} {played[kind]:6}")
    print(", ".join(f"{number} {name}" for name, number in ops.most_common()))
    wrong = "the last one is wrong" if problem else "none is wrong"
    print(f"{played.total()} sequences of {len(KINDS)} kinds from seed {given.seed}: {wrong}")
    return int(bool(problem))


if __name__ == "__main__":
    raise SystemExit(main())
