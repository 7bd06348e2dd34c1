"""A cluster as a generated job leaves it: queues with rows, and the batches that have read them.

`python -m tests.template.production PROXY BATCHES ROWS COMMIT` in a process that can import the
project. The commit is in the record that a submit has left; there is no operation.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

from ytstream.cluster.client import connect
from ytstream.guarantees import guarantee_of
from ytstream.job import JobContext
from ytstream.ledger.ledger_rows import BatchRow, Head, batch_row, head_row
from ytstream.provisioning import job_objects
from ytstream.settings.job_settings import load
from ytstream_tools.demo.demo_tables import fill_reference, produce
from ytstream_tools.submitting.version_history import DeployedVersion, StartState, VersionHistory

_DAY = 86_400_000_000


def main(proxy: str, batches: int, count: int, commit: str) -> None:
    """Make the job's tables, and let each batch have read ``count`` rows, a day after the last."""
    root = Path(str(import_module("bids_stream").__file__)).parents[2]
    job, sample = import_module("bids_stream.job").JOB, import_module("sample").SAMPLE
    settings = load(root / "config/local.toml", {"YT_PROXY": proxy})
    context = JobContext(connect(settings), settings, job, guarantee_of(job))
    job_objects.provision(context)
    fill_reference(context, sample)
    ends = {queue: _ends(context, queue) for queue in settings.queues}
    rows, now = [], datetime.now(UTC)
    for number in range(1, batches + 1):
        for queue in settings.queues:
            made = sample.make(count, number, sample.start_us + number * _DAY)
            produce(context.client, queue, made, len(ends[queue]))
        after = {queue: _ends(context, queue) for queue in settings.queues}
        ranges = {
            queue: {p: (row, after[queue][p]) for p, row in ends[queue].items()} for queue in ends
        }
        head = Head(1, "process 1 on host, a", 1, number - 1, number, after)
        ended = now - timedelta(minutes=batches - number)
        rows.append(batch_row(head, BatchRow(ranges, {"output": count}, ended, ended)))
        ends = after
    ids = {queue: str(context.client.get(f"{queue}/@id")) for queue in settings.queues}
    last = Head(1, "process 1 on host, a", 1, batches - 1, batches, ends, ids)
    context.client.insert_rows(settings.ledger, [*rows, head_row(last)])
    started = now.isoformat()
    record = DeployedVersion(
        "a", StartState.WORKS, {"commit": commit}, started=started, ended=started
    )
    VersionHistory(context.client, settings).write(record)


def _ends(context: JobContext, queue: str) -> dict[int, int]:
    tablets = list(range(int(context.client.get(f"{queue}/@tablet_count"))))
    infos: Any = context.client.get_tablet_infos(queue, tablets)["tablets"]
    return {partition: int(info["total_row_count"]) for partition, info in enumerate(infos)}


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
