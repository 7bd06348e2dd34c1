"""Where the tables of a reference are, and which of them nobody needs any more.

The job looks keys up in a link. The tables that it has led to are next to it, in a folder of their
own. A batch goes on reading the table that it began with, so a replaced one stays for a while.

The mark of a table decides whether it may be removed: it has one from its creation on, and what has
none was made by somebody else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from yt.common import YtError

from ytstream.cluster.built_reference import MARK, SWITCHED, TIMESTAMP, UNUSED
from ytstream.cluster.client import Client, facts
from ytstream.cluster.timestamps import unix_seconds
from ytstream.errors import JobError
from ytstream.errors.error_codes import ErrorCode
from ytstream.text_table import duration

KEEP_SECONDS = 3600
"""A table stays so long after its use has ended: no batch of a job takes longer."""
Mark = Mapping[str, Any]
"""A value of MARK."""


@dataclass(frozen=True)
class Places:
    """The link of a reference and its tables, as they are on the cluster."""

    link: str
    target: str | None
    """What the link leads to; None where there is no link yet."""
    is_switched: bool = False
    """Whether `reference` was the last to switch the link. After a switch by hand nobody knows
    which tables were in use until then."""
    tables: Mapping[str, Mark] = field(default_factory=dict)
    """The mark of each table of the folder that has one."""

    @property
    def folder(self) -> str:
        """The folder of the tables."""
        return folder_of(self.link)

    def leftovers(self, now: int) -> Iterator[tuple[str, str]]:
        """Yield each table that can be removed at the timestamp ``now``, and why."""
        for table, mark in self._others():
            if TIMESTAMP not in mark:
                yield table, "its building was not finished"
            elif self.is_switched and UNUSED in mark:
                seconds = unix_seconds(now) - unix_seconds(int(mark[UNUSED]))
                if seconds >= KEEP_SECONDS:
                    yield table, f"it has not been in use for {duration(seconds)}"

    def unused(self) -> Iterator[str]:
        """Yield each finished table that the link does not lead to."""
        for table, mark in self._others():
            if TIMESTAMP in mark:
                yield table

    def freed(self) -> Iterator[str]:
        """Yield each finished table whose use ends when the link is switched to a new one.

        After a switch by hand, that may be any of them.
        """
        for table, mark in self.tables.items():
            is_known = self.is_switched and table != self.target and UNUSED in mark
            if TIMESTAMP in mark and not is_known:
                yield table

    def _others(self) -> Iterator[tuple[str, Mark]]:
        for table, mark in self.tables.items():
            if table != self.target:
                yield table, mark


def folder_of(link: str) -> str:
    """Return the folder of a link's tables."""
    return f"{link}-tables"


def read(client: Client, link: str) -> Places:
    """Return the places of a reference.

    Raises JobError where something else than a link or than the folder of its tables is.
    """
    found = facts(client, f"{link}&", ["type", "target_path", SWITCHED])
    if found is not None and found["type"] != "link":
        raise JobError(
            f"{link} is a {found['type']}, and `reference` switches a link",
            "name a path that is free, or one that it has made",
            code=ErrorCode.USAGE,
        )
    target = str(found["target_path"]) if found is not None else None
    return Places(link, target, SWITCHED in (found or {}), dict(_tables(client, folder_of(link))))


def _tables(client: Client, folder: str) -> Iterator[tuple[str, Mark]]:
    if (at := facts(client, folder, ["type"])) is not None and at["type"] != "map_node":
        raise JobError(
            f"{folder} is a {at['type']}, and `reference` makes its tables in a folder there",
            "move it away, or name another TO",
            code=ErrorCode.USAGE,
        )
    try:
        listed = client.list(folder)
    except YtError as error:
        if error.is_resolve_error():
            return
        raise
    for name in listed:
        # Of the node itself: a link has the attributes of its target otherwise.
        found = facts(client, f"{folder}/{name}&", ["type", MARK]) or {}
        if found.get("type") == "table" and MARK in found:
            yield f"{folder}/{name}", found[MARK]
