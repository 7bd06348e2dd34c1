"""`select_rows`: parse, bind to a table, filter, group, order, cut, encode."""

from .run import select
from .statistics import Statistics

__all__ = ["Statistics", "select"]
