"""The columns and rows that `adopt` starts from, wherever they come from."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ytstream.errors import JobError
from ytstream.errors.error_codes import ErrorCode
from ytstream.schema.columns import Column, spelled, type_name

from ..testing.type_conversion import conversion

Row = dict[str, Any]


@dataclass(frozen=True)
class LeftOut:
    """A column that QUEUE does not get."""

    name: str
    type: str
    """As tables.py would write it."""
    why: str


@dataclass(frozen=True)
class SourceRows:
    """Columns with the rows that were read from a queue or a file."""

    origin: str
    """A queue's path, or a file's name."""
    columns: Sequence[Column]
    left_out: Sequence[LeftOut]
    rows: Sequence[Row]
    choice: str = ""
    """How the rows were chosen, for a person."""
    notes: Sequence[str] = ()
    """What a person has to know about the values."""
    inferred: Sequence[str] = ()
    """What was inferred of each column of a file, and from what."""
    is_whole: bool = False
    """Whether these are all rows that there are."""

    def without(self, names: Collection[str], why: str) -> SourceRows:
        """Return it without some columns, and with the reason."""
        gone = [
            LeftOut(column.name, spelled(column.type), why)
            for column in self.columns
            if column.name in names
        ]
        return replace(
            self,
            columns=[column for column in self.columns if column.name not in names],
            left_out=[*self.left_out, *gone],
            rows=[{n: v for n, v in row.items() if n not in names} for row in self.rows],
        )


def verify_known(names: Sequence[str], columns: Sequence[Column], what: str) -> None:
    """Raise JobError for a name that is not a column."""
    known = [column.name for column in columns]
    if unknown := [name for name in names if name not in known]:
        shown = known if len(known) <= 30 else [*known[:30], f"... {len(known) - 30} more"]
        raise JobError(
            f"{what}: the rows have no column {', '.join(unknown)}",
            f"known: {', '.join(shown)}",
            code=ErrorCode.USAGE,
        )


def split(columns: Sequence[Column]) -> tuple[list[Column], list[LeftOut]]:
    """Return the columns that a job can read, and the others with the reason."""
    kept: list[Column] = []
    left: list[LeftOut] = []
    for column in columns:
        why = _unreadable(column) or _ambiguous(column.name, kept)
        if why is None:
            kept.append(column)
        else:
            left.append(LeftOut(column.name, spelled(column.type), why))
    return kept, left


def _ambiguous(name: str, kept: Sequence[Column]) -> str | None:
    same = next((other.name for other in kept if other.name.lower() == name.lower()), None)
    return f"Spark cannot tell it from {same}: it ignores the case of names" if same else None


def _unreadable(column: Column) -> str | None:
    if not column.name:
        return "it has no name"
    if {*".`"} & {*column.name}:
        return "Spark takes a dot in a name for a field of a struct, and a backtick for a quote"
    if column.name.startswith("@"):
        return "names with @ are YTsaurus' own"
    if type_name(column.type) in ("null", "void"):
        return "it can hold nothing but null"
    try:
        conversion(column.type)
    except JobError:
        return "no sample row and no unit test can have a value of this type"
    return None
