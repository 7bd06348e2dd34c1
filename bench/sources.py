"""Figures that others have published, each with where it stands. Looked up in November 2026."""

from __future__ import annotations

from typing import NamedTuple

_SPYT = "https://ytsaurus.tech/docs/en/user-guide/data-processing/spyt/structured-streaming"


class Published(NamedTuple):
    """A load that SPYT's documentation has measured, and the case here that is closest to it."""

    load: str
    mode: str
    rows_per_second: int
    case: str
    way: str


SPYT_PAGE = f"{_SPYT}/exactly-once/"
"""5 million rows of about 70 bytes, 16 tablets, 8 executors of 2 cores; the last two: 1 million
rows, 1 executor of 1 core."""
LOADS = (
    Published("join with a static table", "at least once", 22_700, "at-least-once-join", "listing"),
    Published("join with a static table", "transactional", 26_200, "transactional-join", "listing"),
    Published("one-minute windows", "at least once", 13_900, "", ""),
    Published("one-minute windows", "transactional", 14_000, "transactional-window", "listing"),
    Published("pass through, one core", "idempotent", 2_000, "one-core-idempotent", "listing"),
    Published("pass through, one core", "transactional", 2_600, "one-core-transactional",
              "listing"),
)  # fmt: skip


class Price(NamedTuple):
    """What exactly once costs elsewhere."""

    who: str
    what: str
    source: str


PRICES = (
    Price(
        "SPYT, transactional compared with at least once",
        "a join: 26,200 rows per second instead of 22,700; windows: 14,000 instead of 13,900",
        f"[SPYT, exactly-once guarantee]({SPYT_PAGE})",
    ),
    Price(
        "SPYT, idempotent compared with transactional",
        "pass through: 2,000 rows per second instead of 2,600",
        f"[SPYT, exactly-once guarantee]({SPYT_PAGE})",
    ),
    Price(
        "Kafka, transactional producer compared with `acks=all`",
        "60,000 messages per second instead of 100,000, p99 45 ms instead of 15 ms",
        "[Conduktor](https://www.conduktor.io/blog/kafka-exactly-once-performance-cost.md)",
    ),
    Price(
        "Flink, exactly once into Kafka compared with at least once",
        "a row is seen after about a minute instead of below 100 ms: readers wait for the commit",
        "[Confluent Cloud for Flink, delivery guarantees]"
        "(https://docs.confluent.io/cloud/current/flink/concepts/delivery-guarantees.html)",
    ),
)
