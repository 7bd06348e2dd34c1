"""Figures of a query's reading and writing, for clients (client/query_client/query_statistics.cpp).

Times and memory are 0 (model), and a row that is read weighs what all its columns do (model: the
server reads those that the query names).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from yt import yson

from ..core.errors import generic
from ..tables.ordered import data_weight

_TIMES = ("sync", "async", "execute", "read", "write", "codegen", "wait_on_ready_event")


@dataclass
class Statistics:
    """Counts of one query."""

    rows_read: int = 0
    data_weight_read: int = 0
    rows_written: int = 0

    def counted(self, rows: Iterator[bytes]) -> Iterator[bytes]:
        """Yield the rows, each counted as read."""
        for row in rows:
            self.rows_read += 1
            self.data_weight_read += data_weight(row)
            yield row

    def verify(self, limit: int | None) -> None:
        """Raise YtError if the query has read more rows than its limit; None: it has none.

        A server has a limit of its own (a million by default), which this one lacks.
        """
        if limit is not None and self.rows_read > limit:
            raise generic(
                "Query terminated prematurely due to excessive input; consider rewriting your "
                "query or changing input limit",
                input_row_limit=limit,
            )

    def to_yson(self) -> dict[str, Any]:
        return {
            "rows_read": self.rows_read,
            "data_weight_read": self.data_weight_read,
            "rows_written": self.rows_written,
            **{f"{name}_time": yson.YsonUint64(0) for name in _TIMES},
            "memory_usage": yson.YsonUint64(0),
            "incomplete_input": False,
            "incomplete_output": False,
        }
