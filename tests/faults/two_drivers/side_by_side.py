"""Cases in several processes side by side: each plays whole variants, and tells rows of JSON."""

from __future__ import annotations

import json
import queue
import re
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence

from tests.support.project import ROOT

Row = tuple[str, ...]
_ROW = '["'
_END_SECONDS = 120.0
"""How long a process may take to end its drivers."""


def shared(names: Mapping[str, Sequence[str]], count: int) -> list[list[str]]:
    """Return the names for each of at most ``count`` processes: those of a variant stay together.

    ``names`` are those of the cases of each variant.
    """
    parts: list[list[str]] = [[] for _ in range(count)]
    for own in sorted(names.values(), key=len, reverse=True):
        min(parts, key=len).extend(own)
    return [part for part in parts if part]


def played(module: str, parts: Sequence[Sequence[str]]) -> Iterator[Row]:
    """Yield the rows of all processes as they come. Ends them when it is left."""
    rows: queue.Queue[Row | None] = queue.Queue()
    processes = [_process(module, part) for part in parts]

    def listen(process: subprocess.Popen[str], part: Sequence[str]) -> None:
        left = [*part]
        assert process.stdout is not None
        try:
            for line in process.stdout:
                if not line.startswith(_ROW):  # what cookiecutter says of a project
                    continue
                row = tuple(json.loads(line))
                left.remove(row[0])
                rows.put(row)
        finally:
            for name in left:  # its process has ended before
                rows.put((name, "", "", "", "", f"not played: exit code {process.wait()}"))
            rows.put(None)

    try:
        for process, part in zip(processes, parts, strict=True):
            threading.Thread(target=listen, args=(process, part), daemon=True).start()
        ended = 0
        while ended < len(processes):
            row = rows.get()
            if row is None:
                ended += 1
            else:
                yield row
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait(_END_SECONDS)


def _process(module: str, part: Sequence[str]) -> subprocess.Popen[str]:
    only = f"^({'|'.join(map(re.escape, part))})$"
    command = [sys.executable, "-m", module, "--json", "--only", only]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
