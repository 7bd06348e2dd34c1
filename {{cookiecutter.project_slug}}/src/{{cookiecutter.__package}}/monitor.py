"""What the job says while it runs, and the table of `status`."""

import json
import logging
from typing import Any

from pyspark.sql.streaming.query import StreamingQuery

from .cluster import cluster_name
from .positions import read as read_positions
from .settings import Settings
from .state import remarks
from .text import table

_log = logging.getLogger("job")


def say(line: str) -> None:
    """One line for the person who watches: standard error, which YTsaurus keeps of every job."""
    _log.info("%s", line)


class Monitor:
    """Reports each finished micro-batch of one query once."""

    def __init__(self, query: StreamingQuery) -> None:
        self._query = query
        self._reported = -1

    def report(self) -> None:
        """Say a line per batch that ended since the last call and had rows."""
        for progress in self._query.recentProgress:
            # A dict in Spark 4, an object with .json in Spark 3.5.
            text = getattr(progress, "json", None) or json.dumps(progress)
            facts: dict[str, Any] = json.loads(text)
            if facts["batchId"] <= self._reported:
                continue
            self._reported = facts["batchId"]
            lines = remarks(facts)
            for name, counts in facts.get("observedMetrics", {}).items():
                lines += [f"{name}: {count} {what}" for what, count in counts.items() if count]
            if rows := facts["numInputRows"]:
                seconds = facts["durationMs"].get("triggerExecution", 0) / 1000
                lines.insert(0, f"{rows} rows in {seconds:.2f} s")
            for line in lines:
                say(f"batch {facts['batchId']}: {line}")


def status(client: Any, settings: Settings) -> str:
    """Per queue and partition: its rows, both offsets, and the lag, as a table.

    ``next`` is the row the next batch starts with, by the checkpoint; the consumer may be behind.
    """
    positions = read_positions(client, settings)
    done, last = positions.checkpoint.done, positions.checkpoint.last
    rows: list[tuple[str | int, ...]] = []
    lag = 0
    for index, queue in enumerate(positions.queues):
        for partition, (lower, upper) in enumerate(zip(queue.lower, queue.upper, strict=True)):
            consumed = queue.consumed.get(partition, 0)
            after = done.ends[index].get(partition, 0) if done is not None else consumed
            behind = max(0, upper - after)
            rows.append((queue.path, partition, lower, upper, consumed, after, behind))
            lag += behind
    state = "done" if positions.checkpoint.is_last_committed else "running, or cut off"
    return (
        f"{table(('queue', 'partition', 'first', 'end', 'consumer', 'next', 'lag'), rows)}\n\n"
        f"cluster {cluster_name(client)} at {settings.proxy}; lag: {lag} rows; "
        f"last batch: {f'{last.batch} ({state})' if last is not None else 'none yet'}"
    )
