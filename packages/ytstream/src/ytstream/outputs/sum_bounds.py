"""No sum of a table leaves its 64 bits without a word: what a batch adds is checked before it is
committed.

The ledger's head has bounds of all totals. They grow by the most that a batch adds to any key,
which its tasks tell at no cost. Only once they pass half of the type the table is asked for its
greatest and least total. If that is beyond half, too, each batch looks up its own keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..cluster.client import facts
from ..cluster.table_extremes import extremes
from ..errors import JobError, RestartableError
from ..errors.error_codes import ErrorCode
from ..job import JobContext
from ..schema.columns import spelled
from ..schema.sums import ENDS, Bounds, Known, quarter_of, sums_of

_SECONDS = 10.0
"""Time for the table to say its greatest totals: the batch waits, whose transaction is open."""
_FEW_ROWS = 10_000
"""So many rows are read in a moment."""


@dataclass(frozen=True)
class AddedSum:
    """What a batch adds to one column."""

    unnamed: Bounds
    """The least and the most that is added to a key that no task has named."""
    named: Bounds


@dataclass(frozen=True)
class KeyTotal:
    """The totals of the keys that tasks have named, once the batch is committed."""

    bounds: Bounds
    least_key: str = ""
    most_key: str = ""


Added = Mapping[str, AddedSum]
Totals = Mapping[str, KeyTotal]


def after(
    known: Known,
    added: Added,
    ends: Known,
    scan: Callable[[], Known | None],
    look_up: Callable[[], Totals],
) -> Known:
    """Return the bounds after a batch. Raises JobError if a total leaves its type.

    And RestartableError where what tasks have not named decides: the first batch of a query names
    each key.

    ``scan`` asks the whole table, and ``look_up`` for the keys that tasks have named: all keys
    of the batch, where the bounds before it are large.
    """
    found = {n: known[n].plus(one.unnamed.with_(_both(one))) for n, one in added.items()}
    if not any(found[name].is_large(ends[name]) for name in found):
        return {**known, **found}
    if not any(known[name].is_large(ends[name]) for name in found) and (seen := scan()):
        known = {**known, **seen}
        found = {n: known[n].plus(one.unnamed.with_(_both(one))) for n, one in added.items()}
        if not any(found[name].is_large(ends[name]) for name in found):
            return {**known, **found}
    totals = look_up()
    for name, one in added.items():
        exact = totals[name].bounds.plus(one.unnamed)
        if not exact.is_within(ends[name]) and any(one.unnamed):
            raise RestartableError(
                f"a total of column {name} comes near the end of 64 bits: the batch runs again, "
                "and its tasks name each key"
            )
        if not exact.is_within(ends[name]):
            raise _beyond(name, totals[name], exact, ends[name])
        found[name] = known[name].plus(one.unnamed).with_(exact)
    return {**known, **found}


def _both(one: AddedSum) -> Bounds:
    return one.unnamed.plus(one.named)


def _beyond(name: str, total: KeyTotal, exact: Bounds, ends: Bounds) -> JobError:
    is_over = exact.most > ends.most
    key, value = (total.most_key, exact.most) if is_over else (total.least_key, exact.least)
    type_ = next(spelled(type_) for type_, its in ENDS.items() if its == ends)
    return JobError(
        f"the total of column {name} is beyond 64 bits: for the key ({key}) it would be {value}, "
        f"and {type_} ends at {ends.most if is_over else ends.least}",
        "keep such rows out with REJECT, e.g. abs(price) > 1000000000000, or contribute larger "
        "units to a new output; `capture failed` keeps the rows of the batch; committed rows are "
        "kept",
        code=ErrorCode.BATCH_FAILED,
    )


def before(context: JobContext, head: Mapping[str, Known], *, is_first: bool) -> dict[str, Known]:
    """Return the bounds before a batch, by the output's path.

    A table that the job does not know yet is asked, if it has few rows: mostly none. The totals of
    a larger one are taken to be below a quarter of the type. ``is_first`` in a query: a table whose
    totals may be beyond half is asked again, since it may have been too slow to answer.
    """
    found: dict[str, Known] = {}
    for output in context.job.totals:
        path, ends = context.settings.outputs[output], sums_of(context.job.output_columns[output])
        known = {name: bounds for name, bounds in head.get(path, {}).items() if name in ends}
        if known.keys() != ends.keys():
            asked = scanned(context, path, ends) if _has_few_rows(context, path) else None
            guessed = {name: quarter_of(ends[name]) for name in ends}
            known = {**(asked or guessed), **known}
        elif is_first and any(known[name].is_large(ends[name]) for name in ends):
            known = {**known, **(scanned(context, path, ends) or {})}
        if ends:
            found[path] = known
    return found


def _has_few_rows(context: JobContext, path: str) -> bool:
    found = facts(context.client, path, ["chunk_row_count"])
    return found is not None and int(found["chunk_row_count"]) <= _FEW_ROWS


def is_exact(known: Known, ends: Known) -> bool:
    """Return whether a batch has to look up each of its keys."""
    return any(known[name].is_large(ends[name]) for name in ends)


def scanned(context: JobContext, path: str, ends: Known) -> Known | None:
    """Return what the whole table has; None if it does not say so in time."""
    return extremes(context.settings, path, ends, _SECONDS)


def added(lines: str) -> Added:
    """Return what Sums.java says of a batch."""
    return {
        name: AddedSum(Bounds(*map(int, figures[:2])), Bounds(*map(int, figures[2:])))
        for name, *figures in _parts(lines)
    }


def totals(lines: str) -> Totals:
    """Return what Sums.java says of the keys that tasks have named."""
    return {
        name: KeyTotal(Bounds(int(least), int(most)), *keys)
        for name, least, most, *keys in _parts(lines)
    }


def _parts(lines: str) -> Iterable[Any]:
    return (line.split("\t") for line in lines.splitlines())
