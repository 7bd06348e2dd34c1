"""A history of rows that a job reads in batches of one size or of random ones, with kills."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from minicluster.testing import Running
from tests.support.killed_stream import PLACES, cut_off, killed
from ytstream_tools.demo.crash_scenario import drained
from ytstream_tools.testing.job_stream import Stream, wait

Rows = list[dict[str, Any]]

FAULTS: tuple[dict[str, Any], ...] = (
    {"method": "ModifyRows", "action": "lose_reply"},
    {"method": "ModifyRows", "action": "hang_up"},
    {"method": "LookupRows", "action": "hang_up"},
    {"method": "CommitTransaction", "action": "lose_reply"},
    {"method": "CommitTransaction", "action": "hang_up"},
)
"""What a request of a batch meets, and the driver lives on."""
_COMMITTED = ({"method": "CommitTransaction", "when": "after"},)


def cut(rows: Rows, size: int, chance: random.Random) -> Iterator[Rows]:
    """Yield the rows in parts of that size; 0: of random ones."""
    at = 0
    while at < len(rows):
        count = size or chance.randint(1, len(rows) // 14)
        yield rows[at : at + count]
        at += count


def play(
    stream: Stream,
    cluster: Running,
    folder: Path,
    parts: Sequence[Rows],
    publish: Callable[[Rows], None],
    *,
    kills: int,
    written: Sequence[str],
    chance: random.Random,
) -> None:
    """Publish part after part, each when the one before it was read; kill the driver so often.

    Few parts are killed several times each.

    After some of the kills a request fails, too. ``written`` are tables that each batch writes:
    a kill may come at a write to one of them.
    """
    wanted = Counter(len(parts) * number // kills for number in range(kills))
    done, others = 0, 0
    for first, last in pairwise([*sorted(wanted), len(parts)]):
        publish(parts[first])
        for left in reversed(range(wanted[first])):
            # A part that is committed has no other kill.
            places = [one for one in PLACES if not left or one not in _COMMITTED]
            place = {**chance.choice(places)}
            if place["method"] == "ModifyRows":
                place["where"] = {"path": chance.choice(written)}
            done += killed(stream, cluster, folder, **place)
        if chance.random() < 0.3:
            others += cut_off(stream, cluster, **chance.choice(FAULTS))
        with stream.running() as query:
            wait(drained(stream.context), query)
            for part in parts[first + 1 : last]:
                publish(part)
                wait(drained(stream.context), query)
    print(f"{len(parts)} batches, {done} kills, {others} other faults", flush=True)
    assert done == kills
