"""Where the tables of a reference are, and which of them nobody needs any more.

The job looks keys up in a link. The tables that it has led to are next to it, in a folder of their
own. A batch goes on reading the table that it began with, so a replaced one stays for a while.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from yt.common import YtError

from ytstream.cluster.built_reference import MARK, TIMESTAMP
from ytstream.cluster.client import Client, facts
from ytstream.errors import JobError
from ytstream.errors.error_codes import ErrorCode
from ytstream.text_table import duration

KEEP_SECONDS = 3600
"""A replaced table stays so long: no batch of a job takes longer."""
_SECONDS = 30
"""A timestamp of the cluster has the seconds in its upper bits (YTsaurus, "Timestamps")."""


@dataclass(frozen=True)
class Places:
    """The link of a reference and its tables, as they are on the cluster."""

    link: str
    target: str | None
    """What the link leads to; None where there is no link yet."""
    tables: Mapping[str, int | None] = field(default_factory=dict)
    """Each table of the folder -> the timestamp of its mark; None of one that was not finished."""

    @property
    def folder(self) -> str:
        """The folder of the tables."""
        return folder_of(self.link)

    def leftovers(self, now: int) -> Iterator[tuple[str, str]]:
        """Yield each table that can be removed at the timestamp ``now``, and why."""
        for table, until in self._unused():
            if until is None:
                yield table, "its building was not finished"
            elif _seconds(until, now) >= KEEP_SECONDS:
                yield table, f"it was replaced {duration(_seconds(until, now))} ago"

    def kept(self, now: int) -> Iterator[str]:
        """Yield each table that was replaced a short while ago."""
        for table, until in self._unused():
            if until is not None and _seconds(until, now) < KEEP_SECONDS:
                yield table

    def _unused(self) -> Iterator[tuple[str, int | None]]:
        """Yield each table that the link does not lead to, and when that has begun.

        Links move to newer tables only. So one that is newer than the link's was never linked, and
        another one was replaced when the next newer one was finished.
        """
        built = {table: time for table, time in self.tables.items() if time is not None}
        newest = built.get(self.target or "")
        for table, time in self.tables.items():
            if table == self.target:
                continue
            if time is None or self.target is None or (newest is not None and time > newest):
                yield table, None
            else:
                yield table, min((other for other in built.values() if other > time), default=time)


def folder_of(link: str) -> str:
    """Return the folder of a link's tables."""
    return f"{link}-tables"


def read(client: Client, link: str) -> Places:
    """Return the places of a reference. Raises JobError where something else than a link is."""
    found = facts(client, f"{link}&", ["type", "target_path"])
    if found is not None and found["type"] != "link":
        raise JobError(
            f"{link} is a {found['type']}, and `reference` switches a link",
            "name a path that is free, or one that it has made",
            code=ErrorCode.USAGE,
        )
    target = str(found["target_path"]) if found is not None else None
    return Places(link, target, dict(_tables(client, folder_of(link))))


def _tables(client: Client, folder: str) -> Iterator[tuple[str, int | None]]:
    try:
        listed = client.list(folder)
    except YtError as error:
        if error.is_resolve_error():
            return
        raise
    for name in listed:
        built = (facts(client, f"{folder}/{name}", [MARK]) or {}).get(MARK)
        yield f"{folder}/{name}", int(built[TIMESTAMP]) if built else None


def _seconds(since: int, now: int) -> int:
    return (now >> _SECONDS) - (since >> _SECONDS)
