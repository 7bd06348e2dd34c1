"""Pieces of archives that no row of the ledger names: removed, unless the ledger cannot judge them.

A batch that did not happen leaves pieces that no row names. So does a ledger that was lost, or
replaced by an older copy: then they are the rows of open periods, which are nowhere else. The
numbers of the batches tell the two apart, as they do for tables of micro-batches, in
staged_tables.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass

from yt.common import YtError

from ..cluster.client import Client
from ..job import JobContext
from ..ledger import archive_rows
from ..ledger.positions import read_head
from ..schema.periods import Staged, group_in, named
from ..text_table import counted
from . import staged_tables
from .staged_tables import NAME, StagedTable

_GROUP = re.compile(r"\d+-\d+-\d+-\d+")
"""The names of folders of pieces. Tables of micro-batches, from before the output was an archive,
are not in one."""
_HOW = 'docs/archives.md, "After a lost ledger", says how to add their rows to the archive'
_UNKNOWN = (
    "and the ledger does not know any more whether their batches have happened: they stay there. "
    + _HOW
)


@dataclass(frozen=True)
class PieceFolder:
    """The pieces of one table, as they are in the staging folder."""

    path: str
    names: tuple[str, ...]
    output: str

    def batches(self, names: Collection[str]) -> dict[str, StagedTable]:
        """Return which batch has made each of these pieces."""
        return {
            name: StagedTable(self.output, int(match[1]), int(match[2]))
            for name in names
            if (match := NAME.fullmatch(name))
        }

    def told(self, names: Collection[str]) -> str:
        """Return where these pieces are, to which period they belong, and which is the newest."""
        period = named(group_in(self.path.rpartition("/")[2]).begin)
        return f"{self.path}: {counted(len(names), 'piece')} of {period} up to {max(names)}"


def staged(context: JobContext, output: str) -> list[Staged]:
    """Return the pieces of an archive that wait, as the ledger names them."""
    query = archive_rows.pieces_query(context.settings.ledger, output)
    return [*map(archive_rows.piece_of, context.client.select_rows(query))]


def folders(context: JobContext, output: str) -> list[PieceFolder]:
    """Return the folders of an archive's pieces."""
    root = f"{context.settings.staging}/{output}"
    try:
        found = context.client.get(root)
    except YtError as error:
        if error.is_resolve_error():
            return []
        raise
    return [
        PieceFolder(f"{root}/{folder}", tuple(map(str, inside)), output)
        for folder, inside in (found if isinstance(found, Mapping) else {}).items()
        if isinstance(inside, Mapping) and _GROUP.fullmatch(str(folder))
    ]


def unnamed(
    context: JobContext, output: str
) -> Iterator[tuple[PieceFolder, dict[str, StagedTable]]]:
    """Yield the pieces that no row of the ledger names, by folder."""
    known = {one.piece.path for one in staged(context, output)}
    for folder in folders(context, output):
        names = [name for name in folder.names if f"{folder.path}/{name}" not in known]
        yield folder, folder.batches(names)


def remove_orphans(context: JobContext, output: str, epoch: int) -> list[str]:
    """Remove pieces of epochs before ``epoch`` that no row names; return what to say of others.

    No older epoch can commit any more. Pieces whose batches may have happened stay.
    """
    client, settings = context.client, context.settings
    head = read_head(settings.ledger, client.select_rows)
    last, kept = head.number if head else 0, []
    for folder, batches in unnamed(context, output):
        old = {name: table for name, table in batches.items() if table.epoch < epoch}
        forgotten = staged_tables.forgotten(client, settings, old.values(), last)
        stay = [name for name, table in old.items() if table in forgotten]
        gone = old.keys() - {*stay}
        if len(gone) == len(folder.names):
            _remove(client, folder.path)
        else:
            for name in gone:
                _remove(client, f"{folder.path}/{name}")
        if stay:
            kept.append(f"{folder.told(stay)}, {_UNKNOWN}")
    return kept


def left_behind(context: JobContext) -> list[str]:
    """Return what to say of the pieces that a new head will not name: a lost one named them."""
    return [
        f"{folder.told(batches)} that the new ledger does not name: they stay there. {_HOW}"
        for output in context.job.archives
        for folder, batches in unnamed(context, output)
        if batches
    ]


def _remove(client: Client, path: str) -> None:
    with suppress(YtError):  # an older driver still writes it: the next start tries again
        client.remove(path, recursive=True, force=True)
