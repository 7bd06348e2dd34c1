"""``make bench``: figures of this machine, as tables.

python -m bench [generation] [rows] [million] [batch] [rejects]    all of them without a name
"""

from __future__ import annotations

import sys

from rich.console import Console

from bench import batch, generation, million, rows

BENCHMARKS = {
    "generation": generation.tables,
    "rows": rows.tables,
    "million": million.tables,
    "batch": batch.tables,
    "rejects": batch.rejects,
}


def main(names: list[str]) -> int:
    """Print the tables of the benchmarks named; return 2 for an unknown name."""
    if unknown := [name for name in names if name not in BENCHMARKS]:
        print(f"no benchmark {unknown[0]}; there are: {', '.join(BENCHMARKS)}", file=sys.stderr)
        return 2
    for name in names or BENCHMARKS:
        for table in BENCHMARKS[name]():
            Console().print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
