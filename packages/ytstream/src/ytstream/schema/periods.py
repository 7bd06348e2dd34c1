"""Archives: outputs that are folders with one static table per period, and the periods themselves.

A period is named by its beginning in UTC, as the cluster's own exports of queues do (YTsaurus,
queue_exporter.cpp, `%ISO`). UTC has no daylight saving time, so each hour and each day is there
once. Values and arithmetic only: outputs/archives.py writes the tables.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY = 24 * 3600
_NAME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)(?:-(\d{1,3}))?")
TABLE, REJECT = "table", "reject"
"""Values of ``late``: a table of its own, or the output "rejected"."""
TIMES = ("timestamp", "date")
"""Types of a column that says to which period a row belongs."""


def days(number: float) -> timedelta:
    """Return so many days, for keep and lateness of an archive.

    Args:
        number: how many
    """
    return timedelta(days=number)


def minutes(number: float) -> timedelta:
    """Return so many minutes, for lateness of an archive and for Every().

    Args:
        number: how many
    """
    return timedelta(minutes=number)


@dataclass(frozen=True)
class Archive:
    """An output that is a folder with one static table per period. Made by Hourly() and its like.

    A table appears once it is complete, and never changes.
    """

    period: timedelta
    """How long a period is."""
    by: str | None = None
    """The column of the output that says to which period a row belongs. None: the time at which the
    row of the queue was written."""
    lateness: timedelta = timedelta(minutes=10)
    """How long rows of a period may be written to the queues after its end."""
    keep: timedelta | None = None
    """A table is removed so long after the end of its period. None: never."""
    late: str = TABLE
    """What happens to rows that come later: "table" puts them into a further table of the period,
    "reject" into the output "rejected"."""
    merge: bool = False
    """Whether an operation combines the chunks of a table once it is sealed."""
    sort_by: tuple[str, ...] = ()
    """The columns by which an operation sorts a table once it is sealed, which also merges it."""

    @property
    def is_rewritten(self) -> bool:
        """Whether an operation follows when a table is sealed."""
        return self.merge or bool(self.sort_by)

    @property
    def seconds(self) -> int:
        """The length of a period."""
        return round(self.period.total_seconds())

    @property
    def lateness_seconds(self) -> int:
        """How long after its end a period stays open."""
        return round(self.lateness.total_seconds())

    def begin(self, second: float) -> int:
        """Return when the period of a time begins, in seconds since 1970."""
        return int(second // self.seconds) * self.seconds

    def oldest(self, now: float) -> int:
        """Return when the oldest period begins that is still kept."""
        return 0 if self.keep is None else max(0, self.begin(now - self.keep.total_seconds()))

    def newest(self, now: float) -> int:
        """Return when the newest period begins that a row may have: the one after the present."""
        return self.begin(now) + self.seconds

    def skipped(self, second: float | None, now: float) -> str:
        """Return why a row of that time belongs to no period; empty: it does. As Period.java."""
        if second is None:
            return "no-time"
        if self.begin(second) < self.oldest(now):
            return "too-old"
        return "too-new" if self.begin(second) > self.newest(now) else ""

    def closed_by(self, complete_until: float) -> int:
        """Return the end of the last period that is complete.

        All rows written to the queues before ``complete_until`` are in batches that have happened.
        """
        return self.begin(complete_until - self.lateness_seconds)

    def expires(self, end: int) -> datetime | None:
        """Return when the table of a period that ends then is removed; None: never."""
        return None if self.keep is None else moment(end) + self.keep


def Hourly(  # noqa: N802 - as a person declares it
    by: str | None = None,
    *,
    lateness: timedelta = timedelta(minutes=10),
    keep: timedelta | None = None,
    late: str = TABLE,
    merge: bool = False,
    sort_by: Sequence[str] = (),
) -> Archive:
    """Return an archive with a table per hour, for STATIC of tables.py.

    Args:
        by: a column of the output, of type timestamp or date, that says to which period a row
            belongs. None: the time at which the cluster has written the row of the queue
        lateness: how long after the end of a period its rows may still be written to the queues
        keep: a table is removed so long after the end of its period; None: never
        late: what happens to rows that come later: "table" puts them into a further table of the
            period, "reject" into the output "rejected"
        merge: whether an operation combines the chunks of a table once it is sealed
        sort_by: columns by which an operation sorts a table once it is sealed
    """
    return Archive(timedelta(hours=1), by, lateness, keep, late, merge, _names(sort_by))


def Daily(  # noqa: N802
    by: str | None = None,
    *,
    lateness: timedelta = timedelta(minutes=10),
    keep: timedelta | None = None,
    late: str = TABLE,
    merge: bool = False,
    sort_by: Sequence[str] = (),
) -> Archive:
    """Return an archive with a table per day of UTC, for STATIC of tables.py.

    Args:
        by: a column of the output, of type timestamp or date, that says to which period a row
            belongs. None: the time at which the cluster has written the row of the queue
        lateness: how long after the end of a period its rows may still be written to the queues
        keep: a table is removed so long after the end of its period; None: never
        late: what happens to rows that come later: "table" puts them into a further table of the
            period, "reject" into the output "rejected"
        merge: whether an operation combines the chunks of a table once it is sealed
        sort_by: columns by which an operation sorts a table once it is sealed
    """
    return Archive(timedelta(days=1), by, lateness, keep, late, merge, _names(sort_by))


def Every(  # noqa: N802
    period: timedelta,
    by: str | None = None,
    *,
    lateness: timedelta = timedelta(minutes=10),
    keep: timedelta | None = None,
    late: str = TABLE,
    merge: bool = False,
    sort_by: Sequence[str] = (),
) -> Archive:
    """Return an archive with a table per period, for STATIC of tables.py.

    Args:
        period: its length, which divides a day, e.g. minutes(15), or is a number of days
        by: a column of the output, of type timestamp or date, that says to which period a row
            belongs. None: the time at which the cluster has written the row of the queue
        lateness: how long after the end of a period its rows may still be written to the queues
        keep: a table is removed so long after the end of its period; None: never
        late: what happens to rows that come later: "table" puts them into a further table of the
            period, "reject" into the output "rejected"
        merge: whether an operation combines the chunks of a table once it is sealed
        sort_by: columns by which an operation sorts a table once it is sealed
    """
    return Archive(period, by, lateness, keep, late, merge, _names(sort_by))


def _names(given: Sequence[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


def problems(archive: Archive) -> Iterable[str]:
    """Yield what is wrong with an archive, whatever its output is."""
    for name in ("period", "lateness", "keep"):
        value = getattr(archive, name)
        if not (isinstance(value, timedelta) or (name == "keep" and value is None)):
            yield f"{name}={value!r}: wanted minutes(...) or days(...)"
            return
    if not (archive.by is None or isinstance(archive.by, str)):
        yield f"by={archive.by!r}: wanted the name of a column"
    if archive.late not in (TABLE, REJECT):
        yield f'late={archive.late!r}: wanted "{TABLE}" or "{REJECT}"'
    if archive.period < timedelta(minutes=1):
        yield "a period of less than a minute: use a minute or more"
    elif archive.period.total_seconds() != archive.seconds or (
        _DAY % archive.seconds and archive.seconds % _DAY
    ):
        yield "periods must divide a day, e.g. minutes(15), or be whole days"
    if archive.lateness < timedelta(0):
        yield "lateness is negative"
    if archive.keep is not None and archive.keep < archive.period:
        yield "keep is shorter than a period: a table would be removed before it is complete"


def moment(second: float) -> datetime:
    """Return a number of seconds since 1970 as a time."""
    return _EPOCH + timedelta(seconds=second)


def second_of(time: datetime) -> int:
    """Return a time as seconds since 1970."""
    return (time - _EPOCH) // timedelta(seconds=1)


def named(begin: int, part: int = 1) -> str:
    """Return the name of a table of the period: names sort by time. Late rows are in -2, -3, ..."""
    suffix = "" if part == 1 else f"-{part}"
    return f"{moment(begin):%Y-%m-%dT%H:%M:%SZ}{suffix}"


def begin_of(name: str) -> tuple[int, int] | None:
    """Return beginning and part of the period that a table is named after; None for others."""
    if (match := _NAME.fullmatch(name)) is None:
        return None
    try:
        return second_of(datetime.fromisoformat(match[1])), int(match[2] or 1)
    except ValueError:
        return None


@dataclass(frozen=True, order=True)
class Group:
    """The pieces that become one table: of rows of one period, written while one other was open.

    Of rows that come in time it is the same period. Late rows are published with the oldest period
    that was open when they were written.
    """

    due: int
    """When the period ends with which the table is complete."""
    begin: int
    """The beginning of the rows' period, and its length."""
    seconds: int
    generation: int = 0
    """How often the columns or the length of the archive's periods were changed before."""

    @property
    def folder(self) -> str:
        """The name of the folder of its pieces."""
        return f"{self.due:012}-{self.begin:012}-{self.seconds}-{self.generation}"

    def is_due(self, closed: int, generation: int) -> bool:
        """Return whether no batch adds a piece any more, while all before ``closed`` is closed."""
        return self.generation < generation or self.due <= closed


def group_of(begin: int, seconds: int, closed: int, generation: int = 0) -> Group:
    """Return the group of rows of a period, while all before ``closed`` is closed."""
    end = begin + seconds
    due = end if end > closed else (closed // seconds + 1) * seconds
    return Group(due, begin, seconds, generation)


def group_in(folder: str) -> Group:
    """Return the group whose folder has that name. Raises ValueError."""
    return Group(*map(int, folder.split("-")))


@dataclass(frozen=True)
class Piece:
    """The rows of one micro-batch in one period, in a table of their own until it is complete."""

    path: str
    id: str
    rows: int
    bytes: int


@dataclass(frozen=True)
class Staged:
    """A piece, and the table that it becomes a part of."""

    output: str
    group: Group
    piece: Piece
    number: int = 0
    """The batch's number in the ledger, which names the piece's row there."""


def grouped(staged: Iterable[Staged]) -> Mapping[Group, list[Staged]]:
    """Return the pieces by table, in the order in which the tables are published."""
    found: dict[Group, list[Staged]] = {}
    for one in sorted(staged, key=lambda one: (one.group, one.number)):
        found.setdefault(one.group, []).append(one)
    return found
