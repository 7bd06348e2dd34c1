"""YOURS. Sea levels as tide gauges send them, and what each gauge saw in each month."""

from ytstream import REJECTED, Column

QUEUE = [
    Column("station", "utf8", required=True),
    # Where the gauge is, as an IANA name: its months begin at its own midnight.
    Column("zone", "utf8", required=True),
    Column("measured", "timestamp", required=True),
    Column("level_mm", "int32"),
]

OUTPUTS = {
    "output": [
        Column("station", "utf8", key=True),
        Column("month", "date", key=True),
        Column("readings", "int64", required=True),
        Column("highest_mm", "int32", required=True),
        Column("lowest_mm", "int32", required=True),
        Column("total_mm", "int64", required=True),
    ],
    "rejected": REJECTED,
}
