"""Steps of the tests that read a job from outside: rows, a ledger, a command."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.support.simulated_driver import BID
from ytstream import cli
from ytstream.job import JobContext
from ytstream.ledger.ledger_rows import BatchRow, Head, batch_row
from ytstream_tools.demo.demo_tables import produce

NOW = datetime.now(UTC).replace(microsecond=0)


def send(context: JobContext, count: int) -> None:
    """Append bids, dealt out over the four tablets of the first queue."""
    produce(context.client, context.settings.queues[0], [BID] * count, 4)


def write_rows(context: JobContext, *rows: Mapping[str, Any]) -> None:
    context.client.insert_rows(context.settings.ledger, rows)


def head_of_batch(context: JobContext, number: int, epoch: int = 3, **more: Any) -> Head:
    """Return a head whose queue ids are those of the cluster."""
    queues = context.settings.queues
    ids = {path: str(context.client.get(f"{path}/@id")) for path in queues}
    return Head(epoch, "process 1 on host, abc", epoch, number - 1, number, ids=ids, **more)


def write_batches(
    context: JobContext, numbers: range, epoch: Callable[[int], int] = lambda _: 3,
    seconds: float = 10.0, **more: Any,
) -> None:  # fmt: skip
    """Write rows of batches of 100 rows in 2.5 s; the last one has ended now."""
    rows = []
    for number in numbers:
        ended = NOW - timedelta(seconds=seconds * (numbers[-1] - number))
        queue = context.settings.queues[0]
        done = BatchRow(
            {queue: {0: (0, 100)}}, {"output": 99, "rejected": 1},
            ended - timedelta(seconds=2.5), ended, **more,
        )  # fmt: skip
        rows.append(batch_row(Head(epoch=epoch(number), batch=number - 1, number=number), done))
    write_rows(context, *rows)


def without_times(context: JobContext) -> None:
    """Recreate the queue without the columns that the cluster fills in."""
    client, queue = context.client, context.settings.queues[0]
    found = client.get(f"{queue}/@", attributes=["schema", "tablet_count"])
    found["schema"] = [column for column in found["schema"] if column["name"][0] != "$"]
    client.remove(queue)
    client.create("table", queue, attributes={"dynamic": True, **found})
    client.mount_table(queue, sync=True)


def invoke(context: JobContext, folder: Path, *words: str, command: str = "status") -> int:
    """Run the command as the command line does; return its exit code."""
    settings = context.settings
    lines = [
        f'proxy = "{settings.proxy}"',
        f'queues = ["{settings.queues[0]}"]',
        *(f'{name} = "{getattr(settings, name)}"' for name in ("consumer", "checkpoint", "ledger")),
        "[outputs]",
        *(f'{name} = "{path}"' for name, path in settings.outputs.items()),
    ]
    (folder / "local.toml").write_text("\n".join(lines))
    given = [command, "--config", str(folder / "local.toml"), *words]
    return cli.run("bids", lambda: context.job, given)
