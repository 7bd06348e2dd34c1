"""Sums in tables (`aggregate="sum"`): how near totals may be to the ends of their type.

A table wraps a sum beyond 64 bits without an error (YTsaurus, udf/sum.c). A double has no such end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import yt.type_info as ti

from .columns import Column


class Bounds(NamedTuple):
    """No total of a column is less, and none is more. 0 is always between them."""

    least: int = 0
    most: int = 0

    def plus(self, added: Bounds) -> Bounds:
        """Return the bounds once a key may have got so much more."""
        return Bounds(self.least + added.least, self.most + added.most)

    def with_(self, other: Bounds) -> Bounds:
        """Return the bounds of both."""
        return Bounds(min(self.least, other.least), max(self.most, other.most))

    def is_within(self, ends: Bounds) -> bool:
        """Return whether all of them are numbers of the type with these ends."""
        return ends.least <= self.least and self.most <= ends.most

    def is_large(self, ends: Bounds) -> bool:
        """Return whether a total may be beyond half of the type."""
        return not self.is_within(half_of(ends))

    def share(self, ends: Bounds) -> float:
        """Return the part of the type that the largest total may have used up."""
        down = self.least / ends.least if ends.least else 0.0
        return max(down, self.most / ends.most)


ENDS: Mapping[object, Bounds] = {
    ti.Int64: Bounds(-(2**63), 2**63 - 1),
    ti.Uint64: Bounds(0, 2**64 - 1),
}
"""The least and the greatest number of a type."""
Known = Mapping[str, Bounds]
"""Column -> the bounds of its totals."""


def half_of(ends: Bounds) -> Bounds:
    """Return the numbers that leave the other half of the type to one batch."""
    return Bounds(-(-ends.least // 2), ends.most // 2)


def quarter_of(ends: Bounds) -> Bounds:
    """Return the bounds of totals that nobody has asked for."""
    return half_of(half_of(ends))


def sums_of(columns: Sequence[Column]) -> Known:
    """Return the columns whose sums have an end: name -> the ends of the type."""
    return {
        column.name: ENDS[column.type]
        for column in columns
        if column.aggregate == "sum" and column.type in ENDS
    }
