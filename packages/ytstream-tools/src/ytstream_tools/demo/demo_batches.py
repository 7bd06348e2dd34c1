"""The demonstration as the ledger has it: its batches, and how many rows they read."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.table import Table

from ytstream.cluster.client import Client
from ytstream.ledger.ledger_rows import batch_name

SHOWN = 10
"""Batches that are shown: the last ones."""


@dataclass(frozen=True)
class BatchHistory:
    """The batch rows of a ledger, the oldest first, and one query with its answer."""

    batches: Sequence[Mapping[str, Any]]
    query: str
    rows_read: int
    """The answer of the cluster: of all queues, and into each output."""
    rows_written: Mapping[str, int]


def read(client: Client, ledger: str, outputs: Sequence[str]) -> BatchHistory:
    """Read the ledger, and ask the cluster how many rows its batches have read and written."""
    columns = "number, epoch, batch, rows_read, rows_written, started, ended"
    batches = client.select_rows(f'{columns} from [{ledger}] where kind = "batch"')
    sums = ["sum(rows_read) as read"]
    for number, name in enumerate(outputs):
        sums.append(f'sum(try_get_int64(rows_written, "/{name}")) as w{number}')
    query = f'{", ".join(sums)} from [{ledger}] where kind = "batch" group by 1'
    answer: Mapping[str, Any] = next(iter(client.select_rows(query)), {})
    return BatchHistory(
        sorted(batches, key=lambda batch: int(batch["number"])),
        query,
        int(answer.get("read", 0)),
        {name: int(answer.get(f"w{number}") or 0) for number, name in enumerate(outputs)},
    )


def rows_read(client: Client, ledger: str) -> int:
    """Return how many rows the batches of the ledger have read."""
    answer = client.select_rows(
        f'sum(rows_read) as read from [{ledger}] where kind = "batch" group by 1'
    )
    return sum(int(row["read"]) for row in answer)


def table_of(history: BatchHistory, outputs: Sequence[str], totals: Collection[str] = ()) -> Table:
    """Return the last batches and the sums of all for the screen.

    ``totals``: the outputs whose tables add up what batches contribute.
    """
    count, shown = len(history.batches), history.batches[-SHOWN:]
    title = f"the ledger: the last {SHOWN} of {count} batches" if count > SHOWN else "the ledger"
    table = Table(title=title, show_footer=True)
    given = {name: "contributions" if name in totals else "rows" for name in outputs}
    sums = {
        "batch": "all",
        "rows read": str(history.rows_read),
        **{f"{what} into {name}": str(history.rows_written[name]) for name, what in given.items()},
        "seconds": "",
    }
    for name, total in sums.items():
        table.add_column(name, total, justify="right")
    for batch in shown:
        seconds = (int(batch["ended"]) - int(batch["started"])) / 1_000_000
        table.add_row(
            batch_name(int(batch["epoch"]), int(batch["batch"])),
            str(batch["rows_read"]),
            *(str(batch["rows_written"][name]) for name in outputs),
            f"{seconds:.1f}",
        )
    return table
