"""Positions of aircraft: all of them, the newest of each, and those that are on the ground now."""

from ytstream import Column

QUEUE = [
    Column("icao24", "utf8", required=True),
    Column("at", "timestamp", required=True),
    Column("altitude", "int64"),
    Column("on_ground", "boolean", required=True),
]
_VALUES = [
    Column("at", "timestamp", required=True),
    Column("altitude", "int64"),
]
OUTPUTS = {
    "output": [
        Column("icao24", "utf8", required=True),
        *_VALUES,
        Column("on_ground", "boolean", required=True),
    ],
    "current": [
        Column("icao24", "utf8", key=True),
        *_VALUES,
        Column("on_ground", "boolean", required=True),
    ],
    "on_ground_now": [Column("icao24", "utf8", key=True), *_VALUES],
}
