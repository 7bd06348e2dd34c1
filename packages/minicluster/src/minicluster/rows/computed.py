"""Computed columns: their values follow from other columns of the row.

The expressions are those of queries, and queries are above rows: `query/computed.py` brings the
compiler along.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from . import wire

Compiler = Callable[[str, Mapping[str, int]], "Computed"]
"""Takes an expression, and the wire types of the columns in their order. Raises YtError."""

_compilers: list[Compiler] = []


@dataclass(frozen=True)
class Computed:
    """A compiled expression: its wire type, the columns that it needs, the function of a row."""

    kind: int
    needs: frozenset[str]
    evaluate: Callable[[Sequence[Any]], Any]


def use(compiler: Compiler) -> None:
    """Compile expressions with this compiler from now on."""
    _compilers[:] = [compiler]


def compiled(expression: str, columns: Mapping[str, int]) -> Computed:
    (compiler,) = _compilers
    return compiler(expression, columns)


def filled(
    pieces: Mapping[int, bytes], computed: Sequence[tuple[int, Computed]], width: int
) -> dict[int, bytes]:
    """Return the encoded values of a row with those of its computed columns."""
    values: list[Any] = [None] * width
    for column, _, value in wire.values(wire.from_chunks([*pieces.values()])):
        values[column] = value
    made = {
        index: wire.encode_value(
            index, one.kind if (value := one.evaluate(values)) is not None else wire.NULL, value
        )
        for index, one in computed
    }
    return {**pieces, **made}
