"""``make bench``: figures of this machine, as tables.

python -m bench [generation] [rows] [memory] [million] [batch] [rejects]    all without a name
BESIDE=CHECKOUT python -m bench beside    rows, compared with the minicluster of another commit
"""

from __future__ import annotations

import sys

from rich.console import Console

from bench import batch, generation, memory, million, rows

BENCHMARKS = {
    "generation": generation.tables,
    "rows": rows.tables,
    "memory": memory.tables,
    "million": million.tables,
    "batch": batch.tables,
    "rejects": batch.rejects,
}
ASKED_FOR = {"beside": rows.beside}
"""Only by their names."""


def main(names: list[str]) -> int:
    """Print the tables of the benchmarks named; return 2 for an unknown name."""
    known = BENCHMARKS | ASKED_FOR
    if unknown := [name for name in names if name not in known]:
        print(f"no benchmark {unknown[0]}; there are: {', '.join(known)}", file=sys.stderr)
        return 2
    for name in names or BENCHMARKS:
        for table in known[name]():
            Console().print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
