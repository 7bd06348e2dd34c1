"""How many tablets the output of a transactional job needs.

A transaction may touch 100,000 rows of one tablet (YTsaurus, "Transactions"). Where a row goes:

- Without a key, all rows of one ``modify_rows`` go to one tablet drawn at random (the native client
  draws once per request). A batch of R rows written d at a time makes R/d calls. Each call goes to
  one random tablet, and no tablet may receive more than 100,000/d calls.
- With a key, a row goes to the tablet between whose pivot keys its own lies.

Keys are those of ``resharding``, which compare as YTsaurus compares them.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from math import ceil, exp, lgamma, log, log1p
from typing import Any

from ..settings.job_settings import ROWS_PER_TABLET_AND_TRANSACTION as LIMIT

RISK = 1e-6
"""The accepted chance that one full batch overflows a tablet. It is aborted then and runs again."""
HEADROOM = 2
"""A table that is resharded gets tablets for this many times the rows that did not fit."""
_MOST_TABLETS = 1_000
_MOST_ROWS = 10**9

Key = tuple[Any, ...]
"""A key, or the front of one."""


def default_write_batch(batch_rows: int) -> int:
    """Return the rows per ``modify_rows``: a call costs more than many rows do.

    At least twenty calls per batch, for all tablets to get some; and as many rows as the default
    number of tablets bears.
    """
    is_borne = overflow_risk(batch_rows, 5_000, default_tablets(batch_rows)) <= RISK
    return max(1, min(5_000 if is_borne else 2_000, batch_rows // 20))


def default_tablets(batch_rows: int) -> int:
    """Return the tablets for batches of that size in default calls: 2.6 times the bare quotient."""
    return max(4, ceil(2.6 * batch_rows / LIMIT))


def problem(batch_rows: int, write_batch: int, tablets: int) -> str | None:
    """Return why ``tablets`` are too few; None when the risk is accepted."""
    risk = overflow_risk(batch_rows, write_batch, tablets)
    if risk <= RISK:
        return None
    enough = enough_tablets(batch_rows, write_batch)
    return (
        f"{tablets} tablets are too few for batches of {batch_rows} rows, {write_batch} per "
        f"write: the chance that one of them gets more than {LIMIT} rows is {risk:.1g} per batch; "
        + (f"{enough} tablets would do" if enough else "no number of tablets would do")
    )


def enough_tablets(batch_rows: int, write_batch: int, limit: int = LIMIT) -> int | None:
    """Return the fewest tablets that bear the batch; None when no number does."""

    def is_borne(tablets: int) -> bool:
        return overflow_risk(batch_rows, write_batch, tablets, limit) <= RISK

    return _first(is_borne, 1, _MOST_TABLETS) if is_borne(_MOST_TABLETS) else None


def borne(tablets: int, write_batch: int) -> int:
    """Return the rows without a key that ``tablets`` bear in one batch."""

    def is_too_large(rows: int) -> bool:
        return overflow_risk(rows, write_batch, tablets) > RISK

    return _first(is_too_large, 1, _MOST_ROWS) - 1


def borne_by_key(tablets: int) -> int:
    """Return the rows with a key that ``tablets`` bear when their keys are spread evenly."""
    return tablets * LIMIT


def overflow_risk(batch_rows: int, write_batch: int, tablets: int, limit: int = LIMIT) -> float:
    """Return an upper bound of the chance that a batch overflows any tablet (union bound)."""
    if batch_rows <= limit:
        return 0.0
    calls, most = ceil(batch_rows / write_batch), limit // write_batch
    if tablets == 1 or calls >= tablets * most:  # even the mean is too much
        return 1.0
    risk = 0.0
    for k in range(most + 1, calls + 1):
        ways = lgamma(calls + 1) - lgamma(k + 1) - lgamma(calls - k + 1)
        chance = exp(ways - k * log(tablets) + (calls - k) * log1p(-1 / tablets))
        risk += tablets * chance
        if chance <= risk * 1e-6:  # beyond the mean each is smaller than the one before
            break
    return min(1.0, risk)


def fullest(keys: Sequence[Key], pivots: Sequence[Key], rows: int) -> int:
    """Return about how many of a batch's rows go to the tablet that gets most of them.

    ``keys``, in their order, are those of the rows, or a sample of them.
    """
    return max((len(part) for part in _parts(keys, pivots)), default=0) * rows // max(1, len(keys))


def split(keys: Sequence[Key], pivots: Sequence[Key], rows: int, limit: int = LIMIT) -> list[Key]:
    """Return ``pivots`` with more of them: keys of the batch, where it fills a tablet too much."""
    found = list(pivots)
    for part in _parts(keys, pivots):
        share = len(part) * rows / len(keys)
        pieces = min(len(part), ceil(HEADROOM * share / limit))
        found += [part[len(part) * piece // pieces] for piece in range(1, pieces)]
    return sorted(set(found))


def _parts(keys: Sequence[Key], pivots: Sequence[Key]) -> list[Sequence[Key]]:
    """Return the keys of each tablet that gets some."""
    ends = [*(bisect_left(keys, pivot) for pivot in pivots[1:]), len(keys)]
    return [keys[a:b] for a, b in zip([0, *ends], ends, strict=False) if a < b]


def _first(is_true: Callable[[int], bool], low: int, high: int) -> int:
    """Return the first number for which the condition is true, as it is for all later ones."""
    return low + bisect_left(range(low, high), True, key=is_true)
