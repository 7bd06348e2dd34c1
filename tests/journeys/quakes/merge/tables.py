"""YOURS. Earthquakes as an agency publishes them, and the last one of each place."""

from ytstream import REJECTED, Column

QUEUE = [
    Column("id", "utf8", required=True),
    Column("time", "timestamp", required=True),
    Column("magnitude", "double"),
    Column("depth", "float"),
    Column("depth_class", "utf8", required=True),
    Column("place", "utf8", required=True),
]

OUTPUTS = {
    "output": [
        Column("place", "utf8", key=True),
        Column("time", "timestamp", required=True),
        Column("id", "utf8", required=True),
        Column("magnitude", "double"),
        Column("depth", "float"),
    ],
    "rejected": REJECTED,
}
