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

from yt.common import YtError

from ..cluster.client import client_of
from ..errors import JobError
from ..errors.error_codes import ErrorCode
from ..job import JobContext
from ..schema.columns import spelled
from ..schema.sums import ENDS, Bounds, Known, sums_of, unknown
from ..settings.job_settings import token

_SECONDS = 10.0
"""Time for the table to say its greatest totals: the batch waits, whose transaction is open."""
_ROWS = 2**40
"""More than any table has: the cluster's own limit of a query is a million."""


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
    """Return the bounds before a batch, by the output's path. Asks tables that are not known.

    And those that may be beyond half, in the first batch of a query: a table that was too slow to
    answer, or whose totals have become less, is asked again.
    """
    found: dict[str, Known] = {}
    for output in context.job.totals:
        path, ends = context.settings.outputs[output], sums_of(context.job.output_columns[output])
        known = {name: bounds for name, bounds in head.get(path, {}).items() if name in ends}
        is_asked = known.keys() != ends.keys() or (
            is_first and any(known[name].is_large(ends[name]) for name in ends)
        )
        if is_asked:
            nobody = {name: unknown(ends[name]) for name in ends}
            known = dict(scanned(context, path, ends) or {**nobody, **known})
        if ends:
            found[path] = known
    return found


def is_exact(known: Known, ends: Known) -> bool:
    """Return whether a batch has to look up each of its keys."""
    return any(known[name].is_large(ends[name]) for name in ends)


def scanned(context: JobContext, path: str, ends: Known) -> Known | None:
    """Return what the whole table has; None if it does not say so in time."""
    names = [*ends]
    asked = ", ".join(
        f"min([{name}]) as least{at}, max([{name}]) as most{at}" for at, name in enumerate(names)
    )
    settings = context.settings
    client = client_of(settings.proxy, token(settings), patient=False, seconds=_SECONDS)
    try:
        rows = [
            *client.select_rows(f"{asked} from [{path}] group by 1 as one", input_row_limit=_ROWS)
        ]
    except (YtError, OSError):
        return None
    found = {**rows[0]} if rows else {}
    return {
        name: Bounds(min(0, found.get(f"least{at}") or 0), max(0, found.get(f"most{at}") or 0))
        for at, name in enumerate(names)
    }


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
