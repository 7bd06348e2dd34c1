"""The least and the greatest value of columns of a table, which reads the whole table."""

from __future__ import annotations

from yt.common import YtError

from ..schema.sums import Bounds, Known
from ..settings.job_settings import Settings, token
from .client import client_of

_ROWS = 2**40
"""More than any table has: the cluster's own limit of a query is a million."""


def extremes(settings: Settings, path: str, ends: Known, seconds: float) -> Known | None:
    """Return the bounds of the columns in ``ends``; None if the table does not say so in time."""
    names = [*ends]
    asked = ", ".join(
        f"min([{name}]) as least{at}, max([{name}]) as most{at}" for at, name in enumerate(names)
    )
    client = client_of(settings.proxy, token(settings), patient=False, seconds=seconds)
    query = f"{asked} from [{path}] group by 1 as one"
    try:
        rows = [*client.select_rows(query, input_row_limit=_ROWS)]
    except (YtError, OSError):
        return None
    found = {**rows[0]} if rows else {}
    return {
        name: Bounds(min(0, found.get(f"least{at}") or 0), max(0, found.get(f"most{at}") or 0))
        for at, name in enumerate(names)
    }
