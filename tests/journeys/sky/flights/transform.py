"""A flight is over when nothing has been heard of the aircraft for 30 minutes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

from ytstream import checked_state

SILENCE_US = 30 * 60_000_000
LATENESS = "10 minutes"
REJECT = {
    "without event time": "at IS NULL",
    "from the future": "at > current_timestamp() + INTERVAL 1 minute",
}


class Flight(NamedTuple):
    """A flight that may go on. Times are microseconds since 1970."""

    first_seen: int
    last_seen: int
    positions: int
    highest: int


STATE = (
    "open array<struct<first_seen: bigint, last_seen: bigint, positions: bigint, highest: bigint>>"
)
OUTPUT = "icao24 string, first_seen bigint, last_seen bigint, positions bigint, highest bigint"


def transform(events: DataFrame) -> DataFrame:
    """One row per flight."""
    altitude = F.coalesce("altitude", F.lit(0)).alias("altitude")
    return (
        events.withWatermark("at", LATENESS)
        .select("icao24", "at", F.unix_micros("at").alias("time"), altitude)
        .groupBy("icao24")
        .applyInPandasWithState(
            checked_state(flights), OUTPUT, STATE, "append", GroupStateTimeout.EventTimeTimeout
        )
        .withColumn("first_seen", F.timestamp_micros("first_seen"))
        .withColumn("last_seen", F.timestamp_micros("last_seen"))
    )


def flights(
    key: tuple[str], frames: Iterable[pd.DataFrame], state: GroupState
) -> Iterator[pd.DataFrame]:
    """Add positions to the flights that may go on; yield those that are over."""
    known = [Flight(*flight) for flight in state.get[0]] if state.exists else []
    for frame in frames:
        pairs = zip(frame["time"].tolist(), frame["altitude"].tolist(), strict=True)
        known += [Flight(time, time, 1, altitude) for time, altitude in pairs]
    watermark_us = state.getCurrentWatermarkMs() * 1_000
    found = joined(known)
    still_open = [flight for flight in found if flight.last_seen + SILENCE_US >= watermark_us]
    if still_open:
        state.update((still_open,))
        ends = [flight.last_seen + SILENCE_US for flight in still_open]
        state.setTimeoutTimestamp(min(ends) // 1_000 + 1)
    else:
        state.remove()
    over = [(*key, *flight) for flight in found if flight not in still_open]
    yield pd.DataFrame(over, columns=["icao24", *Flight._fields])


def joined(known: Iterable[Flight]) -> list[Flight]:
    """Return the flights of one aircraft that these parts make."""
    found: list[Flight] = []
    for part in sorted(known):
        if found and part.first_seen <= found[-1].last_seen + SILENCE_US:
            before = found.pop()
            part = Flight(
                before.first_seen,
                max(before.last_seen, part.last_seen),
                before.positions + part.positions,
                max(before.highest, part.highest),
            )
        found.append(part)
    return found
