"""YOURS. Earthquakes as an agency publishes them, and the swarms of each region."""

from ytstream import REJECTED, Column

QUEUE = [
    Column("id", "utf8", required=True),
    Column("time", "timestamp", required=True),
    Column("magnitude", "double"),
    Column("region", "utf8", required=True),
]

OUTPUTS = {
    "output": [
        Column("region", "utf8", required=True),
        Column("first", "timestamp", required=True),
        Column("last", "timestamp", required=True),
        Column("quakes", "int64", required=True),
        Column("strongest", "double", required=True),
    ],
    "rejected": REJECTED,
}
