"""YOURS. What electricity meters in Berlin read, and the use of each local day."""

from ytstream import REJECTED, Column

QUEUE = [
    Column("meter", "int64", required=True),
    Column("read_at", "timestamp"),
    Column("kwh", "double", required=True),
    Column("tariff", "utf8"),
]

OUTPUTS = {
    "output": [
        Column("meter", "int64", required=True),
        Column("day", "date", required=True),
        # Of hourly ones 24, but on the two days on which the clocks change.
        Column("readings", "int64", required=True),
        Column("kwh", "double", required=True),
        Column("at_night", "double"),
    ],
    "rejected": REJECTED,
}
