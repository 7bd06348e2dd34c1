"""YOURS. Earthquakes as an agency publishes them, and the catalogue that is made of them.

Between them, the columns have every type that SPYT reads and writes.
"""

import yt.type_info as ti

from ytstream import REJECTED, Column

READING = ti.Struct["kind" : ti.Utf8, "value" : ti.Optional[ti.Double]]
"""A value with the name of its kind, as the agency lists them."""
PLACE = ti.Struct["lat" : ti.Double, "lon" : ti.Double, "depth" : ti.Optional[ti.Double]]
"""Where it was; the depth is not always known."""

QUEUE = [
    Column("id", "utf8", required=True),
    Column("time", "timestamp", required=True),
    # Never null.
    Column("magnitude", "float", required=True),
    Column("is_deep", "bool", required=True),
    Column("readings", ti.List[READING], required=True),
    Column("epicentre", PLACE, required=True),
    Column("raw", "string", required=True),
    Column("day", "date", required=True),
    # Numbers of every size; null where the depth is not known.
    Column("latitude", "int8"),
    Column("longitude", "int16"),
    Column("latitude_micro", "int32"),
    Column("longitude_nano", "int64"),
    Column("tenths", "uint8"),
    Column("depth_hm", "uint16"),
    Column("depth_cm", "uint32"),
    Column("energy", "uint64"),
    Column("depth", "double"),
    # Times of every kind.
    Column("second", "datetime"),
    Column("since_last", "interval"),
    Column("founded", "date32"),
    Column("founded_at", "datetime64"),
    Column("founded_exactly", "timestamp64"),
    Column("age", "interval64"),
    # Texts and what holds other values.
    Column("place", "utf8"),
    Column("properties", "json"),
    Column("note", "any"),
    Column("words", ti.List[ti.Utf8]),
    Column("scores", ti.List[ti.Optional[ti.Float]]),
    Column("counts", ti.Dict[ti.Utf8, ti.Int64]),
    Column("position", ti.Tuple[ti.Double, ti.Int32]),
]

OUTPUTS = {
    "output": [
        Column("id", "utf8", required=True),
        Column("time", "timestamp", required=True),
        Column("magnitude", "double", required=True),
        Column("magnitude_rounded", "float"),
        Column("is_deep", "bool", required=True),
        Column("is_strong", "bool"),
        Column("readings", ti.List[READING]),
        Column("kinds", ti.List[ti.Utf8], required=True),
        Column("epicentre", PLACE, required=True),
        Column("summary", ti.Struct["name" : ti.Optional[ti.Utf8], "by" : ti.List[ti.Int64]]),
        Column("raw", "string"),
        Column("raw_bytes", "string", required=True),
        Column("day", "date", required=True),
        Column("next_day", "date"),
        Column("latitude", "int8"),
        Column("longitude", "int16"),
        Column("latitude_micro", "int32"),
        Column("longitude_nano", "int64"),
        Column("tenths", "uint8"),
        Column("depth_hm", "uint16"),
        Column("depth_cm", "uint32"),
        Column("energy", "uint64"),
        Column("depth", "double"),
        Column("second", "datetime"),
        Column("since_last", "interval"),
        Column("founded", "date32"),
        Column("founded_at", "datetime64"),
        Column("founded_exactly", "timestamp64"),
        Column("age", "interval64"),
        Column("place", "utf8"),
        Column("region", "utf8"),
        Column("properties", "json"),
        Column("note", "any"),
        Column("words", ti.List[ti.Utf8]),
        Column("scores", ti.List[ti.Optional[ti.Float]]),
        Column("counts", ti.Dict[ti.Utf8, ti.Int64]),
        Column("lengths", ti.Dict[ti.Utf8, ti.Int32]),
        Column("position", ti.Tuple[ti.Double, ti.Int32]),
    ],
    "rejected": REJECTED,
}
