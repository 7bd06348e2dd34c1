"""YOURS. Swarms: earthquakes of a region that follow each other within ten minutes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

from ytstream import checked_state

MINUTE_US = 60_000_000
PAUSE_US = 10 * MINUTE_US
LONGEST_US = 120 * MINUTE_US
"""A swarm is cut at multiples of this: some regions never rest."""
LATENESS = "5 minutes"
REJECT = {
    "without a time": "time IS NULL",
    "from the future": "time > current_timestamp() + INTERVAL 30 seconds",
}


class Swarm(NamedTuple):
    """A swarm; times in microseconds since 1970."""

    first: int
    last: int
    quakes: int
    strongest: float


STATE = "open array<struct<first: bigint, last: bigint, quakes: bigint, strongest: double>>"
OUTPUT = "region string, first bigint, last bigint, quakes bigint, strongest double"


def transform(events: DataFrame) -> DataFrame:
    """One row per swarm."""
    quakes = events.withWatermark("time", LATENESS).select(
        "region", "time", F.unix_micros("time").alias("time_us"), "magnitude"
    )
    return (
        quakes.groupBy("region")
        .applyInPandasWithState(
            checked_state(swarms), OUTPUT, STATE, "append", GroupStateTimeout.EventTimeTimeout
        )
        .withColumn("first", F.timestamp_micros("first"))
        .withColumn("last", F.timestamp_micros("last"))
    )


def swarms(
    key: tuple[str], frames: Iterable[pd.DataFrame], state: GroupState
) -> Iterator[pd.DataFrame]:
    """Add a region's earthquakes to its open swarms; give those that none can join any more."""
    known = [Swarm(*swarm) for swarm in state.get[0]] if state.exists else []
    for frame in frames:
        pairs = zip(frame["time_us"].tolist(), frame["magnitude"].tolist(), strict=True)
        known += [Swarm(time, time, 1, magnitude) for time, magnitude in pairs]
    watermark_us = state.getCurrentWatermarkMs() * 1_000
    found = joined(known)
    still_open = [swarm for swarm in found if end_us(swarm) >= watermark_us]
    if still_open:
        state.update((still_open,))
        state.setTimeoutTimestamp(min(map(end_us, still_open)) // 1_000 + 1)
    else:
        state.remove()
    closed = [(*key, *swarm) for swarm in found if end_us(swarm) < watermark_us]
    yield pd.DataFrame(closed, columns=["region", *Swarm._fields])


def joined(known: Iterable[Swarm]) -> list[Swarm]:
    """Return the swarms that these parts of swarms, of one region, make up."""
    found: list[Swarm] = []
    for part in sorted(known):
        if found and part.first <= end_us(found[-1]):
            former = found.pop()
            part = Swarm(
                former.first,
                max(former.last, part.last),
                former.quakes + part.quakes,
                max(former.strongest, part.strongest),
            )
        found.append(part)
    return found


def end_us(swarm: Swarm) -> int:
    """Return the last microsecond at which an earthquake would join the swarm."""
    cut = swarm.first // LONGEST_US * LONGEST_US + LONGEST_US - 1
    return min(swarm.last + PAUSE_US, cut)
