"""`tests.faults.sequences`: random sequences of what may happen to a job, counted and compared.

A failing one is made as short as it can be, and printed as an entry for found.py.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Sequence
from itertools import count

from tests.faults.sequences.generate import KINDS, described, sequence, shrunk

#: After so many sequences a line is printed.
REPORT = 100


def main(words: Sequence[str] | None = None) -> int:
    """Return 0 when every sequence holds, else 1."""
    parser = argparse.ArgumentParser("python -m tests.faults.sequences", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=1, help="the first sequence's number")
    parser.add_argument("--count", type=int, default=0, help="so many sequences, whatever time")
    parser.add_argument("--keep-going", action="store_true", help="count failures, do not stop")
    given = parser.parse_args(words)
    end, played, ops = time.monotonic() + given.seconds, Counter[str](), Counter[str]()
    failed = 0
    for seed in count(given.seed):
        if played.total() >= given.count if given.count else time.monotonic() > end:
            break
        one = sequence(seed)
        played[one.form.name] += 1
        ops.update(op.name for op in one.ops)
        if problem := one.run():
            failed += 1
            print(f"seed {seed}: {problem}\n{described(shrunk(one))}", flush=True)
            if not given.keep_going:
                break
        if played.total() % REPORT == 0:
            print(f"{played.total()} sequences, {failed} wrong", flush=True)
    for kind in sorted(played):
        print(f"{kind:28} {played[kind]:6}")
    print(", ".join(f"{number} {name}" for name, number in ops.most_common()))
    print(
        f"{played.total()} sequences of {len(KINDS)} kinds from seed {given.seed}: {failed} wrong"
    )
    return int(failed > 0)


if __name__ == "__main__":
    raise SystemExit(main())
