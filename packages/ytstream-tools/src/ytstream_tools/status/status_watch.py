"""`status --watch`: a view that renews itself, for 80 columns over ssh."""

import shutil
import sys
from collections.abc import Iterator, Sequence
from typing import TextIO

from yt.common import YtError

from ytstream.cluster.client import first_line
from ytstream.job import JobContext
from ytstream.recovery import spark_logs
from ytstream.text_table import Cell, counted, duration, table

from . import job_status, live_view
from .job_status import JobStatus, PartitionStatus, ProcessState
from .live_view import SIZE

_BAR = 12
_OTHERS = 13
"""Lines in addition to the partitions and the batches, with their headings."""


def watch(context: JobContext, every: float, out: TextIO = sys.stdout) -> None:
    """Show where the job is every so many seconds, until Ctrl-C, also while the cluster is away.

    A file or a pipe gets one view after the other.
    """
    live_view.show(_views(context), every, out)


def _views(context: JobContext) -> Iterator[list[str]]:
    """Yield the lines of each view, without an end."""
    found: JobStatus | None = None
    while True:
        before, note = found, ""
        try:
            found = job_status.read(context)
        except (YtError, OSError) as error:
            note = f"no answer: {first_line(error)}"
        size = shutil.get_terminal_size(SIZE)
        yield view(context, found, before, note, size) if found else [note]


def view(
    context: JobContext,
    found: JobStatus,
    before: JobStatus | None,
    note: str = "",
    size: tuple[int, int] = SIZE,
) -> list[str]:
    """Return the lines of one view, none longer than the terminal is wide."""
    width, height = size
    rows = max(2, (height - _OTHERS) // 2)
    lines = [
        *_head(context, found, width),
        *_lag(found, before),
        *_rejected(found),
        "",
        *_partitions(found, rows, width),
        "",
        *_batches(found, rows),
        "",
        note or "Ctrl-C ends this view; the job does not notice it",
    ]
    return live_view.cut(lines, width)


def _head(context: JobContext, found: JobStatus, width: int) -> Iterator[str]:
    name = f"{context.job.name} on {found.cluster}"
    clock = f"{found.time:%Y-%m-%d %H:%M:%S} UTC"
    room = max(0, width - len(clock) - 2)
    yield f"{name[:room]:<{room}}  {clock}"
    if found.head is None:
        yield found.process
        return
    said = f" ({found.how})" if found.how and found.process != ProcessState.RUNNING else ""
    yield (
        f"{found.process}{said}, epoch {found.head.epoch}, "
        f"{counted(found.head.number, 'batch')}, {counted(found.epochs, 'restart')} in a day"
    )
    if found.state is not None:
        mark = spark_logs.named(found.state.watermark) if found.state.watermark else "none yet"
        rows = counted(found.state.rows or 0, "row")
        yield f"state {rows}, {found.state.bytes / 1024**2:.1f} MiB; watermark {mark}"
    if found.static is not None:
        yield f"{counted(found.static.waiting, 'static table')} waiting for publication"
    for archive in found.archives:
        yield archive.text[:width]


def _lag(found: JobStatus, before: JobStatus | None) -> Iterator[str]:
    arriving = arriving_between(before, found)
    waited = "" if not found.lag or found.lag_seconds is None else duration(found.lag_seconds)
    parts = [f"lag {found.lag:,} rows" + (f", {waited}" if waited else "")]
    if found.rate is not None:
        parts.append(f"reads {found.rate:,.0f} rows/s")
    if arriving is not None:
        parts.append(f"arriving {arriving:,.0f} rows/s")
    if found.lag:
        left = found.seconds_left(arriving or 0.0)
        parts.append("does not catch up" if left is None else f"caught up in {duration(left)}")
    yield " | ".join(parts)


def arriving_between(before: JobStatus | None, found: JobStatus) -> float | None:
    """Return how many rows per second have come into the queues between two looks."""
    if before is None or before is found:
        return None
    seconds = (found.time - before.time).total_seconds()
    rows = sum(p.end for p in found.partitions) - sum(p.end for p in before.partitions)
    return max(0, rows) / seconds if seconds > 0 else None


def _rejected(found: JobStatus) -> Iterator[str]:
    if found.rejected:
        most = sorted(found.rejected.items(), key=lambda item: -item[1])[:3]
        yield "rejected: " + ", ".join(f"{rows:,} {reason}" for reason, rows in most)


def _partitions(found: JobStatus, count: int, width: int) -> Iterator[str]:
    """Yield the partitions in which most rows wait."""
    late = sorted(found.partitions, key=lambda p: (-p.lag, p.queue, p.number))[:count]
    most = max((p.lag for p in late), default=0)
    room = max(12, width - 54 - _BAR)
    rows: list[Sequence[Cell]] = [
        (
            *(_short(p.queue, room), p.number, p.next, p.end, p.lag),
            "" if p.seconds is None else round(p.seconds),
            "#" * _part(p, most),
        )
        for p in late
    ]
    header = ("queue", "partition", "next", "end", "lag", "seconds", "")
    yield from table(header, rows).splitlines()
    if len(found.partitions) > len(late):
        yield f"... and {counted(len(found.partitions) - len(late), 'partition')} with less"


def _part(partition: PartitionStatus, most: int) -> int:
    return -(-_BAR * partition.lag // most) if most else 0


def _short(path: str, room: int) -> str:
    return path if len(path) <= room else "..." + path[len(path) - room + 3 :]


def _batches(found: JobStatus, count: int) -> Iterator[str]:
    rows: list[Sequence[Cell]] = [
        (
            *(b.name, f"{b.ended:%H:%M:%S}", b.read, sum(b.written.values())),
            *(sum(b.rejected.values()), b.late, round(b.seconds, 1)),
        )
        for b in found.recent[-count:]
    ]
    header = ("batch", "ended", "read", "written", "rejected", "late", "seconds")
    yield from table(header, rows).splitlines()
