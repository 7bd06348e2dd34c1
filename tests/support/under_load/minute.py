"""What the tables hold at one moment: read with plain queries, by none of the code of `why`."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Any

_MOST, _LEAST, _SECONDS = 10, 3, 30.0
"""Batches that the figures are of: those of the last seconds, and the least of them in any case."""
_PARTS = ("transform", "write", "verify", "commit")


@dataclass(frozen=True)
class Minute:
    """The last batches of the ledger, and the rows that wait."""

    epoch: int
    last: int
    """The number of the last batch of all; 0: none."""
    batches: Sequence[Mapping[str, Any]]
    """Those of the newest process, the newest one last."""
    waiting: Mapping[int, int]
    """Tablet -> rows that the consumer has before it."""
    waited: Mapping[int, float]
    """Tablet -> for how many seconds the first of them has waited."""
    time: float

    def figures(self, ago: float = 0.0) -> dict[str, float]:
        """Return every figure by its name, as a person would count it so many seconds ago."""
        lag, last = sum(self.waiting.values()), self._latest(ago)
        found = {
            "waiting": float(lag),
            "largest": float(max(self.waiting.values(), default=0)),
            "oldest": max(self.waited.values(), default=0.0),
            "arriving": sum(
                rows / max(self.waited[tablet], 1.0)
                for tablet, rows in self.waiting.items()
                if rows
            ),
            "tablets": float(len(self.waiting)),
        }
        found["oldest_minutes"] = found["oldest"] / 60
        found["share"] = found["largest"] / lag if lag else 0.0
        return found | self._of_batches(last)

    def _latest(self, ago: float) -> Sequence[Mapping[str, Any]]:
        since = 1e6 * (self.time - ago - _SECONDS)
        late = [one for one in self.batches if one["ended"] >= since][-_MOST:]
        return late if len(late) >= _LEAST else self.batches[-_LEAST:]

    def _of_batches(self, last: Sequence[Mapping[str, Any]]) -> dict[str, float]:
        if len(last) < 2:
            return {}
        seconds = (last[-1]["ended"] - last[0]["started"]) / 1e6
        parts = {part: _milliseconds(last, part) / 1000 for part in _PARTS}
        begins = [one["started"] / 1e6 for one in last]
        found = {
            **parts,
            "took": median(map(_seconds, last)),
            "every": median(b - a for a, b in pairwise(begins)),
            "reading": sum(one["rows_read"] for one in last) / seconds,
            "most": float(max(_widest(one) for one in last)),
        }
        found["waited"] = found["write"] + found["commit"]
        found["ms_a_row"] = 1000 * found["took"] / max(found["reading"] * found["every"], 1.0)
        return found | self._whatever_is_read(last)

    def _whatever_is_read(self, last: Sequence[Mapping[str, Any]]) -> dict[str, float]:
        """Return where the line begins through batches of half the rows and the usual ones.

        Empty without batches of half the rows. The first one of a process is left out.
        """
        rows, took = median(one["rows_read"] for one in last), median(map(_seconds, last))
        small = [one for one in self.batches[1:] if 0 < one["rows_read"] <= rows / 2]
        if not small:
            return {}
        few, fast = median(one["rows_read"] for one in small), median(map(_seconds, small))
        slope = max(0.0, (took - fast) / (rows - few))
        return {"fixed": min(took, max(0.0, fast - slope * few))}

    def worked(self, seconds: float) -> float:
        """Return for how many of the last seconds a batch was under way."""
        begin = (self.time - seconds) * 1e6
        spent = (one["ended"] - max(one["started"], begin) for one in self.batches)
        return float(sum(max(0.0, one) for one in spent)) / 1e6


def _seconds(row: Mapping[str, Any]) -> float:
    return float(row["ended"] - row["started"]) / 1e6


def _milliseconds(rows: Sequence[Mapping[str, Any]], part: str) -> float:
    """Return the usual time of a part; 0 of a commit is one that the batch does not know."""
    known = [int(row["state"]["times"][part]) for row in rows]
    return median([ms for ms in known if ms or part != "commit"] or [0])


def _widest(row: Mapping[str, Any]) -> int:
    """Return the most rows of a tablet that a batch has read."""
    return max(
        (
            int(end) - int(first)
            for queue in row["queues"] or ()
            for first, end in queue["rows"].values()
        ),
        default=0,
    )


def read(client: Any, ledger: str, consumer: str, queue: str) -> Minute:
    """Read the tables."""
    head = next(client.select_rows(f'epoch from [{ledger}] where kind = "head"'), {"epoch": 0})
    columns = "number, epoch, batch, rows_read, started, ended, queues, state"
    query = f'{columns} from [{ledger}] where kind = "batch" order by number desc limit 100'
    rows = [*client.select_rows(query)]
    mine = [row for row in rows if row["epoch"] == head["epoch"]]
    tablets = range(int(client.get(f"{queue}/@tablet_count")))
    infos = client.get_tablet_infos(queue, [*tablets])["tablets"]
    offsets = client.select_rows(f"partition_index, [offset] from [{consumer}]")
    read_to = {int(row["partition_index"]): int(row["offset"]) for row in offsets}
    waiting = {
        tablet: int(infos[tablet]["total_row_count"]) - read_to.get(tablet, 0) for tablet in tablets
    }
    waited = {
        tablet: _age(client, queue, tablet, read_to.get(tablet, 0))
        for tablet, rows in waiting.items()
        if rows
    }
    last = int(rows[0]["number"]) if rows else 0
    return Minute(int(head["epoch"]), last, mine[::-1], waiting, waited, time.time())


def _age(client: Any, queue: str, tablet: int, row: int) -> float:
    where = f"[$tablet_index] = {tablet} and [$row_index] = {row}"
    found = next(client.select_rows(f"[$timestamp] as t from [{queue}] where {where}"))
    return max(0.0, time.time() - (int(found["t"]) >> 30))


QUOTES: Mapping[str, tuple[str, ...]] = {
    r"about (\d+) rows/s arrive": ("arriving",),
    r"(\d+) rows/s are read": ("reading",),
    r"of the ([\d.]+) s of a batch": ("took",),
    r"they take ([\d.]+) s": ("took",),
    r"a batch takes ([\d.]+) s, ([\d.e+-]+) ms a row": ("took", "ms_a_row"),
    r"begin every ([\d.]+) s": ("every",),
    r"([\d.]+) s of it whatever they read": ("fixed",),
    r"([\d.]+) s go into waiting for writes": ("write",),
    r"([\d.]+) s into writes": ("write",),
    r"([\d.]+) s into the commit": ("commit",),
    r"([\d.]+) s go into reading": ("transform",),
    r"consumer, take ([\d.]+) s": ("verify",),
    r"cut at (\d+) rows": ("most",),
    r"(\d+) rows? of the (\d+) that wait are in tablet (\d+)": ("largest", "waiting", "tablet"),
    r"(\d+) rows? wait, the": ("waiting",),
    r"the first for (\d+) s": ("oldest",),
    r"the first for (\d+) min": ("oldest_minutes",),
    r"taken ([\d.]+) s of the last (\d+) s, and one begins every (\d+) s": (
        "worked", "period", "trigger",
    ),
    r"(\d+) cores? of the executors read (\d+) tablets": ("cores", "tablets"),
    r"batches take (\d+)% of the time": ("busy",),
    r"is used up \((\d+) of (\d+)\)": ("used", "limit"),
    r"\bbatch (\d+)-(\d+)": ("epoch", "batch"),
    r"\(transform\.py:(\d+)\)": ("line",),
}  # fmt: skip
"""How `why` says its figures, and their names in `Minute.figures()` or in what the load adds."""
_CLOCKED = {"arriving": 0.25, "oldest": 0.25, "worked": 0.4, "period": 0.4}
"""Figures that change while one reads, and by how much of them."""


def quoted(said: str) -> Iterator[tuple[str, float, float]]:
    """Yield the name, the value and the last digit of each figure. Fails for one without a name.

    A row that is quoted whole as JSON is none.
    """
    rest = re.sub(r"//\S+", "", re.sub(r"\{\".*\}", "", said))
    for pattern, names in QUOTES.items():
        for match in re.finditer(pattern, rest):
            for name, text in zip(names, match.groups(), strict=True):
                digits = len(text.partition(".")[2])
                yield name, float(text), 0.1 if "e" in text else 10.0**-digits
        rest = re.sub(pattern, "", rest)
    assert not re.search(r"\d", rest), f"a figure that nobody counts: {rest}"


def differing(said: str, known: Mapping[str, float]) -> list[str]:
    """Return the figures of a text that are not those of the tables."""
    return [
        f"{name}: said {value}, counted {known.get(name)}"
        for name, value, digit in quoted(said)
        if name not in known
        or abs(value - known[name]) > digit * 0.51 + _CLOCKED.get(name, 0.0) * known[name] + (
            1.0 if name in _CLOCKED else 0.0
        )
    ]  # fmt: skip
