"""How many tablets the output of a transactional job needs.

A transaction may touch 100 000 rows of one tablet, and all rows of one ``modify_rows`` go to one
tablet drawn at random (YTsaurus, "Transactions"; the native client draws once per request). A batch
of R rows written d at a time makes R/d calls. Each call goes to one random tablet, and no tablet
may receive more than 100 000/d calls.
"""

from math import ceil, exp, lgamma, log, log1p

from ..config import ROWS_PER_TABLET_AND_TRANSACTION as LIMIT

#: The accepted chance that one full batch overflows a tablet. It is aborted then and runs again.
RISK = 1e-6
_MOST_TABLETS = 1_000


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
    """Return why ``tablets`` are too few, with what would do; None when the risk is accepted."""
    risk = overflow_risk(batch_rows, write_batch, tablets)
    if risk <= RISK:
        return None
    more = range(tablets + 1, _MOST_TABLETS)
    enough = next((n for n in more if overflow_risk(batch_rows, write_batch, n) <= RISK), None)
    return (
        f"{tablets} tablets are too few for batches of {batch_rows} rows, {write_batch} per "
        f"write: the chance that one of them gets more than {LIMIT} rows is {risk:.1g} per batch; "
        + (f"{enough} tablets would do" if enough else "no number of tablets would do")
    )


def overflow_risk(batch_rows: int, write_batch: int, tablets: int) -> float:
    """Return an upper bound of the chance that a batch overflows any tablet (union bound)."""
    if batch_rows <= LIMIT:
        return 0.0
    calls, most = ceil(batch_rows / write_batch), LIMIT // write_batch
    if tablets == 1 or most == 0:
        return 1.0

    def chance(k: int) -> float:
        ways = lgamma(calls + 1) - lgamma(k + 1) - lgamma(calls - k + 1)
        return exp(ways - k * log(tablets) + (calls - k) * log1p(-1 / tablets))

    return min(1.0, tablets * sum(map(chance, range(most + 1, calls + 1))))
