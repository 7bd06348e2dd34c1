"""YOURS. Receipts of a chain of stores, whose tills send some of them again."""

import yt.type_info as ti

from ytstream import REJECTED, Column

QUEUE = [
    Column("receipt", "utf8", required=True),
    Column("store", "uint16", required=True),
    Column("sold_at", "timestamp", required=True),
    Column("cents", "int64", required=True),
    Column("items", ti.List[ti.Struct["sku" : ti.Utf8, "pieces" : ti.Int32]], required=True),
    Column("customer", "utf8"),
]

OUTPUTS = {
    "output": [
        Column("receipt", "utf8", required=True),
        Column("store", "uint16", required=True),
        Column("sold_at", "timestamp", required=True),
        Column("cents", "int64", required=True),
        Column("pieces", "int32", required=True),
    ],
    # What is kept for the auditors: by day, for YQL and CHYT.
    "archive": [
        Column("day", "date", required=True),
        Column("receipt", "utf8", required=True),
        Column("store", "uint16", required=True),
        Column("cents", "int64", required=True),
        Column("items", ti.List[ti.Struct["sku" : ti.Utf8, "pieces" : ti.Int32]], required=True),
        Column("customer", "utf8"),
    ],
    "returns": [
        Column("receipt", "utf8", required=True),
        Column("cents", "int64", required=True),
    ],
    "rejected": REJECTED,
}
STATIC = ("archive",)
