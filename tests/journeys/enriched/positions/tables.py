"""Positions of aircraft, and a register of them."""

from ytstream import Column

QUEUE = [
    Column("position", "int64", required=True),
    Column("icao24", "string"),
    Column("altitude", "double"),
]
OUTPUTS = {
    "output": [
        Column("position", "int64", required=True),
        Column("icao24", "string"),
        Column("altitude", "double"),
        Column("operator", "utf8"),
        Column("built", "int64"),
    ],
}
REFERENCES = {
    "register": [
        Column("icao24", "string", key=True),
        Column("operator", "utf8"),
        Column("built", "int64"),
        Column("model", "utf8"),
    ],
}
