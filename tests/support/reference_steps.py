"""A source of rows for `reference`, and a job whose configuration says where it is built."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ytstream.job import JobContext
from ytstream_tools.reference.building import Wanted

SCHEMA = [
    {"name": "title", "type": "utf8"},
    {"name": "wiki", "type": "string"},
    {"name": "page", "type": "uint64"},
]


class Source:
    """The static table of a test, and the reference next to it."""

    def __init__(self, context: JobContext, root: str) -> None:
        self.context = context
        self.client: Any = context.client
        self.root, self.path, self.link = root, f"{root}/source", f"{root}/titles"
        self.client.create("map_node", root, recursive=True, force=True)

    def write(self, rows: Iterable[Any], schema: Any = SCHEMA) -> None:
        self.client.create("table", self.path, attributes={"schema": schema}, force=True)
        self.client.write_table(self.path, rows)

    def wanted(self, *key: str, tablets: int | None = None) -> Wanted:
        return Wanted(self.path, self.link, key or ("wiki", "title"), tablets)

    def rows(self) -> list[dict[str, Any]]:
        """Return all rows of the reference, in the order of the key."""
        return [*self.client.select_rows(f"* from [{self.link}]")]


def titles(*pages: int) -> list[dict[str, Any]]:
    """Return rows with these values, in an order that is not the key's."""
    names = ("Ärger", "Ужас", "山", "Zug", "\U0001f600")
    return [
        {"wiki": f"w{page % 3}", "title": f"{names[page % 5]} {page}", "page": page}
        for page in pages
    ]
