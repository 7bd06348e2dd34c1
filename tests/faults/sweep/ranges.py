"""The ranges of rows that the batches of a job have read, by its ledger.

A table of newest rows does not tell whether a batch was applied twice. Its ledger does.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Ends = Mapping[str, Mapping[int, int]]
"""Queue -> partition -> how many rows it has."""


def problems(batches: Iterable[Mapping[str, Any]], ends: Ends, sent: int) -> Iterator[str]:
    """Yield where the ranges of these rows of the ledger are not each row of each queue once.

    ``sent`` rows have been put into the queues.
    """
    reached: defaultdict[tuple[str, int], int] = defaultdict(int)
    read = 0
    for batch in sorted(batches, key=lambda row: int(row["number"])):
        ranges = [*of_batch(batch)]
        if (counted := sum(end - first for *_, first, end in ranges)) != batch["rows_read"]:
            yield f"batch {batch['number']} read {batch['rows_read']} rows, and has {counted}"
        for path, partition, first, end in ranges:
            if first != reached[path, partition]:
                before = reached[path, partition]
                what = "a gap" if first > before else "an overlap"
                yield f"batch {batch['number']} has {what} in {path}/{partition}: {before}, {first}"
            reached[path, partition] = end
        read += counted
    for path, rows in ends.items():
        for partition, end in rows.items():
            if (last := reached.pop((path, partition), 0)) != end:
                yield f"the batches end at row {last} of {path}/{partition}, not at {end}"
    yield from (f"no queue has {path}/{partition}" for path, partition in reached)
    if read != sent:
        yield f"the batches read {read} rows of {sent}"


def of_batch(batch: Mapping[str, Any]) -> Iterator[tuple[str, int, int, int]]:
    """Yield queue, partition, the first row and the one after the last of a batch."""
    for queue in batch["queues"] or ():
        for partition, (first, end) in queue["rows"].items():
            yield str(queue["path"]), int(partition), int(first), int(end)


@dataclass(frozen=True)
class Ledger:
    """The batches of a ledger and the ends of its queues, as they are after a case."""

    batches: Sequence[Mapping[str, Any]]
    ends: Ends

    def problems(self, sent: int) -> list[str]:
        """Return what problems() says of them."""
        return [*problems(self.batches, self.ends, sent)]


def of_ledger(client: Any, ledger: str, queues: Sequence[str], partitions: int) -> Ledger:
    """Return the batches of a ledger, and the queues as they are."""
    query = f'number, queues, rows_read from [{ledger}] where kind = "batch"'
    return Ledger([*client.select_rows(query)], _ends(client, queues, partitions))


def of_history(batches: Sequence[Mapping[str, Any]], ends: Mapping[str, Any]) -> Ledger:
    """Return what lines of JSON have of a ledger: their numbers of partitions are texts."""
    known = {path: {int(one): end for one, end in rows.items()} for path, rows in ends.items()}
    return Ledger(batches, known)


def _ends(client: Any, queues: Sequence[str], partitions: int) -> Ends:
    found = {}
    for path in queues:
        infos = client.get_tablet_infos(path, [*range(partitions)])["tablets"]
        found[path] = {number: int(info["total_row_count"]) for number, info in enumerate(infos)}
    return found
