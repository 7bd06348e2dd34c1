"""The ledger's rows of archives: pieces that wait, tables that were made, and what is closed.

A piece has a row of its own, written with the row of its batch, until its table is sealed. The
history of batches may be cut meanwhile, and a piece that nothing names is removed. Rows of pieces
are in the order in which their tables are due. Values only: outputs/archives.py writes them.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from ..schema.periods import Group, Piece, Staged, group_in, named
from .ledger_rows import BatchRow, microseconds

SEALING, SEALED = "sealing", "sealed"
"""Steps of a table: its list of pieces is fixed; it is in the archive's folder."""
STATES = '(kind >= "archive/" and kind < "archive0")'  # "0" follows "/"
"""The condition for rows of what archives have closed."""
_PARTS = 1_000
"""Tables of one period, by their number."""


@dataclass(frozen=True)
class ArchiveState:
    """What one archive has closed."""

    closed: int = 0
    """The end of the last period that is closed: rows of it that come now go to a table of their
    own."""
    announced: int = 0
    """The end of the last period up to which all tables are there, as readers know it."""
    generation: int = 0
    """How often columns or periods were changed, and what they are."""
    shape: str = ""


@dataclass(frozen=True)
class TableRow:
    """One table of an archive."""

    output: str
    group: Group
    part: int
    """1, or more for late rows of its period."""
    step: str
    rows: int
    bytes: int
    pieces: tuple[tuple[str, str], ...] = ()
    """While it is made: path and id of each piece."""
    at: int | None = None
    """When the row was written; None: not yet."""

    @property
    def name(self) -> str:
        """The name of the table."""
        return named(self.group.begin, self.part)


def piece_rows(done: BatchRow, number: int, epoch: int, batch: int) -> list[dict[str, Any]]:
    """Return the rows of the pieces that the batch with that number has written."""
    return [
        {
            **_row(f"piece/{one.output}/{one.group.folder}", number),
            "epoch": epoch,
            "batch": batch,
            "state": {
                "path": one.piece.path,
                "id": one.piece.id,
                "rows": one.piece.rows,
                "bytes": one.piece.bytes,
            },
        }
        for one in done.pieces
    ]


def piece_keys(pieces: Iterable[Staged]) -> list[dict[str, Any]]:
    """Return the keys of the rows of these pieces."""
    return [
        {"kind": f"piece/{one.output}/{one.group.folder}", "number": one.number} for one in pieces
    ]


def pieces_query(ledger: str, output: str) -> str:
    """Return the query that reads the pieces of an archive that wait."""
    low, high = f"piece/{output}/", f"piece/{output}0"  # "0" follows "/"
    return f'kind, number, state from [{ledger}] where kind >= "{low}" and kind < "{high}"'


def piece_of(row: Mapping[str, Any]) -> Staged:
    """Return the piece that a row tells of."""
    _, output, folder = str(row["kind"]).split("/")
    found = row["state"]
    piece = Piece(str(found["path"]), str(found["id"]), int(found["rows"]), int(found["bytes"]))
    return Staged(output, group_in(folder), piece, int(row["number"]))


def state_row(output: str, state: ArchiveState) -> dict[str, Any]:
    """Return the row of what an archive has closed."""
    return {
        **_row(f"archive/{output}", 0),
        "state": {
            "closed": state.closed,
            "announced": state.announced,
            "generation": state.generation,
            "shape": state.shape,
        },
    }


def table_row(table: TableRow) -> dict[str, Any]:
    """Return the row of one table."""
    return {
        **_row(f"table/{table.output}", table.group.begin * _PARTS + table.part),
        "state": {
            "group": table.group.folder,
            "step": table.step,
            "rows": table.rows,
            "bytes": table.bytes,
            **({"pieces": [[*one] for one in table.pieces]} if table.pieces else {}),
        },
    }


def request_row(output: str, until: int) -> dict[str, Any]:
    """Return the row with which a person asks to close an archive up to a time."""
    return {**_row(f"seal/{output}", 0), "state": {"until": until}}


def request_key(output: str) -> dict[str, Any]:
    """Return the key of that row."""
    return {"kind": f"seal/{output}", "number": 0}


def archive_query(ledger: str, output: str) -> str:
    """Return the query that reads what an archive has closed, and what a person asks for."""
    kinds = f'"archive/{output}", "seal/{output}"'
    return f"kind, state from [{ledger}] where kind in ({kinds})"


def state_of(rows: Iterable[Mapping[str, Any]]) -> tuple[ArchiveState, int]:
    """Return the answer to it: what is closed, and up to when a person asks for it; 0: nobody."""
    state, until = ArchiveState(), 0
    for row in rows:
        found = row["state"]
        if str(row["kind"]).startswith("seal/"):
            until = int(found["until"])
        else:
            state = ArchiveState(
                int(found["closed"]),
                int(found["announced"]),
                int(found["generation"]),
                str(found["shape"]),
            )
    return state, until


def tables_query(ledger: str, output: str, begin: int | None = None, limit: int = 0) -> str:
    """Return the query that reads tables of an archive: of one period, or the newest ones."""
    where = f'kind = "table/{output}"'
    if begin is not None:
        where += f" and number >= {begin * _PARTS} and number < {(begin + 1) * _PARTS}"
    order = f" order by number desc limit {limit}" if limit else ""
    return f"kind, number, state, ended from [{ledger}] where {where}{order}"


def table_of(row: Mapping[str, Any]) -> TableRow:
    """Return the table that a row tells of."""
    found = row["state"]
    return TableRow(
        output=str(row["kind"]).partition("/")[2],
        group=group_in(str(found["group"])),
        part=int(row["number"]) % _PARTS,
        step=str(found["step"]),
        rows=int(found["rows"]),
        bytes=int(found["bytes"]),
        pieces=tuple((str(path), str(id_)) for path, id_ in found.get("pieces", ())),
        at=int(row["ended"]),
    )


def unfinished(tables: Iterable[TableRow]) -> Iterator[TableRow]:
    """Yield the tables that are being made, the oldest first."""
    yield from sorted(
        (table for table in tables if table.step == SEALING), key=lambda table: table.group
    )


def sealed(table: TableRow) -> TableRow:
    """Return the table once it is there."""
    return replace(table, step=SEALED, pieces=())


def _row(kind: str, number: int) -> dict[str, Any]:
    return {
        "kind": kind,
        "number": number,
        "epoch": 0,
        "batch": -1,
        "ended": microseconds(datetime.now(UTC)),
    }
