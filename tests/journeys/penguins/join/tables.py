"""YOURS. Penguins as they were measured, and what is known of their species."""

import yt.type_info as ti

from ytstream import REJECTED, Column

QUEUE = [
    Column("individual", "utf8", required=True),
    Column("species", "utf8"),
    Column("island", "utf8", required=True),
    Column("date_egg", "date", required=True),
    Column("culmen", ti.Struct["length" : ti.Double, "depth" : ti.Double]),
    Column("body_mass", "uint16"),
    Column("comments", ti.List[ti.Utf8], required=True),
]
"""No event time: a join needs none."""

OUTPUTS = {
    "output": [
        Column("individual", "utf8", required=True),
        Column("species", "utf8"),
        Column("latin", "utf8"),
        Column("first_described", "date"),
        Column("island", "utf8", required=True),
        Column("date_egg", "date", required=True),
        Column("culmen_ratio", "double"),
        Column("mass_of_usual", "float"),
        Column("comments", ti.List[ti.Utf8], required=True),
    ],
    "rejected": REJECTED,
}

REFERENCE = [
    Column("species", "utf8", key=True),
    Column("latin", "utf8", required=True),
    Column("first_described", "date"),
    Column("usual_mass", "double"),
]
