"""Edits of wikis, and a dictionary of their pages."""

from ytstream import Column

QUEUE = [
    Column("edit", "int64", required=True),
    Column("wiki", "utf8"),
    Column("title", "utf8"),
    Column("user", "utf8"),
]
OUTPUTS = {
    "output": [
        Column("edit", "int64", required=True),
        Column("wiki", "utf8"),
        Column("title", "utf8"),
        Column("user", "utf8"),
        Column("page", "int64"),
        Column("lat", "double"),
        Column("lon", "double"),
        Column("is_known", "bool"),
    ],
}
REFERENCES = {
    "titles": [
        Column("wiki", "utf8", key=True),
        Column("title", "utf8", key=True),
        Column("page", "int64"),
        Column("lat", "double"),
        Column("lon", "double"),
    ],
}
