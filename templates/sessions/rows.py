"""YOURS. Sample rows: bids of an auction site, as in Nexmark. A seed makes every run equal."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from yt.yson import YsonUint64

#: 2024-01-01T00:00:00Z in microseconds, the unit of YTsaurus' timestamp type.
FIRST_BID_US = 1_704_067_200_000_000
#: The column of the event time. It increases from one row to the next, except for wrong dates.
EVENT_TIME = "date_time"
#: One bid in this many has a wrong date, in the year 2101.
ODD = 50
_WRONG_US = 4_133_980_800_000_000
_CHANNELS = ("Google", "Facebook", "Baidu", "Apple", None)

#: The bidders come in groups, each for a visit; a group returns after all others.
_VISIT_US = 10 * 60_000_000
_GROUPS = 12
_IN_A_GROUP = 30
#: It never pauses.
_ROBOT = 1


def rows(count: int, seed: int = 1, start_us: int = FIRST_BID_US) -> Iterator[dict[str, Any]]:
    """Yield ``count`` bids with the columns of QUEUE, about a second apart from ``start_us``.

    Some optional values are null, some prices and texts are at their limits, and one bid in ODD
    comes from the future, as in real life.
    """
    source = random.Random(seed)
    now = start_us
    for number in range(count):
        now += source.randrange(100_000, 2_000_000)
        channel = source.choice(_CHANNELS)
        auction = 1_000 + source.randrange(100)
        visitor = 100 * (1 + now // _VISIT_US % _GROUPS) + source.randrange(_IN_A_GROUP)
        yield {
            "event_id": f"{seed}-{number:08d}",
            "auction": auction,
            "bidder": source.choices((visitor, _ROBOT), (20, 1))[0],
            "price": source.choice((1, 99, source.randrange(100, 10_000_000), 9_999_999_999)),
            "channel": channel,
            "url": None if channel is None else f"https://auction.example/{auction}?c={channel}",
            "date_time": YsonUint64(_WRONG_US + number if source.randrange(ODD) == 0 else now),
            "extra": source.choice((None, "", "привет", 'a "quoted" \\ text')),
        }
