"""YOURS. Measurements of penguins, some of which are reported twice."""

import yt.type_info as ti

from ytstream import REJECTED, Column

QUEUE = [
    Column("individual", "utf8", required=True),
    Column("season", "int16", required=True),
    Column("reported", "timestamp", required=True),
    Column("date_egg", "date32", required=True),
    Column("isotopes", ti.Dict[ti.Utf8, ti.Double], required=True),
    Column("is_female", "bool"),
    Column("flipper", "double"),
]

OUTPUTS = {
    "output": [
        Column("individual", "utf8", required=True),
        Column("season", "int16", required=True),
        Column("reported", "timestamp", required=True),
        Column("date_egg", "date32", required=True),
        Column("isotopes", ti.Dict[ti.Utf8, ti.Double], required=True),
        Column("is_female", "bool"),
        Column("flipper", "double"),
    ],
    "rejected": REJECTED,
}
