"""Positions of aircraft, and their flights."""

from ytstream import REJECTED, Column

QUEUE = [
    Column("icao24", "utf8", required=True),
    Column("at", "timestamp", required=True),
    Column("altitude", "int64"),
    Column("on_ground", "boolean", required=True),
]
OUTPUTS = {
    "output": [
        Column("icao24", "utf8", required=True),
        Column("first_seen", "timestamp", required=True),
        Column("last_seen", "timestamp", required=True),
        Column("positions", "int64", required=True),
        Column("highest", "int64", required=True),
    ],
    "rejected": REJECTED,
}
