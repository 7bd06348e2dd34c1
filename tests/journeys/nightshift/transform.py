"""YOURS. Stays: a worker is seen again and again, most often from the evening to the morning."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

from ytstream import checked_state

MINUTE_US = 60_000_000
DAY_US = 24 * 60 * MINUTE_US
PAUSE_US = 45 * MINUTE_US
"""A worker who was not seen for longer has left."""
NOON_US = DAY_US // 2
"""A stay ends at noon at the latest, so that a badge left behind does not stay for ever."""
LATENESS = "20 minutes"
REJECT = {
    "without a time": "seen IS NULL",
    "from the future": "seen > current_timestamp() + INTERVAL 5 minutes",
}


class Stay(NamedTuple):
    """A stay; times in microseconds since 1970."""

    came: int
    went: int
    sightings: int
    loudest: float


STATE = "open array<struct<came: bigint, went: bigint, sightings: bigint, loudest: double>>"
OUTPUT = "worker string, came bigint, went bigint, sightings bigint, loudest double"


def transform(events: DataFrame) -> DataFrame:
    """One row per stay."""
    # Zero decibels for a sensor without a microphone: null would come as NaN.
    noise = F.coalesce(F.col("noise_db").cast("double"), F.lit(0.0))
    seen = events.withWatermark("seen", LATENESS).select(
        "worker", "seen", F.unix_micros("seen").alias("seen_us"), noise.alias("noise")
    )
    stays_ = seen.groupBy("worker").applyInPandasWithState(
        checked_state(stays), OUTPUT, STATE, "append", GroupStateTimeout.EventTimeTimeout
    )
    came, went = F.timestamp_micros("came"), F.timestamp_micros("went")
    return stays_.select(
        "worker",
        came.alias("came"),
        went.alias("went"),
        "sightings",
        F.nullif("loudest", F.lit(0.0)).cast("float").alias("loudest_db"),
        (F.to_date(came) != F.to_date(went)).alias("past_midnight"),
    )


def stays(
    key: tuple[str], frames: Iterable[pd.DataFrame], state: GroupState
) -> Iterator[pd.DataFrame]:
    """Add a worker's sightings to the open stays; give those that no other can join."""
    known = [Stay(*stay) for stay in state.get[0]] if state.exists else []
    for frame in frames:
        pairs = zip(frame["seen_us"].tolist(), frame["noise"].tolist(), strict=True)
        known += [Stay(time, time, 1, noise) for time, noise in pairs]
    watermark_us = state.getCurrentWatermarkMs() * 1_000
    found = joined(known)
    still_open = [stay for stay in found if end_us(stay) >= watermark_us]
    if still_open:
        state.update((still_open,))
        state.setTimeoutTimestamp(min(map(end_us, still_open)) // 1_000 + 1)
    else:
        state.remove()
    closed = [(*key, *stay) for stay in found if end_us(stay) < watermark_us]
    yield pd.DataFrame(closed, columns=["worker", *Stay._fields])


def joined(known: Iterable[Stay]) -> list[Stay]:
    """Return the stays that these parts of stays, of one worker, make up."""
    found: list[Stay] = []
    for part in sorted(known):
        if found and part.came <= end_us(found[-1]):
            former = found.pop()
            part = Stay(
                former.came,
                max(former.went, part.went),
                former.sightings + part.sightings,
                max(former.loudest, part.loudest),
            )
        found.append(part)
    return found


def end_us(stay: Stay) -> int:
    """Return the last microsecond at which a sighting would join the stay."""
    noon = (stay.came - NOON_US) // DAY_US * DAY_US + DAY_US + NOON_US
    return min(stay.went + PAUSE_US, noon - 1)
