"""YOURS. Earthquakes as an agency publishes them, and what is known by class of depth."""

from ytstream import REJECTED, Column

QUEUE = [
    Column("id", "utf8", required=True),
    Column("time", "timestamp", required=True),
    Column("magnitude", "double"),
    Column("depth", "float"),
    Column("depth_class", "utf8", required=True),
    Column("place", "utf8"),
]

OUTPUTS = {
    "output": [
        Column("depth_class", "utf8", key=True),
        Column("quakes", "int64", required=True),
        Column("strongest", "double"),
        Column("deepest", "float"),
    ],
    "rejected": REJECTED,
}
