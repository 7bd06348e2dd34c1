"""YOURS. The job's logic: here, the sessions of a bidder. A pause ends a session."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

from ytstream import checked_state

MINUTE_US = 60_000_000
#: Bids that are further apart than this, by event time, belong to two sessions.
PAUSE_US = 30 * MINUTE_US
#: Every session ends at a multiple of this (0:00, 4:00, 8:00 ... UTC), so that the state of a
#: bidder who never pauses, such as a robot, does not grow forever.
LONGEST_US = 240 * MINUTE_US
#: How far a row may be behind the newest one. A session is written once, when the watermark (the
#: newest event time minus this) has passed its last bid by PAUSE_US. Its later rows are skipped.
LATENESS = "10 minutes"
#: How far a row may be ahead of the batch's clock, at most LATENESS. Otherwise one wrong date in
#: the future would move the watermark, and every correct row after it would be late.
AHEAD = "1 minute"
#: Rows that never reach transform(): a SQL condition on the columns of QUEUE for each reason. The
#: first condition that is true sends the row to the output "rejected". Null counts as false.
#: current_timestamp() is the batch's time in the offset log, and stays the same when the batch runs
#: again. Use try_cast and try_to_timestamp for a text that may not be a number or a time: cast
#: would end the job. Write a regular expression as r'...', such as r"url RLIKE r'^https?://\S+'".
#: Without the inner r, Spark's SQL removes the backslashes.
REJECT = {
    "without event time": "date_time IS NULL",
    "from the future": f"date_time > current_timestamp() + INTERVAL {AHEAD}",
}


class Session(NamedTuple):
    """A session in the state. Times are microseconds since 1970, in any time zone."""

    first_bid: int
    last_bid: int
    bids: int
    total: int


#: The state of one bidder: the sessions that bids may still join. The fields are those of Session.
STATE = "open array<struct<first_bid: bigint, last_bid: bigint, bids: bigint, total: bigint>>"
#: The rows of sessions(): the bidder, and the fields of Session.
OUTPUT = "bidder bigint, first_bid bigint, last_bid bigint, bids bigint, total bigint"


def transform(events: DataFrame) -> DataFrame:
    """One row per session; the columns are those of OUTPUTS["output"]."""
    bids = (
        events.withWatermark("date_time", LATENESS)
        # What sessions() needs, and date_time: Spark uses it to skip late rows.
        .select("bidder", "date_time", F.unix_micros("date_time").alias("time"), "price")
    )
    return (
        bids.groupBy("bidder")
        .applyInPandasWithState(
            # Otherwise Spark silently stores null for what does not fit STATE.
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
    """Add a bidder's new bids to the open sessions. Yield the sessions that no bid can join.

    Spark calls it for each bidder with bids in the batch, in any order, and without bids when the
    state's timeout is reached. The result must depend only on the arguments.
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
        # Set it in each call, in milliseconds: the first millisecond after the end.
        state.setTimeoutTimestamp(min(map(end_us, still_open)) // 1_000 + 1)
    else:
        state.remove()
    closed = [(*key, *session) for session in found if end_us(session) < watermark_us]
    yield pd.DataFrame(closed, columns=["bidder", *Session._fields])


def joined(known: Iterable[Session]) -> list[Session]:
    """Return the sessions that result from these parts of one bidder's sessions."""
    found: list[Session] = []
    for part in sorted(known):
        if found and part.first_bid <= end_us(found[-1]):
            before = found.pop()
            last = max(before.last_bid, part.last_bid)
            part = Session(
                before.first_bid, last, before.bids + part.bids, before.total + part.total
            )
        found.append(part)
    return found


def end_us(session: Session) -> int:
    """Return the last microsecond at which a bid would join the session."""
    return min(
        session.last_bid + PAUSE_US, session.first_bid // LONGEST_US * LONGEST_US + LONGEST_US - 1
    )
