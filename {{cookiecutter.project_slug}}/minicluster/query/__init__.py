"""`select_rows`: parse, bind to a table, filter, group, order, cut, encode."""

from .run import select

__all__ = ["select"]
