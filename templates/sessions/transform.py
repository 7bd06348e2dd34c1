"""YOURS. The job's logic: here, the sessions of a bidder, each closed by a pause."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

from ytstream import checked_state

MINUTE_US = 60_000_000
#: Bids further apart than this, by event time, are of two sessions.
PAUSE_US = 30 * MINUTE_US
#: No session goes on over a multiple of this (0:00, 4:00, 8:00 ... UTC): the state of a bidder who
#: never pauses, a robot for instance, has an end.
LONGEST_US = 240 * MINUTE_US
#: How far a row may lie behind the newest one. A session is written, once, when the watermark (the
#: newest event time less this) has passed its last bid by PAUSE_US; later rows of it are left out.
LATENESS = "10 minutes"
#: How far a row may lie ahead of the batch's clock, not more than LATENESS: one wrong date in the
#: future would move the watermark there, and every right row after it would be late.
AHEAD = "1 minute"
#: Rows that never reach transform(): reason -> a SQL condition on the columns of QUEUE. The first
#: condition that is true sends the row to the output "rejected"; null counts as false.
#: current_timestamp() is the time in the batch's entry of the offset log, the same when the batch
#: runs again. The functions try_cast and try_to_timestamp give null for a text that is not a number
#: or time; cast would end the job.
#: A regular expression is written r'...' in it, e.g. r"url RLIKE r'^https?://\S+'": without the
#: inner r, Spark's SQL removes the backslashes.
REJECT = {
    "without event time": "date_time IS NULL",
    "from the future": f"date_time > current_timestamp() + INTERVAL {AHEAD}",
}


class Session(NamedTuple):
    """A session as the state keeps it; times in microseconds since 1970, whatever the time zone."""

    first_bid: int
    last_bid: int
    bids: int
    total: int


#: The state of one bidder: the sessions that bids may still join. Fields as those of Session.
STATE = "open array<struct<first_bid: bigint, last_bid: bigint, bids: bigint, total: bigint>>"
#: The rows of sessions(): the bidder, and the fields of Session.
OUTPUT = "bidder bigint, first_bid bigint, last_bid bigint, bids bigint, total bigint"


def transform(events: DataFrame) -> DataFrame:
    """One row per session; the columns are those of OUTPUTS["output"]."""
    bids = (
        events.withWatermark("date_time", LATENESS)
        # What sessions() needs, and date_time, by which Spark leaves out late rows.
        .select("bidder", "date_time", F.unix_micros("date_time").alias("time"), "price")
    )
    return (
        bids.groupBy("bidder")
        .applyInPandasWithState(
            # Else Spark stores null for what does not fit STATE, and says nothing.
            checked_state(sessions),
            OUTPUT,
            STATE,
            "append",
            GroupStateTimeout.EventTimeTimeout,
        )
        .withColumn("first_bid", F.timestamp_micros("first_bid"))
        .withColumn("last_bid", F.timestamp_micros("last_bid"))
    )


def sessions(
    key: tuple[int], frames: Iterable[pd.DataFrame], state: GroupState
) -> Iterator[pd.DataFrame]:
    """Add a bidder's new bids to his open sessions; give those that no bid can join any more.

    Spark calls it for each bidder with bids in the batch, in any order, and, without bids, when the
    time-out of his state has come. Nothing but its arguments may decide about what it does.
    """
    known = [Session(*session) for session in state.get[0]] if state.exists else []
    for frame in frames:
        pairs = zip(frame["time"].tolist(), frame["price"].tolist(), strict=True)
        known += [Session(time, time, 1, price) for time, price in pairs]
    watermark_us = state.getCurrentWatermarkMs() * 1_000
    found = joined(known)
    still_open = [session for session in found if end_us(session) >= watermark_us]
    if still_open:
        state.update((still_open,))
        # Each call must set it again. It is in milliseconds: the first one after the end.
        state.setTimeoutTimestamp(min(map(end_us, still_open)) // 1_000 + 1)
    else:
        state.remove()
    closed = [(*key, *session) for session in found if end_us(session) < watermark_us]
    yield pd.DataFrame(closed, columns=["bidder", *Session._fields])


def joined(known: Iterable[Session]) -> list[Session]:
    """Return the sessions that these parts of sessions, of one bidder, make up."""
    found: list[Session] = []
    for part in sorted(known):
        if found and part.first_bid <= end_us(found[-1]):
            former = found.pop()
            last = max(former.last_bid, part.last_bid)
            part = Session(
                former.first_bid, last, former.bids + part.bids, former.total + part.total
            )
        found.append(part)
    return found


def end_us(session: Session) -> int:
    """Return the last microsecond at which a bid would join the session."""
    return min(
        session.last_bid + PAUSE_US, session.first_bid // LONGEST_US * LONGEST_US + LONGEST_US - 1
    )
