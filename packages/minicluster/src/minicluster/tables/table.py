"""A table and its tablets: schema, state, data; how tablets are cut."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from ..core import ids
from ..core.errors import YtError, generic, no_such_tablet, tablet_not_mounted
from ..rows import wire
from ..rows.bulk import Narrowing
from ..rows.from_wire import Key, RowReader, narrowing
from ..rows.from_yson import key_from_yson
from ..rows.schema import TableSchema
from .ordered import OrderedData
from .row_locks import RowLocks
from .sorted import SortedData

MOUNTED = "mounted"
UNMOUNTED = "unmounted"
FROZEN = "frozen"
MIXED = "mixed"
NONE = "none"
READABLE = (MOUNTED, FROZEN)

MAX_TABLETS = 10_000
_MOST_KEPT = 100
"""Readers, by the names or columns that clients use."""


@dataclass
class Tablet:
    """One tablet. `pivot` is the least key of a sorted one; `data` the rows of an ordered one."""

    state: str = UNMOUNTED
    pivot: Key = ()
    data: OrderedData = field(default_factory=OrderedData)
    id: str = field(default_factory=lambda: ids.new(ids.TABLET))
    mount_revision: int = 0
    frozen_at: float | None = None
    """When it was frozen: a frozen tablet is not compacted, so its retained timestamp stays."""


@dataclass
class Table:
    """A table of any kind: static, ordered dynamic or sorted dynamic."""

    schema: TableSchema
    dynamic: bool
    tablets: list[Tablet]
    data: SortedData = field(default_factory=SortedData)
    """Rows of a sorted dynamic table."""
    static_rows: list[bytes] = field(default_factory=list)
    static_names: list[str] = field(default_factory=list)
    """Name table of `static_rows` once they were written: the schema's columns, then others."""
    static_chunks: tuple[tuple[int, int], ...] = ()
    """Of the rows of a static table, so many each time and when they were written."""
    atomicity: str = "full"
    schema_mode: str = "strong"
    last_commit: int = 0
    locks: RowLocks = field(default_factory=RowLocks)
    _readers: dict[tuple[str, ...], RowReader] = field(default_factory=dict, repr=False)
    _narrowings: dict[tuple[int, ...], Narrowing] = field(default_factory=dict, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_readers": {}, "_narrowings": {}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Make new readers: one that was saved by an older version cannot read."""
        vars(self).update(state, _readers={}, _narrowings={})

    @property
    def sorted(self) -> bool:
        return self.schema.sorted

    @property
    def has_locks(self) -> bool:
        """Return whether a column has a lock of its own."""
        return any("lock" in column.extra for column in self.schema.columns)

    @property
    def ordered(self) -> bool:
        return self.dynamic and not self.schema.sorted

    def reader(self, names: Sequence[str], path: str) -> RowReader:
        """Return the reader that stores rows written under this name table."""
        key = tuple(names)
        reader = self._readers.get(key)
        if reader is None:
            if len(self._readers) > _MOST_KEPT:
                self._readers.clear()
            reader = self._readers[key] = RowReader(self.schema, names, path)
        return reader

    def narrowing(self, wanted: Sequence[int]) -> Narrowing:
        """Return what makes rows of these columns out of stored rows."""
        key = tuple(wanted)
        if key not in self._narrowings:
            if len(self._narrowings) > _MOST_KEPT:
                self._narrowings.clear()
            self._narrowings[key] = narrowing(self.schema, wanted)
        return self._narrowings[key]

    def set_schema(self, schema: TableSchema) -> None:
        self.schema = schema
        self._readers.clear()
        self._narrowings.clear()

    @property
    def state(self) -> str:
        """`@tablet_state`: the one state of all tablets, or "mixed"."""
        if not self.dynamic:
            return NONE
        states = {tablet.state for tablet in self.tablets}
        return states.pop() if len(states) == 1 else MIXED

    def tablet_of(self, key: Key) -> int:
        """Return the index of the tablet that a key of a sorted table belongs to."""
        return bisect_right(self.tablets, key, key=lambda tablet: tablet.pivot) - 1

    def tablets_of(self, keys: Collection[Key]) -> Mapping[int, int]:
        """Return how many of the keys belong to which tablet."""
        if len(self.tablets) == 1:
            return {0: len(keys)}
        pivots = [tablet.pivot for tablet in self.tablets]
        return Counter(bisect_right(pivots, key) - 1 for key in keys)

    def held(self) -> int:
        """Return how many rows take memory, versions of one key as one; at no cost."""
        return (
            len(self.static_rows)
            + len(self.data)
            + sum(len(tablet.data.rows) for tablet in self.tablets)
        )

    def row_count(self) -> int:
        if not self.dynamic:
            return len(self.static_rows)
        if self.sorted:
            return self.data.count()
        return sum(len(tablet.data.rows) for tablet in self.tablets)


def not_mounted(tablet: Tablet, path: str, reading: bool = False) -> YtError:
    """Return the client's error, before it sends anything (api/native/tablet_helpers.cpp)."""
    message = (
        f'Cannot read from tablet {tablet.id} of table {path} while it is in "{tablet.state}" state'
        if reading
        else f'Tablet {tablet.id} of table {path} is in "{tablet.state}" state'
    )
    return tablet_not_mounted(
        message, tablet_id=tablet.id, is_tablet_unmounted=tablet.state == UNMOUNTED
    )


def tablet_at(table: Table, index: int, path: str) -> Tablet:
    """Return a tablet by its index. Raises YtError NO_SUCH_TABLET.

    Wording: client/tablet_client/table_mount_cache.cpp.
    """
    if not 0 <= index < len(table.tablets):
        raise no_such_tablet(
            f"Invalid tablet index for table {path}: "
            f"expected in range [0,{len(table.tablets) - 1}], got {index}"
        )
    return table.tablets[index]


def require_readable(tablet: Tablet, path: str) -> None:
    if tablet.state not in READABLE:
        raise not_mounted(tablet, path, reading=True)


def new_table(attributes: dict[str, Any], schema: TableSchema | None = None) -> Table:
    """Return a table from the attributes of a `create`, and remove those it has used."""
    given = attributes.pop("schema", None)
    dynamic = bool(attributes.pop("dynamic", False))
    mode = str(attributes.pop("schema_mode", "strong" if given is not None or schema else "weak"))
    if schema is None:
        schema = TableSchema.from_yson(given) if given is not None else TableSchema((), False)
    if dynamic:
        schema = schema.with_unique_keys()
        schema.validate_dynamic()
    elif "tablet_count" in attributes or "pivot_keys" in attributes:
        raise generic('"tablet_count" and "pivot_keys" can only be set for a dynamic table')
    table = Table(schema, dynamic, [], schema_mode=mode)
    table.atomicity = str(attributes.pop("atomicity", "full"))
    count = attributes.pop("tablet_count", None)
    pivots = attributes.pop("pivot_keys", None)
    trimmed = attributes.pop("trimmed_row_counts", None)
    if dynamic:
        table.tablets = new_tablets(schema, count, pivots)
        if trimmed is not None:
            set_trimmed_row_counts(table, trimmed)
    return table


def set_trimmed_row_counts(table: Table, counts: Sequence[int]) -> None:
    """Let an empty queue begin at the row numbers of the one it replaces."""
    if not table.ordered or len(counts) != len(table.tablets):
        raise generic('"trimmed_row_counts" must name every tablet of an ordered table')
    for tablet, trimmed in zip(table.tablets, counts, strict=True):
        tablet.data = OrderedData(trimmed=int(trimmed), dropped=int(trimmed))


def new_tablets(
    schema: TableSchema,
    count: int | None,
    pivots: Sequence[Sequence[Any]] | None,
    *,
    low: Key = (),
    high: Key | None = None,
) -> list[Tablet]:
    """Return empty tablets of a table: by pivot keys for a sorted one, else by a count.

    Pivot keys begin with `low` and end before `high`, which the next tablet has.
    """
    if count is not None and pivots is not None:
        raise generic('Cannot specify both "tablet_count" and "pivot_keys"')
    if pivots is not None:
        if not schema.sorted:
            raise generic("Pivot keys must not be provided to reshard an ordered table")
        return [Tablet(pivot=pivot) for pivot in _pivots(schema, pivots, low, high)]
    number = 1 if count is None else int(count)
    if not 1 <= number <= MAX_TABLETS:
        raise generic(f"Tablet count must be between 1 and {MAX_TABLETS}, got {number}")
    if schema.sorted and number > 1:
        return [Tablet(pivot=pivot) for pivot in uniform_pivots(schema, number)]
    return [Tablet() for _ in range(number)]


def _pivots(
    schema: TableSchema, given: Sequence[Sequence[Any]], first: Key, end: Key | None
) -> list[Key]:
    result = [key_from_yson(schema, pivot) for pivot in given]
    if not result or result[0] != first:
        raise generic("First pivot key must match that of the first tablet in the resharded range")
    if any(low >= high for low, high in pairwise(result)):
        raise generic("Pivot keys must be strictly increasing")
    if end is not None and result[-1] >= end:
        raise generic(
            "Last pivot key must be strictly less than that of the tablet "
            "which follows the resharded range"
        )
    return result


def uniform_pivots(schema: TableSchema, count: int) -> list[Key]:
    """Return pivots that cut the range of an integer first key column into equal parts."""
    column = schema.columns[0]
    ranges = {"int64": (-(1 << 63), 1 << 64), "uint64": (0, 1 << 64)}
    if column.type in ranges:
        low, size = ranges[column.type]
    elif column.scalar.bounds:
        low, high = column.scalar.bounds
        size = high - low + 1
    else:
        raise generic(
            "Tablet count may be given for a sorted table only if its first key column is an "
            f'integer; "{column.name}" is of type "{column.type}"'
        )
    return [()] + [(column.wire_type, low + size * i // count) for i in range(1, count)]


def pivot_to_yson(pivot: Key) -> list[Any]:
    """Return a pivot key as a list of YSON values."""
    return [
        None if code == wire.NULL else wire.to_python(code, value)
        for code, value in zip(pivot[::2], pivot[1::2], strict=True)
    ]
