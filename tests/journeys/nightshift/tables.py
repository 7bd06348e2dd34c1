"""YOURS. Badges seen by the sensors of two halls, and the stays of each worker."""

from ytstream import REJECTED, Column

QUEUE = [
    Column("worker", "utf8", required=True),
    Column("seen", "timestamp"),
    Column("sensor", "int16", required=True),
    Column("noise_db", "float"),
]

OUTPUTS = {
    "output": [
        Column("worker", "utf8", required=True),
        Column("came", "timestamp", required=True),
        Column("went", "timestamp", required=True),
        Column("sightings", "int64", required=True),
        Column("loudest_db", "float"),
        Column("past_midnight", "bool", required=True),
    ],
    "rejected": REJECTED,
}
